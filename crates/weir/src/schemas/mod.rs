//! JSON schemas of weir's output for programs: the files of `docs/schemas/`, which the build puts into the program.
//!
//! Tests generate them from the Rust types (`made.rs`), so the program itself contains no generator.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

#[cfg(test)]
mod made;

/// Schemas by name, such as `weir-load-2`, with their deflated text.
const SCHEMAS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

/// Returns the names of all schemas.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, _)| *name)
}

/// Returns a schema as text; `None` if there is none of this name.
pub(crate) fn schema(name: &str) -> Option<String> {
    let (_, deflated) = SCHEMAS.iter().find(|(known, _)| *known == name)?;
    let mut text = String::new();
    DeflateDecoder::new(*deflated).read_to_string(&mut text).ok()?;
    Some(text)
}
