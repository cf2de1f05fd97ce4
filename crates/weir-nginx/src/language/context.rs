//! Blocks in which directives stand: by the rows of the catalog, and by the rules of nginx that a user may have broken.

use std::collections::HashMap;
use std::sync::LazyLock;

use weir_configuration::{ConfigurationError, Source};
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, Context};

use super::view::{Node, error_at};

/// Place in nginx's configuration into which a row of the catalog is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextLevel {
    Main,
    Events,
    Http,
    Server,
    Location,
    Upstream,
    /// A flag of the `listen` directive.
    Listen,
}

impl ContextLevel {
    /// Returns the place of a context. This is the only function that knows the catalog's names of contexts.
    pub(super) fn of(context: &Context) -> ContextLevel {
        match context.name() {
            "main" => ContextLevel::Main,
            "events" => ContextLevel::Events,
            "server" => ContextLevel::Server,
            "location" => ContextLevel::Location,
            "upstream" => ContextLevel::Upstream,
            "listen" => ContextLevel::Listen,
            // The file of rows declares no other.
            _ => ContextLevel::Http,
        }
    }

    /// Returns the blocks in which nginx accepts a directive of this place. Rows are written as far out as they may be,
    /// and nginx accepts directives of `http` further in as well.
    fn blocks(self) -> &'static [&'static str] {
        match self {
            ContextLevel::Main => &[MAIN],
            ContextLevel::Events => &["events"],
            ContextLevel::Http | ContextLevel::Server | ContextLevel::Location => {
                &["http", "server", "location", "if", "limit_except"]
            }
            ContextLevel::Upstream => &["upstream"],
            ContextLevel::Listen => &[],
        }
    }
}

/// Name for the outside of all blocks; no directive has it.
const MAIN: &str = "";

/// Blocks, each with the blocks in which it may stand.
const BLOCKS: [(&str, &[&str]); 14] = [
    ("events", &[MAIN]),
    ("http", &[MAIN]),
    ("stream", &[MAIN]),
    ("mail", &[MAIN]),
    ("server", &["http", "stream", "mail"]),
    ("location", &["server", "location"]),
    ("upstream", &["http", "stream"]),
    ("map", &["http", "stream"]),
    ("geo", &["http", "stream"]),
    ("split_clients", &["http", "stream"]),
    ("charset_map", &["http"]),
    ("types", &["http", "server", "location"]),
    ("if", &["server", "location"]),
    ("limit_except", &["location"]),
];

/// Blocks in which the catalog's directives can stand, by the directive's name.
static DIRECTIVES: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut directives: HashMap<String, Vec<&'static str>> = HashMap::new();
    let catalog = Catalog::builtin();
    let rows = catalog.parameters(ProxyKind::Nginx);
    for write in rows.flat_map(|row| &row.writes) {
        let name = write.text.split(' ').next().unwrap_or_default();
        let blocks = ContextLevel::of(&write.context).blocks();
        if !blocks.is_empty() {
            directives.entry(name.to_owned()).or_default().extend(blocks);
        }
    }
    directives
});

/// Checks that blocks, and directives of the catalog, stand only where they can. All other errors are left to nginx's
/// own check.
pub(super) fn check(source: &Source, nodes: &[Node<'_>]) -> Result<(), ConfigurationError> {
    check_in(source, nodes, MAIN, true)
}

/// Checks the directives of one block. `is_http` is false in `stream`, `mail` or unknown blocks, which have directives
/// of the same names.
fn check_in(
    source: &Source,
    nodes: &[Node<'_>],
    parent: &str,
    is_http: bool,
) -> Result<(), ConfigurationError> {
    for node in nodes {
        let name = &*node.directive.name.text;
        let allowed = match &node.directive.block {
            Some(_) => blocks_around(name),
            None if is_http => DIRECTIVES.get(name).map(Vec::as_slice),
            None => None,
        };
        // A group of origin servers has directives of its own with the names of those of `http`.
        let misplaced = allowed.filter(|allowed| {
            let is_namesake = parent == "upstream" && allowed.contains(&"http");
            !is_namesake && !allowed.contains(&parent)
        });
        if let Some(allowed) = misplaced {
            let message = format!("`{name}` cannot stand {}", words(&[parent]));
            let hint = format!("it belongs {}", words(allowed));
            return Err(error_at(source, node.file, node.directive, message).hint(hint));
        }
        // What stands in a block that is not known here is not judged.
        if blocks_around(name).is_some() {
            let is_http = is_http && !matches!(name, "stream" | "mail");
            check_in(source, &node.children, name, is_http)?;
        }
    }
    Ok(())
}

/// Returns true if a block of this name is known.
pub(super) fn is_block(name: &str) -> bool {
    blocks_around(name).is_some() || name == "geoip2"
}

fn blocks_around(name: &str) -> Option<&'static [&'static str]> {
    BLOCKS.iter().find(|(block, _)| *block == name).map(|(_, around)| *around)
}

fn words(blocks: &[&str]) -> String {
    // The places inside of a location follow from that.
    let named = blocks
        .iter()
        .filter(|block| blocks.len() == 1 || !matches!(**block, "if" | "limit_except"));
    let named: Vec<String> = named
        .map(|block| match *block {
            MAIN => "outside all blocks".to_owned(),
            block => format!("in `{block}`"),
        })
        .collect();
    named.join(" or ")
}
