//! The seeds in `fuzz/corpus`, one folder for each target.
//!
//! A file holds what a peer sends over one connection, word for word. The begin of its name says
//! what becomes of it: `bad-` is refused, `early-` is cut off, `head-` answers a HEAD; all others
//! are complete messages. What a TLS server said was said to another client, so that no handshake
//! comes of it: `alert-`, `clear-` (no TLS) and `oversize-` say why, `bad-` is refused otherwise.
//! A trace is a file as it is, refused if it is `bad-`; so is a histogram. An agent's seeds are what is asked after the
//! greeting; of `bad-` ones something is not understood.

use std::fs::DirEntry;
use std::path::Path;

/// A seed: its name and its bytes.
pub(crate) type Seed = (String, Vec<u8>);

/// The seeds of a target, by name.
pub(crate) fn of(target: &str) -> Vec<Seed> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = corpus.join(target);
    let read = |entry: std::io::Result<DirEntry>| {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok((name, std::fs::read(entry.path())?))
    };
    let seeds = std::fs::read_dir(&folder).and_then(|entries| entries.map(read).collect());
    let mut seeds: Vec<Seed> =
        seeds.unwrap_or_else(|error: std::io::Error| panic!("{}: {error}", folder.display()));
    assert!(!seeds.is_empty(), "{}: no seeds", folder.display());
    seeds.sort();
    seeds
}
