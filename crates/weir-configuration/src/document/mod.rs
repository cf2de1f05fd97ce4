//! Configurations that are one JSON or YAML document, by path: Envoy's bootstrap and Caddy's JSON.
//! (A Caddyfile is made JSON by `caddy adapt`, which is the caller's.)

mod asked;
mod caddy;
mod caddy_known;
mod caddy_matchers;
mod caddy_passage;
mod caddy_replaced;
mod caddy_routes;
mod change;
mod dialect;
mod envoy;
mod envoy_certificates;
mod envoy_clusters;
mod envoy_filters;
mod envoy_known;
mod envoy_protocol;
mod envoy_replaced;
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

use serde_json::Value as Json;
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;

use crate::asked::{Request, look_up};
use crate::replaced::Replacements;
use crate::{Asked, ConfigurationError, Listener, PemLocation, ShownCertificate, Source, place};
use find::{field, get};
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

/// The certificates that a document shows to the clients of a load.
///
/// # Errors
/// As of [`asked`].
pub fn certificates(
    source: &Source,
    dialect: Dialect,
    ask: &AskSpec,
) -> Result<Vec<ShownCertificate>, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], dialect.format(&source.files[0].path))?;
    let json = tree.meaning(&tree.root);
    let document = match dialect {
        Dialect::Envoy => envoy::document((source, &tree, &json)),
        Dialect::Caddy => caddy::document((source, &tree, &json), true),
    };
    let places = match dialect {
        Dialect::Envoy => {
            let asked = look_up(&document, ask)?;
            let first = asked.first();
            first.map_or_else(Vec::new, |asked| {
                envoy_certificates::certificates(&document, asked)
            })
        }
        Dialect::Caddy => {
            let all = caddy_replaced::certificates(&json).into_iter();
            let value = |at: &Pointer| get(&json, at).cloned().unwrap_or_default();
            all.map(|at| (at.clone(), value(&at))).collect()
        }
    };
    let shown = places.into_iter().map(|(at, value)| {
        let text = |name: &str| field(&value, name).and_then(Json::as_str);
        let unknown = format!("certificate {value}");
        let path = text("filename").or(value.as_str());
        let (name, pem) = match (text("inline_string"), path) {
            (Some(inline), _) => ("certificate", PemLocation::Text(inline.to_owned())),
            (None, Some(text)) if text.starts_with("-----BEGIN") => {
                ("certificate", PemLocation::Text(text.to_owned()))
            }
            (None, Some(path)) => (path, PemLocation::At(source.base.join(path))),
            (None, None) => (&*unknown, PemLocation::Unknown),
        };
        let spot = document.spot(&at, name).record(source);
        ShownCertificate { spot, pem }
    });
    let shown: Vec<ShownCertificate> = shown.collect();
    if dialect == Dialect::Caddy && shown.is_empty() {
        let automatic = caddy_replaced::automatic_certificate(&document, ask.server_name());
        return Ok(vec![automatic]);
    }
    Ok(shown)
}

/// Finds what a copy of a document replaces, of what the requests of a load meet.
///
/// # Errors
/// As of [`asked`].
pub fn replaced(
    source: &Source,
    dialect: Dialect,
    ask: &AskSpec,
) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], dialect.format(&source.files[0].path))?;
    let json = tree.meaning(&tree.root);
    let parts = (source, &tree, &json);
    let (document, asked) = match dialect {
        Dialect::Envoy => {
            let document = envoy::document(parts);
            let asked = look_up(&document, ask)?;
            (document, asked)
        }
        Dialect::Caddy => caddy::with_document(parts, ask.tls, |it| look_up(it, ask))?,
    };
    let add = match dialect {
        Dialect::Envoy => envoy_replaced::add,
        Dialect::Caddy => caddy_replaced::add,
    };
    let mut found = Replacements::new(source);
    for (request, asked) in Request::all(ask).zip(&asked) {
        add(&document, (&request, asked), &mut found);
    }
    Ok(found.done())
}
