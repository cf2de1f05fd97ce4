//! JSON schemas of what weir writes for programs: the files of `docs/schemas/`, which the build puts into the program.
//!
//! Tests make them from the types that are written (`made.rs`), so the program needs nothing that could.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

#[cfg(test)]
mod made;

/// Each with its name, `weir-load-1`, and its deflated text.
const SCHEMAS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

/// Their names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, _)| *name)
}

/// A schema as text; `None`: there is none of this name.
pub(crate) fn schema(name: &str) -> Option<String> {
    let (_, deflated) = SCHEMAS.iter().find(|(known, _)| *known == name)?;
    let mut text = String::new();
    DeflateDecoder::new(*deflated)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}
