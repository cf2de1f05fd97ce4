//! Supply chain of weir: the packages of its build as Cargo reports them, checked against the policy in `deny.toml`
//! ([`Policy`]), and listed in a bill of materials ([`bom`]).
//!
//! The policy is cargo-deny's file, and `make deny` has cargo-deny check all of it, including advisories. That program
//! takes some four hundred packages to build and needs the network. The parts that need neither (licences, sources,
//! duplicates, bans) are therefore checked here as well, in an ordinary test, so that CI passes no unchecked build.

mod bom;
mod license;
mod policy;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

pub use bom::bom;
pub use policy::{Policy, violations};

/// An error in collecting or checking the packages of the build.
#[derive(Debug, thiserror::Error)]
pub enum SupplyError {
    /// Cargo could not be run, or failed.
    #[error("cargo: {0}")]
    Cargo(String),
    /// Cargo's output could not be parsed.
    #[error("cargo metadata says what cannot be understood: {0}")]
    Metadata(#[from] serde_json::Error),
    /// The policy lacks an entry that is checked here.
    #[error("deny.toml: {0}")]
    Policy(String),
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
}

/// Output of `cargo metadata --format-version 1`, limited to the fields that are used here.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// All packages, without those for other systems.
    pub packages: Vec<Package>,
    /// Identifiers of the packages in this repository.
    pub workspace_members: Vec<String>,
    /// Dependencies between the packages.
    pub resolve: Resolve,
    /// Folder of the workspace's `Cargo.toml`.
    pub workspace_root: PathBuf,
}

/// A package as Cargo reports it.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Unique identifier of the package, as Cargo writes it.
    pub id: String,
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// Licence as an SPDX expression.
    pub license: Option<String>,
    /// Source of the package, such as a registry; `None` for a local folder.
    pub source: Option<String>,
}

/// Dependencies between packages.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// Dependencies of each package.
    pub nodes: Vec<Node>,
}

/// Dependencies of one package.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// Identifier of the package.
    pub id: String,
    /// Packages that it depends on.
    pub deps: Vec<Dep>,
}

/// A package that another one depends on.
#[derive(Debug, Deserialize)]
pub struct Dep {
    /// Identifier of the package.
    pub pkg: String,
    /// Kinds of the dependency.
    pub dep_kinds: Vec<DepKind>,
}

/// Kind of a dependency.
#[derive(Debug, Deserialize)]
pub struct DepKind {
    /// Kind as Cargo writes it: `None` for the program itself, `build`, or `dev` for tests.
    pub kind: Option<String>,
}

/// Runs `cargo metadata` for the workspace at `root`, for Linux on a machine like this one.
///
/// # Errors
/// Cargo is missing or fails, or `Cargo.lock` is out of date.
pub fn metadata(root: &Path) -> Result<Metadata, SupplyError> {
    let told = cargo(root, &["metadata", "--format-version", "1", "--filter-platform"])?;
    Ok(serde_json::from_slice(&told)?)
}

/// Returns the packages that the program `weir` is really built from, as `name@version`. `cargo metadata` has more,
/// such as those of disabled features.
///
/// # Errors
/// Same as [`metadata`].
pub fn built(root: &Path) -> Result<BTreeSet<String>, SupplyError> {
    let program = ["tree", "-p", "weir", "-e", "normal,build"];
    let lines = ["--prefix", "none", "-f", "{p}", "--target"];
    let told = cargo(root, &[&program[..], &lines].concat())?;
    let text = String::from_utf8_lossy(&told).into_owned();
    Ok(text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (name, version) = (words.next()?, words.next()?);
            Some(format!("{name}@{}", version.strip_prefix('v')?))
        })
        .collect())
}

/// Runs Cargo with `question` as its arguments, followed by the target triple, and returns its output.
fn cargo(root: &Path, question: &[&str]) -> Result<Vec<u8>, SupplyError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let system = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let asked = Command::new(cargo)
        .current_dir(root)
        .args(question)
        .args([&*system, "--locked"])
        .output()
        .map_err(|error| SupplyError::Cargo(error.to_string()))?;
    if asked.status.success() {
        Ok(asked.stdout)
    } else {
        Err(SupplyError::Cargo(String::from_utf8_lossy(&asked.stderr).trim().to_owned()))
    }
}

pub(crate) fn read(path: PathBuf) -> Result<String, SupplyError> {
    std::fs::read_to_string(&path).map_err(|source| SupplyError::Read { path, source })
}
