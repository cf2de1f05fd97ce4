//! Puts the exact version into the binary (the package's number and, in a git checkout, the commit), and the JSON schemas
//! of `docs/schemas/`, deflated.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Folder of the JSON schemas, relative to this package.
const SCHEMAS: &str = "../../docs/schemas";

fn main() -> io::Result<()> {
    let number = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) => format!("{number} ({commit})"),
        None => number,
    };
    println!("cargo::rustc-env=WEIR_VERSION={version}");
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    println!("cargo::rerun-if-changed={SCHEMAS}");
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from);
    schemas(&out.ok_or_else(|| io::Error::other("no OUT_DIR"))?)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Writes `schemas.rs`: a list of all schemas, each with its name and its deflated text.
fn schemas(out: &Path) -> io::Result<()> {
    let mut files = fs::read_dir(SCHEMAS)?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut list = String::from("&[\n");
    for path in files.iter().map(fs::DirEntry::path) {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let (Some(name), true) = (stem, path.extension().is_some_and(|is| is == "json")) else {
            continue;
        };
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
        deflated.write_all(&fs::read(&path)?)?;
        fs::write(out.join(name), deflated.finish()?)?;
        list.push_str(&format!(
            "({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"))),\n"
        ));
    }
    fs::write(out.join("schemas.rs"), list + "]\n")
}
