//! The committed objects are what their sources make: that of the bypass, and that of the meter of hold-ups, which
//! one script makes.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Instructions of every program, as llvm-objdump shows them.
fn instructions(object: &Path) -> Option<String> {
    let shown = Command::new("llvm-objdump")
        .args(["-d", "-r"])
        .arg(object)
        .output()
        .ok()?;
    let text = String::from_utf8(shown.stdout).ok()?;
    let code = text.lines().filter(|line| !line.contains("file format"));
    Some(code.collect::<Vec<_>>().join("\n"))
}

/// What `build` says of the clang that made an object.
fn made_with(object: &Path) -> String {
    let beside = object.with_extension("o.made-with");
    fs::read_to_string(beside).unwrap().trim_end().to_owned()
}

/// Objects of all crates, without their last ending.
const OBJECTS: [&str; 2] = [
    "weir-bypass/src/bpf/sockmap.bpf",
    "weir-probe/src/bpf/hold_ups.bpf",
];

#[test]
fn the_objects_are_what_their_sources_make() {
    for object in OBJECTS {
        is_what_its_source_makes(object);
    }
}

fn is_what_its_source_makes(object: &str) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let made = tempfile::tempdir().unwrap();
    let made = made.path().join("made.bpf.o");
    let clang = Command::new("sh")
        .arg(crates.join("../scripts/bpf"))
        .arg(crates.join(object).with_extension("bpf.c"))
        .arg(&made)
        .output()
        .unwrap();
    if !clang.status.success() {
        let words = String::from_utf8_lossy(&clang.stderr);
        let lacking = words.contains("not found") || words.contains("bpf_helpers.h");
        assert!(lacking, "{words}");
        eprintln!("skipped: the object cannot be made here: {words}");
        return;
    }
    let committed = crates.join(object).with_extension("bpf.o");
    let [here, there] = [&made, &committed].map(|object| made_with(object));
    if here != there {
        eprintln!("skipped: the object was made with {there}, and this is {here}");
        return;
    }
    let Some(fresh) = instructions(&made) else {
        eprintln!("skipped: llvm-objdump is missing");
        return;
    };
    let committed = instructions(&committed).unwrap();
    assert!(committed.contains("Disassembly"), "{committed}");
    let same = fresh == committed;
    assert!(same, "`make bpf` makes another object: commit it");
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
