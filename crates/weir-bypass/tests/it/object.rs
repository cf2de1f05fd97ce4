//! The committed object is what its source makes.

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

#[test]
fn the_object_is_what_its_source_makes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bpf");
    let made = tempfile::tempdir().unwrap();
    let made = made.path().join("sockmap.bpf.o");
    let clang = Command::new("sh")
        .arg(folder.join("build"))
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
    let committed = folder.join("sockmap.bpf.o");
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
    assert!(committed.contains("sk_msg"), "{committed}");
    let same = fresh == committed;
    assert!(same, "`make bpf` makes another object: commit it");
}

#[test]
fn the_object_says_nothing_of_the_machine_that_made_it() {
    let object = include_bytes!("../../src/bpf/sockmap.bpf.o");
    assert!(object.len() < 32 * 1024, "{} bytes", object.len());
    let text = String::from_utf8_lossy(object);
    for path in ["/home", "/root", "/tmp", "/usr", "/work"] {
        assert!(!text.contains(path), "{path}");
    }
}
