//! What weir is made of: the packages of its build as Cargo knows them, held against the policy in `deny.toml`
//! ([`Policy`]), and written down as a bill of materials ([`bom`]).
//!
//! The policy is cargo-deny's file, and `make deny` has cargo-deny check all of it, advisories too. That program is
//! some four hundred packages to build and asks the network, so what needs neither (licences, sources, duplicates, bans)
//! is checked here as well, in an ordinary test: a build of weir that was not looked at is no build that CI passes.

mod bom;
mod license;
mod policy;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

pub use bom::bom;
pub use policy::{Policy, violations};

/// Why something about the build cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum SupplyError {
    /// Cargo cannot be asked, or refuses.
    #[error("cargo: {0}")]
    Cargo(String),
    /// What Cargo says cannot be understood.
    #[error("cargo metadata says what cannot be understood: {0}")]
    Metadata(#[from] serde_json::Error),
    /// The policy lacks what is checked here.
    #[error("deny.toml: {0}")]
    Policy(String),
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
}

/// What `cargo metadata --format-version 1` prints, as far as it is needed.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// All packages, those of other systems left out.
    pub packages: Vec<Package>,
    /// Identifiers of the packages in this repository.
    pub workspace_members: Vec<String>,
    /// Who needs whom.
    pub resolve: Resolve,
    /// The folder of `Cargo.toml`.
    pub workspace_root: PathBuf,
}

/// A package.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// What tells it from all others, in Cargo's words.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence: an SPDX expression.
    pub license: Option<String>,
    /// Where it comes from; `None`: a folder.
    pub source: Option<String>,
}

/// Who needs whom.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// One for each package.
    pub nodes: Vec<Node>,
}

/// What a package needs.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// The package's identifier.
    pub id: String,
    /// The packages that it needs.
    pub deps: Vec<Dep>,
}

/// A package that another one needs.
#[derive(Debug, Deserialize)]
pub struct Dep {
    /// Its identifier.
    pub pkg: String,
    /// What for.
    pub dep_kinds: Vec<DepKind>,
}

/// What a package is needed for.
#[derive(Debug, Deserialize)]
pub struct DepKind {
    /// `None` for the program itself, `build`, or `dev` for tests.
    pub kind: Option<String>,
}

/// Asks Cargo for the packages of the workspace at `root`, for Linux on a machine like this one.
///
/// # Errors
/// Cargo is not there or refuses, or `Cargo.lock` does not fit.
pub fn metadata(root: &Path) -> Result<Metadata, SupplyError> {
    let told = cargo(
        root,
        &["metadata", "--format-version", "1", "--filter-platform"],
    )?;
    Ok(serde_json::from_slice(&told)?)
}

/// The packages that the program `weir` is really built from, as `name@version`: metadata has more, such as those of
/// features that are off.
///
/// # Errors
/// As for [`metadata`].
pub fn built(root: &Path) -> Result<BTreeSet<String>, SupplyError> {
    let program = ["tree", "-p", "weir", "-e", "normal,build"];
    let lines = ["--prefix", "none", "-f", "{p}", "--target"];
    let told = cargo(root, &[&program[..], &lines].concat())?;
    let text = String::from_utf8_lossy(&told).into_owned();
    let package = |line: &str| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?);
        Some(format!("{name}@{}", version.strip_prefix('v')?))
    };
    Ok(text.lines().filter_map(package).collect())
}

/// What Cargo prints to a question that ends with the system.
fn cargo(root: &Path, question: &[&str]) -> Result<Vec<u8>, SupplyError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let system = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let asked = Command::new(cargo)
        .current_dir(root)
        .args(question)
        .args([&*system, "--locked"])
        .output()
        .map_err(|error| SupplyError::Cargo(error.to_string()))?;
    match asked.status.success() {
        true => Ok(asked.stdout),
        false => Err(SupplyError::Cargo(
            String::from_utf8_lossy(&asked.stderr).trim().to_owned(),
        )),
    }
}

/// The text of a file.
pub(crate) fn read(path: PathBuf) -> Result<String, SupplyError> {
    std::fs::read_to_string(&path).map_err(|source| SupplyError::Read { path, source })
}
