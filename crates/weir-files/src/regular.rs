//! Regular files of other people's. Nothing else is opened, and nothing is waited for.
//!
//! The target of a path is looked at before it is opened (O_PATH of open(2)): to open a FIFO waits for its other end,
//! and to open a device may set it going.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2};

use crate::only_ours_named;

/// Opens a regular file for reading. A link is followed only where nobody else could have made it.
///
/// # Errors
/// It is a link in a folder that others may write, or no regular file; or the kernel refuses.
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(find(path)?, OFlags::RDONLY)
}

/// Opens a regular file for reading and writing, as [`open_regular`] does.
///
/// # Errors
/// Same as [`open_regular`].
pub fn open_regular_to_write(path: &Path) -> io::Result<File> {
    regular(find(path)?, OFlags::RDWR)
}

/// Opens a regular file below a folder that stands for `/`: links there, absolute ones too, lead to nowhere else
/// (RESOLVE_IN_ROOT of openat2(2), since Linux 5.6).
///
/// # Errors
/// It is no regular file, or the kernel refuses; [`io::ErrorKind::Unsupported`] where it has no openat2(2).
pub fn open_regular_below(root: &Path, path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let folder = open(root, flags | OFlags::DIRECTORY, Mode::empty())?;
    let below = path.strip_prefix("/").unwrap_or(path);
    let target = openat2(folder, below, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    regular(target, OFlags::RDONLY)
}

/// Opens a regular file for reading wherever links to it lead.
///
/// # Errors
/// It is no regular file, or the kernel refuses.
pub fn open_regular_through_links(path: &Path) -> io::Result<File> {
    let target = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    regular(target, OFlags::RDONLY)
}

/// Finds the target of a path without opening it.
fn find(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let target = open(path, flags | OFlags::NOFOLLOW, Mode::empty())?;
    if kind_of(&target)? != FileType::Symlink {
        return Ok(target);
    }
    only_ours_named(
        path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")),
    )
    .map_err(|why| io::Error::other(format!("it is a link, and {why}")))?;
    Ok(open(path, flags, Mode::empty())?)
}

/// Opens a target that was found: the same file, whatever has taken its place meanwhile.
fn regular(target: OwnedFd, access: OFlags) -> io::Result<File> {
    let kind = kind_of(&target)?;
    if kind != FileType::RegularFile {
        return Err(io::Error::other(format!("is {}, not a regular file", kind_name(kind))));
    }
    let file = format!("/proc/thread-self/fd/{}", target.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(openat(CWD, file, flags, Mode::empty())?.into())
}

fn kind_of(target: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(target)?.st_mode))
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a folder",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn nothing_but_regular_files_is_opened_and_no_link_that_others_could_have_made() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        fs::write(folder.join("file"), "whole").unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, folder.join("fifo"), FileType::Fifo, mode, 0).unwrap();
        for (name, to) in [("link", "file"), ("waits", "fifo"), ("goes", "/dev/ptmx")] {
            symlink(to, folder.join(name)).unwrap();
        }
        for (bits, name, fault) in [
            (0o700, "file", None),
            (0o700, "link", None),
            (0o700, "fifo", Some("is a FIFO, not a regular file")),
            (0o700, "waits", Some("is a FIFO, not a regular file")),
            (0o700, "goes", Some("is a device, not a regular file")),
            (0o777, "file", None),
            (0o777, "link", Some("it is a link, and ")),
            (0o777, "goes", Some("it is a link, and ")),
        ] {
            fs::set_permissions(folder, Permissions::from_mode(bits)).unwrap();
            for open in [open_regular, open_regular_to_write] {
                let error = open(&folder.join(name)).err().map(|error| error.to_string());
                let is_as_expected = match (&error, fault) {
                    (Some(error), Some(fault)) => error.starts_with(fault),
                    (error, fault) => error.is_none() && fault.is_none(),
                };
                assert!(is_as_expected, "{name}, {bits:o}: {error:?}");
            }
        }
    }

    /// An absolute link in a container leads to the container's file.
    #[test]
    fn links_below_a_root_lead_to_nowhere_else() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        fs::write(folder.join("passwd"), "the container's").unwrap();
        symlink("/passwd", folder.join("own.log")).unwrap();
        symlink("/proc/self/status", folder.join("host.log")).unwrap();
        symlink("../../../../../proc/self/status", folder.join("above.log")).unwrap();
        let open = |name: &str| open_regular_below(folder, Path::new(name));
        assert_eq!(io::read_to_string(open("/own.log").unwrap()).unwrap(), "the container's");
        for name in ["/host.log", "/above.log"] {
            assert_eq!(open(name).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }
}
