//! Tests that the summary of a report fits one screen, whatever was measured.

use std::time::Duration;

use weir_analysis::findings::{Holding, Incomplete, LimitFindings, LimitReason};
use weir_model::record::{EndRecord, Outcome, Record, Validity};
use weir_model::study::{ArmRole, Metric};
use weir_report::{Pointers, SUMMARY_LINES, summary, terminal};

use crate::fixture::{self, Fixture};
use crate::markup::{has_all, has_none};
use crate::{by_rate, capacity, extreme, growth, matrix, proxies};

const PATH: &str = "/home/somebody/runs/stock-reverse-proxy-20261121T061745Z/report.html";

fn pointers() -> Pointers {
    Pointers {
        next: vec![("weir patch runs/x".to_owned(), "what keepalive changes".to_owned())],
        files: vec![PATH.to_owned()],
    }
}

fn shown(run: &Fixture, width: usize) -> String {
    summary(&run.input(), &pointers(), false, width)
}

/// Returns the fixture with a third load and with a limiter for every arm.
fn eight_arms_three_loads() -> Fixture {
    let mut run = fixture::run();
    let mut spec = run.header.study.loads[1].clone();
    spec.name = "busy".to_owned();
    run.header.study.loads.push(spec);
    let mut busy = run.findings.loads[1].clone();
    busy.load = "busy".to_owned();
    run.findings.loads.push(busy);
    for load in &run.findings.loads {
        for arm in &load.arms {
            let mut limited = growth::limited();
            (limited.load, limited.arm) = (load.load.clone(), arm.arm.clone());
            run.findings.limiters.push(limited);
        }
    }
    run
}

fn invalid() -> Fixture {
    let mut run = eight_arms_three_loads();
    for load in &mut run.findings.loads {
        load.validity = Validity::Invalid;
        load.reasons = load.reasons.first().cloned().into_iter().collect();
    }
    run.answer = "Nothing can be said.".to_owned();
    run
}

fn stopped() -> Fixture {
    let mut run = eight_arms_three_loads();
    run.findings.complete = false;
    run.records.pop();
    run.records.push(Record::End(EndRecord::new("", Outcome::Interrupted)));
    run.findings.headline.incomplete =
        Some(Incomplete { outcome: Some(Outcome::Interrupted), error: String::new() });
    run
}

/// Returns one arm that is compared with a limit under twenty loads.
fn one_arm_under_many_loads() -> Fixture {
    let mut run = fixture::run();
    run.header.study.arms.truncate(1);
    run.header.study.objective.metric = Metric::ResponseP99;
    run.header.study.objective.within = Some(Duration::from_millis(30));
    let (open, mut open_findings) =
        (run.header.study.loads.remove(1), run.findings.loads.remove(1));
    open_findings.arms.truncate(1);
    open_findings.comparisons.clear();
    (run.header.study.loads, run.findings.loads) = (Vec::new(), Vec::new());
    for number in 0..20 {
        let mut spec = open.clone();
        spec.name = format!("held-{number}");
        let mut findings = open_findings.clone();
        findings.load = spec.name.clone();
        findings.limits = vec![LimitFindings {
            arm: "stock".to_owned(),
            metric: Metric::ResponseP99,
            limit_ns: 30_000_000,
            value_ns: 2e6,
            interval_ns: (1.8e6, 2.2e6),
            confidence: 0.95,
            n: 12,
            verdict: Holding::Holds,
            because: LimitReason::TookLonger { share: (0.001, 0.002) },
        }];
        run.header.study.loads.push(spec);
        run.findings.loads.push(findings);
    }
    run
}

/// Returns a run with very many answers, notes and published figures.
fn wordy() -> Fixture {
    let mut run = eight_arms_three_loads();
    let answers = (0..30).map(|number| format!("Under the load {number}: {}", "so. ".repeat(20)));
    run.answer = answers.collect::<Vec<String>>().join("\n");
    run
}

/// A run, and text that its summary must and must not contain besides its answer, validity and path.
type Case = (fn() -> Fixture, &'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const CASES: [Case; 13] = [
    (fixture::run, &["keepalive to the origin", "2.61× (2.58–2.65)", "▲ better", "A/A: two equal arms"],
        &["Published", "Load closed: "]),
    (eight_arms_three_loads, &["2.61× (2.58–2.65)", "upstream_keepalive: 0 → 64", "▲ 0.373×", "p99, open",
        "What limits stock is not known", "The same holds for keepalive to the origin and 6 more arms."],
        &["worker      over that time"]),
    (invalid, &["note: INVALID: under the load closed, no block has"], &["2.61×"]),
    (stopped, &["note: the run was interrupted", "2.61×"], &[]),
    (one_arm_under_many_loads, &["p99 within 30 ms", "▲ holds", "held-0", "more loads: --full, or the report"],
        &["held-19"]),
    (wordy, &["Under the load 0", "more sentences: --full, or the report", "2.61×"], &["Under the load 29"]),
    (capacity::one, &["4,380 (65 s)", "4,500 (31 s)", "p99 < 30ms decides."], &["short trials", "the knee"]),
    (capacity::several, &["4,380 to 4,491", "4,380 (65 s)", "8,714 (65 s)", "1.962× (1.903–2.021)", "at no rate",
        "no capacity of gzip can be claimed"], &["short trials", "the knee", "What grew"]),
    (extreme::crowd, &["stock again", "more arms: --full, or the report",
        "arm-39-with-a-name-that-says-everything-00000000000000000000"], &["worker_connections: 768"]),
    (matrix::matrix, &["Median response time: verdicts over all loads", "gzip"], &["Suite"]),
    (by_rate::make_run, &["2.61×", "p99, tail-80"], &["Response times by rate"]),
    (proxies::five, &["haproxy", "1.006×", "A/A: no A/A arm"], &["Pairs:"]),
    (proxies::everything, &[], &[]),
];

#[test]
fn every_summary_fits_a_screen_and_has_the_answer_the_validity_and_the_path() {
    for (row, (made, says, never)) in CASES.into_iter().enumerate() {
        println!("row {row}");
        let run = made();
        for width in [80, 100, 160] {
            let text = shown(&run, width);
            let lines = text.lines().map(|line| line.chars().count().div_ceil(width).max(1));
            assert!(lines.sum::<usize>() <= SUMMARY_LINES, "{text}");
            let input = run.input();
            let answer = input.answer.split_whitespace().take(6);
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            has_all(&flat, &[&answer.collect::<Vec<_>>().join(" ")]);
            let validity = weir_report::words::validity(input.findings.headline.validity);
            has_all(
                &text,
                &[&format!("\n{validity}, judged by"), PATH, "weir patch runs/x  # what"],
            );
            if width == 100 {
                has_all(&flat, says);
                has_none(&flat, never);
            }
        }
    }
}

#[test]
fn the_most_decisive_arms_are_shown() {
    let text = shown(&extreme::crowd(), 100);
    // The largest effects are those of the last arms of the crowd.
    has_all(&text, &["\nstock ", "\nstock again", "arm-39-"]);
    has_none(&text, &["\nworker_connections"]);
    assert!(text.find("arm-38-") < text.find("arm-39-"), "{text}");
}

#[test]
fn a_summary_takes_nothing_from_the_whole_report() {
    let run = eight_arms_three_loads();
    let report = terminal(&run.input(), false, 100);
    has_all(&report, &["What limits gzip under busy", "Load busy: ", "Published"]);
    has_none(&report, &["Next:", "more arm"]);
    assert!(report.lines().count() > 3 * SUMMARY_LINES);
}

#[test]
fn summaries_word_for_word() {
    insta::assert_snapshot!("summary_100", shown(&eight_arms_three_loads(), 100));
    insta::assert_snapshot!("summary_of_capacities_100", shown(&capacity::several(), 100));
    let mut alone = fixture::run();
    alone.header.study.arms[1].role = ArmRole::Change;
    insta::assert_snapshot!("summary_80", shown(&alone, 80));
}
