//! Tests of the rows against the installed nginx. They are skipped without one.

use std::fs;

use weir_model::study::ProxyKind::Nginx;
use weir_parameters::{Catalog, Context, EffectiveFrom};

/// Returns the directives of Debian's file, each with its block. Nested blocks are not supported; the test would miss
/// their directives.
fn directives(text: &str) -> Vec<(Context, String)> {
    let mut context = Context::new("main");
    let mut written = Vec::new();
    for line in text.lines() {
        match line.split('#').next().unwrap_or_default().trim() {
            "events {" => context = Context::new("events"),
            "http {" => context = Context::new("http"),
            "}" => context = Context::new("main"),
            line => {
                if let Some(directive) = line.strip_suffix(';') {
                    written.push((context.clone(), directive.to_owned()));
                }
            }
        }
    }
    written
}

#[test]
fn stock_is_what_debian_ships() {
    let Ok(text) = fs::read_to_string("/etc/nginx/nginx.conf") else {
        return;
    };
    // Somebody's own configuration says nothing about the package.
    if !text.contains("include /etc/nginx/sites-enabled/*;") {
        return;
    }
    let written = directives(&text);
    for row in Catalog::builtin().parameters(Nginx) {
        let EffectiveFrom::Directive { name, context } = &row.effective else {
            continue;
        };
        let level = written
            .iter()
            .find(|(place, text)| place == context && text.split_whitespace().next() == Some(name))
            .and_then(|(_, text)| row.read_back(Some(text)));
        assert_eq!(level, row.debian, "{} in /etc/nginx/nginx.conf", row.id);
    }
}
