//! The user that a proxy's workers become when the proxy is started by root.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use crate::SutError;

/// Name or number of a user or a group in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id<'a> {
    Name(&'a str),
    Number(u32),
}

/// A user and its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerUser {
    pub name: String,
    pub group: String,
    uid: u32,
    pub gid: u32,
}

impl WorkerUser {
    /// Returns the user of the workers: the first of `names` that exists. `None` if weir is not root, since the workers
    /// then run as weir's user.
    pub fn find(names: &[&str]) -> Option<WorkerUser> {
        WorkerUser::named(None, None, names)
    }

    /// Does the same as [`WorkerUser::find`] for a configuration that may name a user and a group: these if they exist,
    /// or else one of `names` and the user's own group.
    pub fn named(
        user: Option<Id<'_>>,
        group: Option<Id<'_>>,
        names: &[&str],
    ) -> Option<WorkerUser> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let passwd = fs::read_to_string("/etc/passwd").ok()?;
        let groups = fs::read_to_string("/etc/group").ok()?;
        let mut users = user.into_iter().chain(names.iter().map(|name| Id::Name(name)));
        users.find_map(|user| WorkerUser::look_up(user, group, &passwd, &groups))
    }

    /// Looks a user and a group up in the texts of passwd(5) and group(5).
    fn look_up(
        user: Id<'_>,
        group: Option<Id<'_>>,
        passwd: &str,
        groups: &str,
    ) -> Option<WorkerUser> {
        let user = entry(user, passwd)?;
        let primary = Id::Number(user.get(3)?.parse().ok()?);
        let named = group.and_then(|group| entry(group, groups));
        let group = named.or_else(|| entry(primary, groups))?;
        Some(WorkerUser {
            name: (*user.first()?).to_owned(),
            group: (*group.first()?).to_owned(),
            uid: user.get(2)?.parse().ok()?,
            gid: group.get(2)?.parse().ok()?,
        })
    }

    /// Lets the user read a file, by its group.
    pub(crate) fn may_read(&self, file: &Path) -> io::Result<()> {
        chown(file, None, Some(self.gid))?;
        fs::set_permissions(file, Permissions::from_mode(0o640))
    }

    /// Checks by modes that the user may enter a folder and all folders above it.
    pub fn must_reach(&self, folder: &Path) -> Result<(), SutError> {
        for folder in folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            let metadata = fs::metadata(folder).map_err(SutError::file("read", folder))?;
            let bit = match () {
                () if metadata.uid() == self.uid => 0o100,
                () if metadata.gid() == self.gid => 0o010,
                () => 0o001,
            };
            if metadata.mode() & bit == 0 {
                return Err(SutError::NotReadable {
                    path: folder.to_owned(),
                    user: self.name.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Returns the fields of an entry of passwd(5) or group(5): both begin with a name and have its number in the third
/// field.
fn entry<'t>(id: Id<'_>, database: &'t str) -> Option<Vec<&'t str>> {
    let mut entries = database.lines().map(|line| line.split(':').collect());
    entries.find(|fields: &Vec<&str>| match id {
        Id::Name(name) => fields.first() == Some(&name),
        Id::Number(number) => fields.get(2).and_then(|field| field.parse().ok()) == Some(number),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n";
    const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";

    fn look_up(name: &str, groups: &str) -> Option<WorkerUser> {
        WorkerUser::look_up(Id::Name(name), None, PASSWD, groups)
    }

    #[test]
    fn the_group_is_the_user_s_own_whatever_it_is_called() {
        let user = look_up("nobody", GROUP).unwrap();
        assert_eq!((&*user.name, &*user.group), ("nobody", "nogroup"));
        assert_eq!(look_up("www-data", GROUP), None);
        assert_eq!(look_up("nobody", "root:x:0:\n"), None);
    }

    #[test]
    fn a_group_that_is_named_is_taken_if_there_is_one() {
        let groups = format!("{GROUP}web:x:33:nobody\n");
        for (user, group, expected) in [
            (Id::Name("nobody"), Id::Name("web"), ("nobody", "web", 33)),
            (Id::Number(65534), Id::Number(33), ("nobody", "web", 33)),
            (Id::Name("nobody"), Id::Name("nobody"), ("nobody", "nogroup", 65534)),
            (Id::Name("root"), Id::Number(1), ("root", "root", 0)),
        ] {
            let worker = WorkerUser::look_up(user, Some(group), PASSWD, &groups).unwrap();
            assert_eq!((&*worker.name, &*worker.group, worker.gid), expected);
        }
        assert_eq!(WorkerUser::look_up(Id::Number(1), None, PASSWD, GROUP), None);
    }

    #[test]
    fn a_folder_in_the_way_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let closed = outer.path().join("closed");
        let inner = closed.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let user = WorkerUser {
            uid: u32::MAX - 1,
            gid: u32::MAX - 1,
            ..look_up("nobody", GROUP).unwrap()
        };
        for (mode, is_reached) in [(0o755, true), (0o750, false)] {
            fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o755)).unwrap();
            fs::set_permissions(&closed, PermissionsExt::from_mode(mode)).unwrap();
            let reached = user.must_reach(&inner);
            assert_eq!(reached.is_ok(), is_reached, "{mode:o}: {reached:?}");
            if let Err(error) = reached {
                assert!(error.to_string().starts_with(&closed.display().to_string()), "{error}");
            }
        }
    }
}
