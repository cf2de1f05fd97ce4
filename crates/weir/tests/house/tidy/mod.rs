//! Test that the source is tidy, as far as clippy cannot tell: files are short, circles of files that import each
//! other are small, and few files decide by the name of a proxy. It reads the text, with only as much knowledge of
//! Rust as that takes.

mod circles;
mod proxies;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use circles::find_circles;
use proxies::find_names;
use text::code;

const MOST_LINES_OF_A_FILE: usize = 800;
const MOST_FILES_OF_A_CIRCLE: usize = 3;

/// A file below the workspace's folder.
struct Source {
    path: String,
    text: String,
    /// Text without comments, strings and characters.
    code: String,
}

impl Source {
    fn new(path: String, text: String) -> Source {
        Source { code: code(&text), path, text }
    }
}

/// Returns the offences in some files, one a line.
fn find_offences(sources: &[Source]) -> Vec<String> {
    let mut all = Vec::new();
    for source in sources {
        let lines = source.code.lines().count();
        if lines > MOST_LINES_OF_A_FILE {
            all.push(format!("{}:1: the file has {lines} lines", source.path));
        }
        let rule = "docs/proxies.md says where a proxy is told by its name";
        let lines = find_names(source).into_iter();
        all.extend(lines.map(|line| format!("{}:{line}: {rule}", source.path)));
    }
    for circle in
        find_circles(sources).into_iter().filter(|circle| circle.len() > MOST_FILES_OF_A_CIRCLE)
    {
        let (first, other_files) = (circle[0], circle[1..].join(", "));
        all.push(format!("{first}:1: imports in a circle with {other_files}"));
    }
    all
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let is_data = path.file_name().is_some_and(|name| name == "data");
        if path.is_dir() && !is_data {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn the_source_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    rust_files(&root.join("crates"), &mut files);
    files.sort();
    assert!(files.len() > 300, "{} files", files.len());
    let sources: Vec<Source> = files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a file");
            let below = path.strip_prefix(&root).expect("below");
            Source::new(below.display().to_string(), text)
        })
        .collect();
    let faults = find_offences(&sources);
    assert!(faults.is_empty(), "{} offences:\n{}", faults.len(), faults.join("\n"));
}

/// Proposers decide without hosts, so that each can be tried with made-up outcomes.
#[test]
fn proposers_know_no_host() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-proposers/Cargo.toml");
    let manifest = fs::read_to_string(path).expect("a manifest");
    let hosts = "agent host hosts kube lab objects probe proxies simulation sut nginx haproxy envoy caddy httpd";
    for host in hosts.split(' ').map(|name| format!("weir-{name}.workspace")) {
        assert!(!manifest.contains(&host), "{host}");
    }
}

fn source(path: &str, text: &str) -> Source {
    Source::new(format!("crates/a/src/{path}"), text.to_owned())
}

#[test]
fn an_offence_is_named_with_its_place() {
    let named = "lib.rs:1: docs/proxies.md says where a proxy is told by its name";
    #[rustfmt::skip]
    let rows = [
        ("a file", "\n".repeat(800), ""),
        ("a longer file", "\n".repeat(801), "lib.rs:1: the file has 801 lines"),
        ("a proxy's variant", "        ProxyKind::Haproxy => true,".to_owned(), named),
        ("a proxy's name", "    if arm.proxy == \"haproxy\" {".to_owned(), named),
        ("a title, a comment and a test", "let title = \"HAProxy\";\n// \"nginx\"\n#[cfg(test)]\n\"nginx\"".to_owned(), ""),
        ("a default", "    let of_table = proxy.unwrap_or(ProxyKind::Nginx);".to_owned(), ""),
    ];
    for (name, text, expected) in rows {
        let expected: Vec<String> =
            expected.lines().map(|line| format!("crates/a/src/{line}")).collect();
        assert_eq!(find_offences(&[source("lib.rs", &text)]), expected, "{name}");
    }
}

#[test]
fn a_circle_of_more_than_three_files_is_named() {
    let lib = "mod a; mod b; mod c; mod d; pub use d::Deep;";
    let [a, c] = ["use crate::{b::B, x};", "fn f() { super::Deep::new() }"];
    #[rustfmt::skip]
    let rows = [
        ("use crate::c;", "use super::a::A;", true),
        ("use crate::c;", "// use super::a::A;", false),
        ("use crate::c;", "mod tests { use super::super::a::A; }", false),
        ("use crate::c;", "mod inner { use super::super::a::A; }", true),
        ("mod c {}", "use super::a::A;", false),
    ];
    for (b, d, is_circle) in rows {
        let files = [("lib.rs", lib), ("a.rs", a), ("b.rs", b), ("c.rs", c), ("d/mod.rs", d)];
        let faults = find_offences(&files.map(|(path, text)| source(path, text)));
        assert_eq!(!faults.is_empty(), is_circle, "{b} {d}: {faults:?}");
    }
}
