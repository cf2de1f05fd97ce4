//! SHA-256 in the format of sha256sum(1).

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Returns the hash in hexadecimal digits.
pub(crate) fn digits(hasher: Sha256) -> String {
    let bytes = hasher.finalize();
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// Returns a line for each file, with the hash of its bytes and its path, as sha256sum(1) prints it.
pub fn sums<'a>(files: impl IntoIterator<Item = (&'a Path, &'a [u8])>) -> String {
    files
        .into_iter()
        .map(|(path, bytes)| {
            let hash = digits(Sha256::new_with_prefix(bytes));
            format!("{hash}  {}\n", path.display())
        })
        .collect()
}

/// Returns the line for a file that may be large, such as a program.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn sum_of_file(path: &Path) -> io::Result<String> {
    let mut file = weir_files::open_regular_through_links(path)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{}  {}", digits(hasher), path.display())),
            length => hasher.update(&buffer[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_line() {
        // FIPS 180-4, the example of one block; and of no block at all.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let lines = sums([(Path::new("/etc/a b"), &b"abc"[..]), (Path::new("/etc/c"), b"")]);
        assert_eq!(lines, format!("{abc}  /etc/a b\n{empty}  /etc/c\n"));
    }
}
