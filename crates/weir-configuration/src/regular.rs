//! Reads files of other users: only regular files, and only up to a limit.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use weir_files::{open_regular_below, open_regular_through_links};

/// All bytes of a regular file, `most` of them at most.
///
/// # Errors
/// There is no such file, it may not be read, is something else than a regular file, or is larger.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    contents(open_regular_through_links(path)?, most)
}

/// Reads a regular file below a folder that stands for `/`, so that links there, absolute ones too, do not lead outside
/// (RESOLVE_IN_ROOT of openat2(2), since Linux 5.6; with older kernels, links are followed as on this host).
///
/// # Errors
/// Returns the errors of [`read_regular`].
pub fn read_regular_below(root: &Path, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let here = root.join(path.strip_prefix("/").unwrap_or(path));
    if root == Path::new("/") {
        return read_regular(&here, most);
    }
    match open_regular_below(root, path) {
        Err(error) if error.kind() == ErrorKind::Unsupported => read_regular(&here, most),
        opened => contents(opened?, most),
    }
}

fn contents(file: File, most: u64) -> io::Result<Vec<u8>> {
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    // Files of the kernel's say that they have none.
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

fn too_large(most: u64) -> io::Error {
    io::Error::other(format!(
        "is larger than {most} bytes: a copy with the servers that the load asks is enough"
    ))
}
