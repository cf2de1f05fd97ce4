//! Checks that the committed BPF objects are byte for byte what their sources compile to: the object of the bypass, and
//! those of the meters of hold-ups and of waits, which one script builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads the clang version that the build script noted for an object.
fn compiler_of(object: &Path) -> String {
    let beside = object.with_extension("o.made-with");
    fs::read_to_string(beside).unwrap().trim_end().to_owned()
}

/// Paths of the objects of all crates, without the extension `.o`.
const OBJECTS: [&str; 3] = [
    "weir-bypass/src/bpf/sockmap.bpf",
    "weir-probe/src/bpf/hold_ups.bpf",
    "weir-probe/src/bpf/waits.bpf",
];

#[test]
fn the_objects_are_what_their_sources_make() {
    for object in OBJECTS {
        is_what_its_source_makes(object);
    }
}

fn is_what_its_source_makes(object: &str) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().unwrap();
    let rebuilt = folder.path().join("made.bpf.o");
    let clang = Command::new("sh")
        .arg(crates.join("../scripts/bpf"))
        .arg(crates.join(object).with_extension("bpf.c"))
        .arg(&rebuilt)
        .output()
        .unwrap();
    // `scripts/setup test` has installed what it takes.
    let words = String::from_utf8_lossy(&clang.stderr);
    assert!(clang.status.success(), "{words}");
    let committed = crates.join(object).with_extension("bpf.o");
    let [here, there] = [&rebuilt, &committed].map(|object| compiler_of(object));
    if here != there {
        // Another one may choose other instructions, rightly.
        eprintln!("skipped: {object} was made with {there}, and this is {here}");
        return;
    }
    let [fresh, committed] = [&rebuilt, &committed].map(|object| fs::read(object).unwrap());
    assert!(committed.starts_with(b"\x7fELF"));
    assert!(fresh == committed, "`make bpf` makes another {object}: commit it");
}

/// Each object names the same licences as its source, and the licence texts are in the repository.
#[test]
fn the_objects_have_their_licences() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = crates.join("..");
    for object in OBJECTS {
        let licence = read_text(crates.join(object).with_extension("bpf.o.license"));
        assert_eq!(licence, "SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only\n");
        let source = read_text(crates.join(object).with_extension("bpf.c"));
        assert!(source.starts_with(&format!("// {licence}")), "{object}");
        // Without this word the kernel gives programs few of its functions (bpf-helpers(7)).
        assert!(source.contains("char LICENSE[] SEC(\"license\") = \"GPL\";"));
    }
    let apache = read_text(root.join("LICENSE"));
    assert!(apache.contains("Apache License") && apache.contains("Version 2.0"));
    let gpl = read_text(root.join("LICENSES/GPL-2.0-only.txt"));
    assert!(gpl.contains("GNU GENERAL PUBLIC LICENSE") && gpl.contains("Version 2, June 1991"));
    assert!(gpl.contains("END OF TERMS AND CONDITIONS"), "all of it");
}

fn read_text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_objects_say_nothing_of_the_machine_that_made_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for object in OBJECTS {
        let object = fs::read(crates.join(object).with_extension("bpf.o")).unwrap();
        assert!(object.len() < 32 * 1024, "{} bytes", object.len());
        let text = String::from_utf8_lossy(&object);
        for path in ["/home", "/root", "/tmp", "/usr", "/work"] {
            assert!(!text.contains(path), "{path}");
        }
    }
}
