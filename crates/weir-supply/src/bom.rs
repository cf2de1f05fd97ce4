//! The bill of materials: CycloneDX 1.5 in JSON.
//!
//! It lists the components of the program `weir`: packages that it or its build scripts need (not those that only tests
//! need), with versions, licences and the hashes of `Cargo.lock`, and the embedded objects of BPF programs. The same
//! build gives the same bytes: there is no time and no serial number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::license::spelled;
use crate::{Metadata, Package, SupplyError, read};

const PROGRAM: &str = "weir";

/// Builds the bill of materials of the program from the packages in `built`.
///
/// # Errors
/// There is no such program, or `Cargo.lock` or an object cannot be read.
pub fn bom(metadata: &Metadata, built: &BTreeSet<String>) -> Result<Value, SupplyError> {
    let root = &metadata.workspace_root;
    let lock = read(root.join("Cargo.lock"))?;
    let hashes = hashes(&lock);
    let parts = Parts::of(metadata, built)?;
    let objects = objects(root)?;
    let mut components: Vec<Value> = parts
        .packages
        .values()
        .filter(|package| package.id != parts.program.id)
        .map(|package| component(package, "library", &hashes))
        .collect();
    components.extend(objects.iter().map(Object::component));
    let mut dependencies: Vec<Value> = parts
        .packages
        .values()
        .map(|package| {
            let own = objects.iter().filter(|object| object.crate_name == package.name);
            let mut all = parts.needs(package);
            all.extend(own.map(|object| object.path.clone()));
            json!({"ref": reference(package), "dependsOn": all})
        })
        .collect();
    dependencies.extend(objects.iter().map(|object| json!({"ref": object.path})));
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(parts.program, "application", &hashes)},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Packages that the program is built from.
struct Parts<'m> {
    program: &'m Package,
    /// Packages by reference.
    packages: BTreeMap<String, &'m Package>,
    /// Identifiers of the packages that each package needs, by the latter's identifier.
    needs: BTreeMap<&'m str, Vec<&'m str>>,
    by_id: BTreeMap<&'m str, &'m Package>,
}

impl<'m> Parts<'m> {
    fn of(metadata: &'m Metadata, built: &BTreeSet<String>) -> Result<Parts<'m>, SupplyError> {
        let by_id: BTreeMap<&str, &Package> = metadata
            .packages
            .iter()
            .filter(|package| built.contains(&format!("{}@{}", package.name, package.version)))
            .map(|package| (&*package.id, package))
            .collect();
        let program = metadata.packages.iter().find(|package| {
            package.name == PROGRAM && metadata.workspace_members.contains(&package.id)
        });
        let program =
            program.ok_or_else(|| SupplyError::Cargo(format!("there is no package {PROGRAM}")))?;
        let nodes = metadata.resolve.nodes.iter().map(|node| {
            let built = node.deps.iter().filter(|dep| {
                let mut kinds = dep.dep_kinds.iter();
                kinds.any(|kind| kind.kind.as_deref() != Some("dev"))
            });
            (&*node.id, built.map(|dep| &*dep.pkg).collect())
        });
        let needs: BTreeMap<&str, Vec<&str>> = nodes.collect();
        let (mut left, mut seen) = (vec![&*program.id], BTreeSet::new());
        while let Some(id) = left.pop() {
            if by_id.contains_key(id) && seen.insert(id) {
                left.extend(needs.get(id).into_iter().flatten());
            }
        }
        let packages = seen.iter().filter_map(|id| by_id.get(id).copied());
        Ok(Parts {
            program,
            packages: packages.map(|package| (reference(package), package)).collect(),
            needs,
            by_id,
        })
    }

    /// Returns the references of the packages that a package needs.
    fn needs(&self, package: &Package) -> BTreeSet<String> {
        self.needs
            .get(&*package.id)
            .into_iter()
            .flatten()
            .filter_map(|id| self.by_id.get(id))
            .map(|needed| reference(needed))
            .collect()
    }
}

/// Returns the reference of a package in the bill: its package URL.
fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn component(package: &Package, kind: &str, hashes: &BTreeMap<(&str, &str), &str>) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
    });
    if let Some(license) = &package.license {
        component["licenses"] = json!([{"expression": spelled(license)}]);
    }
    if package.source.is_some() {
        component["purl"] = json!(reference(package));
    }
    if let Some(hash) = hashes.get(&(&*package.name, &*package.version)) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
    }
    component
}

/// Returns the hashes in `Cargo.lock` by name and version of the package.
fn hashes(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.split("[[package]]").skip(1);
    let of = |package: &'_ str, key: &str| -> Option<(usize, usize)> {
        let begin = package.find(&format!("\n{key} = \""))? + key.len() + 5;
        Some((begin, begin + package[begin..].find('"')?))
    };
    packages
        .filter_map(|package| {
            let part = |key: &str| of(package, key).map(|(from, to)| &package[from..to]);
            Some(((part("name")?, part("version")?), part("checksum")?))
        })
        .collect()
}

/// A compiled BPF program that is embedded in a crate.
struct Object {
    crate_name: String,
    /// Path relative to the workspace's folder.
    path: String,
    license: String,
    sha256: String,
}

impl Object {
    fn component(&self) -> Value {
        json!({
            "type": "file",
            "bom-ref": self.path,
            "name": self.path,
            "licenses": [{"expression": self.license}],
            "hashes": [{"alg": "SHA-256", "content": self.sha256}],
        })
    }
}

/// Finds the objects of BPF programs, each with the licence in the `.license` file next to it.
fn objects(root: &Path) -> Result<Vec<Object>, SupplyError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| SupplyError::Read { path, source }
    };
    let mut found = Vec::new();
    let crates = root.join("crates");
    for folder in fs::read_dir(&crates).map_err(unreadable(&crates))?.flatten() {
        let crate_name = folder.file_name().to_string_lossy().into_owned();
        let Ok(files) = fs::read_dir(folder.path().join("src/bpf")) else {
            continue;
        };
        for file in files.flatten().map(|file| file.path()) {
            if file.extension().is_none_or(|extension| extension != "o") {
                continue;
            }
            let beside = PathBuf::from(format!("{}.license", file.display()));
            let license = read(beside)?;
            let license = license.trim().strip_prefix("SPDX-License-Identifier: ");
            let bytes = fs::read(&file).map_err(unreadable(&file))?;
            let sum = Sha256::digest(bytes);
            found.push(Object {
                crate_name: crate_name.clone(),
                path: file.strip_prefix(root).unwrap_or(&file).display().to_string(),
                license: license.unwrap_or_default().to_owned(),
                sha256: sum.iter().map(|byte| format!("{byte:02x}")).collect(),
            });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
