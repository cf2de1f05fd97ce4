//! Files named by users: reading is limited, since a device or a pipe may never end.

use std::io::{self, Read};
use std::path::Path;

use weir_files::open_to_read;

/// Maximum size of a description, bytes: studies, sets of requests, rows of parameters, certificates.
pub const LARGEST_DESCRIPTION: u64 = 16 << 20;

/// Maximum size of a data file, bytes: content of requests, lines that fill slots, recorded arrivals.
pub const LARGEST_DATA: u64 = 1 << 30;

/// Reads a whole file, which may be a pipe.
///
/// # Errors
/// The file cannot be read, or has more than `most` bytes.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut opened = open_to_read(path)?.take(most.saturating_add(1));
    opened.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)))
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_read_as_far_as_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, [7; 1 << 20]).unwrap();
        assert_eq!(read_at_most(&file, 1 << 20).unwrap().len(), 1 << 20);
        for (path, most) in [(&*file, (1 << 20) - 1), (Path::new("/dev/zero"), 1 << 20)] {
            let error = read_at_most(path, most).unwrap_err().to_string();
            assert!(error.starts_with("it is larger than"), "{error}");
        }
        let missing = read_at_most(&folder.path().join("none"), 1).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
