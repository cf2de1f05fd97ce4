//! Reasons why an answer is not VALID, and how many trials each concerns.

use weir_analysis::findings::{CountedReason, Findings, HeadlineReason};
use weir_analysis::fixture::{Moment, build_header, build_trials, run_with_times, three_arms};
use weir_model::fixture::study;
use weir_model::record::{Observation, Validity, ValidityReason};
use weir_model::study::Metric;
use weir_sentences::headline::describe_doubt;

use super::Row;

fn counted(trials: u32, of: u32) -> CountedReason {
    let observation = Observation::ProxySteal { share: 0.251 };
    CountedReason {
        reason: ValidityReason { validity: Validity::Invalid, subject: None, observation },
        arms: Vec::new(),
        trials,
        of,
    }
}

fn describe(reason: HeadlineReason) -> String {
    let mut findings = Findings::default();
    findings.headline.reason = Some(reason);
    describe_doubt(&study(Vec::new()), &findings).expect("a doubt")
}

fn of_trials(reason: Option<CountedReason>, lost_blocks: u32) -> String {
    describe(HeadlineReason::Trials { load: "open".to_owned(), reason, lost_blocks, blocks: 1_200 })
}

/// Describes the doubt about a study of the p99 whose trials have so many response times each.
fn of_response_times(count: u64) -> Option<String> {
    let mut header = build_header(three_arms());
    header.study.objective.metric = Metric::ResponseP99;
    let trials = build_trials(&header, "open", 12, |_: Moment<'_>| 10_000.0);
    let (_folder, run) = run_with_times(&header, trials, |_, rng| {
        (0..count).map(|_| 200_000 + (50_000.0 * rng.unit()) as u64).collect()
    });
    describe_doubt(&header.study, &weir_analysis::analyze(&run))
}

pub(super) fn rows() -> Vec<Row> {
    let nothing = HeadlineReason::NothingMeasured { load: "open".to_owned() };
    vec![
        ("A load without a block", describe(nothing)),
        ("Trials that are INVALID, and lost blocks", of_trials(Some(counted(1_500, 3_600)), 750)),
        ("A doubtful trial, and no lost block", of_trials(Some(counted(1, 3_600)), 0)),
        ("No block with all arms", of_trials(None, 1_200)),
        ("A search with a doubtful trial", describe(HeadlineReason::Search(counted(1, 1)))),
        ("Too few requests for the p99", of_response_times(40).expect("a doubt")),
        ("No response", of_response_times(0).expect("a doubt")),
    ]
}

#[test]
fn a_valid_answer_is_not_doubted() {
    assert_eq!(of_response_times(500), None);
}
