//! Files of other people's: read only where they are regular files, and no further than a limit.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;

/// All bytes of a regular file, `most` of them at most.
///
/// What a path leads to is looked at before it is opened (O_PATH of open(2)): to open a FIFO waits for
/// its other end, and to open a device may set it going.
///
/// # Errors
/// There is no such file, it may not be read, is something else than a regular file, or is larger.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    contents(
        open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
        most,
    )
}

/// The same of a file below a folder that stands for `/`, so that links there, absolute ones too, lead
/// to nowhere else (RESOLVE_IN_ROOT of openat2(2), since Linux 5.6; before, links lead where they lead here).
///
/// # Errors
/// As for [`read_regular`].
pub fn read_regular_below(root: &Path, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let below = path.strip_prefix("/").unwrap_or(path);
    if root == Path::new("/") {
        return read_regular(&root.join(below), most);
    }
    let folder = open(
        root,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(folder, below, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        Ok(found) => contents(found, most),
        Err(Errno::NOSYS) => read_regular(&root.join(below), most),
        Err(error) => Err(error.into()),
    }
}

fn contents(found: OwnedFd, most: u64) -> io::Result<Vec<u8>> {
    let status = fstat(&found)?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::Error::other(format!(
            "is {}, not a regular file",
            words(kind)
        )));
    }
    let too_large = || {
        io::Error::other(format!(
            "is larger than {most} bytes: a copy with the servers that the load asks is enough"
        ))
    };
    if u64::try_from(status.st_size).is_ok_and(|size| size > most) {
        return Err(too_large());
    }
    // The same file, whatever has taken its place meanwhile.
    let file = format!("/proc/thread-self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(CWD, file, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    // Files of the kernel's say that they have none.
    match bytes.len() as u64 > most {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

fn words(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a folder",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    }
}
