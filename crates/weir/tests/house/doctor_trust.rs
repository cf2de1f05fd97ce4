//! Tests of `weir doctor` with processes and files that try to deceive it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use weir_testkit::program::{HasAll, Running, flat, run};
use weir_testkit::sandbox::Sandbox;

const NOBODY: u32 = 65_534;

/// Returns a program that is called nginx but is another, and a FIFO without a writer as its configuration.
fn impostor(sandbox: &Sandbox) -> (PathBuf, PathBuf) {
    let (program, fifo) = (sandbox.path("nginx"), sandbox.path("fifo.conf"));
    let sleep = String::from_utf8(
        Command::new("sh").args(["-c", "command -v sleep"]).output().expect("sh").stdout,
    )
    .expect("a path");
    let mut install = Command::new("install");
    let status = install.args(["-m", "755", sleep.trim()]).arg(&program).status();
    assert!(status.is_ok_and(|status| status.success()));
    let mkfifo = Command::new("mkfifo").arg(&fifo).status();
    assert!(mkfifo.is_ok_and(|status| status.success()));
    fs::set_permissions(sandbox.path(""), Permissions::from_mode(0o755)).expect("own folder");
    (program, fifo)
}

fn title(program: &Path, fifo: &Path) -> String {
    let (program, fifo) = (program.display(), fifo.display());
    format!("nginx: master process {program} -c {fifo}")
}

#[test]
fn another_users_process_is_not_examined_with_roots_rights() {
    if !geteuid().is_root() {
        eprintln!("skipped: not root, so nobody else's process can be made");
        return;
    }
    let sandbox = Sandbox::new();
    let (program, fifo) = impostor(&sandbox);
    let mut command = Command::new(&program);
    command.arg0(title(&program, &fifo)).arg("60");
    command.uid(NOBODY).gid(NOBODY);
    let process = Running::start(&mut command);
    run(&format!("doctor --pid {}", process.pid())).refused_in_a_line(&[
        "belongs to user 65534, neither to root nor to you",
        "hint: run weir as that user: `sudo -u '#65534' weir doctor --pid PID`",
    ]);
}

/// Runs in a process namespace of its own, where no other nginx runs.
#[test]
fn another_users_process_is_not_found_for_nginx() {
    let namespaces = ["--pid", "--fork", "--mount-proc"];
    let probe = Command::new("unshare").args(namespaces).arg("true").output();
    if !geteuid().is_root() || !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no process namespaces may be made here");
        return;
    }
    let sandbox = Sandbox::new();
    let (program, fifo) = impostor(&sandbox);
    let script = format!(
        "setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \
         bash -c 'exec -a \"{}\" {} 60' &\n\
         until grep -qs nginx /proc/$!/comm; do sleep 0.05; done\n\
         {} doctor -c 10; code=$?; kill $!; exit $code",
        title(&program, &fifo),
        program.display(),
        env!("CARGO_BIN_EXE_weir"),
    );
    let mut command = Command::new("unshare");
    command.args(namespaces).args(["sh", "-c", &script]);
    let ended = Running::start(&mut command).end();
    let text = flat(&ended.stdout);
    text.has_all(&[
        "which is called nginx: it is neither root's nor yours",
        "no master process in /proc",
    ]);
    let folder = sandbox.path("");
    text.has_none(&[folder.to_str().expect("names are UTF-8")]);
}

/// Checks the folders above a program as well: anybody who may write to one could replace the program.
#[test]
fn a_program_that_others_could_have_written_is_not_run() {
    let sandbox = Sandbox::new();
    let (program, fifo) = impostor(&sandbox);
    fs::set_permissions(sandbox.path(""), Permissions::from_mode(0o777)).expect("own folder");
    let mut command = Command::new(&program);
    command.arg0(title(&program, &fifo)).arg("60");
    let process = Running::start(&mut command);
    let configuration = sandbox.write("nginx.conf", "events { }\nhttp { include /dev/zero; }\n");
    let line = format!("doctor --pid {} --config {}", process.pid(), configuration.display());
    flat(&run(&line).stdout).has_all(&[
        "not known: nginx's version: others than its owner may write to /",
        "only a program that is root's or yours alone is asked",
        "/dev/zero: is a device, not a regular file",
    ]);
    // Its own file is the FIFO.
    let ended = run(&format!("doctor --pid {}", process.pid())).with_code(0);
    flat(&ended.stdout).has("is a FIFO, not a regular file: name one with --nginx");
}
