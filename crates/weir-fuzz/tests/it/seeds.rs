//! The seeds in `fuzz/corpus`, one folder for each target.
//!
//! A file holds the bytes that a peer sends over one connection. The prefix of its name says the result: `bad-` is
//! refused, `early-` is cut off, `head-` answers a HEAD; all others are complete messages. The bytes of a TLS server
//! were recorded with another client, so that they complete no handshake: `alert-`, `clear-` (no TLS) and `oversize-`
//! say why, `bad-` is refused for another reason. A trace is a whole file, refused if it is `bad-`; so is a histogram.
//! An agent's seeds are the requests after the greeting; `bad-` ones contain something that cannot be decoded.

use std::fs::DirEntry;
use std::path::Path;

/// Name and bytes of a seed.
pub(crate) type Seed = (String, Vec<u8>);

/// Returns the seeds of a target, sorted by name.
pub(crate) fn of(target: &str) -> Vec<Seed> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = corpus.join(target);
    let seeds = std::fs::read_dir(&folder).and_then(|entries| entries.map(read_seed).collect());
    let mut seeds: Vec<Seed> =
        seeds.unwrap_or_else(|error: std::io::Error| panic!("{}: {error}", folder.display()));
    assert!(!seeds.is_empty(), "{}: no seeds", folder.display());
    seeds.sort();
    seeds
}

fn read_seed(entry: std::io::Result<DirEntry>) -> std::io::Result<Seed> {
    let path = entry?.path();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, std::fs::read(path)?))
}
