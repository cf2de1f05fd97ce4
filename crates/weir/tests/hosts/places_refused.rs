//! Tests of errors on other hosts: the message says what is wrong, where, and what to do, and no setting stays changed;
//! and of a host that vanishes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_model::record::Outcome;
use weir_testkit::lan::{Lan, Like};
use weir_testkit::program::{Ended, HasAll, Running};
use weir_testkit::ssh::signal;

const STUDY: &str = "\
weir: 1
name: refused
question: What if a host is not what it should be?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
- {name: closed, closed: true, connections: 4, duration: 2s}
arms:
- {name: keeps-origin, settings: {origin_keepalive: 8}}
blocks: {slice: 50ms, at-least: 6, instances: 1}
";

/// Returns the study with one arm that changes the kernel.
fn kernel(setting: &str) -> String {
    let (head, after_arms) = STUDY.split_once("arms:").expect("it has arms");
    let (_, blocks) = after_arms.split_once("blocks:").expect("it has blocks");
    format!("{head}arms:\n- {{name: changed, settings: {{{setting}}}}}\nblocks:{blocks}")
}

fn one(lines: &'static str) -> Option<Lan> {
    Lan::of(&[Like { lines, ..Like::default() }])
}

fn refused(lan: &Lan, words: &[&str]) {
    lan.run(STUDY, "--place proxy=web1").end().refused(words);
    assert!(!lan.sandbox.run_folder().exists(), "nothing was begun");
    lan.assert_clean();
}

/// Writes a program that the host runs instead of weir, with weir's path in `$weir`.
fn instead(lan: &Lan, text: &str) -> PathBuf {
    let weir = env!("CARGO_BIN_EXE_weir");
    let text = format!("#!/bin/sh\nweir={weir}\n{text}\n");
    lan.sandbox.program("another", &text)
}

fn with_agent(lan: &Lan, study: &str, agent: &Path, places: &str) -> Ended {
    lan.run(study, &format!("--place {places} --agent {}", agent.display())).end()
}

#[test]
fn a_host_that_asks_for_a_password() {
    let Some(lan) = one("PubkeyAuthentication no\nPasswordAuthentication yes") else {
        return;
    };
    let words = ["web1: ", "without a prompt", "Permission denied", "\nhint: ", "web1 true"];
    refused(&lan, &words);
}

#[test]
fn a_host_with_another_key_and_one_that_is_not_there() {
    let Some(lan) = one("") else { return };
    lan.host(1).ssh.know("other_key");
    refused(&lan, &["web1: ", "host key has changed", "ssh-keygen"]);
    lan.host(1).does("ip link set wire down");
    lan.run(STUDY, "--place proxy=web1").end().refused(&["web1: ", "\nhint: "]);
    let nobody = lan.run(STUDY, "--place proxy=no-such-host.invalid").end();
    nobody.refused(&["no-such-host.invalid: ", "ssh knows no such host", "\nhint: "]);
}

#[test]
fn an_agent_of_another_weir() {
    let Some(lan) = one("") else { return };
    let protocol = weir_agent::hello::PROTOCOL;
    let hello = format!(r#"{{"magic":"weir-agent","protocol":{protocol},"weir":"9.9"}}"#);
    let length = hello.len();
    let greet = format!("printf '\\000\\000\\000\\{length:03o}%s' '{hello}'; cat > /dev/null");
    let ended = with_agent(&lan, STUDY, &instead(&lan, &greet), "proxy=web1");
    let hint = "\nhint: install this version";
    ended.refused(&["web1: the agent is weir 9.9", hint]);
    lan.assert_clean();
}

#[test]
fn a_host_without_the_proxy() {
    let Some(lan) = one("") else { return };
    let study = STUDY.replace("{kind: nginx,", "{kind: nginx, executable: /nowhere/nginx,");
    lan.run(&study, "--place proxy=web1").end().refused(&["web1: ", "/nowhere/nginx", "\nhint: "]);
    lan.assert_clean();
}

#[test]
fn a_host_where_weir_may_make_no_namespaces() {
    let Some(lan) = one("") else { return };
    // Whoever the agent is must be able to write where it keeps files.
    let temporary = lan.host(1).ssh.temporary();
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777)).expect("own folder");
    let nobody = "exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$weir\" \"$@\"";
    let without = format!("export WEIR_USER_NAMESPACE=0; {nobody}");
    let study = kernel("net.core.somaxconn: 77");
    let ended = with_agent(&lan, &study, &instead(&lan, &without), "all=web1");
    ended.refused(&["network namespaces", "web1: ", "CAP_SYS_ADMIN", "\nhint: run weir as root"]);
    lan.assert_clean();
}

/// Parameters of a user that promise more than this kernel allows: the setting, its level, and the default.
const ROWS: [(&str, &str, &str); 4] = [
    ("net.core.no_such_setting", "{integer: {min: 0, max: 10}}", "0"),
    ("net.core.dev_weight", "{integer: {min: 1, max: 1000}}", "64"),
    ("net.ipv4.tcp_retries1", "{integer: {min: 0, max: 1000}}", "1"),
    ("net.ipv4.tcp_available_congestion_control", "{choice: [reno, cubic]}", "reno"),
];

fn rows() -> String {
    let rows = ROWS.map(|(name, level, default)| {
        format!(
            "- {{id: {name}, scope: kernel_netns, level: {level}, default: {{level: \"{default}\"}}, \
             why: For a test., source: https://docs.kernel.org/networking/ip-sysctl.html, \
             effective: {{sysctl: {{name: {name}}}}}}}\n"
        )
    });
    format!("parameters:\n{}", rows.concat())
}

#[test]
fn settings_that_a_hosts_kernel_does_not_take() {
    let Some(lan) = one("") else { return };
    lan.sandbox.write("rows.yaml", &rows());
    #[rustfmt::skip]
    let cases: [(&str, &[&str]); 4] = [
        ("net.core.no_such_setting: 7",
         &["web1: this kernel has no setting net.core.no_such_setting"]),
        ("net.core.dev_weight: 100", &["web1: this kernel has no setting net.core.dev_weight"]),
        ("net.ipv4.tcp_retries1: 900",
         &["web1: the kernel refuses `900` for net.ipv4.tcp_retries1"]),
        (
            "net.ipv4.tcp_available_congestion_control: cubic",
            &[
                "web1: ",
                "net.ipv4.tcp_available_congestion_control is read-only",
            ],
        ),
    ];
    for (setting, words) in cases {
        let all = "--place all=web1 --parameters rows.yaml";
        let ended = lan.run(&kernel(setting), all).end().with_code(1);
        for words in words.iter().chain(&["arm `changed`", "\nhint: "]) {
            ended.stderr.has(words);
        }
        assert_eq!(lan.records().outcome(), Some(Outcome::Failed));
        lan.assert_clean();
        fs::remove_dir_all(lan.sandbox.run_folder()).expect("own folder");
    }
}

#[test]
fn an_mtu_that_no_link_has() {
    let Some(lan) = one("") else { return };
    for mtu in ["10", "70000"] {
        let study = format!("{STUDY}network: {{mtu: {mtu}}}\n");
        lan.run(&study, "--place all=web1").end().refused(&["mtu", "576"]);
    }
    lan.assert_clean();
}

/// Starts a long study, and waits for its first blocks on the host.
fn start_long(lan: &Lan) -> Running {
    let study = STUDY.replace("duration: 2s", "duration: 60s");
    let mut running = lan.run(&study, "--place proxy=web1");
    lan.sandbox.await_trials(&mut running, 6);
    running
}

/// Checks that weir gave the host up: in time, with its records, and with a hint.
fn assert_given_up(lan: &Lan, ended: Ended, begun: Instant) {
    ended.with_code(1).stderr.has_all(&["web1", "a run", "weir restore --host web1"]);
    // Far longer than it takes: the silence, and the time for a last word.
    assert!(begun.elapsed() < Duration::from_secs(58));
    let run = lan.records();
    assert_eq!(run.outcome(), Some(Outcome::Failed));
    assert!(lan.sandbox.trials() >= 6);
}

fn nothing_is_left(lan: &Lan) {
    lan.assert_clean();
    let shown = lan.start("restore --host web1").end().with_code(0).stdout;
    assert!(shown.starts_with("Nothing to restore"), "{shown}");
}

#[test]
fn a_host_that_stands_still_in_the_middle_of_a_block() {
    let Some(lan) = one("") else { return };
    let running = start_long(&lan);
    let still = Instant::now();
    let stopped = lan.host(1).agents();
    stopped.iter().for_each(|&pid| signal(pid, Signal::STOP));
    let ended = running.end();
    // The agent's sshd may have gone, and nobody knows the agent for its child any more.
    stopped.iter().for_each(|&pid| signal(pid, Signal::CONT));
    assert_given_up(&lan, ended, still);
    nothing_is_left(&lan);
}

#[test]
fn a_host_whose_line_is_cut_in_the_middle_of_a_block() {
    let Some(lan) = one("") else { return };
    let running = start_long(&lan);
    let cut = Instant::now();
    lan.host(1).does("ip link set wire down");
    let ended = running.end();
    assert_given_up(&lan, ended, cut);
    // The agent hears nothing any more, and ends by itself behind the cut; its sshd does not know yet.
    weir_testkit::program::wait_until("the end of the proxies", || {
        weir_testkit::sandbox::names_in(&lan.host(1).ssh.temporary()).is_empty()
    });
    lan.host(1).does("ip link set wire up && ip addr show dev wire");
    nothing_is_left(&lan);
}
