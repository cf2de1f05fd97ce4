//! Tests of `weir capacity` with real servers: an answer on standard output, a run folder, and an exit code for
//! scripts.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_model::record::{Outcome, Record};
use weir_record::Run;
use weir_testkit::faulty::{Faulty, Victim};
use weir_testkit::loads::Server;
use weir_testkit::program::{Ended, HasAll, Running, flat, row, run, weir, within};
use weir_testkit::secure::{Authority, Nginx};
use weir_testkit::{origin, sandbox, schema};

/// Starts a search in a folder, and interrupts it once there are some records.
fn interrupt_search(words: &[&str], folder: &Path) -> Ended {
    let out = folder.join("a run");
    let mut command = weir([&["capacity", "--out", "a run"], words].concat());
    let mut search = Running::start(command.current_dir(folder));
    search.wait_until("a trial", |_| {
        let text = std::fs::read_to_string(out.join("records.jsonl"));
        text.is_ok_and(|text| text.contains("\"trial\""))
    });
    search.signal(Signal::INT);
    search.end()
}

fn parse_answer(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// Options of an origin that answers 500 requests per second: one at a time, 2 ms each.
const SLOW: &str = "--delay 2ms --concurrency 1 --size 100";

#[test]
fn a_server_is_known_by_its_url_alone() {
    let (_server, address) = origin::start(SLOW);
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{address}/");
    let out = folder.path().join("a run").display().to_string();
    let mut command = weir([
        "capacity",
        &url,
        "-O",
        "p99 < 50ms",
        "--hold",
        "6s",
        "--precision",
        "40%",
        "--out",
        &out,
        "--format",
        "json",
        "--fail-if",
        "capacity < 5000/s",
        "--fail-if",
        "capacity.low < 10/s",
    ]);
    // The whole takes more than a minute; no step of it does.
    let search = Running::start(&mut command).end_of_steps(" left\n");
    let ended = search.with_code(3);
    ended.stderr.has_all(&[
        "Objective: p99 < 50ms\n",
        &format!("Asking {url} at {address}, over 50 connections, or up to 800 if they are the limit (-c)\n"),
        "An error is a status that is not 2xx",
        "weir: --fail-if capacity < 5000/s: ",
    ]);
    let answer = parse_answer(&ended.stdout);
    let capacity = &answer["capacity"];
    let [low, high] = ["low", "high"].map(|name| capacity[name].as_f64().expect("a rate"));
    // 2 ms each are 500/s at most. How near an answer comes is looked at on the simulated host.
    within(low, 10.0..=510.0);
    within(high, low..=750.0);
    let judged = answer["fail_if"].as_array().expect("a list");
    let judged: Vec<_> = judged.iter().map(|condition| condition["is_true"].as_bool()).collect();
    assert_eq!(judged, [Some(true), Some(false)]);
    assert_eq!(answer["target"]["url"], url);
    // Trials of several seconds at rates that it carried.
    let resources = answer["growth"][0]["resources"].as_array().expect("a list");
    let network = resources.iter().find(|resource| resource["quantity"] == "bytes");
    let points = network.and_then(|resource| resource["points"].as_array());
    assert!(points.is_some_and(|points| !points.is_empty()), "{resources:?}");
    let header = std::fs::read_to_string(Path::new(&out).join("run.json")).expect("a header");
    let header: Value = serde_json::from_str(&header).expect("JSON");
    let link = &header["surroundings"]["links"][0];
    assert_eq!((&link["trips"]["by"], &link["forth"]), (&"connect".into(), &Value::Null));
    schema::assert_records_valid(Path::new(&out));
    // The folder alone has all of it.
    for format in ["terminal", "markdown", "html", "json", "csv"] {
        row(format);
        let mut command = weir(["report", &out, "--format", format]);
        let shown = Running::start(&mut command).end().with_code(0).stdout;
        let arm = url.trim_start_matches("http://").trim_end_matches('/');
        shown.has_all(&[arm, "p99", "50ms"]);
    }
}

#[test]
fn a_budget_is_kept_though_the_server_stands_still() {
    let (_server, address) = origin::start(&format!("{SLOW} --stall 9s@14s"));
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{address}/");
    let mut command = weir(["capacity", &url, "-O", "p99 < 50ms", "--hold", "1s"]);
    command.args(["--precision", "1%", "--budget", "72s", "--out", "a run"]);
    let begun = Instant::now();
    let search = Running::start(command.current_dir(folder.path()));
    let ended = search.end_within(Duration::from_secs(170));
    let took = begun.elapsed();
    // Programs start and end, also where others build beside them.
    within(took, ..Duration::from_secs(72 + 4));
    assert!(matches!(ended.code, Some(0 | 1)), "{}", ended.stderr);
    let lefts = ended.stderr.lines().filter_map(|line| line.split(" left").next());
    assert!(lefts.count() > 3, "{}", ended.stderr);
}

#[test]
fn everything_that_a_load_says_goes_to_a_server_behind_tls_and_a_name() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "");
    let folder = tempfile::tempdir().expect("a folder");
    let port = nginx.address.port();
    // The name is not asked at its own address: the certificate and the Host header are for it all the same.
    let url = format!("https://weir.test:{port}/?q=1");
    let words = [
        &*url,
        "--to",
        &nginx.address.to_string(),
        "--ca",
        &authority.file(),
        "--tls",
        "1.3",
        "-c",
        "4",
        "-H",
        "X-Own: 1",
    ];
    interrupt_search(&words, folder.path()).with_code(130).stderr.has_all(&[
        "Objective: p99 < 100ms, errors < 0.1% (the default; -O says another)",
        "Interrupted. Continue with: weir capacity --resume 'a run'",
    ]);
    let requests = nginx.log();
    assert!(requests.len() > 100, "{}", requests.len());
    for request in &requests {
        let of_one = (&*request.version, &*request.server_name, &*request.host);
        assert_eq!(of_one, ("TLSv1.3", "weir.test", "weir.test"));
    }
    let run = Run::read(&folder.path().join("a run")).expect("a run");
    assert_eq!(run.outcome(), Some(Outcome::Interrupted));
    let study = &run.header.study;
    let external = study.proxy.external.as_ref().expect("it was not started");
    assert_eq!((external.address, external.named.as_deref()), (nginx_at(&words), Some(&*url)));
    assert!(run.study_text.starts_with("# "), "{}", run.study_text);
}

fn nginx_at(words: &[&str]) -> std::net::SocketAddr {
    words[2].parse().expect("an address")
}

#[test]
fn a_search_goes_on_where_it_was_interrupted() {
    let (_server, address) = origin::start(SLOW);
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{address}/");
    interrupt_search(&[&url, "-q"], folder.path()).with_code(130);
    let out = folder.path().join("a run");
    let before = count_trials(&out);
    let mut report = weir(["report", "a run"]);
    let report = Running::start(report.current_dir(folder.path())).end();
    report.with_code(0).stdout.has("weir capacity --resume 'a run'");
    let mut command = weir(["capacity", "--resume", "a run", "--format", "json"]);
    let mut search = Running::start(command.current_dir(folder.path()));
    search.wait_until("another trial", |_| count_trials(&out) > before);
    search.signal(Signal::INT);
    let ended = search.end().with_code(130);
    let answer = parse_answer(&ended.stdout);
    assert_eq!(answer["outcome"], "interrupted");
    assert_eq!(answer["capacity"], Value::Null);
    assert!(count_trials(&out) > before, "none was lost");
}

fn count_trials(folder: &Path) -> usize {
    let run = Run::read(folder).expect("a run");
    run.records.iter().filter(|record| matches!(record, Record::Trial(_))).count()
}

/// Tests a search that is interrupted, and one whose budget has no time to hold a rate.
#[test]
fn what_was_carried_is_told_without_a_hold() {
    let (_server, address) = origin::start(SLOW);
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{address}/");
    let words = ["capacity", &url, "-O", "p99 < 500ms"];
    let mut command = weir([&words[..], &["--budget", "50s", "--out", "short"]].concat());
    let search = Running::start(command.current_dir(folder.path()));
    let short = search.end_of_steps(" left\n").with_code(1);
    short.stderr.has("A budget of 50 s has no time to hold a rate for 1 min 5 s");
    flat(&short.stdout).has_all(&["is not claimed", "at least --budget ", "/s was carried for "]);

    let mut command = weir([&words[..], &["--out", "stopped", "-q"]].concat());
    let mut search = Running::start(command.current_dir(folder.path()));
    let records = folder.path().join("stopped/records.jsonl");
    search.wait_until("two rates", |_| {
        let text = std::fs::read_to_string(&records).unwrap_or_default();
        text.matches("\"stage\":\"ramp\"").count() >= 2
    });
    search.signal(Signal::INT);
    let stopped = search.end().with_code(130);
    flat(&stopped.stdout).has_all(&["the search did not end", "/s was carried for "]);
}

#[test]
fn a_study_of_one_arm_asks_for_its_capacity() {
    let (_server, address) = origin::start(SLOW);
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = format!("{{kind: external, address: '{address}'}}");
    let load = "  - {name: closed, closed: true, connections: 4, duration: 3s}";
    let more = "objective: {capacity: 'p99 < 50ms'}";
    let text = sandbox::study(&proxy, load, more);
    std::fs::write(folder.path().join("study.yaml"), text).expect("a file");
    let ended =
        interrupt_search(&["study.yaml", "--confidence", "80%", "--hold", "7s"], folder.path());
    ended.with_code(130);
    let run = Run::read(&folder.path().join("a run")).expect("a run");
    let study = &run.header.study;
    assert_eq!((study.arms.len(), study.objective.confidence), (1, 0.8));
    assert_eq!(study.search.hold, Duration::from_secs(7));
}

#[test]
fn only_who_owns_a_public_server_has_it_searched_by_a_study() {
    let folder = tempfile::tempdir().expect("a folder");
    let closed = "  - {name: closed, closed: true, connections: 4, duration: 3s}";
    let little = "  - {name: little, rate: 10, connections: 34, duration: 20s}";
    let short = "  - {name: short, rate: 10, connections: 10, duration: 20s, connection: 1ms}";
    let proxy = "{kind: external, address: '192.0.2.7:80'}";
    let arm = "a/a: true\narms: [{name: b, proxy: {kind: external, address: '192.0.2.7:81'}}]";
    let path = folder.path().join("study.yaml");
    for (command, load, more) in [
        ("capacity", closed, "objective: {capacity: 'p99 < 50ms'}"),
        ("run", closed, "a/a: true"),
        ("run", little, arm),
        ("run", short, "a/a: true"),
    ] {
        std::fs::write(&path, sandbox::study(proxy, load, more)).expect("a file");
        let line = format!("{command} {} --out {}/run", path.display(), folder.path().display());
        run(&line).refused_in_a_line(&[
            "192.0.2.7:8",
            " is a public address",
            "--yes-this-is-mine",
        ]);
        assert!(!folder.path().join("run").exists());
    }
}

#[test]
fn a_server_that_does_not_answer_or_answers_wrongly_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = Faulty::answering(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let mut command = weir(["capacity", &wrong.url()]);
    let ended =
        Running::start(command.current_dir(folder.path())).end().with_code(1).says(&["status 500"]);
    ended.stderr.has_none(&["Records go to"]);
    let runs = std::fs::read_dir(folder.path().join("runs"));
    assert_eq!(runs.map_or(0, Iterator::count), 0);

    // It asks once, and is ended long before the answer would be given up.
    let silent = Faulty::requests(1, Victim::stall);
    let mut command = weir(["capacity", "-q", &silent.url()]);
    let mut search = Running::start(command.current_dir(folder.path()));
    search.wait_until("the question", |_| silent.request_count() > 0);
    let begun = Instant::now();
    search.signal(Signal::INT);
    search.end().with_code(130);
    within(begun.elapsed().as_secs_f64(), 0.0..5.0);
}
