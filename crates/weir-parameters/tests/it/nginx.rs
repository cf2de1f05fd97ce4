//! The rows against the nginx that is installed here; without one there is nothing to compare.

use std::fs;
use std::path::Path;
use std::process::Command;

use weir_model::study::ProxyKind::Nginx;
use weir_parameters::{Catalog, Context, Directive, EffectiveFrom};

/// Debian's file, directives only, with the block that each stands in. Blocks in it are not nested
/// deeper than one level, which the test checks by finding what it looks for.
fn directives(text: &str) -> Vec<(Context, String)> {
    let mut context = Context::new("main");
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line {
            "events {" => context = Context::new("events"),
            "http {" => context = Context::new("http"),
            "}" => context = Context::new("main"),
            _ => {
                if let Some(directive) = line.strip_suffix(';') {
                    found.push((context.clone(), directive.to_owned()));
                }
            }
        }
    }
    found
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
        let found = written
            .iter()
            .find(|(place, text)| place == context && text.split_whitespace().next() == Some(name));
        let level = found.and_then(|(_, text)| row.read_back(Some(text)));
        assert_eq!(level, row.debian, "{} in /etc/nginx/nginx.conf", row.id);
    }
}

/// A configuration that keeps away from everything of the system's own nginx.
fn configuration(folder: &Path, directives: &[Directive]) -> String {
    let folder = folder.display().to_string();
    let logs = |text: &str| text.replace("{logs}", &folder);
    let block = |context| {
        let lines = directives.iter().filter(|d| d.context == context);
        lines.map(|d| logs(&d.text) + ";\n").collect::<String>()
    };
    let flags = directives
        .iter()
        .filter(|d| d.context == Context::new("listen"));
    let flags: String = flags.map(|d| format!(" {}", d.text)).collect();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .collect();
    format!(
        "pid {folder}/pid;\nerror_log {folder}/error.log;\n{}events {{ {} }}\nhttp {{ {temporary}{}\n\
         upstream origin {{ server 127.0.0.1:1; {} }}\n\
         server {{ listen 127.0.0.1:18098{flags}; {} location / {{ proxy_pass http://origin; {} }} }}\n}}\n",
        block(Context::new("main")),
        block(Context::new("events")),
        block(Context::new("http")),
        block(Context::new("upstream")),
        block(Context::new("server")),
        block(Context::new("location")),
    )
}

#[test]
fn nginx_understands_what_every_row_writes() {
    if Command::new("nginx").arg("-v").output().is_err() {
        return;
    }
    for row in Catalog::builtin().parameters(Nginx) {
        for level in crate::rows::sample_levels(row) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let file = folder.path().join("nginx.conf");
            let text = configuration(folder.path(), &row.directives(&level));
            fs::write(&file, &text).expect("the folder is ours");
            let output = Command::new("nginx")
                .args(["-t", "-e", "stderr", "-c"])
                .arg(&file)
                .output()
                .expect("nginx was there a moment ago");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{} {level}: {said}\n{text}",
                row.id
            );
        }
    }
}
