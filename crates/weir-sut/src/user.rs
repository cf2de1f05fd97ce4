//! The user that a proxy's workers become when the proxy is started by root.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::SutError;

/// A user and its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkerUser {
    pub(crate) name: String,
    pub(crate) group: String,
    uid: u32,
    gid: u32,
}

impl WorkerUser {
    /// The user of the workers, the first of `names` that there is; `None` when weir is not root, since
    /// they then are as weir is.
    pub(crate) fn find(names: &[&str]) -> Option<WorkerUser> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let passwd = fs::read_to_string("/etc/passwd").ok()?;
        let group = fs::read_to_string("/etc/group").ok()?;
        names
            .iter()
            .find_map(|name| WorkerUser::look_up(name, &passwd, &group))
    }

    /// Reads passwd(5) and group(5).
    fn look_up(name: &str, passwd: &str, group: &str) -> Option<WorkerUser> {
        let user: Vec<&str> = passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|fields| fields.first() == Some(&name))?;
        let gid = *user.get(3)?;
        let group = group
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|fields| fields.get(2) == Some(&gid))?;
        Some(WorkerUser {
            name: name.to_owned(),
            group: (*group.first()?).to_owned(),
            uid: user.get(2)?.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    }

    /// Whether the user may enter a folder and all above it, as far as modes say.
    pub(crate) fn must_reach(&self, folder: &Path) -> Result<(), SutError> {
        for folder in folder
            .ancestors()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n";
    const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";

    #[test]
    fn the_group_is_the_user_s_own_whatever_it_is_called() {
        let user = WorkerUser::look_up("nobody", PASSWD, GROUP).unwrap();
        assert_eq!((&*user.name, &*user.group), ("nobody", "nogroup"));
        assert_eq!(WorkerUser::look_up("www-data", PASSWD, GROUP), None);
        assert_eq!(WorkerUser::look_up("nobody", PASSWD, "root:x:0:\n"), None);
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
            ..WorkerUser::look_up("nobody", PASSWD, GROUP).unwrap()
        };
        for (mode, is_reached) in [(0o755, true), (0o750, false)] {
            fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o755)).unwrap();
            fs::set_permissions(&closed, PermissionsExt::from_mode(mode)).unwrap();
            let reached = user.must_reach(&inner);
            assert_eq!(reached.is_ok(), is_reached, "{mode:o}: {reached:?}");
            if let Err(error) = reached {
                assert!(
                    error.to_string().starts_with(&closed.display().to_string()),
                    "{error}"
                );
            }
        }
    }
}
