//! Checks of this repository's own build against its policy and bill of materials, and of builds that break the policy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_supply::{Metadata, Policy, bom, built, metadata, violations};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

#[test]
fn the_packages_of_the_build_keep_the_policy() {
    let metadata = metadata(&root()).unwrap();
    let policy = Policy::of(&root()).unwrap();
    assert!(metadata.packages.len() > 100);
    let found = violations(&metadata, &policy);
    assert!(found.is_empty(), "mend it, or say in deny.toml why it may be:\n{}", found.join("\n"));
}

const POLICY: &str = r#"
# A policy.
[licenses]
allow = [
    "MIT", # "not this"
    "ISC",
]
[bans]
multiple-versions = "deny"
wildcards = "deny" # everywhere
skip = ["old@1.0.0"]
deny = ["openssl-sys"]
[sources]
unknown-registry = "deny"
unknown-git = "deny"
"#;

/// Creates the metadata of a build: the package `own`, and packages with these changes. Each has a valid licence and
/// source by default.
fn build(packages: &[Value]) -> Metadata {
    let right = json!({"version": "1.0.0", "license": "MIT", "source": "registry+one"});
    let own = json!({"id": "own", "name": "own", "source": null});
    let packages: Vec<Value> = std::iter::once(&own)
        .chain(packages)
        .map(|change| {
            let mut package = right.clone();
            for (key, value) in change.as_object().expect("an object") {
                package[key] = value.clone();
            }
            if package["id"].is_null() {
                package["id"] = json!(format!("{}@{}", package["name"], package["version"]));
            }
            package
        })
        .collect();
    let nodes: Vec<Value> =
        packages.iter().map(|package| json!({"id": package["id"], "deps": []})).collect();
    let build = json!({
        "packages": packages,
        "workspace_members": ["own"],
        "resolve": {"nodes": nodes},
        "workspace_root": "/",
    });
    serde_json::from_value(build).expect("a package")
}

#[test]
fn what_breaks_the_policy_is_named() {
    let policy = Policy::parse(POLICY).unwrap();
    assert_eq!(policy.licenses, ["MIT", "ISC"]);
    let old = json!({"name": "old"});
    #[rustfmt::skip]
    let rows = [
        (json!({"name": "a"}), None),
        (json!({"name": "old", "version": "2.0.0"}), None),
        (json!({"name": "a", "license": "GPL-3.0-only"}), Some("a@1.0.0: the licence `GPL-3.0-only` is not allowed")),
        (json!({"name": "a", "license": null}), Some("a@1.0.0 does not say its licence")),
        (json!({"name": "a", "source": "git+elsewhere"}), Some("a@1.0.0 comes from git+elsewhere")),
        (json!({"name": "a", "source": "registry+two"}), Some("a@1.0.0 comes from registry+two")),
        (json!({"name": "a", "source": null}), Some("a@1.0.0 comes from a folder elsewhere")),
        (json!({"name": "openssl-sys"}), Some("openssl-sys@1.0.0 is banned")),
        (json!({"name": "b", "version": "2.0.0"}), Some("b is there in versions 1.0.0, 2.0.0")),
    ];
    for (package, expected) in rows {
        let build = build(&[old.clone(), json!({"name": "b"}), package]);
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(violations(&build, &policy), expected);
    }
    let gone = violations(&build(&[]), &policy);
    assert_eq!(gone, ["old@1.0.0 is skipped and not there"]);
}

#[test]
fn a_policy_that_denies_less_is_none() {
    for key in ["unknown-git", "unknown-registry", "multiple-versions", "wildcards"] {
        let line = format!("{key} = \"deny\"");
        for other in [format!("{key} = \"allow\""), format!("# {line}")] {
            let error = Policy::parse(&POLICY.replace(&line, &other)).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }
    let without = POLICY.replace("skip = ", "skipped = ");
    let error = Policy::parse(&without).unwrap_err().to_string();
    assert_eq!(error, "deny.toml: [bans] has no list `skip`");
}

/// Returns this repository's bill, and the packages that `cargo tree` lists.
fn own() -> (Value, BTreeSet<String>) {
    let built = built(&root()).expect("cargo tells");
    (bom(&metadata(&root()).expect("cargo tells"), &built).expect("a bill"), built)
}

/// Returns all components, that of the program last.
fn components(bom: &Value) -> Vec<&Value> {
    bom["components"]
        .as_array()
        .expect("a list")
        .iter()
        .chain([&bom["metadata"]["component"]])
        .collect()
}

/// Checks the requirements of the CycloneDX 1.5 schema on a bill and its components.
#[test]
fn the_bill_of_materials_is_valid() {
    let (bom, _) = own();
    assert_eq!(bom["bomFormat"], "CycloneDX");
    assert_eq!((&bom["specVersion"], &bom["version"]), (&json!("1.5"), &json!(1)));
    let program = &bom["metadata"]["component"];
    assert_eq!((&program["type"], &program["name"]), (&json!("application"), &json!("weir")));
    for component in components(&bom) {
        let name = &component["bom-ref"];
        let kind = component["type"].as_str().unwrap();
        assert!(["library", "file", "application"].contains(&kind), "{name}: {kind}");
        assert!(component["name"].as_str().is_some_and(|name| !name.is_empty()), "{name}");
        let license = component["licenses"][0]["expression"].as_str();
        let is_spdx = license.is_some_and(|license| !license.contains('/'));
        assert!(is_spdx, "{name}: {license:?}");
        // What comes from elsewhere has the hash that Cargo compares.
        let is_ours = component["purl"].is_null() && kind != "file";
        let hash = component["hashes"][0]["content"].as_str();
        let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(hash.map_or(is_ours, is_hash), "{name}: {hash:?}");
    }
}

/// Checks that every reference belongs to exactly one component, and that the program reaches all of them.
#[test]
fn the_bill_of_materials_hangs_together() {
    let (bom, _) = own();
    let reference = |component: &&Value| component["bom-ref"].as_str().unwrap().to_owned();
    let components = components(&bom);
    let all: BTreeSet<String> = components.iter().map(reference).collect();
    assert_eq!(all.len(), components.len(), "a reference comes twice");
    let needs = bom["dependencies"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let told: BTreeSet<String> = needs.iter().map(|one| text(&one["ref"])).collect();
    assert_eq!(told, all);
    let mut reached = BTreeSet::from([text(&bom["metadata"]["component"]["bom-ref"])]);
    for _ in 0..all.len() {
        for one in
            needs.iter().filter(|one| reached.contains(&text(&one["ref"]))).collect::<Vec<_>>()
        {
            let on = one["dependsOn"].as_array().into_iter().flatten();
            reached.extend(on.map(text));
        }
    }
    assert_eq!(reached, all);
}

#[test]
fn the_bill_of_materials_is_complete() {
    let (bom, built) = own();
    let (files, packages): (Vec<&Value>, Vec<&Value>) =
        components(&bom).into_iter().partition(|one| one["type"] == "file");
    let told = packages.iter().map(|package| {
        let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap());
        format!("{name}@{version}")
    });
    assert_eq!(told.collect::<BTreeSet<_>>(), built);
    let names: BTreeSet<&str> = built.iter().filter_map(|one| one.split('@').next()).collect();
    for part in ["weir-load", "rustls", "aws-lc-sys", "serde_derive", "cc"] {
        assert!(names.contains(part), "{part} is missing");
    }
    for other in ["proptest", "insta", "weir-supply"] {
        assert!(!names.contains(other), "{other} is in no build of weir");
    }
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert_eq!(file["licenses"][0]["expression"], "Apache-2.0 OR GPL-2.0-only");
    }
}
