//! SHA-256 in the words of sha256sum(1).

use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// The hash of all that a hasher has seen, in hexadecimal digits.
pub(crate) fn digits(hasher: Sha256) -> String {
    let bytes = hasher.finalize();
    bytes.iter().fold(String::new(), |digits, byte| {
        digits + &format!("{byte:02x}")
    })
}

/// A line for each file of which the text is known.
pub(crate) fn sums(files: &[(PathBuf, String)]) -> String {
    let line = |(path, text): &(PathBuf, String)| {
        let hash = digits(Sha256::new_with_prefix(text));
        format!("{hash}  {}\n", path.display())
    };
    files.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_line() {
        let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
        // FIPS 180-4, the example of one block; and of no block at all.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let sums = sums(&[file("/etc/a b", "abc"), file("/etc/c", "")]);
        assert_eq!(sums, format!("{abc}  /etc/a b\n{empty}  /etc/c\n"));
    }
}
