//! Content of files that proxies serve.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// Writes a page of `size` bytes. It consists of words in an order that is always the same, so it compresses about as
/// text does, and equal studies serve equal files.
pub(crate) fn write_content(path: &Path, size: u64) -> io::Result<()> {
    #[rustfmt::skip]
    const WORDS: [&str; 16] = [
        "gateway ", "origin ", "request ", "response ", "connection ", "capacity ", "the ", "of ",
        "and ", "a ", "is ", "under ", "load ", "measured ", "quantile ", "arrives.\n",
    ];
    let mut file = BufWriter::new(weir_files::create(path)?);
    let mut remaining = usize::try_from(size).map_err(io::Error::other)?;
    // Knuth's 64-bit linear congruential generator (MMIX); the upper bits are the good ones.
    let mut state = 1_u64;
    while remaining > 0 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = WORDS[(state >> 60) as usize].as_bytes();
        let part = &word[..word.len().min(remaining)];
        file.write_all(part)?;
        remaining -= part.len();
    }
    file.flush()
}
