//! Configurations that are one JSON or YAML document, addressed by path. A [`Dialect`] knows what its parts mean.

pub mod asked;
mod change;
mod dialect;
pub mod find;
mod json;
pub mod kept;
pub mod listening;
mod pointer;
mod set;
mod setter;
mod tree;
mod walk;
mod write;
mod yaml;

use std::path::Path;

pub use change::{change, effective};
pub use dialect::Dialect;
pub use pointer::Pointer;
pub use set::{Edit, Edits, set, set_in};
pub use tree::{Format, Tree, Value, camel};
pub use walk::visit_all;

use serde_json::Value as Json;
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;

use crate::asked::Request;
use crate::replaced::Replacements;
use crate::{
    ConfigurationError, Listener, PemLocation, RequestOutcome, ShownCertificate, Source, place,
};
use find::field;

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
pub fn listeners(
    source: &Source,
    dialect: &dyn Dialect,
) -> Result<Vec<Listener>, ConfigurationError> {
    let tree = parse(source, dialect)?;
    let json = tree.meaning(&tree.root);
    Ok(dialect.document((source, &tree, &json)).candidates.listeners())
}

/// Looks up the answers to the requests of a load, one for each.
///
/// # Errors
/// Returns an error if the document cannot be read, if no listener matches the load, or if a host or path that the load
/// names matches nothing.
pub fn asked(
    source: &Source,
    dialect: &dyn Dialect,
    ask: &AskSpec,
) -> Result<Vec<RequestOutcome>, ConfigurationError> {
    let tree = parse(source, dialect)?;
    let json = tree.meaning(&tree.root);
    dialect.look_up((source, &tree, &json), ask).map(|(_, outcomes)| outcomes)
}

/// Returns the certificates that a document shows to the clients of a load.
///
/// # Errors
/// Returns the errors of [`asked`].
pub fn certificates(
    source: &Source,
    dialect: &dyn Dialect,
    ask: &AskSpec,
) -> Result<Vec<ShownCertificate>, ConfigurationError> {
    let tree = parse(source, dialect)?;
    let json = tree.meaning(&tree.root);
    let document = dialect.document((source, &tree, &json));
    let mut shown: Vec<ShownCertificate> = Vec::new();
    for (at, value) in dialect.certificates(&document, ask)? {
        let (name, pem) = locate_pem(&value, source);
        shown.push(ShownCertificate { spot: document.spot(&at, name).record(source), pem });
    }
    if shown.is_empty() {
        shown.extend(dialect.automatic_certificate(&document, ask.server_name()));
    }
    Ok(shown)
}

/// Returns the place of a certificate's text, with a name for messages, from the value that says where it is.
fn locate_pem(value: &Json, source: &Source) -> (String, PemLocation) {
    let inline = field(value, "inline_string").and_then(Json::as_str);
    let path = field(value, "filename").and_then(Json::as_str).or(value.as_str());
    if let Some(pem) = inline.or(path.filter(|text| text.starts_with("-----BEGIN"))) {
        return ("certificate".to_owned(), PemLocation::Text(pem.to_owned()));
    }
    match path {
        Some(path) => (path.to_owned(), PemLocation::At(source.base.join(path))),
        None => (format!("certificate {value}"), PemLocation::Unknown),
    }
}

/// Finds the parts on the way of a load's requests that a copy of a document replaces.
///
/// # Errors
/// Returns the errors of [`asked`].
pub fn replaced(
    source: &Source,
    dialect: &dyn Dialect,
    ask: &AskSpec,
) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
    let tree = parse(source, dialect)?;
    let json = tree.meaning(&tree.root);
    let (document, outcomes) = dialect.look_up((source, &tree, &json), ask)?;
    let mut replacements = Replacements::new(source);
    for way in Request::all(ask).zip(&outcomes) {
        dialect.add_replaced(&document, (&way.0, way.1), &mut replacements);
    }
    Ok(replacements.done())
}

fn parse(source: &Source, dialect: &dyn Dialect) -> Result<Tree, ConfigurationError> {
    let file = &source.files[0];
    Tree::parse(file, dialect.format(&file.path))
}
