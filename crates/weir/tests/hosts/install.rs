//! Tests of files for installers: completions that a shell uses, a page for each command, a package that dpkg accepts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use weir_testkit::program::{HasAll, run, weir};
use weir_testkit::ssh::skipped;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn have(program: &str) -> bool {
    let lookup = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).output();
    lookup.is_ok_and(|output| output.status.success())
}

/// Runs a program, which must succeed, and returns its output.
#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}:\n{out}{err}");
    out.into_owned()
}

/// Returns the commands that `weir --help` lists, except `help`.
fn commands() -> Vec<String> {
    let help = run("--help").with_code(0).stdout;
    let names = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !["", "help"].contains(name));
    names.map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("weir");
    fs::write(&file, run("generate completions bash").with_code(0).stdout).expect("a file");
    let all = complete(&file, &[""]);
    all.has_all(&commands().iter().map(String::as_str).collect::<Vec<_>>());
    all.has_none(&["launch", "agent"]);
    assert_eq!(complete(&file, &["capa"]).trim(), "capacity");
    complete(&file, &["load", "--conn"]).has_all(&["--connections\n", "--connect-rate\n"]);
    complete(&file, &["load", "--io", ""]).has_all(&["auto\n", "uring\n", "epoll\n"]);
}

/// Does what bash does when tab is pressed behind these words.
fn complete(file: &Path, typed: &[&str]) -> String {
    let script = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  _weir weir \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
                  printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).arg(file);
    output(bash.arg("weir").args(typed))
}

#[test]
fn other_shells_take_their_completions() {
    for shell in ["zsh", "fish"] {
        let text = run(&format!("generate completions {shell}")).with_code(0).stdout;
        text.has_all(&["capacity", "connect-rate"]);
        if have(shell) {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("weir");
            fs::write(&file, text).expect("a file");
            output(Command::new(shell).arg("-n").arg(&file));
        }
    }
}

#[test]
fn every_command_has_a_man_page_that_man_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("pages");
    run(&format!("generate man {}", pages.display())).with_code(0);
    let all = commands();
    assert!(all.len() > 8, "{all:?}");
    for name in ["weir".to_owned()].into_iter().chain(all.iter().map(|name| format!("weir-{name}")))
    {
        let page = pages.join(format!("{name}.1"));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        text.has_all(&[".TH", ".SH NAME", ".SH SYNOPSIS"]);
        if have("man") {
            let mut man = Command::new("man");
            man.args(["--warnings", "--encoding=UTF-8", "-l"]).arg(&page);
            let output = man.env("MANWIDTH", "80").output().expect("man starts");
            let warnings = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && warnings.is_empty(), "{warnings}");
            String::from_utf8_lossy(&output.stdout).has_all(&["SYNOPSIS", "OPTIONS"]);
        }
    }
}

/// Returns a copy of the program without debug information, which would make packages large and tests slow.
fn stripped(folder: &TempDir) -> PathBuf {
    let program = folder.path().join("stripped");
    let mut strip = Command::new("strip");
    output(strip.arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_weir")));
    program
}

#[test]
fn a_debian_package_is_built_installed_and_removed() {
    if !have("dpkg-deb") || !have("strip") || !rustix::process::geteuid().is_root() {
        skipped("a package is made with dpkg-deb and strip, and installed as root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut deb = Command::new(repository().join("scripts/deb"));
    deb.arg(stripped(&folder)).arg(folder.path());
    let package = output(deb.args(["-Zgzip", "-z1"]));
    let control = output(Command::new("dpkg-deb").args(["--info", package.trim()]));
    control.has_all(&["Package: weir\n", "Depends: libc6 (>= 2."]);

    let root = folder.path().join("root");
    for name in ["updates", "info", "triggers"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(name)).expect("a folder");
    }
    fs::write(root.join("var/lib/dpkg/status"), "").expect("a file");
    dpkg(&root, &["--install", package.trim()]);
    let program = root.join("usr/bin/weir");
    let version = output(Command::new(&program).arg("--version"));
    assert_eq!(version, output(&mut weir(["--version"])));
    dpkg(&root, &["--listfiles", "weir"]).has_all(&[
        "/usr/share/man/man1/weir-load.1.gz\n",
        "/usr/share/bash-completion/completions/weir\n",
        "/usr/share/zsh/vendor-completions/_weir\n",
        "/usr/share/fish/vendor_completions.d/weir.fish\n",
        "/usr/share/doc/weir/copyright\n",
        "/usr/share/doc/weir/docs/load.md\n",
    ]);
    dpkg(&root, &["--remove", "weir"]);
    assert!(!program.exists());
}

fn dpkg(root: &Path, words: &[&str]) -> String {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display()));
    // The C library is the system's and not of this root; a log would be written there.
    dpkg.args(["--force-depends", "--force-bad-path", "--log=/dev/null"]);
    output(dpkg.args(words))
}
