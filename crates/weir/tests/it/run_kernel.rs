//! `weir run` with arms that differ in the kernel's settings: each in a network namespace of its own,
//! or, where none may be made, left out and said so.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use weir_model::record::{NetworkUsed, ProxyRecord};
use weir_record::Run;

use crate::place::{Place, proxy_of};
use crate::program::{HasAll, Running, weir};

/// Which of two settings bounds a listener's queue; and one that the kernel bounds by another that
/// comes behind it in the alphabet.
const STUDY: &str = "\
weir: 1
name: queue
question: Which of the two bounds the queue?
proxy:
  kind: nginx
  settings: {worker_processes: 1, net.core.somaxconn: 128}
origin: {size: 1KiB}
loads:
  - {name: closed, closed: true, connections: 4, duration: 4s}
a/a: false
arms:
  - {name: somaxconn, settings: {net.core.somaxconn: 32768}}
  - {name: backlog, settings: {backlog: 32768}}
  - {name: both, settings: {net.core.somaxconn: 32768, backlog: 32768}}
  - name: low-ports
    settings: {net.ipv4.ip_local_port_range: 200 999, net.ipv4.ip_unprivileged_port_start: 100}
  - {name: keepalive, settings: {origin_keepalive: 8}}
blocks: {slice: 50ms, at-least: 6, instances: 2}
";

/// Nobody, who may not make namespaces.
const NOBODY: u32 = 65534;

fn proxy<'r>(run: &'r Run, arm: &str) -> &'r ProxyRecord {
    proxy_of(run, arm).expect("each arm has a record")
}

#[test]
fn each_arm_has_the_kernel_settings_that_it_asks_for() {
    if let Err(why) = weir_host::may_have_networks() {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: {why}");
        }
        return;
    }
    let place = Place::new();
    let before = fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a kernel setting");
    let ended = place.run(STUDY).end().with_code(0);
    place.assert_clean();
    let after = fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a kernel setting");
    assert_eq!(before, after, "the host's own setting is not touched");

    let run = place.records();
    assert_eq!(run.header.network, NetworkUsed::Namespaces { mtu: 1500 });
    let queue = |arm| &*proxy(&run, arm).effective["listen-backlog"];
    assert_eq!(queue("baseline"), "128");
    assert_eq!(queue("somaxconn"), "511", "the listener's own bounds it");
    assert_eq!(queue("backlog"), "128", "the kernel's bounds it");
    assert_eq!(queue("both"), "32768");
    let ports = &proxy(&run, "low-ports").effective["net.ipv4.ip_local_port_range"];
    assert_eq!(ports, "200 999", "set though the other had to come first");

    let inert = |arm| proxy(&run, arm).inert.iter().map(|one| &*one.id);
    assert_eq!(inert("backlog").collect::<Vec<_>>(), ["backlog"]);
    for arm in ["somaxconn", "both", "low-ports", "keepalive"] {
        assert_eq!(inert(arm).count(), 0, "{arm}");
    }
    assert!(ended.stdout.contains("inert"), "{}", ended.stdout);
}

#[test]
fn without_root_what_takes_a_namespace_is_left_out_and_said() {
    if !rustix::process::geteuid().is_root() {
        // Whoever runs the tests is the user that this is about.
        let place = Place::new();
        let ended = place.run(STUDY).end().with_code(0);
        left_out(&place, &ended.stderr);
        return;
    }
    let place = Place::new();
    let program = place.copy_of_weir();
    for folder in [place.path(""), place.temporary()] {
        fs::set_permissions(folder, Permissions::from_mode(0o777)).expect("own folder");
    }
    let study = place.write("study.yaml", STUDY);
    let mut command = Command::new(program);
    command
        .arg("run")
        .args([study.as_os_str(), "--out".as_ref()])
        .arg(place.run_folder())
        .env("TMPDIR", place.temporary())
        .uid(NOBODY)
        .gid(NOBODY);
    let ended = Running::start(&mut command).end().with_code(0);
    left_out(&place, &ended.stderr);
}

fn left_out(place: &Place, stderr: &str) {
    place.assert_clean();
    let run = place.records();
    assert_eq!(run.header.network, NetworkUsed::Loopback);
    let arms: Vec<_> = run.header.study.arms.iter().map(|arm| &*arm.name).collect();
    assert_eq!(arms, ["baseline", "backlog", "keepalive"]);
    stderr.has_all(&[
        "not set in any arm, because they need a network namespace: net.core.somaxconn",
        "not varied: arm `somaxconn` sets net.core.somaxconn",
        "not varied: arm `low-ports`",
    ]);
}

#[test]
fn a_study_that_insists_on_namespaces_or_has_nothing_else_is_refused_without_them() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let program = place.copy_of_weir();
    let alone: Vec<&str> = STUDY
        .lines()
        .filter(|line| !line.contains("backlog"))
        .collect();
    let alone = alone.join("\n").replace(
        "keepalive, settings: {origin_keepalive: 8",
        "tw, settings: {net.ipv4.tcp_tw_reuse: 1",
    );
    let insists = format!("{STUDY}network: {{kind: namespaces}}\n");
    for (name, text) in [("alone.yaml", &alone), ("insists.yaml", &insists)] {
        let study = place.write(name, text);
        let mut command = Command::new(&program);
        command
            .arg("run")
            .arg(study)
            .arg("--out")
            .arg(place.run_folder());
        command.uid(NOBODY).gid(NOBODY);
        let ended = Running::start(&mut command).end().with_code(2);
        assert!(
            ended.stderr.contains("needs network namespaces") && ended.stderr.contains("as root"),
            "{name}: {}",
            ended.stderr
        );
        assert!(!place.run_folder().exists(), "{name}");
    }
}

#[test]
fn a_setting_of_the_whole_host_takes_leave() {
    let place = Place::new();
    let text = STUDY.replace("origin_keepalive: 8", "fs.file-max: 9000000000");
    let study = place.write("study.yaml", &text);
    let mut command = weir(["run"]);
    command.arg(study).arg("--out").arg(place.run_folder());
    let ended = Running::start(&mut command).end().with_code(2);
    assert!(
        ended
            .stderr
            .contains("settings of the whole host: fs.file-max")
            && ended.stderr.contains("--allow-host-settings"),
        "{}",
        ended.stderr
    );
    assert!(!place.run_folder().exists());
}
