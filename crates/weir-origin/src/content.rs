//! The content of the response.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use weir_stats::SplitMix64;

const WORDS: &str = "a the of river water weir and flows over under stone gate level measured in \
    steady current to with downstream bank rises falls by night is kept where gauge reading \
    slowly again";

/// Maximum size of a file in bytes: it is held in memory, and a special file may never end.
const LARGEST_FILE: u64 = 1 << 30;

/// Bytes of content, created once and shared by all threads.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Arc<[u8]>);

impl Content {
    /// Creates text of `size` bytes: words in random order, always the same. gzip compresses 1 KiB of it to a bit more
    /// than a third, and 100 KiB to a fifth.
    pub fn text(size: u64) -> Content {
        let mut random = SplitMix64::new(0);
        let mut text = Vec::new();
        let size = bound_size(size);
        text.reserve_exact(size);
        // There are 32 of them.
        let words: Vec<&str> = WORDS.split(' ').collect();
        let mut line = 0;
        while text.len() < size {
            let word = words[(random.next_u64() >> 59) as usize];
            line += word.len() + 1;
            let end = if line > 80 { '\n' } else { ' ' };
            if line > 80 {
                line = 0;
            }
            let remaining = size - text.len();
            text.extend(word.bytes().chain([end as u8]).take(remaining));
        }
        Content(text.into())
    }

    /// Creates random bytes, always the same. They do not compress.
    pub fn noise(size: u64) -> Content {
        let mut random = SplitMix64::new(0);
        let size = bound_size(size);
        let mut bytes: Vec<u8> =
            (0..size.div_ceil(8)).map(|_| random.next_u64()).flat_map(u64::to_le_bytes).collect();
        bytes.truncate(size);
        Content(bytes.into())
    }

    /// Reads the bytes of a file, once.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is larger than 1 GiB.
    pub fn file(path: &Path) -> io::Result<Content> {
        let mut bytes = Vec::new();
        let mut opened = weir_files::open_to_read(path)?.take(LARGEST_FILE + 1);
        opened.read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_FILE {
            Err(io::Error::other("it is larger than 1 GiB"))
        } else {
            Ok(Content::from(bytes))
        }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Content {
        Content(bytes.into())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.0.len())
    }
}

/// Converts a size to an index; larger sizes could not be held in memory anyway.
fn bound_size(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
