//! What nginx is really running with, read back from what it prints of itself.

use std::collections::BTreeMap;

use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, Context, EffectiveFrom, Parameter};

use super::syntax::{self, Directive};
use crate::SutError;

/// A configuration as nginx understood it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// What `nginx -T` prints: the configuration file and those it includes.
    pub text: String,
    /// Level of every parameter in the catalog: what is written, or else the program's default.
    /// A text that no level leads to is given as it stands.
    pub levels: BTreeMap<String, String>,
}

/// Reads the levels of all parameters. Process limits are known only of a proxy that runs.
pub(super) fn read(
    text: String,
    catalog: &Catalog,
    nofile: Option<u64>,
) -> Result<Effective, SutError> {
    let tree = syntax::parse(&text)?;
    let levels = catalog
        .parameters(ProxyKind::Nginx)
        .filter_map(|row| Some((row.id.clone(), level(row, &tree, nofile)?)))
        .collect();
    Ok(Effective { text, levels })
}

fn level(row: &Parameter, tree: &[Directive], nofile: Option<u64>) -> Option<String> {
    let found = match &row.effective {
        EffectiveFrom::Directive { name, context } => find(tree, *context, name),
        EffectiveFrom::ListenFlag { .. } => find(tree, Context::Listen, "listen"),
        EffectiveFrom::ProcessLimit { .. } => nofile.map(|limit| limit.to_string()),
        EffectiveFrom::Sysctl { .. } => None,
    };
    row.read_back(found.as_deref()).or(found)
}

/// The words of the directive that counts for a context, the innermost that there is: what a
/// location does not say it takes from its server, and that from `http`.
fn find(tree: &[Directive], context: Context, name: &str) -> Option<String> {
    let paths: &[&[&str]] = match context {
        Context::Main => &[&[]],
        Context::Events => &[&["events"]],
        Context::Upstream => &[&["http", "upstream"]],
        Context::Listen => &[&["http", "server"]],
        Context::Http | Context::Server | Context::Location => &[
            &["http", "server", "location"],
            &["http", "server"],
            &["http"],
        ],
    };
    let directive = paths.iter().find_map(|path| {
        block(tree, path)?
            .iter()
            .find(|directive| directive.name == name)
    })?;
    let words = std::iter::once(&directive.name).chain(&directive.arguments);
    Some(words.map(String::as_str).collect::<Vec<_>>().join(" "))
}

/// The content of the block at a path; weir writes one of each.
fn block<'a>(tree: &'a [Directive], path: &[&str]) -> Option<&'a [Directive]> {
    let Some((name, rest)) = path.split_first() else {
        return Some(tree);
    };
    let inner = tree
        .iter()
        .find(|directive| directive.name == *name)?
        .block
        .as_ref()?;
    block(inner, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        worker_processes 2;
        events { worker_connections 768; }
        http {
            keepalive_requests 50;
            sendfile on;
            upstream origin { server 127.0.0.1:1; keepalive 16; keepalive_requests 7; }
            server {
                listen 127.0.0.1:2 backlog=99 reuseport;
                sendfile off;
                location / { proxy_pass http://origin; }
            }
        }
    "#;

    #[test]
    fn the_context_decides_and_the_innermost_wins() {
        let levels = read(TEXT.to_owned(), &Catalog::builtin(), Some(4096))
            .unwrap()
            .levels;
        for (id, level) in [
            ("worker_processes", "2"),
            ("worker_connections", "768"),
            ("worker_rlimit_nofile", "4096"),
            ("keepalive_requests", "50"),
            ("origin_keepalive_requests", "7"),
            ("origin_keepalive", "16"),
            ("sendfile", "off"),
            ("backlog", "99"),
            ("reuseport", "on"),
        ] {
            assert_eq!(levels.get(id).map(String::as_str), Some(level), "{id}");
        }
    }

    #[test]
    fn what_is_not_written_is_the_program_s_default() {
        let catalog = Catalog::builtin();
        let levels = read("events { }".to_owned(), &catalog, None)
            .unwrap()
            .levels;
        assert_eq!(levels, catalog.defaults(ProxyKind::Nginx));
    }

    #[test]
    fn a_text_that_no_level_leads_to_stands_as_it_is() {
        let text = "http { access_log syslog:server=a main; }".to_owned();
        let levels = read(text, &Catalog::builtin(), None).unwrap().levels;
        assert_eq!(levels["access_log"], "access_log syslog:server=a main");
    }
}
