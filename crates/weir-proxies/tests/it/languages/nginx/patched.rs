//! Diffs and their reverses are accepted by `patch` and `git apply`.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use weir_configuration::{Source, SourceFile, diff};

use super::{User, all, set};

/// Runs a program that applies a patch below a folder, with `patch` at its standard input.
fn run(program: &[&str], source: &Source, patch: &str) -> Result<Vec<String>, String> {
    let root = tempfile::tempdir().unwrap();
    let below = |file: &SourceFile| root.path().join(file.path.strip_prefix("/").unwrap());
    for file in &source.files {
        let path = below(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &file.text).unwrap();
    }
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .current_dir(root.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(patch.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        let words = [output.stdout, output.stderr].concat();
        return Err(String::from_utf8_lossy(&words).into_owned());
    }
    Ok(source.files.iter().map(|file| fs::read_to_string(below(file)).unwrap()).collect())
}

fn check(before: &Source, after: &Source) {
    for (from, to) in [(before, after), (after, before)] {
        let patch = diff(from, to);
        let wanted: Vec<String> = to.files.iter().map(|file| file.text.clone()).collect();
        if patch.is_empty() {
            assert_eq!(from, to);
            continue;
        }
        let git = ["git", "apply", "-p1", "--whitespace=nowarn"];
        for program in [&["patch", "-p1", "--fuzz=0"][..], &git] {
            match run(program, from, &patch) {
                Ok(texts) => assert_eq!(texts, wanted, "{program:?}: {patch}"),
                Err(words) => panic!("{program:?}: {words}\n{patch}"),
            }
        }
    }
}

/// An include may reach into a folder in which other users name files.
#[test]
fn a_name_of_a_file_begins_no_header_of_its_own() {
    let name = "/etc/a \"b\\\t\u{e4}\n--- a/etc/passwd\n+++ b/etc/passwd\n@@ -0,0 +1 @@\n+x";
    let source =
        |text: &str| Source::new(vec![SourceFile { path: name.into(), text: text.to_owned() }]);
    check(&source("gzip off;\n"), &source("gzip on;\n"));
}

#[test]
fn patch_and_git_apply_take_every_change_and_its_revert() {
    let settings = [
        ("worker_processes", "5"),
        ("keepalive_requests", "12345"),
        ("gzip", "on"),
        ("access_log", "off"),
    ];
    type Rewrite = fn(&str) -> String;
    let spellings: [Rewrite; 3] =
        [str::to_owned, |text| text.replace('\n', "\r\n"), |text| text.trim_end().to_owned()];
    for name in all().filter(|name| *name != "stream") {
        for rewrite in spellings {
            let before = User::rewritten(name, rewrite).read();
            let after = set(&before, &settings);
            assert_ne!(before, after, "{name}");
            check(&before, &after);
        }
    }
}

fn make_source(path: &str, text: &str) -> Source {
    Source::new(vec![SourceFile { path: path.into(), text: text.to_owned() }])
}

#[test]
fn a_diff_looks_as_everybody_knows_it() {
    let text = "a\nb\nc\nd\ne\nf\ng\nh";
    let after = make_source("/etc/nginx/nginx.conf", &text.replace('e', "E"));
    assert_eq!(
        diff(&make_source("/etc/nginx/nginx.conf", text), &after),
        "--- a/etc/nginx/nginx.conf\n+++ b/etc/nginx/nginx.conf\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n\
         \\ No newline at end of file\n"
    );
}

#[test]
fn names_with_blanks_are_patched() {
    let before = make_source("/my sites/nginx.conf", "a;\nb;\n");
    check(&before, &make_source("/my sites/nginx.conf", "a;\nc;\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_change_of_lines_is_patched(
        before in prop::collection::vec("[ab\r]{0,2}", 1..12),
        after in prop::collection::vec("[ab\r]{0,2}", 1..12),
        ends in any::<[bool; 2]>(),
    ) {
        check(
            &make_source("/etc/x", &join(&before, ends[0])),
            &make_source("/etc/x", &join(&after, ends[1])),
        );
    }
}

fn join(lines: &[String], ends: bool) -> String {
    lines.join("\n") + if ends { "\n" } else { "x" }
}
