//! The policy in `deny.toml`, and what breaks it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::license::is_allowed;
use crate::{Metadata, Package, SupplyError, read};

/// What must be denied for the check to be one: sections, keys.
const DENIED: [(&str, &str); 4] = [
    ("sources", "unknown-registry"),
    ("sources", "unknown-git"),
    ("bans", "multiple-versions"),
    ("bans", "wildcards"),
];

/// The part of the policy that is checked without a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Licences that a package may be used under.
    pub licenses: Vec<String>,
    /// Packages that may be there beside another version of them, as `name@version`.
    pub duplicates: Vec<String>,
    /// Names of packages that must not be there.
    pub banned: Vec<String>,
}

impl Policy {
    /// Reads `deny.toml` below `root`.
    ///
    /// # Errors
    /// It is not there, or lacks a list or a denial.
    pub fn of(root: &Path) -> Result<Policy, SupplyError> {
        Policy::parse(&read(root.join("deny.toml"))?)
    }

    /// Reads the lists of a policy: of TOML no more than they need.
    ///
    /// # Errors
    /// A list is missing, or something is not denied that must be.
    pub fn parse(text: &str) -> Result<Policy, SupplyError> {
        for (section, key) in DENIED {
            let value = value(text, section, key);
            if value.as_deref().map(str::trim) != Some("\"deny\"") {
                let what = format!("`{key}` in [{section}] must be \"deny\"");
                return Err(SupplyError::Policy(what));
            }
        }
        let list = |section: &str, key: &str| {
            let list = value(text, section, key).filter(|list| list.trim().starts_with('['));
            let missing = || SupplyError::Policy(format!("[{section}] has no list `{key}`"));
            let list = list.ok_or_else(missing)?;
            // Every other part is within quotes.
            let words = list.split('"').skip(1).step_by(2);
            Ok::<_, SupplyError>(words.map(str::to_owned).collect())
        };
        Ok(Policy {
            licenses: list("licenses", "allow")?,
            duplicates: list("bans", "skip")?,
            banned: list("bans", "deny")?,
        })
    }
}

/// The value of a key, lists with all their lines; comments are left out.
fn value(text: &str, section: &str, key: &str) -> Option<String> {
    let header = format!("[{section}]");
    let mut lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .skip_while(|line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    let first = lines.find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.to_owned())
    })?;
    if !first.contains('[') || first.contains(']') {
        return Some(first);
    }
    let mut value = first;
    for line in lines {
        value += line;
        if line.contains(']') {
            break;
        }
    }
    Some(value)
}

/// Everything about the packages of a build that the policy does not allow, a line each.
pub fn violations(metadata: &Metadata, policy: &Policy) -> Vec<String> {
    let used: BTreeSet<&str> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| &*node.id)
        .collect();
    let is_used = |package: &&Package| used.contains(&*package.id);
    let packages: Vec<&Package> = metadata.packages.iter().filter(is_used).collect();
    let mut found = Vec::new();
    for package in &packages {
        let name = format!("{}@{}", package.name, package.version);
        match &package.license {
            None => found.push(format!("{name} does not say its licence")),
            Some(license) if !is_allowed(license, &policy.licenses) => {
                found.push(format!("{name}: the licence `{license}` is not allowed"));
            }
            Some(_) => {}
        }
        if policy.banned.contains(&package.name) {
            found.push(format!("{name} is banned"));
        }
    }
    found.extend(sources(metadata, &packages));
    found.extend(duplicates(&packages, policy));
    found
}

/// All packages are of this repository or of one registry, the same for all.
fn sources(metadata: &Metadata, packages: &[&Package]) -> Vec<String> {
    let registries = packages
        .iter()
        .filter_map(|package| package.source.as_ref());
    let registry = registries.filter(|one| one.starts_with("registry+")).min();
    let is_foreign = |package: &&&Package| match &package.source {
        None => !metadata.workspace_members.contains(&package.id),
        source => source.as_ref() != registry,
    };
    let foreign = packages.iter().filter(is_foreign);
    foreign
        .map(|package| {
            let from = package.source.as_deref().unwrap_or("a folder elsewhere");
            format!("{}@{} comes from {from}", package.name, package.version)
        })
        .collect()
}

/// No package is there in two versions, unless one of them is known; and all that are known are there.
fn duplicates(packages: &[&Package], policy: &Policy) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut known: BTreeSet<&str> = policy.duplicates.iter().map(String::as_str).collect();
    for package in packages {
        let name = format!("{}@{}", package.name, package.version);
        if !known.remove(&*name) {
            let versions = versions.entry(&package.name).or_default();
            versions.push(&package.version);
        }
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    several
        .map(|(name, versions)| format!("{name} is there in versions {}", versions.join(", ")))
        .chain(
            known
                .iter()
                .map(|name| format!("{name} is skipped and not there")),
        )
        .collect()
}
