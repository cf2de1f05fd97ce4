//! Test that weir's source is tidy: files, functions and lists of parameters are short, circles of files that import
//! each other are small, and few places decide by the name of a proxy. It reads the text, with only as much knowledge
//! of Rust as that takes.

mod circles;
mod functions;
mod proxies;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use circles::circles;
use functions::{functions, traits};
use proxies::told;
use text::code;

const MOST_LINES_OF_A_FILE: usize = 500;
const MOST_LINES_OF_A_FUNCTION: usize = 70;
/// Most parameters besides `self`, unless a foreign trait prescribes them.
const MOST_PARAMETERS: usize = 5;
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
        let code = code(&text);
        Source { path, text, code }
    }
}

/// Returns the offences in some files, one a line.
fn offences(sources: &[Source]) -> Vec<String> {
    let own: Vec<&str> = sources.iter().flat_map(|one| traits(&one.code)).collect();
    let mut all = Vec::new();
    for source in sources {
        let (path, code) = (&source.path, &source.code);
        let lines = code.lines().count();
        if lines > MOST_LINES_OF_A_FILE {
            all.push(format!("{path}:1: the file has {lines} lines"));
        }
        for one in functions(code, &own) {
            let at = format!("{path}:{}: function {}", one.line, one.name);
            if one.lines > MOST_LINES_OF_A_FUNCTION {
                all.push(format!("{at} has {} lines", one.lines));
            }
            if one.parameters > MOST_PARAMETERS {
                all.push(format!("{at} has {} parameters", one.parameters));
            }
        }
    }
    for source in sources {
        let place = "docs/proxies.md says where a proxy is told by its name";
        let lines = told(source).into_iter();
        all.extend(lines.map(|line| format!("{}:{line}: {place}", source.path)));
    }
    for circle in
        circles(sources).into_iter().filter(|circle| circle.len() > MOST_FILES_OF_A_CIRCLE)
    {
        let (first, others) = (circle[0], circle[1..].join(", "));
        all.push(format!("{first}:1: imports in a circle with {others}"));
    }
    all
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let is_data = path.file_name().is_some_and(|name| name == "data");
        if path.is_dir() && !is_data {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
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
            let path = path.strip_prefix(&root).expect("below");
            Source::new(path.display().to_string(), text)
        })
        .collect();
    let found = offences(&sources);
    assert!(found.is_empty(), "{} offences:\n{}", found.len(), found.join("\n"));
}

fn source(path: &str, text: &str) -> Source {
    Source::new(format!("crates/a/src/{path}"), text.to_owned())
}

#[test]
fn an_offence_is_named_with_its_place() {
    let named = "lib.rs:1: docs/proxies.md says where a proxy is told by its name";
    let lines = |count: usize| "\n".repeat(count);
    let body = |count: usize| format!("\nfn f() {{{}}}\n", lines(count));
    #[rustfmt::skip]
    let rows = [
        ("a file", lines(500), ""),
        ("a longer file", lines(501), "lib.rs:1: the file has 501 lines"),
        ("a function", body(69), ""),
        ("a longer function", body(70), "lib.rs:2: function f has 71 lines"),
        ("a `}` in a string",
         format!("fn f() {{ \"}}\"; '}}'; r#\"}}\"#; /* }} */ {}}}", lines(70)),
         "lib.rs:1: function f has 71 lines"),
        ("five parameters",
         "fn f(&self, a: A<B, C>, b: (), c: fn(A, B) -> C, d: [A; 2], e: E,) {}".to_owned(), ""),
        ("six parameters", "fn f<T: Fn() -> A>(a: A, b: B, c: C, d: D, e: E, f: F) {}".to_owned(),
         "lib.rs:1: function f has 6 parameters"),
        ("of a trait of its own",
         "trait T { fn f(&self, a: A, b: B, c: C, d: D, e: E, f: F); }".to_owned(),
         "lib.rs:1: function f has 6 parameters"),
        ("of somebody else's trait",
         "impl<A> x::T<A> for S { fn f(&self, a: A, b: B, c: C, d: D, e: E, f: F) {} }".to_owned(), ""),
        ("a proxy's variant", "        ProxyKind::Haproxy => true,".to_owned(), named),
        ("a proxy's name", "    if arm.proxy == \"haproxy\" {".to_owned(), named),
        ("a title, a comment and a test", "let title = \"HAProxy\";\n// \"nginx\"\n#[cfg(test)]\n\"nginx\"".to_owned(), ""),
        ("a default", "    let kind = kind.unwrap_or(ProxyKind::Nginx);".to_owned(), ""),
    ];
    for (name, text, expected) in rows {
        let expected: Vec<String> =
            expected.lines().map(|line| format!("crates/a/src/{line}")).collect();
        assert_eq!(offences(&[source("lib.rs", &text)]), expected, "{name}");
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
        let found = offences(&files.map(|(path, text)| source(path, text)));
        assert_eq!(!found.is_empty(), is_circle, "{b} {d}: {found:?}");
    }
}
