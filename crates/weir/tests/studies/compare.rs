//! Tests of `weir compare` with real servers.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::Signal;
use serde_json::Value;
use weir_record::Run;
use weir_testkit::origin;
use weir_testkit::program::{HasAll, flat, run, wait_until};
use weir_testkit::sandbox::{self, Sandbox};

use crate::history;

/// Two virtual servers of one nginx, each of which answers rightly only to its own name and target.
struct TwoServers {
    nginx: Child,
    port: u16,
}

impl TwoServers {
    fn start(folder: &Path) -> TwoServers {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let text = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/error.log;\nevents {{}}\n\
             http {{ access_log off;\n{1}{2}}}\n",
            folder.display(),
            virtual_server("127.0.0.1", port, "/old"),
            virtual_server("127.0.0.2", port, "/new"),
        );
        let main = folder.join("nginx.conf");
        std::fs::write(&main, text).expect("own folder");
        let nginx = Command::new("nginx").arg("-c").arg(&main).spawn().expect("nginx");
        let servers = TwoServers { nginx, port };
        wait_until("nginx listens", || {
            std::net::TcpStream::connect(("127.0.0.2", servers.port)).is_ok()
        });
        servers
    }
}

/// Returns a server that answers rightly to its own name and to one target alone.
fn virtual_server(name: &str, port: u16, target: &str) -> String {
    format!(
        "server {{ listen {name}:{port}; server_name {name}; location / {{ return 404; }} \
                 location = {target} {{ if ($http_host != \"{name}:{port}\") {{ return 421; }} return 200 hi; }} }}\n"
    )
}

impl Drop for TwoServers {
    fn drop(&mut self) {
        let _ = self.nginx.kill();
        let _ = self.nginx.wait();
    }
}

#[test]
fn each_server_is_asked_by_its_own_name_and_target() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("nginx");
    std::fs::create_dir_all(&folder).expect("own folder");
    let servers = TwoServers::start(&folder);
    let port = servers.port;
    let urls = format!("http://127.0.0.1:{port}/old http://127.0.0.2:{port}/new");
    let line = format!("compare {urls} -c 4 --budget 30s --out run --format json");
    let ended = sandbox.call(&line).with_code(0);
    let document: Value = serde_json::from_str(&ended.stdout).expect("findings");
    let loads = document["loads"].as_array().expect("loads");
    assert_eq!(loads.len(), 2, "{document}");
    // In the records, because a busy machine leaves trials out of the findings.
    let run = Run::read(&sandbox.path("run")).expect("a run");
    for trial in run.trials() {
        let [_, _, right, _, wrong, _] = trial.status_classes;
        assert!(right > 0 && wrong == 0, "{trial:?}");
    }
    let ended = sandbox.call(&format!(
        "compare http://127.0.0.1:{port}/old http://127.0.0.2:{port}/old -c 4 --out other"
    ));
    let named = format!("http://127.0.0.2:{port}/old answers with status 404");
    ended.with_code(1).stderr.has(&named);
    let shown = sandbox.call("report run").with_code(0);
    shown.stdout.has_all(&["requests/s, closed loop", "p50 at ", "p90 at ", "p99 at "]);
}

#[test]
fn a_slower_server_is_worse_and_ends_with_code_3() {
    let sandbox = Sandbox::new();
    let (old, at_old) = origin::start("--delay 1ms --concurrency 1");
    let (new, at_new) = origin::start("--delay 3ms --concurrency 1");
    let line = format!(
        "compare http://{at_old}/ http://{at_new}/ -c 4 --budget 30s --fail-if worse --out run"
    );
    let ended = sandbox.call(&line).with_code(3);
    flat(&ended.stdout).has("new carries 0.");
    for server in [old, new] {
        server.signal(Signal::TERM);
        server.end();
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let (server, at) = origin::start("");
    for (line, what) in [
        (format!("http://{at}/ https://{at}/"), "one speaks TLS and the other does not"),
        (format!("http://{at}/ http://{at}/"), "is compared with itself"),
        (format!("http://{at}/ http://{at}/b -n 100"), "-n: the time decides"),
        (format!("http://{at}/ http://{at}/b --to {at}"), "--to: each URL has its own server"),
        (
            format!("http://{at}/ http://{at}/b --on kubernetes:none"),
            "--on: pods send to two servers by a study",
        ),
        (format!("http://{at}/ http://{at}/b --confirm"), "--confirm: weir did not start"),
        (format!("http://{at}/ http://203.0.113.5/"), "--yes-this-is-mine"),
    ] {
        let ended = run(&format!("compare {line}"));
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        ended.stderr.has(what);
    }
    server.signal(Signal::TERM);
    server.end();
}

/// Returns a configuration of nginx that passes requests on, by connections that are kept or not.
fn passing_on(keeps: bool) -> String {
    let keeping =
        if keeps { "proxy_http_version 1.1; proxy_set_header Connection '';" } else { "" };
    format!(
        "worker_processes 1;\nevents {{}}\nhttp {{ access_log off;\n\
         upstream app {{ server 192.0.2.1:80; keepalive 16; }}\n\
         server {{ listen 127.0.0.1:8081; location / {{ proxy_pass http://app; {keeping} }} }} }}\n"
    )
}

/// A candidate that opens a connection to the origin for each request carries a fraction.
#[test]
fn a_candidate_configuration_that_is_worse_fails() {
    let sandbox = Sandbox::new();
    sandbox.write("old.conf", &passing_on(true));
    sandbox.write("nginx-new.conf", &passing_on(false));
    let line = "compare http://shop.test/cart --configuration old.conf --candidate-configuration nginx-new.conf \
                -c 8 --budget 40s --out run --format json --fail-if";
    let ended = sandbox.call(&format!("{line} worse")).with_code(3);
    ended.stderr.has("--fail-if worse: new is worse than old in rate");
    let document: Value = serde_json::from_str(&ended.stdout).expect("findings");
    let overall = &document["overall"];
    assert_eq!(overall["verdict"], "worse", "{overall}");
    assert_eq!(overall["cases"].as_array().map(Vec::len), Some(3), "{overall}");
    let study = std::fs::read_to_string(sandbox.path("run/study.yaml")).expect("the study");
    study.has_all(&["compare: overall", "nginx-new.conf"]);
    let shown = sandbox.call("report run").with_code(0);
    flat(&shown.stdout).has_all(&["new is worse than old in rate", "nginx-new.conf"]);
    let page = std::fs::read_to_string(sandbox.path("run/report.html")).expect("a report");
    page.has_all(&["All figures", "requests/s, closed loop", "What does it cost?"]);
}

/// Both copies have a TLS listener, with a certificate for whatever host the URL names.
#[test]
fn two_programs_are_compared_over_tls() {
    let sandbox = Sandbox::new();
    symlink("/usr/sbin/nginx", sandbox.path("nginx-new")).expect("a link");
    let files = "--program /usr/sbin/nginx --candidate-program ./nginx-new --proxy nginx";
    let line = format!("compare https://shop.test/ {files} --tls 1.2 -c 4 --budget 30s --out run");
    sandbox.call(&line).with_code(0).stdout.has("requests/s, closed loop");
    let run = Run::read(&sandbox.path("run")).expect("a run");
    for arm in ["old", "new"] {
        let completed = sandbox::sum(&run, "closed", arm, |slice| slice.completed);
        let of_arm =
            run.parts("closed").flat_map(|part| &part.arms).filter(|found| found.arm == arm);
        let handshakes: u64 = of_arm.filter_map(|found| Some(found.tls.as_ref()?.handshakes)).sum();
        assert!(completed > 0 && handshakes >= 4, "{arm}: {completed}, {handshakes}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_line() {
    let sandbox = Sandbox::new();
    for (line, why) in [
        ("", "what is to be compared?"),
        ("http://127.0.0.1:9/", "what is http://127.0.0.1:9/ to be compared with?"),
        ("--program /usr/sbin/nginx", "there is no candidate that differs"),
        ("--candidate-configuration nginx.conf", "with which configuration is it compared?"),
        ("--candidate-program ./proxy", "which proxy is it?"),
        ("--candidate-program ./proxy --proxy ngin", "did you mean `nginx`?"),
        ("--candidate-program ./nginx-of-nobody", "nginx-of-nobody"),
        ("--candidate-program ./nginx -c 4 --connection hold", "held connections get no requests"),
        (
            "http://127.0.0.1:9/ http://127.0.0.2:9/ --program nginx",
            "one URL gives host and target",
        ),
        ("--candidate-program ./nginx --fail-if 'p90 > +3%'", "only the rate, p50 and p99"),
    ] {
        let ended = sandbox.call(&format!("compare {line}"));
        assert!(matches!(ended.code, Some(1 | 2)), "{line}: {}", ended.stderr);
        flat(&ended.stderr).has(why);
    }
}

/// Copies a run, as one that began at another minute.
fn copy_run(sandbox: &Sandbox, from: &str, minute: u32) {
    let began = format!("2026-01-01T00:{minute:02}:00Z");
    history::copy_run(sandbox, from, &format!("history/{minute}"), (&began, 1.0));
}

#[test]
fn two_runs_are_compared_by_the_spread_of_those_before() {
    let sandbox = Sandbox::new();
    let load = "- {name: closed, closed: true, connections: 4, duration: 4s}";
    for name in ["history/one", "history/two"] {
        sandbox.write("study.yaml", &sandbox::study("{kind: nginx}", load, ""));
        sandbox.call(&format!("run study.yaml --out {name}")).with_code(0);
    }
    let line = "compare history/one history/two";
    let few = sandbox.call(&format!("{line} --fail-if worse")).with_code(1);
    flat(&few.stdout)
        .has("5 earlier runs of the same study are needed to know how much runs differ here");
    few.stderr.has("so it cannot be judged");
    sandbox.call(&format!("{line} --fail-if inconclusive")).with_code(3);
    (1..=6).for_each(|minute| copy_run(&sandbox, "history/one", minute));
    let ended = sandbox.call(&format!("{line} --format json")).with_code(0);
    let document: Value = serde_json::from_str(&ended.stdout).expect("findings");
    assert_eq!(document["format"], "weir-runs/1");
    assert_eq!(document["history"].as_array().map(Vec::len), Some(7), "{document}");
    assert_eq!(document["figures"][0]["why"], "no-spread", "{document}");
    // A run whose end is not in its records is no part of the history.
    copy_run(&sandbox, "history/two", 7);
    std::fs::rename(sandbox.path("history/7"), sandbox.path("history/cut")).expect("own folder");
    let header = sandbox.path("history/cut/run.json");
    let text = std::fs::read_to_string(&header)
        .expect("run.json")
        .replace("2026-01-01T00:07", "2099-01-01T00:07");
    std::fs::write(&header, text).expect("own file");
    let records = sandbox.path("history/cut/records.jsonl");
    let all_records = std::fs::read_to_string(&records).expect("records");
    let cut: String = all_records.lines().take(5).map(|line| format!("{line}\n")).collect();
    std::fs::write(&records, cut).expect("own file");
    for (line, why) in [
        ("history/two history/one", "one began before two"),
        ("history/one history/one", "is compared with itself"),
        ("history/one history/gone", "cannot read history/gone"),
        ("history/one history/two --format csv", "two runs have no table of that kind"),
        ("history/one history/two --fail-if 'p99 > 3ms'", "two runs are judged as a whole"),
        ("history/one history/two --history nowhere", "cannot read nowhere"),
        ("history/one history/two --budget 10m", "both runs were made already"),
        ("history/one history/cut", "cut did not end as planned"),
    ] {
        flat(&sandbox.call(&format!("compare {line}")).with_code(2).stderr).has(why);
    }
}

/// Returns the commands of `weir` in the examples for CI servers, with their lines joined as YAML folds them.
fn examples() -> Vec<String> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compare.md");
    let text = std::fs::read_to_string(docs).expect("docs/compare.md");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let command = "weir compare --configuration production/";
    let starts = lines.iter().enumerate().filter(|(_, line)| line.starts_with(command));
    starts.map(|(place, line)| format!("{line} {}", lines[place + 1])).collect()
}

/// The examples of the docs fail for a candidate that is worse, and pass for one that is not.
#[test]
fn the_examples_for_ci_fail_and_pass() {
    let all = examples();
    assert_eq!(all.len(), 2, "{all:?}");
    for (line, candidate_keeps, code) in [(&all[0], false, 3), (&all[1], true, 0)] {
        let sandbox = Sandbox::new();
        for (folder, keeps) in [("production", !candidate_keeps), ("candidate", candidate_keeps)] {
            std::fs::create_dir(sandbox.path(folder)).expect("own folder");
            sandbox.write(&format!("{folder}/nginx.conf"), &passing_on(keeps));
        }
        let shorter = line.replace("--budget 2m", "--budget 40s -c 8");
        let ended = sandbox.call(shorter.trim_start_matches("weir "));
        let junit = std::fs::read_to_string(sandbox.path("weir.xml")).expect("weir.xml");
        assert_eq!(junit.contains("<failure "), code == 3, "{junit}");
        ended.with_code(code);
        let markdown = std::fs::read_to_string(sandbox.path("weir.md")).expect("weir.md");
        markdown.has("new ");
    }
}
