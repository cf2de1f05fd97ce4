//! Tests of `weir run` with arms that differ in kernel settings: each runs in a network namespace of its own, or is
//! left out, with a message, if none may be made.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use rustix::process::geteuid;
use weir_model::record::{NetworkUsed, ProxyRecord};
use weir_record::Run;
use weir_testkit::program::{HasAll, Running};
use weir_testkit::sandbox::{self, Sandbox, proxy_of};
use weir_testkit::ssh::skipped;

/// Returns a study that determines which of two settings bounds a listener's queue, and of a setting that the kernel
/// bounds by another one, which follows in the alphabet.
fn study() -> String {
    let arms = "\
origin: {size: 1KiB}
a/a: false
arms:
  - {name: somaxconn, settings: {net.core.somaxconn: 32768}}
  - {name: backlog, settings: {backlog: 32768}}
  - {name: both, settings: {net.core.somaxconn: 32768, backlog: 32768}}
  - name: low-ports
    settings: {net.ipv4.ip_local_port_range: 200 999, net.ipv4.ip_unprivileged_port_start: 100}
  - {name: keepalive, settings: {origin_keepalive: 8}}
";
    let proxy = "{kind: nginx, settings: {worker_processes: 1, net.core.somaxconn: 128}}";
    let load = "- {name: closed, closed: true, connections: 4, duration: 4s}";
    sandbox::study(proxy, load, arms).replace("instances: 1", "instances: 2")
}

fn proxy<'r>(run: &'r Run, arm: &str) -> &'r ProxyRecord {
    proxy_of(run, arm).expect("each arm has a record")
}

#[test]
fn each_arm_has_the_kernel_settings_that_it_asks_for() {
    if let Err(why) = weir_host::may_have_networks() {
        return skipped(&why.to_string());
    }
    let sandbox = Sandbox::new();
    has_its_settings(&sandbox, sandbox.run(&study()));
}

/// Tests network namespaces within a user namespace.
#[test]
fn arms_of_a_user_who_is_not_root_have_them_too() {
    let tried = Command::new("setpriv")
        .args(["--reuid=54321", "--regid=54321", "--clear-groups", "unshare", "-Un", "true"])
        .status();
    if geteuid().is_root() && !tried.is_ok_and(|status| status.success()) {
        return skipped("users who are not root may have no user namespaces here");
    }
    let sandbox = Sandbox::new();
    let mut command = sandbox.without_root(&study());
    let run = has_its_settings(&sandbox, Running::start(&mut command));
    let privileges = &run.header.environment.privileges;
    assert_eq!(privileges, "unprivileged, in a user namespace");

    // There, all that is others' shows as the same user's.
    if geteuid().is_root() {
        let sandbox = Sandbox::new();
        let mut command = sandbox.without_root(&study());
        chown(sandbox.temporary(), Some(54_322), None).expect("own folder");
        let ended = Running::start(&mut command).end().with_code(1);
        ended.says(&["belongs to another user", "set TMPDIR to another folder"]);
    }
}

fn has_its_settings(sandbox: &Sandbox, run: Running) -> Run {
    let before = fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a kernel setting");
    let ended = run.end().with_code(0);
    sandbox.assert_clean();
    let after = fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a kernel setting");
    assert_eq!(before, after, "the host's own setting is not touched");

    let run = sandbox.records();
    assert_eq!(run.header.network, NetworkUsed::Namespaces { mtu: 1500 });
    let [baseline, somaxconn, backlog, both] = ["baseline", "somaxconn", "backlog", "both"]
        .map(|arm| &*proxy(&run, arm).effective["listen-backlog"]);
    assert_eq!(baseline, "128");
    assert_eq!(somaxconn, "511", "the listener's own bounds it");
    assert_eq!(backlog, "128", "the kernel's bounds it");
    assert_eq!(both, "32768");
    let ports = &proxy(&run, "low-ports").effective["net.ipv4.ip_local_port_range"];
    assert_eq!(ports, "200 999", "set though the other had to come first");

    let inert: Vec<&str> =
        proxy(&run, "backlog").inert.iter().map(|setting| &*setting.id).collect();
    assert_eq!(inert, ["backlog"]);
    for arm in ["somaxconn", "both", "low-ports", "keepalive"] {
        assert_eq!(proxy(&run, arm).inert.len(), 0, "{arm}");
    }
    ended.stdout.has("inert");
    run
}

#[test]
fn without_root_what_takes_a_namespace_is_left_out_and_said() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run_without_root(&study()).with_code(0);
    sandbox.assert_clean();
    let run = sandbox.records();
    assert_eq!(run.header.network, NetworkUsed::Loopback);
    let arms: Vec<_> = run.header.study.arms.iter().map(|arm| &*arm.name).collect();
    assert_eq!(arms, ["baseline", "backlog", "keepalive"]);
    ended.says(&[
        "not set in any arm, because they need a network namespace: net.core.somaxconn",
        "not varied: arm `somaxconn` sets net.core.somaxconn",
        "not varied: arm `low-ports`",
    ]);
}

#[test]
fn a_study_that_insists_on_namespaces_or_has_nothing_else_is_refused_without_them() {
    if !geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let all = study();
    let without: Vec<&str> = all.lines().filter(|line| !line.contains("backlog")).collect();
    let alone = without.join("\n").replace(
        "keepalive, settings: {origin_keepalive: 8",
        "tw, settings: {net.ipv4.tcp_tw_reuse: 1",
    );
    let insists = format!("{all}network: {{kind: namespaces}}\n");
    for text in [&alone, &insists] {
        sandbox.run_without_root(text).with_code(2).says(&["needs network namespaces", "as root"]);
        assert!(!sandbox.run_folder().exists());
    }
}

#[test]
fn a_setting_of_the_whole_host_takes_leave() {
    let sandbox = Sandbox::new();
    let text = study().replace("origin_keepalive: 8", "fs.file-max: 9000000000");
    let reason = "settings of the whole host: fs.file-max";
    sandbox.run(&text).end().refused(&[reason, "--allow-host-settings"]);
    assert!(!sandbox.run_folder().exists());
}
