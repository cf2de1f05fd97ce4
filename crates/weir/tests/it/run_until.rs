//! Tests of `weir run --until decided` and `--budget`, with the real nginx.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_model::record::{LookRecord, Outcome, Record};
use weir_record::Run;

use crate::place::{Place, outcomes};
use crate::program::HasAll;

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

fn looks(run: &Run) -> Vec<LookRecord> {
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
    let place = Place::new();
    place.write("study.yaml", STUDY);
    let ended = place.ends("run study.yaml --out 'a run'").with_code(0);
    place.assert_clean();
    ended.stderr.has_all(&[
        "The whole run takes at most about ",
        "closed: at most 80 blocks in ",
        "; looked at after 10, 14, 18, 24, 34, 44, 60 and 80",
        "keeps-origin is better",
    ]);
    let run = place.records();
    let looks = looks(&run);
    let last = &looks[looks.len() - 1];
    let decided = |arm: &str| {
        let at = looks.iter().find(|look| look.decided.iter().any(|one| one.arm == arm));
        at.expect("it is decided")
    };
    let kept = decided("keeps-origin");
    assert!(kept.blocks < 80, "{looks:?}");
    // Each arm has the blocks of the look that decided it, and the baseline all.
    for arm in ["keeps-origin", "no-delay"] {
        let found = run.trials_of("closed", arm).len();
        assert_eq!(found as u32, decided(arm).blocks, "{arm}");
    }
    assert_eq!(run.trials_of("closed", "baseline").len() as u32, last.blocks);
    let json = place.ends("report 'a run' --format json").with_code(0);
    let found: Value = serde_json::from_str(&json.stdout).expect("findings");
    let load = &found["loads"][0];
    let comparisons = load["comparisons"].as_array().expect("comparisons");
    let cpu = comparisons
        .iter()
        .find(|one| one["arm"] == "keeps-origin" && one["metric"] == "cpu_per_request")
        .expect("its CPU time");
    assert_eq!(cpu["verdict"], "better", "{cpu}");
    assert_eq!(cpu["look"]["look"], kept.look, "{cpu}");
    assert_eq!(cpu["look"]["confidence"], kept.confidence);
    assert_eq!(load["looks"].as_array().map(Vec::len), Some(looks.len()));
    let at = format!("keeps-origin better at look {}", kept.look);
    for report in ["report.md", "report.html"] {
        place.read(report).has_all(&[
            "of 8 planned, after 10",
            "wherever the run ended",
            &at,
            "weir run study.yaml --until decided",
        ]);
    }
}

#[test]
fn a_run_with_nothing_open_ends_before_its_blocks_and_its_budget() {
    let place = Place::new();
    let alone = STUDY.replace("  - {name: no-delay, settings: {multi_accept: on}}\n", "");
    place.write("study.yaml", &alone.replace("until: decided\n", ""));
    let begun = Instant::now();
    let ended =
        place.ends("run study.yaml --until decided --budget 40s --out 'a run'").with_code(0);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    ended.stderr.has("the budget of 40 s has time for ");
    let looks = looks(&place.records());
    let last = &looks[looks.len() - 1];
    assert!(last.open.is_empty() && !last.is_last, "{last:?}");
    assert_eq!(last.decided[0].verdict, "better");
    place
        .read("report.md")
        .has_all(&["This was decided after ", "weir run study.yaml --until decided --budget 40s"]);
}

#[test]
fn a_run_that_is_interrupted_goes_on_with_the_same_looks() {
    let place = Place::new();
    let alike = STUDY
        .replace("  - {name: keeps-origin, settings: {origin_keepalive: 16}}\n", "")
        .replace("duration: 24s", "duration: 6s");
    let mut run = place.run(&alike);
    place.await_trials(&mut run, 2 * 3);
    run.signal(Signal::INT);
    run.end().with_code(130);
    let before = place.records().trials().count();
    place.resume().with_code(0);
    place.assert_clean();
    let run = place.records();
    assert_eq!(outcomes(&run), [Outcome::Interrupted, Outcome::Complete]);
    let looks = looks(&run);
    for (place, look) in looks.iter().enumerate() {
        assert_eq!(look.planned, [10, 12, 16, 22, 30]);
        assert_eq!(look.blocks, look.planned[place]);
        assert_eq!((look.look, look.session), (place as u32 + 1, u32::from(before < 20)));
    }
    assert!(looks[looks.len() - 1].is_done());
}

#[test]
fn a_budget_bounds_the_whole_run_and_one_for_no_claim_is_refused() {
    let place = Place::new();
    place.write("study.yaml", &STUDY.replace("until: decided\n", ""));
    let begun = Instant::now();
    let ended = place.ends("run study.yaml --budget 15s --out 'a run'").with_code(0);
    let took = begun.elapsed();
    // A second for the start and the end of the program, which other load makes longer.
    assert!(took < Duration::from_secs(16), "{took:?}");
    assert!(took > Duration::from_secs(7), "{took:?}");
    ended.stderr.has("the budget of 15 s has time for ");
    place.read("report.md").has("weir run study.yaml --budget 15s");
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
        let refused = place.ends(&format!("run study.yaml {words}")).with_code(2);
        refused.stderr.has(why);
    }
}
