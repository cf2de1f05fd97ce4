//! Files and folders that only their user can read.
//!
//! Users' configurations hold secrets, and weir often runs as root. Files that weir writes are therefore readable by
//! their user alone from the moment they exist (the mode is passed to open(2) and mkdir(2), and no umask widens it).
//! Writes never follow a symbolic link to another place. Before weir trusts a file, it checks who could have written it
//! ([`only_ours`]).

mod access;
mod ours;
mod regular;
mod waiting;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use ours::{
    NotOurs, note_what_is_root_s, only_ours, only_ours_file, only_ours_file_named,
    only_ours_file_to_read, only_ours_named, only_ours_to_be_made,
};
pub use regular::{
    open_regular, open_regular_below, open_regular_through_links, open_regular_to_write,
};
pub use waiting::open_to_read;

/// Mode of the files that weir creates.
const FILE: u32 = 0o600;
/// Mode of the folders that weir creates.
const FOLDER: u32 = 0o700;
/// Mode bits of the group and of others.
const OTHERS: u32 = 0o077;
/// Maximum length in bytes of a file that is read whole; the limit is needed because a sparse file can claim any
/// length.
const LONGEST: u64 = 4 << 30;
/// Maximum length in bytes of a file that people write or that describes something.
const LONGEST_TEXT: u64 = 64 << 20;

/// Bytes that are read at a time. As many zeros are a hole, which takes no room on the disk, and would take all memory.
const PIECE: u64 = 64 << 10;

/// Sets the umask (umask(2)) so that only the user can access what this process and its children create, unless they
/// change a mode after creation. This covers proxies too: they create logs even when they only check a configuration.
pub fn keep_to_oneself() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Descriptors needed at a time to restore settings, with room to spare.
const DESCRIPTORS_TO_RESTORE: u64 = 256;

/// Raises the limit of descriptors as far as this process may, if the present limit lets no file be opened any more.
/// Code that restores settings and removes folders calls this first, since the limit may have been lowered in the
/// meantime.
pub fn let_files_open() {
    let Err(error) = File::open("/dev/null") else {
        return;
    };
    if error.raw_os_error() != Some(rustix::io::Errno::MFILE.raw_os_error()) {
        return;
    }
    let hard = getrlimit(Resource::Nofile).maximum;
    // Only root may raise the hard limit (setrlimit(2)).
    let higher = hard.map(|maximum| maximum + DESCRIPTORS_TO_RESTORE);
    if set_descriptor_limit(higher).is_err() {
        let _ = set_descriptor_limit(hard);
    }
}

/// Sets the hard and the soft limit of descriptors; `None` means unlimited.
fn set_descriptor_limit(most: Option<u64>) -> rustix::io::Result<()> {
    let limit = Rlimit { current: most, maximum: most };
    setrlimit(Resource::Nofile, limit)
}

/// Creates a file, or truncates an existing one. Symbolic links are not followed.
///
/// # Errors
/// The kernel refuses; `ELOOP` for a symbolic link.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    open_private(options, path)
}

/// Creates a file that must not exist yet.
///
/// # Errors
/// Something exists at the path, even a symbolic link; or the kernel refuses.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    open_private(options, path)
}

/// Opens a file for reading and appending, and creates it if it does not exist. Symbolic links are not followed.
///
/// # Errors
/// Same as [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    open_private(options, path)
}

/// Writes a whole file, created by [`create`].
///
/// # Errors
/// Same as [`create`], or the disk does not accept the content.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(contents.as_ref())
}

/// Replaces a file atomically: writes the content under another name, syncs it to disk and renames it, so that a reader
/// sees the old content or the new one. A symbolic link at the path is replaced, not followed.
///
/// # Errors
/// The kernel refuses; the old content is untouched then.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut name = OsString::from(path);
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = create_new(&temporary).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&temporary, path));
    if replaced.is_err() {
        // The error is what matters; what is left of the attempt is only in the way.
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Creates a folder and its missing parents; an existing folder is left as it is.
///
/// # Errors
/// The kernel refuses.
pub fn make_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Creates one folder that must not exist yet.
///
/// # Errors
/// Something exists at the path, or the kernel refuses.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER).create(path)?;
    // A umask may have taken bits of the owner's away.
    fs::set_permissions(path, Permissions::from_mode(FOLDER))
}

/// Writes an output file under a name that the user chose, opened by [`open_output`].
///
/// # Errors
/// Same as [`open_output`], or the disk does not accept the content.
pub fn write_output(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = open_output(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(contents)
}

/// Opens what the user wants to have under a name of their choice; what is there stays for now. In a folder
/// in which others may make files, no link is followed and nothing but a file of the user's own is opened:
/// the name may have been taken by somebody who wants another file to be written.
///
/// # Errors
/// The kernel refuses, the name is taken by somebody else, or somebody else's link leads to its folder.
pub fn open_output(path: &Path) -> io::Result<File> {
    let folder =
        path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ours::no_foreign_link(folder).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    // Nobody else can put a link in the place of a part of this path, now or later.
    if only_ours_named(folder).is_ok() {
        return open_unless_unread(options, path);
    }
    let opened = open_without_links(path);
    let refused = "others may write in its folder, and it is not a file of yours";
    let file = opened.map_err(|error| {
        if is_loop(&error) { io::Error::other(format!("{refused}: it is a link")) } else { error }
    })?;
    let metadata = file.metadata()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_file() && is_own && metadata.nlink() == 1 {
        Ok(file)
    } else {
        Err(io::Error::other(refused))
    }
}

/// Opens a file for writing without waiting for a FIFO. No part of its path may be a link at that moment, or become one
/// (RESOLVE_NO_SYMLINKS of openat2(2), since Linux 5.6).
fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(
        rustix::fs::CWD,
        std::path::absolute(path)?,
        flags,
        Mode::from_raw_mode(0o666),
        ResolveFlags::NO_SYMLINKS,
    );
    match opened {
        Ok(file) => Ok(file.into()),
        // An older kernel: the last part of the path at least is no link.
        Err(rustix::io::Errno::NOSYS) => {
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            OpenOptions::new().write(true).create(true).custom_flags(flags).open(path)
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the file; a FIFO without a reader is refused instead of waited for (fifo(7)).
fn open_unless_unread(mut options: OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = options.custom_flags(flags).open(path);
    let file = opened.map_err(|error| {
        if is_fifo(path) && is_unread(&error) {
            io::Error::other("it is a pipe, and nobody reads it")
        } else {
            error
        }
    })?;
    // Whoever reads slowly is waited for.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Returns true if the path is a named pipe (fifo(7)). Opening such a path for writing already begins the output.
pub fn is_fifo(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

fn is_unread(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// Reads a whole file from a folder that may belong to somebody else. A symbolic link is followed only if nobody else
/// could have created it. Nothing is waited for, as opening a FIFO would.
///
/// # Errors
/// The path is a symbolic link in a folder that others may write, is not a regular file, or the file is longer than 4
/// GiB; or the kernel refuses.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, LONGEST)
}

/// Reads a file as [`read`] does if it has at most 64 MiB: a study, a journal, checksums.
///
/// # Errors
/// Same as [`read`], or the file is longer.
pub fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, LONGEST_TEXT)
}

fn read_up_to(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    if length > longest {
        return Err(io::Error::other(format!("it is longer than {longest} bytes")));
    }
    // What is appended meanwhile is for the next reader.
    let mut known_part = file.take(length);
    let mut bytes = Vec::new();
    loop {
        let begin = bytes.len();
        if known_part.by_ref().take(PIECE).read_to_end(&mut bytes)? == 0 {
            return Ok(bytes);
        }
        let piece = &bytes[begin..];
        if piece.len() as u64 == PIECE && piece.iter().all(|byte| *byte == 0) {
            return Err(io::Error::other(format!(
                "it has {PIECE} zero bytes in a row, and is no text"
            )));
        }
    }
}

/// Returns a text that tells a file from all its copies: its number in the file system, and the time when it was made,
/// which nobody can choose. Where a file system does not keep that time, it is the one of the last change.
///
/// # Errors
/// The kernel refuses.
pub fn identity(file: &Path) -> io::Result<String> {
    let metadata = fs::symlink_metadata(file)?;
    let changed = Duration::new(metadata.ctime().cast_unsigned(), metadata.ctime_nsec() as u32);
    let birth = match metadata.created() {
        Ok(time) => time.duration_since(UNIX_EPOCH).map_err(io::Error::other)?,
        Err(_) => changed,
    };
    Ok(format!("{} {}\n", metadata.ino(), birth.as_nanos()))
}

/// Returns true if the path was a symbolic link that [`OFlags::NOFOLLOW`] refused (`ELOOP`).
fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Opens a file without following a symbolic link, and gives it mode 0600.
fn open_private(mut options: OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = options.mode(FILE).custom_flags(flags).open(path)?;
    if file.metadata()?.mode() & OTHERS != 0 {
        // It was there, open to others. Where it is somebody else's it cannot be closed to them.
        let _ = file.set_permissions(Permissions::from_mode(FILE));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    /// A link may take a folder's place at any moment if others may write the folder above it.
    #[test]
    fn an_output_goes_nowhere_else_while_a_folder_and_a_link_change_places() {
        let outer = tempfile::tempdir().unwrap();
        let (shared, own) = (outer.path().join("shared"), outer.path().join("own"));
        let (folder, link) = (shared.join("folder"), shared.join("link"));
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir(&own).unwrap();
        fs::write(own.join("file"), "kept").unwrap();
        symlink(&own, &link).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    let flags = rustix::fs::RenameFlags::EXCHANGE;
                    let _ = rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        &folder,
                        rustix::fs::CWD,
                        &link,
                        flags,
                    );
                }
            });
            for _ in 0..2_000 {
                let _ = write_output(&folder.join("file"), b"written");
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(fs::read_to_string(own.join("file")).unwrap(), "kept");
    }

    #[test]
    fn what_is_made_is_its_user_s_alone_whatever_the_umask() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        // Of the whole process, so this test alone depends on it: all others have modes of their own.
        let before = rustix::process::umask(rustix::fs::Mode::empty());
        create(&folder.join("created")).unwrap();
        create_new(&folder.join("new")).unwrap();
        append(&folder.join("appended")).unwrap();
        write(&folder.join("written"), "x").unwrap();
        replace(&folder.join("replaced"), b"x").unwrap();
        make_folder(&folder.join("folder")).unwrap();
        make_folders(&folder.join("a/b")).unwrap();
        rustix::process::umask(before);
        for name in ["created", "new", "appended", "written", "replaced"] {
            assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
        }
        for name in ["folder", "a", "a/b"] {
            assert_eq!(mode(&folder.join(name)), 0o700, "{name}");
        }
    }

    #[test]
    fn a_file_that_was_open_to_others_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old");
        fs::write(&path, "old\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        append(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    }

    #[test]
    fn a_link_is_never_written_through() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        fs::write(folder.join("victim"), "whole").unwrap();
        symlink(folder.join("victim"), folder.join("link")).unwrap();
        assert!(create(&folder.join("link")).is_err());
        assert!(append(&folder.join("link")).is_err());
        assert!(create_new(&folder.join("link")).is_err());
        // Replaced, and so is what lies in wait where the new one is written.
        symlink(folder.join("victim"), folder.join("link.tmp")).unwrap();
        replace(&folder.join("link"), b"new").unwrap();
        assert_eq!(fs::read_to_string(folder.join("link")).unwrap(), "new");
        assert!(!fs::symlink_metadata(folder.join("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(folder.join("victim")).unwrap(), "whole");
    }

    #[test]
    fn an_output_goes_through_a_link_only_where_nobody_else_could_have_made_it() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        for open in [false, true] {
            fs::write(folder.join("victim"), "whole").unwrap();
            symlink(folder.join("victim"), folder.join("link")).unwrap();
            let bits = if open { 0o1777 } else { 0o700 };
            fs::set_permissions(folder, Permissions::from_mode(bits)).unwrap();
            let written = write_output(&folder.join("link"), b"out");
            let expected = if open { "whole" } else { "out" };
            assert_eq!(fs::read_to_string(folder.join("victim")).unwrap(), expected);
            assert_eq!(written.is_ok(), !open, "{written:?}");
            write_output(&folder.join("file"), b"out").unwrap();
            write_output(&folder.join("file"), b"o").unwrap();
            assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "o");
            fs::remove_file(folder.join("link")).unwrap();
        }
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, folder.join("fifo"), kind, mode, 0).unwrap();
        assert!(write_output(&folder.join("fifo"), b"out").is_err());
        assert!(read(&folder.join("fifo")).is_err());
    }

    #[test]
    fn a_link_is_read_through_only_where_nobody_else_could_have_made_it() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        fs::write(folder.join("file"), "whole").unwrap();
        symlink(folder.join("file"), folder.join("link")).unwrap();
        for (bits, is_read) in [(0o700, true), (0o1777, false), (0o777, false)] {
            fs::set_permissions(folder, Permissions::from_mode(bits)).unwrap();
            assert_eq!(read(&folder.join("file")).unwrap(), b"whole");
            assert_eq!(read(&folder.join("link")).is_ok(), is_read, "{bits:o}");
        }
        fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
        // It takes no room on the disk, and would take all memory.
        let endless = create(&folder.join("endless")).unwrap();
        endless.set_len(LONGEST + 1).unwrap();
        let refused = read(&folder.join("endless")).unwrap_err();
        assert!(refused.to_string().contains("longer than"), "{refused}");
        endless.set_len(LONGEST_TEXT + 1).unwrap();
        let refused = read_text(&folder.join("endless")).unwrap_err();
        assert!(refused.to_string().contains("longer than"), "{refused}");
        for (length, is_read) in [(PIECE - 1, true), (PIECE, false), (LONGEST, false)] {
            endless.set_len(length).unwrap();
            let bytes = read(&folder.join("endless"));
            assert_eq!(bytes.is_ok(), is_read, "{length}");
        }
    }
}
