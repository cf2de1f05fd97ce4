//! Checks that nobody but this user and root could have written a file.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::geteuid;

use crate::access::{has_access_list, is_group_of_one_user};

/// The bit of a mode by which its group may write, or whoever an access control list names.
const GROUP_WRITABLE: u32 = 0o020;
/// The bit of a mode by which everybody may write.
const ALL_WRITABLE: u32 = 0o002;
/// Sticky bit of a folder, in which users may remove and rename only their own files (inode(7)).
const STICKY: u32 = 0o1000;
/// Owner that the kernel reports for files whose owner has no number in a user namespace (user_namespaces(7)).
const UNMAPPED: u32 = 65_534;

/// Files and folders (device and inode number) that belonged to root before this process entered a user namespace of
/// its own. Within the namespace, all files of other owners show the same owner.
static SEEN_AS_ROOT_S: OnceLock<BTreeSet<(u64, u64)>> = OnceLock::new();

/// Error for a file or folder that other users could have written.
#[derive(Debug, thiserror::Error)]
#[error("{} {why}", path.display())]
pub struct NotOurs {
    /// The file or folder that is open to others, possibly a parent of the one that was checked.
    pub path: PathBuf,
    /// Reason, as text.
    pub why: String,
}

/// Refuses a folder in which others could have created, renamed or replaced a file. That is a folder that belongs to
/// neither this user nor root (nor the user who became root by sudo), a folder that others may write, a symbolic link,
/// and every folder below such a one. A parent that others may write is accepted if it is sticky, like /tmp.
///
/// # Errors
/// The first folder, from the inside out, that is refused or cannot be inspected.
pub fn only_ours(folder: &Path) -> Result<(), NotOurs> {
    let written = std::path::absolute(folder).map_err(unseen(folder))?;
    let real = fs::canonicalize(&written).map_err(unseen(folder))?;
    // As it is written, for links in it; and where these lead.
    judge(&written, true)?;
    judge(&real, true)
}

/// Does the same as [`only_ours`] for a folder that the user named: it may be a symbolic link that nobody else could
/// have created.
///
/// # Errors
/// Same as [`only_ours`].
pub fn only_ours_named(folder: &Path) -> Result<(), NotOurs> {
    let written = std::path::absolute(folder).map_err(unseen(folder))?;
    let real = fs::canonicalize(&written).map_err(unseen(folder))?;
    judge(&written, false)?;
    judge(&real, true)
}

/// Same as [`only_ours_named`] for a folder that is made if it is not there: then for the innermost one above it that
/// is, in which nobody else may replace what is made.
///
/// # Errors
/// Same as [`only_ours`].
pub fn only_ours_to_be_made(folder: &Path) -> Result<(), NotOurs> {
    let written = std::path::absolute(folder).map_err(unseen(folder))?;
    if fs::symlink_metadata(&written).is_ok() {
        return only_ours_named(&written);
    }
    let above = written.parent().unwrap_or(Path::new("/"));
    let present =
        above.ancestors().find(|path| fs::symlink_metadata(path).is_ok()).unwrap_or(Path::new("/"));
    let real = fs::canonicalize(present).map_err(unseen(present))?;
    judge(present, false)?;
    judge(&real, false)
}

/// Refuses a folder to which a link of another user's leads, who can have it lead elsewhere.
///
/// # Errors
/// The link.
pub(crate) fn no_foreign_link(folder: &Path) -> Result<(), NotOurs> {
    let written = std::path::absolute(folder).map_err(unseen(folder))?;
    for path in written.ancestors() {
        let link = fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
        if let Some(why) = link.and_then(|link| stranger(&link)) {
            let (path, why) = (path.to_owned(), format!("is a link, and {why}"));
            return Err(NotOurs { path, why });
        }
    }
    Ok(())
}

/// Does the same as [`only_ours`] for a file: it must belong to this user or root, must not be a symbolic link, and
/// nobody else may write it or replace it.
///
/// # Errors
/// Same as [`only_ours`].
pub fn only_ours_file(path: &Path) -> Result<(), NotOurs> {
    let metadata = fs::symlink_metadata(path).map_err(unseen(path))?;
    let fault = match () {
        () if metadata.is_symlink() => Some("is a link".to_owned()),
        () if !metadata.is_file() => Some("is not a file".to_owned()),
        () => fault_of(path, &metadata, true),
    };
    if let Some(why) = fault {
        return Err(NotOurs { path: path.to_owned(), why });
    }
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    only_ours(folder.unwrap_or(Path::new(".")))
}

/// Does the same as [`only_ours_file`] for a file that the user named: symbolic links that nobody else could have
/// created are followed, as those of a pod's projected volume, in a folder like /tmp.
///
/// # Errors
/// Same as [`only_ours`].
pub fn only_ours_file_named(path: &Path) -> Result<(), NotOurs> {
    let written = std::path::absolute(path).map_err(unseen(path))?;
    let real = fs::canonicalize(&written).map_err(unseen(&written))?;
    judge_file(&written)?;
    only_ours_file(&real)
}

/// Does the same as [`only_ours_file_named`] for a file that is there, and also accepts one in a sticky folder like
/// /tmp, in which nobody else can replace it.
///
/// # Errors
/// Same as [`only_ours`].
pub fn only_ours_file_to_read(path: &Path) -> Result<(), NotOurs> {
    let written = std::path::absolute(path).map_err(unseen(path))?;
    let real = fs::canonicalize(&written).map_err(unseen(&written))?;
    judge_file(&written)?;
    let metadata = fs::symlink_metadata(&real).map_err(unseen(&real))?;
    if let Some(why) = fault_of(&real, &metadata, true) {
        return Err(NotOurs { path: real, why });
    }
    judge(real.parent().unwrap_or(Path::new("/")), false)
}

/// Notes which of these paths, and of the folders above them and of all that links lead through, are root's, before
/// this process enters a user namespace. From then on, whatever has no owner there counts as another user's, unless it
/// has been noted.
pub fn note_what_is_root_s(paths: impl IntoIterator<Item = PathBuf>) {
    let mut paths: Vec<PathBuf> = paths.into_iter().collect();
    let (mut seen, mut followed) = (BTreeSet::new(), BTreeSet::new());
    while let Some(path) = paths.pop() {
        let Ok(path) = std::path::absolute(path) else {
            continue;
        };
        // What is to be made there is in the folder that is.
        let real = path.ancestors().find_map(|path| fs::canonicalize(path).ok());
        let real_ancestors = real.iter().flat_map(|real| real.ancestors());
        for path in path.ancestors().chain(real_ancestors) {
            let Ok(found) = fs::symlink_metadata(path) else {
                continue;
            };
            let file = (found.dev(), found.ino());
            if found.uid() == 0 {
                seen.insert(file);
            }
            if found.is_symlink() && followed.insert(file) {
                paths.extend(target_of(path).ok());
            }
        }
    }
    let _ = SEEN_AS_ROOT_S.set(seen);
}

/// Checks a folder and all its parents; `is_last` means that nothing below the folder is checked by itself.
fn judge(folder: &Path, is_last: bool) -> Result<(), NotOurs> {
    for (above, path) in folder.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(path).map_err(unseen(path))?;
        let is_innermost = is_last && above == 0;
        let fault = match () {
            () if metadata.is_symlink() && is_innermost => Some("is a link".to_owned()),
            () if metadata.is_symlink() => stranger(&metadata),
            () if !metadata.is_dir() => Some("is not a folder".to_owned()),
            () => fault_of(path, &metadata, is_innermost),
        };
        if let Some(why) = fault {
            return Err(NotOurs { path: path.to_owned(), why });
        }
        if metadata.is_symlink() {
            judge_file(&target_of(path)?)?;
        }
    }
    Ok(())
}

/// Judges what leads to a file: the folders above it, and itself if it is a link, with what leads to its target. There
/// is an end to it if the kernel can open the file.
fn judge_file(path: &Path) -> Result<(), NotOurs> {
    judge(path.parent().unwrap_or(Path::new("/")), false)?;
    let metadata = fs::symlink_metadata(path).map_err(unseen(path))?;
    if !metadata.is_symlink() {
        return Ok(());
    }
    if let Some(why) = stranger(&metadata) {
        return Err(NotOurs { path: path.to_owned(), why });
    }
    judge_file(&target_of(path)?)
}

/// The path that a link names, below the real folder that the link is in.
fn target_of(link: &Path) -> Result<PathBuf, NotOurs> {
    let above = link.parent().unwrap_or(Path::new("/"));
    let above = fs::canonicalize(above).map_err(unseen(above))?;
    Ok(above.join(fs::read_link(link).map_err(unseen(link))?))
}

/// Why a file or folder cannot be trusted; one that is not innermost is fine if it is sticky.
fn fault_of(path: &Path, found: &Metadata, is_innermost: bool) -> Option<String> {
    if let Some(why) = stranger(found) {
        return Some(why);
    }
    let mode = found.mode();
    if !is_innermost && mode & STICKY != 0 {
        return None;
    }
    if mode & GROUP_WRITABLE != 0 && has_access_list(path) {
        let why =
            "can be written by others, as its access control list says (`setfacl -b` removes that)";
        return Some(why.to_owned());
    }
    let is_open_to_group = mode & GROUP_WRITABLE != 0 && !is_own_group(found.gid());
    (is_open_to_group || mode & ALL_WRITABLE != 0)
        .then(|| format!("can be written by others (its mode is {:04o})", mode & 0o7777))
}

/// Returns true if a group has nobody in it but this user, who is not root, or was not before.
fn is_own_group(group: u32) -> bool {
    group != 0 && own_users().contains(&group) && is_group_of_one_user(group)
}

/// Returns the reason to refuse a file that belongs to neither this user nor root; `None` if it is accepted.
fn stranger(metadata: &Metadata) -> Option<String> {
    let owner = metadata.uid();
    let is_unmapped = owner == UNMAPPED && may_be_root_s(metadata);
    if owner == 0 || own_users().contains(&owner) || is_unmapped {
        None
    } else {
        Some(format!("belongs to another user (number {owner})"))
    }
}

fn may_be_root_s(file: &Metadata) -> bool {
    match SEEN_AS_ROOT_S.get() {
        Some(seen) => seen.contains(&(file.dev(), file.ino())),
        None => !has_all_users(),
    }
}

/// Numbers of this user and, under sudo(8), of the user who became root. The latter works in folders of their own and
/// could do anything as root anyway.
fn own_users() -> Vec<u32> {
    let user = geteuid();
    let before = std::env::var("SUDO_UID")
        .ok()
        .filter(|_| user.is_root())
        .and_then(|number| number.parse().ok());
    [user.as_raw()].into_iter().chain(before).collect()
}

/// Returns true if every user has a number in this process's user namespace. This is false in a namespace that somebody
/// else has made: its root has no more rights than that user, and the host's root has no number in it.
fn has_all_users() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let fields: Vec<&str> = map.split_whitespace().collect();
    map.is_empty() || fields == ["0", "0", "4294967295"]
}

fn unseen(path: &Path) -> impl FnOnce(io::Error) -> NotOurs {
    move |error| NotOurs { path: path.to_owned(), why: format!("cannot be looked at: {error}") }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use rustix::fs::XattrFlags;

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_to_read_may_be_in_a_sticky_folder() {
        let outer = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(outer.path()).unwrap().join("folder");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, "x").unwrap();
        for (of_folder, of_file, is_ours) in [
            (0o700, 0o600, true),
            (0o1777, 0o644, true),
            (0o777, 0o644, false),
            (0o1777, 0o666, false),
        ] {
            set(&folder, of_folder);
            set(&file, of_file);
            assert_eq!(only_ours_file_to_read(&file).is_ok(), is_ours, "{of_folder:o} {of_file:o}");
        }
    }

    #[test]
    fn what_others_could_have_written_is_told_with_the_place() {
        let outer = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(outer.path()).unwrap();
        let (above, folder) = (real.join("above"), real.join("above/folder"));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, "x").unwrap();
        #[rustfmt::skip]
        let rows = [
            (&file, 0o600, None), (&file, 0o644, None), (&file, 0o664, Some(&file)), (&file, 0o602, Some(&file)),
            (&folder, 0o755, None), (&folder, 0o775, Some(&folder)), (&folder, 0o1777, Some(&folder)),
            (&above, 0o755, None), (&above, 0o777, Some(&above)), (&above, 0o770, Some(&above)),
        ];
        for (path, mode, expected) in rows {
            for (path, mode) in [(&above, 0o700), (&folder, 0o700), (&file, 0o600)] {
                set(path, mode);
            }
            set(path, mode);
            let fault = only_ours_file(&file).err().map(|fault| fault.path);
            assert_eq!(fault.as_ref(), expected, "{} {mode:o}", path.display());
        }
        set(&above, 0o700);
        symlink(&file, folder.join("link")).unwrap();
        symlink(&folder, above.join("link")).unwrap();
        let refused = only_ours_file(&folder.join("link")).unwrap_err();
        assert!(refused.to_string().ends_with("/link is a link"), "{refused}");
        assert!(only_ours(&above.join("link")).is_err());
        only_ours_named(&above.join("link")).unwrap();
        set(&above, 0o1777);
        only_ours_named(&folder).unwrap();
        only_ours_to_be_made(&above.join("new/folder")).unwrap();
        set(&above, 0o777);
        assert!(only_ours_named(&above.join("link")).is_err());
        assert!(only_ours_to_be_made(&above.join("new/folder")).is_err());
        set(&above, 0o700);
        assert!(only_ours(&file).is_err(), "it is not a folder");
    }

    /// Its mode shows the mask of the list for the group's bits (acl(5)).
    #[test]
    fn what_an_access_control_list_opens_to_others_is_not_ours() {
        let outer = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(outer.path()).unwrap();
        let file = folder.join("file");
        fs::write(&file, "x").unwrap();
        for (path, permissions, is_refused) in
            [(&file, 7_u16, true), (&file, 5, false), (&folder, 7, true), (&folder, 5, false)]
        {
            let list = [
                (1_u16, 7_u16, u32::MAX),
                (2, permissions, UNMAPPED),
                (4, 0, u32::MAX),
                (0x10, permissions, u32::MAX),
                (0x20, 0, u32::MAX),
            ];
            let mut bytes = 2_u32.to_le_bytes().to_vec();
            for (kind, permissions, user) in list {
                bytes.extend([kind.to_le_bytes(), permissions.to_le_bytes()].concat());
                bytes.extend(user.to_le_bytes());
            }
            let name = "system.posix_acl_access";
            let set = rustix::fs::setxattr(path, name, &bytes, XattrFlags::empty());
            if set == Err(rustix::io::Errno::NOTSUP) {
                println!("left out: this file system has no access control lists");
                return;
            }
            set.unwrap();
            let is_named = only_ours_file(&file)
                .err()
                .map(|fault| fault.to_string())
                .is_some_and(|why| why.contains("`setfacl -b`"));
            assert_eq!(is_named, is_refused, "{} {permissions}", path.display());
        }
    }

    #[test]
    fn a_folder_below_one_of_another_user_s_is_not_root_s() {
        if !geteuid().is_root() {
            println!("left out: who is not root gives nothing away");
            return;
        }
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("of-another/journal");
        fs::create_dir_all(&folder).unwrap();
        only_ours(&folder).unwrap();
        chown(outer.path().join("of-another"), Some(12_345), None).unwrap();
        let refused = only_ours(&folder).unwrap_err().to_string();
        assert!(refused.contains("belongs to another user (number 12345)"), "{refused}");
        let missing = outer.path().join("of-another/a/b");
        assert!(only_ours_to_be_made(&missing).is_err());
    }

    /// The folder it leads to now is one's own; the other user may have it lead elsewhere.
    #[test]
    fn no_link_of_another_user_s_leads_to_what_is_ours() {
        if !geteuid().is_root() {
            println!("left out: who is not root gives nothing away");
            return;
        }
        let temporary = tempfile::tempdir().unwrap();
        let outer = temporary.path();
        fs::create_dir_all(outer.join("folder/run")).unwrap();
        fs::write(outer.join("folder/file"), "x").unwrap();
        for (link, target) in [
            ("to-folder", "folder"),
            ("to-link", "to-folder/run"),
            ("to-nothing", "missing"),
            ("file", "to-folder/file"),
        ] {
            symlink(target, outer.join(link)).unwrap();
        }
        for (user, is_refused) in [(0, false), (12_345, true)] {
            for link in ["to-folder", "to-nothing"] {
                lchown(outer.join(link), Some(user), None).unwrap();
            }
            for folder in ["to-folder", "to-folder/run", "to-link", "to-folder/new"] {
                let refused = only_ours_to_be_made(&outer.join(folder)).is_err();
                assert_eq!(refused, is_refused, "{folder} of {user}");
            }
            assert!(only_ours_to_be_made(&outer.join("to-nothing")).is_err());
            assert_eq!(only_ours_file_named(&outer.join("file")).is_err(), is_refused);
            let output = crate::write_output(&outer.join("to-folder/out"), b"x");
            assert_eq!(output.is_err(), is_refused, "{output:?}");
        }
    }
}
