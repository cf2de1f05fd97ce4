//! Files whose lines fill slots: read once, before the trial, and shared by all threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{LARGEST_DATA, read_at_most};

/// Maximum length of a line, bytes.
pub const LONGEST_LINE: usize = 64 * 1024;

/// Reason why a file cannot fill slots.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The file cannot be read, or is too large.
    #[error("cannot read {}: {error}", .file.display())]
    Read {
        /// Path of the file.
        file: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// The file is empty.
    #[error("{} is empty: there is no line to take", .0.display())]
    Empty(PathBuf),
    /// A line is longer than [`LONGEST_LINE`].
    #[error("{}:{line}: the line is longer than {} KiB", .file.display(), LONGEST_LINE >> 10)]
    Long {
        /// Path of the file.
        file: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

/// Files read so far, each only once even if several slots name it.
#[derive(Debug, Default)]
pub struct Files(BTreeMap<PathBuf, Arc<Lines>>);

impl Files {
    /// Adds a file with the given text, so that it need not be on this machine.
    ///
    /// # Errors
    /// The text cannot be used.
    pub fn provide(&mut self, path: &Path, text: &[u8]) -> Result<(), LinesError> {
        let lines = Arc::new(Lines::new(path, text)?);
        self.0.insert(path.to_owned(), lines);
        Ok(())
    }

    /// Returns the files read so far, each with a text that has the same lines.
    pub fn texts(&self) -> impl Iterator<Item = (&Path, Vec<u8>)> {
        self.0.iter().map(|(path, lines)| {
            let all: Vec<&[u8]> = (0..lines.count()).map(|n| lines.get(n)).collect();
            (path.as_path(), [&all.join(&b'\n')[..], b"\n"].concat())
        })
    }

    /// Returns the lines of a file; a relative path starts from the current directory.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(super) fn lines(&mut self, path: &Path) -> Result<Arc<Lines>, LinesError> {
        if let Some(lines) = self.0.get(path) {
            return Ok(Arc::clone(lines));
        }
        let lines = Arc::new(Lines::read(path)?);
        self.0.insert(path.to_owned(), Arc::clone(&lines));
        Ok(lines)
    }
}

/// Lines of a file without their line ends, one after the other; at least one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) file: PathBuf,
    bytes: Box<[u8]>,
    /// End of each line in `bytes`, which is the beginning of the next one.
    ends: Box<[u32]>,
    longest: usize,
}

impl Lines {
    fn read(file: &Path) -> Result<Lines, LinesError> {
        let text = read_at_most(file, LARGEST_DATA)
            .map_err(|error| LinesError::Read { file: file.to_owned(), error })?;
        Lines::new(file, &text)
    }

    fn new(file: &Path, text: &[u8]) -> Result<Lines, LinesError> {
        if text.is_empty() {
            return Err(LinesError::Empty(file.to_owned()));
        }
        let body = text.strip_suffix(b"\n").unwrap_or(text);
        let mut bytes = Vec::with_capacity(body.len());
        let mut ends = Vec::new();
        let mut longest = 0;
        for raw in body.split(|byte| *byte == b'\n') {
            let line = raw.strip_suffix(b"\r").unwrap_or(raw);
            if line.len() > LONGEST_LINE {
                let (file, line) = (file.to_owned(), ends.len() + 1);
                return Err(LinesError::Long { file, line });
            }
            longest = longest.max(line.len());
            bytes.extend_from_slice(line);
            // Fits: the file has a limit below that of a u32.
            ends.push(bytes.len() as u32);
        }
        Ok(Lines {
            file: file.to_owned(),
            bytes: bytes.into_boxed_slice(),
            ends: ends.into_boxed_slice(),
            longest,
        })
    }

    /// Returns the number of lines.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the length of the longest line, bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns a line by its number, from 0; after the last line comes the first again.
    #[inline]
    pub(super) fn get(&self, number: u64) -> &[u8] {
        let index = (number % self.count()) as usize;
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin as usize..self.ends[index] as usize]
    }

    /// Returns the number, from 1, of the first line for which `fit` returns false.
    pub(super) fn first_unfit(&self, fit: impl Fn(&[u8]) -> bool) -> Option<u64> {
        (0..self.count()).find(|number| !fit(self.get(*number))).map(|number| number + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let lines = Lines::new(Path::new("f"), text).unwrap();
        (0..lines.count())
            .map(|number| String::from_utf8_lossy(lines.get(number)).into_owned())
            .collect()
    }

    #[test]
    fn line_ends_are_no_part_of_lines() {
        assert_eq!(lines(b"a\nb\n"), ["a", "b"]);
        assert_eq!(lines(b"a\r\nbc"), ["a", "bc"]);
        assert_eq!(lines(b"\n\nx\n"), ["", "", "x"]);
        assert_eq!(lines(b"\n"), [""]);
    }

    #[test]
    fn files_go_elsewhere_with_all_their_lines() {
        for text in [&b"a\nb"[..], b"a\r\n\n", b"\n", b"x"] {
            let (mut here, mut there) = (Files::default(), Files::default());
            here.provide(Path::new("f"), text).unwrap();
            for (path, text) in here.texts() {
                there.provide(path, &text).unwrap();
            }
            assert_eq!(here.0, there.0, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn after_the_last_line_comes_the_first() {
        let lines = Lines::new(Path::new("f"), b"a\nb\nc").unwrap();
        let picked = [5, 3, u64::MAX].map(|number| lines.get(number));
        assert_eq!((picked, lines.longest()), ([b"c", b"a", b"a"].map(|l| &l[..]), 1));
    }

    #[test]
    fn what_cannot_be_used_is_said_with_its_place() {
        let long = [b"a\n".to_vec(), vec![b'x'; LONGEST_LINE + 1]].concat();
        for (text, words) in [
            (&b""[..], "f is empty: there is no line to take"),
            (&long, "f:2: the line is longer than 64 KiB"),
        ] {
            assert_eq!(Lines::new(Path::new("f"), text).unwrap_err().to_string(), words);
        }
        let missing = Lines::read(Path::new("/nonexistent/f")).unwrap_err();
        let words = "cannot read /nonexistent/f: No such file";
        assert!(missing.to_string().starts_with(words), "{missing}");
    }
}
