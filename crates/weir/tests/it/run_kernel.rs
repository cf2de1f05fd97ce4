//! Tests of `weir run` with arms that differ in kernel settings: each runs in a network namespace of its own, or is
//! left out, with a message, if none may be made.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use rustix::process::geteuid;
use weir_model::record::{NetworkUsed, ProxyRecord};
use weir_record::Run;

use crate::place::{self, Place, proxy_of};
use crate::program::{HasAll, Running};
use crate::ssh_support::skipped;

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
    place::study(proxy, load, arms).replace("instances: 1", "instances: 2")
}

fn proxy<'r>(run: &'r Run, arm: &str) -> &'r ProxyRecord {
    proxy_of(run, arm).expect("each arm has a record")
}

#[test]
fn each_arm_has_the_kernel_settings_that_it_asks_for() {
    if let Err(why) = weir_host::may_have_networks() {
        return skipped(&why.to_string());
    }
    let place = Place::new();
    has_its_settings(&place, place.run(&study()));
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
    let place = Place::new();
    let mut command = place.without_root(&study());
    let run = has_its_settings(&place, Running::start(&mut command));
    let told = &run.header.environment.privileges;
    assert_eq!(told, "unprivileged, in a user namespace");

    // There, all that is others' shows as the same user's.
    if geteuid().is_root() {
        let place = Place::new();
        let mut command = place.without_root(&study());
        chown(place.temporary(), Some(54_322), None).expect("own folder");
        let ended = Running::start(&mut command).end().with_code(1);
        ended.says(&["belongs to another user", "set TMPDIR to another folder"]);
    }
}

fn has_its_settings(place: &Place, run: Running) -> Run {
    let before = fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a kernel setting");
    let ended = run.end().with_code(0);
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
    ended.stdout.has("inert");
    run
}

#[test]
fn without_root_what_takes_a_namespace_is_left_out_and_said() {
    let place = Place::new();
    let ended = place.run_without_root(&study()).with_code(0);
    place.assert_clean();
    let run = place.records();
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
    let place = Place::new();
    let all = study();
    let alone: Vec<&str> = all.lines().filter(|line| !line.contains("backlog")).collect();
    let alone = alone.join("\n").replace(
        "keepalive, settings: {origin_keepalive: 8",
        "tw, settings: {net.ipv4.tcp_tw_reuse: 1",
    );
    let insists = format!("{all}network: {{kind: namespaces}}\n");
    for text in [&alone, &insists] {
        let ended = place.run_without_root(text).with_code(2);
        ended.says(&["needs network namespaces", "as root"]);
        assert!(!place.run_folder().exists());
    }
}

#[test]
fn a_setting_of_the_whole_host_takes_leave() {
    let place = Place::new();
    let text = study().replace("origin_keepalive: 8", "fs.file-max: 9000000000");
    let said = "settings of the whole host: fs.file-max";
    place.run(&text).end().refused(&[said, "--allow-host-settings"]);
    assert!(!place.run_folder().exists());
}
