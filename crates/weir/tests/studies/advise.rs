//! Tests of `weir advise`, with the real nginx.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;
use weir_testkit::program::{HasAll, Running, flat};
use weir_testkit::sandbox::Sandbox;

/// A configuration of a reverse proxy.
const OWN: &str = "\
worker_processes 1;
events { worker_connections 256; }
http {
    access_log off;
    upstream backend { server 127.0.0.1:9; }
    server {
        listen 8080;
        location / { proxy_pass http://backend; }
    }
}
";

/// Returns the verdicts by the names of the recommendations.
fn verdicts(json: &str) -> BTreeMap<String, String> {
    let document: Value = serde_json::from_str(json).expect("a document");
    let findings = document["found"].as_array().expect("findings").iter();
    findings.map(|one| (text(&one["recommendation"]["id"]), text(&one["verdict"]))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn recommendations_are_tried_side_by_side_and_kept() {
    let sandbox = Sandbox::new();
    let ended = sandbox.call(
        "advise b-origin-keepalive,top-ten-keepalive,b-sendfile,b-host-network --budget 40s --out tried --format json",
    ).with_code(0);
    sandbox.assert_clean();
    let judged = verdicts(&ended.stdout);
    assert_eq!(judged["b-sendfile"], "inert");
    assert_eq!(judged["b-host-network"], "not_tried");
    assert_ne!(judged["b-origin-keepalive"], "not_tried");
    let document: Value = serde_json::from_str(&ended.stdout).expect("own files");
    let levels = &document["found"].as_array().expect("own files")[0]["in_force"][0];
    assert_eq!((&levels["before"], &levels["after"]), (&"0".into(), &"200".into()));
    for name in ["advice.html", "advice.md", "advice.json", "01-nginx-proxied/report.html"] {
        assert!(sandbox.path("tried").join(name).is_file(), "{name}");
    }
    // Everything was measured: going on with it only tells it again.
    let again = sandbox.call("advise --resume tried --format json").with_code(0);
    assert_eq!(verdicts(&again.stdout), judged);
    let twice = sandbox.call("advise A --out tried").with_code(2);
    twice.stderr.has_all(&["tried exists already"]);
}

#[test]
fn a_configuration_of_ones_own_ends_with_commands_for_what_was_confirmed() {
    let sandbox = Sandbox::new();
    sandbox.write("nginx.conf", OWN);
    let ended = sandbox
        .call("advise nginx.conf b-origin-keepalive c-open-file-cache --budget 60s --out tried")
        .with_code(0);
    sandbox.assert_clean();
    flat(&ended.stdout)
        .as_str()
        .has_all(&["b-origin-keepalive", "its load needs a configuration of weir's own"]);
    let json =
        std::fs::read_to_string(sandbox.path("tried").join("advice.json")).expect("own files");
    let is_confirmed = verdicts(&json)["b-origin-keepalive"] == "confirmed";
    let patch = "weir patch tried/01-nginx-proxied --arm b-origin-keepalive | patch -d / -p1";
    assert_eq!(ended.stdout.contains(patch), is_confirmed, "{}", ended.stdout);
    assert_eq!(std::fs::read_to_string(sandbox.path("nginx.conf")).expect("own files"), OWN);
}

#[test]
fn an_interrupted_call_says_what_is_known_and_goes_on() {
    let sandbox = Sandbox::new();
    let line = ["advise", "B", "--budget", "20m", "--out", "tried"];
    let mut running = Running::start(&mut sandbox.weir(&line));
    running.wait_until("a load", |running| running.stderr().contains(" blocks in "));
    running.signal(Signal::INT);
    let ended = running.end().with_code(130);
    sandbox.assert_clean();
    ended.stdout.has_all(&["the run ended before it"]);
    ended.stderr.has_all(&["weir advise --resume tried"]);
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("edge.conf", OWN);
    sandbox.write("nginx-broken.conf", "http { server {");
    std::fs::create_dir(sandbox.path("empty")).expect("own files");
    for (arguments, message) in [
        ("Z", "`Z` is no published study (A to E), no recommendation and no file"),
        ("b-acces-log", "did you mean `b-access-log`?"),
        ("b-host-network", "it changes pods of a Kubernetes cluster"),
        ("A --port 80", "--port is about a configuration of your own"),
        ("A --budget 5s", "give --budget "),
        ("A --budget soon", "--budget: "),
        ("B --proxy caddy", "none of these recommendations is for this proxy"),
        ("edge.conf", "which proxy does edge.conf configure?"),
        ("none.conf", "there is no file none.conf"),
        ("edge.conf nginx-broken.conf", "two files"),
        ("nginx-broken.conf", "nginx-broken.conf"),
        ("--resume empty", "cannot read empty/plan.json"),
        ("A --format csv", "--format csv"),
    ] {
        let ended = sandbox.call(&format!("advise {arguments}")).with_code(2);
        assert!(ended.stderr.contains(message), "{arguments}: {}", ended.stderr);
        assert!(!sandbox.path("runs").exists(), "{arguments}");
    }
    let listed = sandbox.call("advise --proxy envoy --format json").with_code(0);
    listed.stdout.has_all(&["weir-advice-list/1", "envoy-request-id", "\"applies\""]);
}
