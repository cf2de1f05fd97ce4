//! Tests of run folders that others could have written, or that were edited, and of traces of a sudden end.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_model::fixture;
use weir_model::flow::ArrivalsSpec;
use weir_model::study::{ArmRole, ExternalSpec, ProxyKind};
use weir_record::RunWriter;
use weir_testkit::program::{HasAll, Running, wait_until, within};
use weir_testkit::sandbox::{self, Sandbox};

use crate::limiter::{link, start_contained};

/// Returns a study of twenty blocks.
fn long() -> String {
    let load = "- {name: closed, closed: true, connections: 4, duration: 4s}";
    sandbox::study("{kind: nginx, settings: {worker_processes: 1}}", load, "")
}

/// Starts a run, and waits until some blocks are recorded.
fn begin(sandbox: &Sandbox) -> Running {
    let mut run = sandbox.run(&long());
    sandbox.await_trials(&mut run, 4);
    run
}

/// Tests a run folder that others could have written: it names programs, their prefixes and configurations, so its
/// author would choose what is started, and what is applied.
#[test]
fn a_run_of_a_stranger_is_shown_and_neither_resumed_nor_applied_nor_written_to() {
    let sandbox = Sandbox::new();
    let arm = fixture::arm("stock", ArmRole::Baseline, &[]);
    let header = fixture::header(fixture::study(vec![arm]));
    drop(RunWriter::create(&sandbox.path("theirs"), &header, "").expect("a folder"));
    let folder = sandbox.path("theirs");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("own folder");
    let why = "theirs can be written by others (its mode is 0777)";
    let resumed = sandbox.call("run --resume theirs");
    resumed.refused_in_a_line(&["others could have written what it starts", why]);
    sandbox.write("study.yaml", &long());
    let begun = sandbox.call("run study.yaml --out theirs/new");
    begun.refused_in_a_line(&["a run cannot be kept there", why, "--out"]);
    assert!(!sandbox.path("theirs/new").exists());
    let shown = sandbox.call("report theirs").with_code(0);
    shown.stdout.has("Nothing was measured");
    shown.stdout.has_none(&["report.html"]);
    shown.says(&["report.html and report.md are not written", why]);
    assert!(!sandbox.path("theirs/report.html").exists());
    sandbox.call("report theirs --format html -o page.html").with_code(0);
    assert!(sandbox.path("page.html").exists());
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("own folder");
    sandbox.call("report theirs").with_code(0);
    assert!(sandbox.path("theirs/report.html").exists());
    // As root alone: whose it is counts, and who has become root by sudo.
    if chown(sandbox.path("theirs"), Some(12_345), None).is_err() {
        return;
    }
    for (user, is_own) in [("12345", true), ("12346", false), ("", false)] {
        let mut command = sandbox.weir(&["report", "theirs"]);
        let ended = Running::start(command.env("SUDO_UID", user)).end();
        let stderr = ended.with_code(0).stderr;
        assert_eq!(stderr.is_empty(), is_own, "{user}: {stderr}");
    }
}

/// A study, a set of requests and parameters choose programs that are started and files that are sent, with the rights
/// of whoever runs weir.
#[test]
fn a_stranger_s_files_are_refused_before_anything_is_started() {
    let sandbox = Sandbox::new();
    let program = sandbox.path("nginx");
    let script = format!(
        "#!/bin/sh\ntouch {0}.ran; echo 'nginx version: nginx/1.22.1' >&2\n",
        program.display()
    );
    sandbox.write("nginx", &script);
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("own file");
    let load = "- {name: closed, closed: true, connections: 1, duration: 4s}";
    let proxy = format!("{{kind: nginx, executable: {}}}", program.display());
    sandbox.write("study.yaml", &sandbox::study(&proxy, load, ""));
    sandbox.write("requests.yaml", "- {path: /, content-file: secret}\n");
    sandbox.write("rows.yaml", "[]\n");
    for (file, lines) in [
        ("study.yaml", &["run study.yaml --check", "run study.yaml", "capacity study.yaml"][..]),
        ("requests.yaml", &["load --request-set requests.yaml http://127.0.0.1:9/"]),
        (
            "rows.yaml",
            &[
                "parameters --parameters rows.yaml",
                "run stock-reverse-proxy --check --parameters rows.yaml",
            ],
        ),
    ] {
        fs::set_permissions(sandbox.path(file), Permissions::from_mode(0o666)).expect("own file");
        for line in lines {
            let why = format!("{file} can be written by others");
            let refused = sandbox.call(line);
            refused.refused_in_a_line(&["others could have written", &why, "a copy of your own"]);
        }
    }
    assert!(!sandbox.path("nginx.ran").exists(), "it was started");
}

/// Checks that a run against a public address has to be confirmed again: the confirmation is not part of a folder that
/// is passed on.
#[test]
fn a_run_against_a_public_address_needs_the_word_again() {
    let sandbox = Sandbox::new();
    let arm = fixture::arm("stock", ArmRole::Baseline, &[]);
    let mut study = fixture::study(vec![arm]);
    study.proxy.kind = ProxyKind::External;
    study.proxy.external = Some(ExternalSpec::at("192.0.2.7:80".parse().unwrap()));
    for (name, arrivals) in [
        ("closed", ArrivalsSpec::Closed),
        // New connections have no limit there.
        ("little", ArrivalsSpec::Constant(1.0)),
    ] {
        study.loads = vec![fixture::load(name, arrivals)];
        let header = fixture::header(study.clone());
        drop(RunWriter::create(&sandbox.path(name), &header, "").expect("a folder"));
        for command in ["run", "capacity"] {
            let why = ["192.0.2.7:80 is a public address", "--yes-this-is-mine"];
            let line = format!("{command} --resume {name}");
            sandbox.call(&line).refused_in_a_line(&why);
        }
    }
    // A study file cannot have such an origin, but a folder can.
    let mut study = fixture::study(vec![fixture::arm("stock", ArmRole::Baseline, &[])]);
    study.origin.address = Some("192.0.2.8:80".parse().unwrap());
    drop(
        RunWriter::create(&sandbox.path("passing"), &fixture::header(study), "").expect("a folder"),
    );
    let why = ["192.0.2.8:80 is a public address", "--yes-this-is-mine"];
    sandbox.call("run --resume passing").refused_in_a_line(&why);
}

/// Nobody agreed to more than 100 connections per second, and the server does not choose it either.
#[test]
fn a_public_server_that_refuses_connections_is_not_asked_for_more_than_the_permitted_ones() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make network namespaces");
        return;
    }
    let (server, client) = (start_contained("exec sleep 60"), start_contained("exec sleep 60"));
    link(&server, "203.0.113.10", &client, "203.0.113.9");
    let load = format!(
        "-t {} -n {} load -q http://203.0.113.10/ --to 203.0.113.10:80 -c 100 -R 1 -d 2s",
        client.pid(),
        env!("CARGO_BIN_EXE_weir")
    );
    let begin = Instant::now();
    Running::start(Command::new("nsenter").args(load.split(' '))).end();
    let most = 100.0 * begin.elapsed().as_secs_f64() + 20.0;
    let counters =
        fs::read_to_string(format!("/proc/{}/net/snmp", client.pid())).expect("counters");
    let tcp = counters.lines().rfind(|line| line.starts_with("Tcp:"));
    let opened = tcp.and_then(|line| line.split(' ').nth(5)?.parse::<f64>().ok());
    within(opened.expect("active opens"), 100.0..most);
}

#[test]
fn a_run_whose_header_was_edited_is_not_resumed_and_says_what_differs() {
    let sandbox = Sandbox::new();
    let run = begin(&sandbox);
    run.signal(Signal::INT);
    run.end().with_code(130);
    sandbox.assert_clean();
    let header = sandbox.run_folder().join("run.json");
    let before = sandbox.read("run.json");
    for (from, to, difference) in [
        ("\"connections\": 4", "\"connections\": 5", "run.json: study.loads has"),
        ("Is it so?", "Is it?", "run.json: study.question has"),
        ("{\n", "{\n  \"allowed\": true,\n", "run.json: allowed has"),
    ] {
        let edited = before.replacen(from, to, 1);
        assert_ne!(edited, before);
        fs::write(&header, edited).expect("own folder");
        sandbox.resume().refused_in_a_line(&["cannot resume this run: ", difference]);
    }
    // Blanks mean nothing.
    fs::write(&header, before.replace('\n', " \n")).expect("own folder");
    sandbox.write("a run/study.yaml", &long().replace("tried", "tired"));
    sandbox.resume().refused_in_a_line(&["cannot resume this run: study.yaml has changed"]);
    sandbox.write("a run/study.yaml", &long());
    let sums = sandbox.run_folder().join("run.sha256");
    let sums_text = fs::read(&sums).expect("own folder");
    fs::remove_file(&sums).expect("own folder");
    let refused = sandbox.resume();
    refused.refused_in_a_line(&["run.sha256: No such file", "nobody can tell whether files"]);
    fs::write(&sums, sums_text).expect("own folder");
    sandbox.resume().with_code(0);
    sandbox.assert_clean();
}

#[test]
fn an_end_in_a_hurry_says_what_is_left_and_how_to_undo_it() {
    let sandbox = Sandbox::new();
    let mut run = begin(&sandbox);
    // Whoever does not end keeps weir waiting.
    for master in sandbox.masters() {
        let master = Pid::from_raw(master.cast_signed()).expect("not zero");
        kill_process(master, Signal::STOP).expect("own process");
    }
    // A third one would not wait for what is said after the second one: a busy machine gets its time.
    let mut asked_at: Option<Instant> = None;
    wait_until("the end", || {
        let is_alive = run.is_alive();
        if is_alive && asked_at.is_none_or(|at| at.elapsed() > Duration::from_secs(3)) {
            run.signal(Signal::INT);
            asked_at = Some(Instant::now());
        }
        !is_alive
    });
    let ended = run.end().with_code(130).says(&[
        "weir: ended at once, and leaves behind: the folder ",
        "/temporary/weir-",
        "\nhint: weir restore",
    ]);
    ended.stderr.has_none(&["Interrupted"]);
    sandbox.call("restore").with_code(0).stdout.has_all(&["/temporary/weir-", ": removed"]);
    sandbox.assert_clean();
}
