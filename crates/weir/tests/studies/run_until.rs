//! Tests of `weir run --until decided` and `--budget`, with the real nginx.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_model::record::{LookRecord, Outcome, Record};
use weir_record::Run;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::{Sandbox, outcomes};

/// A study of an arm that takes half of the CPU time, which a crowded machine hardly changes, and of one as good as the
/// baseline.
const STUDY: &str = "\
weir: 1
name: early
question: Does a connection to the origin that is kept make nginx carry more?
proxy:
  kind: nginx
  settings: {worker_processes: 1}
loads:
  - {name: closed, closed: true, connections: 8, duration: 24s}
a/a: false
arms:
  - {name: keeps-origin, settings: {origin_keepalive: 16}}
  - {name: no-delay, settings: {multi_accept: on}}
until: decided
objective: {metric: cpu-per-request}
blocks: {slice: 50ms, at-least: 6}
";

fn read_looks(run: &Run) -> Vec<LookRecord> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Look(look) => Some((**look).clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn connections_that_are_kept_are_decided_early_and_their_arm_leaves() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    let ended = sandbox.call("run study.yaml --out 'a run'").with_code(0);
    sandbox.assert_clean();
    ended.stderr.has_all(&[
        "The whole run takes at most about ",
        "closed: at most 80 blocks in ",
        "; looked at after 10, 14, 18, 24, 34, 44, 60 and 80",
        "keeps-origin is better",
    ]);
    let run = sandbox.records();
    let looks = read_looks(&run);
    let last = &looks[looks.len() - 1];
    let [decision, no_delay] = ["keeps-origin", "no-delay"].map(|arm| {
        let at = looks.iter().find(|look| look.decided.iter().any(|verdict| verdict.arm == arm));
        at.expect("it is decided")
    });
    assert!(decision.blocks < 80, "{looks:?}");
    // Each arm has the blocks of the look that decided it, and the baseline all.
    for (arm, look) in [("keeps-origin", decision), ("no-delay", no_delay)] {
        assert_eq!(run.trials_of("closed", arm).len() as u32, look.blocks, "{arm}");
    }
    assert_eq!(run.trials_of("closed", "baseline").len() as u32, last.blocks);
    let json = sandbox.call("report 'a run' --format json").with_code(0);
    let findings: Value = serde_json::from_str(&json.stdout).expect("findings");
    let load = &findings["loads"][0];
    let comparisons = load["comparisons"].as_array().expect("comparisons");
    let cpu = comparisons
        .iter()
        .find(|comparison| {
            comparison["arm"] == "keeps-origin" && comparison["metric"] == "cpu_per_request"
        })
        .expect("its CPU time");
    assert_eq!(cpu["verdict"], "better", "{cpu}");
    assert_eq!(cpu["look"]["look"], decision.look, "{cpu}");
    assert_eq!(cpu["look"]["confidence"], decision.confidence);
    assert_eq!(load["looks"].as_array().map(Vec::len), Some(looks.len()));
    let at = format!("keeps-origin better at look {}", decision.look);
    for report in ["report.md", "report.html"] {
        sandbox.read(report).has_all(&[
            "of 8 planned, after 10",
            "wherever the run ended",
            &at,
            "weir run study.yaml --until decided",
        ]);
    }
}

#[test]
fn a_run_with_nothing_open_ends_before_its_blocks_and_its_budget() {
    let sandbox = Sandbox::new();
    let alone = STUDY.replace("  - {name: no-delay, settings: {multi_accept: on}}\n", "");
    sandbox.write("study.yaml", &alone.replace("until: decided\n", ""));
    let begun = Instant::now();
    let ended =
        sandbox.call("run study.yaml --until decided --budget 40s --out 'a run'").with_code(0);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    ended.stderr.has("the budget of 40 s has time for ");
    let looks = read_looks(&sandbox.records());
    let last = &looks[looks.len() - 1];
    assert!(last.open.is_empty() && !last.is_last, "{last:?}");
    assert_eq!(last.decided[0].verdict, "better");
    sandbox
        .read("report.md")
        .has_all(&["This was decided after ", "weir run study.yaml --until decided --budget 40s"]);
}

#[test]
fn a_run_that_is_interrupted_goes_on_with_the_same_looks() {
    let sandbox = Sandbox::new();
    let alike = STUDY
        .replace("  - {name: keeps-origin, settings: {origin_keepalive: 16}}\n", "")
        .replace("duration: 24s", "duration: 6s");
    let mut run = sandbox.run(&alike);
    sandbox.await_trials(&mut run, 2 * 3);
    run.signal(Signal::INT);
    run.end().with_code(130);
    let before = sandbox.records().trials().count();
    sandbox.resume().with_code(0);
    sandbox.assert_clean();
    let run = sandbox.records();
    assert_eq!(outcomes(&run), [Outcome::Interrupted, Outcome::Complete]);
    let looks = read_looks(&run);
    for (index, look) in looks.iter().enumerate() {
        assert_eq!(look.planned, [10, 12, 16, 22, 30]);
        assert_eq!(look.blocks, look.planned[index]);
        assert_eq!((look.look, look.session), (index as u32 + 1, u32::from(before < 20)));
    }
    assert!(looks[looks.len() - 1].is_done());
}

#[test]
fn a_budget_bounds_the_whole_run_and_one_for_no_claim_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &STUDY.replace("until: decided\n", ""));
    let ended = sandbox.call("run study.yaml --budget 15s --out 'a run'").with_code(0);
    let run = sandbox.records();
    let slices = run.trials().flat_map(|trial| &trial.slices);
    // Of the study's 24 s, 19 are measured. Start and end take a part of the budget, the more so beside other load.
    let measured = Duration::from_nanos(slices.map(|slice| slice.measured_ns).sum());
    assert!(measured < Duration::from_secs(13), "{measured:?}");
    assert!(measured > Duration::from_secs(2), "{measured:?}");
    ended.stderr.has("the budget of 15 s has time for ");
    sandbox.read("report.md").has("weir run study.yaml --budget 15s");
    for (words, why) in [
        (
            "--budget 1s --until decided",
            "a budget of 1 s is too short for any result: the load needs 10 blocks",
        ),
        ("--budget 1s", "hint: use --budget "),
        ("--budget 0s", "nothing can be measured in no time"),
        ("--budget soon", "--budget: "),
        ("--budget 10s --time 50%", "cannot be used with"),
        ("--until tomorrow", "decided"),
    ] {
        sandbox.call(&format!("run study.yaml {words}")).with_code(2).stderr.has(why);
    }
}
