//! The policy in `deny.toml`, and its violations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::license::is_allowed;
use crate::{Metadata, Package, SupplyError, read};

/// Sections and keys that must have the value `deny`, since the check is void otherwise.
const DENIED: [(&str, &str); 4] = [
    ("sources", "unknown-registry"),
    ("sources", "unknown-git"),
    ("bans", "multiple-versions"),
    ("bans", "wildcards"),
];

/// The part of the policy that is checked without a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Licences under which a package may be used.
    pub licenses: Vec<String>,
    /// Packages that are allowed in addition to another version, as `name@version`.
    pub duplicates: Vec<String>,
    /// Names of packages that are not allowed.
    pub banned: Vec<String>,
}

impl Policy {
    /// Reads `deny.toml` in the folder `root`.
    ///
    /// # Errors
    /// The file is missing, or lacks a list or a denial.
    pub fn of(root: &Path) -> Result<Policy, SupplyError> {
        Policy::parse(&read(root.join("deny.toml"))?)
    }

    /// Parses the lists of a policy, with only as much of TOML as they need.
    ///
    /// # Errors
    /// A list is missing, or a required denial is.
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
            let list = list
                .ok_or_else(|| SupplyError::Policy(format!("[{section}] has no list `{key}`")))?;
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

/// Returns the value of a key without comments; a list includes all its lines.
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

/// Returns all violations of the policy by the packages of a build, one line each.
pub fn violations(metadata: &Metadata, policy: &Policy) -> Vec<String> {
    let used: BTreeSet<&str> = metadata.resolve.nodes.iter().map(|node| &*node.id).collect();
    let packages: Vec<&Package> =
        metadata.packages.iter().filter(|package| used.contains(&*package.id)).collect();
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

/// Returns the packages that come neither from this repository nor from the one registry that all others come from.
fn sources(metadata: &Metadata, packages: &[&Package]) -> Vec<String> {
    let registry = packages
        .iter()
        .filter_map(|package| package.source.as_ref())
        .filter(|one| one.starts_with("registry+"))
        .min();
    packages
        .iter()
        .filter(|package| match &package.source {
            None => !metadata.workspace_members.contains(&package.id),
            source => source.as_ref() != registry,
        })
        .map(|package| {
            let from = package.source.as_deref().unwrap_or("a folder elsewhere");
            format!("{}@{} comes from {from}", package.name, package.version)
        })
        .collect()
}

/// Returns the packages that occur in several versions of which more than one is not listed in the policy, and the
/// listed ones that do not occur.
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
    versions
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(name, versions)| format!("{name} is there in versions {}", versions.join(", ")))
        .chain(known.iter().map(|name| format!("{name} is skipped and not there")))
        .collect()
}
