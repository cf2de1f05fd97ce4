//! Tests of `weir run --check-alone`: baseline and winner once more, one at a time, with the real nginx.

use serde_json::Value;
use weir_model::record::{Phase, Record};
use weir_testkit::program::{HasAll, flat};
use weir_testkit::sandbox::Sandbox;

const STUDY: &str = "\
weir: 1
name: two-arms
question: Does a connection to the origin that is kept make nginx carry more?
proxy:
  kind: nginx
  settings: {worker_processes: 1}
loads:
  - {name: closed, closed: true, connections: 8, duration: 4s}
a/a: false
arms:
  - {name: keeps-origin, settings: {origin_keepalive: 16}}
blocks: {slice: 50ms, at-least: 6}
";

/// Checks the announced time against the run's own estimate: 16 stretches of at least 1.25 s.
#[test]
fn what_a_check_takes_is_said_before_anything_is_started() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    let seconds = ["", "--check-alone"].map(|more| {
        let stdout = sandbox.call(&format!("run study.yaml --check {more}")).with_code(0).stdout;
        ["compared with, one at a time: about ", "The whole run takes about "].map(|words| {
            let after = stdout.split_once(words)?.1;
            after.split_once(" s")?.0.parse::<u32>().ok()
        })
    });
    let [[None, Some(without)], [Some(check), Some(with)]] = seconds else {
        panic!("no times: {seconds:?}");
    };
    assert!((20..40).contains(&check), "{check} s");
    // Each is rounded to a second.
    assert!((without + check).abs_diff(with) <= 1, "{without} s and {check} s are {with} s");
}

#[test]
fn the_winner_and_the_baseline_run_one_at_a_time() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    let ended = sandbox.call("run study.yaml --check-alone --time 100% --out 'a run'").with_code(0);
    sandbox.assert_clean();
    ended.stderr.has_all(&[
        "The whole run takes about",
        "keeps-origin and baseline one at a time, because ",
        ": 16 stretches in ",
    ]);
    let run = sandbox.records();
    let stretches: Vec<_> = run.parts_in("closed", Phase::is_alone).collect();
    assert_eq!(stretches.len(), 16);
    assert!(stretches.iter().all(|part| part.arms.len() == 1 && part.blocks == 10));
    // 4 s of two arms with slices of 50 ms.
    assert_eq!(run.blocks("closed").len(), 20);
    let decided = run.records.iter().filter_map(|record| match record {
        Record::Decision(decision) => Some(&*decision.decision),
        _ => None,
    });
    let decided: Vec<&str> = decided.collect();
    assert_eq!(decided, ["measure baseline and keeps-origin one at a time"]);
    for report in ["report.md", "report.html"] {
        let text = sandbox.read(report);
        text.has("One arm at a time");
        text.has("weir run study.yaml --time 100% --check-alone");
    }
    let json = sandbox.call("report 'a run' --format json").with_code(0);
    let findings: Value = serde_json::from_str(&json.stdout).expect("findings");
    let alone = &findings["alone"];
    // A busy machine may spoil some of them, and hide what is larger elsewhere.
    let pairs = alone["n"].as_u64().expect("a number");
    assert!((1..=8).contains(&pairs), "{alone}");
    assert_eq!(alone["arm"], "keeps-origin");
    assert!(alone["alone"][0].as_f64().is_some(), "a ratio: {alone}");
    assert!(["holds", "does_not_hold", "not_shown"].map(Value::from).contains(&alone["verdict"]));
    let check = weir_analysis::analyze(&run).alone.expect("a check");
    flat(&ended.stdout).has(&weir_sentences::describe_alone(&run.header.study, &check));
}

#[test]
fn what_cannot_be_measured_alone_is_refused() {
    let arm = "  - {name: keeps-origin, settings: {origin_keepalive: 16}}";
    let theirs = "  - {name: theirs, proxy: {kind: external, address: '127.0.0.1:9'}}";
    let within = "objective: {metric: response-p99, within: 1s}\n";
    #[rustfmt::skip]
    let rows = [
        (STUDY.replace(&format!("arms:\n{arm}\n"), within).replace("closed: true", "rate: 100"),
         "--check-alone: the study has one arm"),
        (STUDY.replace(arm, theirs), "--check-alone: weir did not start theirs"),
    ];
    for (study, words) in rows {
        let sandbox = Sandbox::new();
        sandbox.write("study.yaml", &study);
        sandbox.call("run study.yaml --check-alone").with_code(2).stderr.has(words);
    }
}
