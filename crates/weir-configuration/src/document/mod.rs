//! Configurations that are one JSON or YAML document, addressed by path: Envoy's bootstrap and Caddy's JSON. (A
//! Caddyfile is converted to JSON by `caddy adapt`, which is left to the caller.)

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
use crate::{
    ConfigurationError, Listener, PemLocation, RequestOutcome, ShownCertificate, Source, place,
};
use find::{field, get};
use tree::Tree;

/// Reads a document. Its text is not changed, but must be valid in its format.
///
/// # Errors
/// Returns an error, with the place, if the file is missing, is not UTF-8, or is no document of this format.
pub fn read(main: &Path, format: Format) -> Result<Source, ConfigurationError> {
    let file = place::read(main)?;
    Tree::parse(&file, format)?;
    Ok(Source::new(vec![file]))
}

/// Returns the value of a document as JSON.
///
/// # Errors
/// Returns an error if it is no document of its format, which cannot happen to a document from [`read`].
pub fn value(source: &Source, format: Format) -> Result<serde_json::Value, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], format)?;
    Ok(tree.meaning(&tree.root))
}

/// Returns the addresses on which the proxy listens.
///
/// # Errors
/// Returns an error if the document cannot be read.
pub fn listeners(source: &Source, dialect: Dialect) -> Result<Vec<Listener>, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], dialect.format(&source.files[0].path))?;
    let json = tree.meaning(&tree.root);
    let parts = (source, &tree, &json);
    Ok(match dialect {
        Dialect::Envoy => envoy::document(parts).candidates.listeners(),
        Dialect::Caddy => caddy::document(parts, true).candidates.listeners(),
    })
}

/// Looks up the answers to the requests of a load, one for each.
///
/// # Errors
/// Returns an error if the document cannot be read, if no listener matches the load, or if a host or path that the load
/// names matches nothing.
pub fn asked(
    source: &Source,
    dialect: Dialect,
    ask: &AskSpec,
) -> Result<Vec<RequestOutcome>, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], dialect.format(&source.files[0].path))?;
    let json = tree.meaning(&tree.root);
    let parts = (source, &tree, &json);
    match dialect {
        Dialect::Envoy => look_up(&envoy::document(parts), ask),
        Dialect::Caddy => {
            caddy::with_document(parts, ask.tls, |it| look_up(it, ask)).map(|(_, asked)| asked)
        }
    }
}

/// Returns the certificates that a document shows to the clients of a load.
///
/// # Errors
/// Returns the errors of [`asked`].
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
            let answers = look_up(&document, ask)?;
            answers
                .first()
                .map_or_else(Vec::new, |asked| envoy_certificates::certificates(&document, asked))
        }
        Dialect::Caddy => {
            let all = caddy_replaced::certificates(&json).into_iter();
            all.map(|at| (at.clone(), get(&json, &at).cloned().unwrap_or_default())).collect()
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

/// Finds the parts on the way of a load's requests that a copy of a document replaces.
///
/// # Errors
/// Returns the errors of [`asked`].
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
            let answers = look_up(&document, ask)?;
            (document, answers)
        }
        Dialect::Caddy => caddy::with_document(parts, ask.tls, |it| look_up(it, ask))?,
    };
    let add = match dialect {
        Dialect::Envoy => envoy_replaced::add,
        Dialect::Caddy => caddy_replaced::add,
    };
    let mut replacements = Replacements::new(source);
    for (request, asked) in Request::all(ask).zip(&asked) {
        add(&document, (&request, asked), &mut replacements);
    }
    Ok(replacements.done())
}
