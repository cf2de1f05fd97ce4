//! `weir run --until decided` and `--budget`, on the real nginx.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_model::record::{LookRecord, Outcome, Record};
use weir_record::Run;

use crate::place::{Place, outcomes};
use crate::program::HasAll;

/// An arm that carries twice as much, and one that is the baseline but for its name.
const STUDY: &str = "\
weir: 1
name: early
question: Does a connection to the origin that is kept make nginx carry more?
proxy:
  kind: nginx
  settings: {worker_processes: 1}
loads:
  - {name: closed, closed: true, connections: 8, duration: 12s}
a/a: false
arms:
  - {name: keeps-origin, settings: {origin_keepalive: 16}}
  - {name: no-delay, settings: {multi_accept: on}}
until: decided
blocks: {slice: 50ms, at-least: 6}
";

fn looks(run: &Run) -> Vec<LookRecord> {
    let looks = run.records.iter().filter_map(|record| match record {
        Record::Look(look) => Some((**look).clone()),
        _ => None,
    });
    looks.collect()
}

#[test]
fn connections_that_are_kept_are_decided_early_and_their_arm_leaves() {
    let place = Place::new();
    place.write("study.yaml", STUDY);
    let ended = place.ends("run study.yaml --out 'a run'").with_code(0);
    place.assert_clean();
    ended.stderr.has_all(&[
        "The whole run takes at most about ",
        "closed: at most 40 blocks in ",
        "; looked at after 10, 16, 22 and 40",
        "closed: look 1 after 10 blocks: keeps-origin is better",
    ]);
    let run = place.records();
    let looks = looks(&run);
    assert_eq!(looks[0].planned, [10, 16, 22, 40]);
    assert_eq!(run.trials_of("closed", "keeps-origin").len(), 10);
    assert_eq!(
        run.trials_of("closed", "no-delay").len() as u32,
        looks[looks.len() - 1].blocks
    );
    let json = place.ends("report 'a run' --format json").with_code(0);
    let found: Value = serde_json::from_str(&json.stdout).expect("findings");
    let load = &found["loads"][0];
    let comparisons = load["comparisons"].as_array().expect("comparisons");
    let kept = comparisons
        .iter()
        .find(|one| one["arm"] == "keeps-origin" && one["metric"] == "rate");
    let kept = kept.expect("its rate");
    assert_eq!(kept["verdict"], "better", "{kept}");
    assert_eq!(kept["look"]["look"], 1, "{kept}");
    assert_eq!(kept["look"]["confidence"], load["looks"][0]["confidence"]);
    for report in ["report.md", "report.html"] {
        place.read(report).has_all(&[
            "of 4 planned, after 10",
            "so all of them together hold 95 % wherever the run ended; keeps-origin better at look 1",
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
    let ended = place
        .ends("run study.yaml --until decided --budget 30s --out 'a run'")
        .with_code(0);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    ended.stderr.has("the budget of 30 s has time for ");
    ended.stdout.has("This was decided after 9 of at most ");
    let looks = looks(&place.records());
    let [look] = &looks[..] else {
        panic!("{looks:?}")
    };
    assert!(look.open.is_empty() && !look.is_last, "{look:?}");
}

#[test]
fn a_run_that_is_interrupted_goes_on_with_the_same_looks() {
    let place = Place::new();
    // Nothing is decided before the last look: the band is wide for nobody, and the arms are alike.
    let alike = STUDY.replace(
        "  - {name: keeps-origin, settings: {origin_keepalive: 16}}\n",
        "",
    );
    let mut run = place.run(&alike);
    place.await_trials(&mut run, 2 * 3);
    run.signal(Signal::INT);
    run.end().with_code(130);
    let before = place.records().trials().count();
    assert!(before < 2 * 9, "{before}");
    place.resume().with_code(0);
    place.assert_clean();
    let run = place.records();
    assert_eq!(outcomes(&run), [Outcome::Interrupted, Outcome::Complete]);
    for (place, look) in looks(&run).iter().enumerate() {
        assert_eq!(look.planned, [9, 14, 20, 30, 60]);
        assert_eq!(look.blocks, look.planned[place]);
    }
}

#[test]
fn a_budget_bounds_the_whole_run_and_one_for_no_claim_is_refused() {
    let place = Place::new();
    place.write("study.yaml", &STUDY.replace("until: decided\n", ""));
    let begun = Instant::now();
    let ended = place
        .ends("run study.yaml --budget 8s --out 'a run'")
        .with_code(0);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(took > Duration::from_secs(4), "{took:?}");
    ended.stderr.has("the budget of 8 s has time for ");
    place
        .read("report.md")
        .has("weir run study.yaml --budget 8s");
    let refused = place
        .ends("run study.yaml --budget 1s --until decided")
        .with_code(2);
    refused.stderr.has_all(&[
        "a budget of 1 s has no time for any claim: the load needs 10 blocks",
        "hint: give it --budget ",
    ]);
    for (words, why) in [
        ("--budget 0s", "nothing can be measured in no time"),
        ("--budget soon", "--budget: "),
        ("--budget 10s --time 50%", "cannot be used with"),
        ("--until tomorrow", "decided"),
    ] {
        let refused = place.ends(&format!("run study.yaml {words}")).with_code(2);
        refused.stderr.has(why);
    }
}
