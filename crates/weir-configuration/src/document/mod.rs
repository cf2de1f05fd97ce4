//! Configurations that are one JSON or YAML document, by path: Envoy's bootstrap and Caddy's JSON.
//! (A Caddyfile is made JSON by `caddy adapt`, which is the caller's.)

mod asked;
mod caddy;
mod caddy_known;
mod caddy_routes;
mod change;
mod dialect;
mod envoy;
mod envoy_known;
mod envoy_routes;
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
pub use change::{change, effective};
pub use dialect::Dialect;
pub use envoy::adapt_envoy;
pub use pointer::Pointer;
pub use set::{Edit, set};
pub use tree::Format;

use weir_model::study::AskSpec;

use crate::asked::look_up;
use crate::{Asked, ConfigurationError, Listener, Source, place};
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

/// Where the proxy listens.
///
/// # Errors
/// The document cannot be read.
pub fn listeners(source: &Source, dialect: Dialect) -> Result<Vec<Listener>, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], dialect.format(&source.files[0].path))?;
    let json = tree.meaning(&tree.root);
    let parts = (source, &tree, &json);
    Ok(match dialect {
        Dialect::Envoy => envoy::document(parts).doors.listeners(),
        Dialect::Caddy => caddy::document(parts, true).doors.listeners(),
    })
}

/// Looks up what answers the requests of a load: one for each.
///
/// # Errors
/// The document cannot be read; no listener is as asked; a host or path that is named meets nothing.
pub fn asked(
    source: &Source,
    dialect: Dialect,
    ask: &AskSpec,
) -> Result<Vec<Asked>, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], dialect.format(&source.files[0].path))?;
    let json = tree.meaning(&tree.root);
    let parts = (source, &tree, &json);
    match dialect {
        Dialect::Envoy => look_up(&envoy::document(parts), ask),
        Dialect::Caddy => {
            let found = caddy::with_document(parts, ask.tls, |it| look_up(it, ask));
            found.map(|(_, asked)| asked)
        }
    }
}
