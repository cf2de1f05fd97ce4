//! Sentences about a run that is held against earlier ones.

use weir_history::{FigureKey, FigureVerdict, Quantity, RunVerdict, RunsFindings, WhyOpen};
use weir_sentences::runs::describe_runs;

use super::Row;

/// Returns findings with this verdict on the p99 of an arm.
fn build_findings(verdict: RunVerdict, ratio: f64, why: Option<WhyOpen>) -> String {
    let key = FigureKey {
        load: "open".to_owned(),
        arm: "stock".to_owned(),
        metric: Quantity::ResponseP99,
    };
    let figure = FigureVerdict {
        key,
        values: [Some(9e6), Some(9e6 * ratio)],
        ratio: Some(ratio),
        usual: why.is_none().then_some((0.95, 1.05)),
        p_holm: 0.01,
        verdict,
        why,
    };
    describe_runs(&RunsFindings {
        old: "monday".to_owned(),
        new: "tuesday".to_owned(),
        differences: Vec::new(),
        history: (0..10).map(|number| format!("run-{number}")).collect(),
        verdict,
        figures: vec![figure],
        unmatched: Vec::new(),
    })
}

fn of(verdict: RunVerdict, ratio: f64) -> String {
    build_findings(verdict, ratio, None)
}

fn open(why: WhyOpen) -> String {
    build_findings(RunVerdict::Open, 1.0, Some(why))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("A run that is worse", of(RunVerdict::Worse, 1.12)),
        ("A run that is better", of(RunVerdict::Better, 0.9)),
        ("A run like those before it", of(RunVerdict::Usual, 1.01)),
        ("A run with one before it", open(WhyOpen::FewRuns { runs: 1, needed: 5 })),
        ("A run with some before it", open(WhyOpen::FewRuns { runs: 4, needed: 5 })),
        ("A run after copies of one", open(WhyOpen::NoSpread)),
        ("A run on another machine", open(WhyOpen::Machine)),
        ("A run at another rate", open(WhyOpen::Rates { completed: [20_000.0, 24_000.0] })),
        ("A run without valid figures", open(WhyOpen::Invalid)),
    ]
}
