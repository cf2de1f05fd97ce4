//! Configurations that are one JSON or YAML document, by path: Envoy's bootstrap and Caddy's JSON.
//! (A Caddyfile is made JSON by `caddy adapt`, which is the caller's.)

mod caddy;
mod caddy_known;
mod change;
mod envoy;
mod envoy_known;
mod find;
mod json;
mod kept;
mod listening;
mod pointer;
mod set;
mod setter;
mod tree;
mod walk;
mod write;
mod yaml;

use std::path::Path;

pub use caddy::adapt_caddy;
pub use change::{Dialect, change, effective, listeners};
pub use envoy::adapt_envoy;
pub use pointer::Pointer;
pub use set::{Edit, set};
pub use tree::Format;

use crate::{ConfigurationError, Source, place};
use tree::Tree;

/// Reads a document. It is not changed by being read, but must be one of its format.
///
/// # Errors
/// The file is missing or not UTF-8, or is no document of this format; with the place.
pub fn read(main: &Path, format: Format) -> Result<Source, ConfigurationError> {
    let file = place::read(main)?;
    Tree::parse(&file, format)?;
    Ok(Source::new(vec![file]))
}

/// What a document means, as JSON.
///
/// # Errors
/// It is no document of its format: none that [`read`] gave.
pub fn value(source: &Source, format: Format) -> Result<serde_json::Value, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], format)?;
    Ok(tree.meaning(&tree.root))
}
