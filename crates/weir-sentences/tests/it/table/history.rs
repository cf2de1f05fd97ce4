//! Sentences about runs over time, and about a baseline.

use weir_history::{
    BaselineFindings, ChangeFindings, ChangedFigure, Difference, Drift, FigureKey, FigureVerdict,
    HistoryFindings, MachineBreak, Quantity, RunName, RunVerdict, RunsFindings, Segment, Series,
    SeriesChange, WhyLeftOut,
};
use weir_sentences::baseline::{describe_kept, describe_verdict, explain_left_out};
use weir_sentences::history::{
    describe_breaks, describe_drift, describe_history, explain_left_out as explain_run, rule,
};

use super::Row;

fn key(metric: Quantity) -> FigureKey {
    FigureKey { load: "open".to_owned(), arm: "stock".to_owned(), metric }
}

fn change(metric: Quantity, ratio: f64, is_worse: bool) -> ChangedFigure {
    let interval = (ratio * 0.99, ratio * 1.01);
    let change = SeriesChange { at: 12, found: 15, ratio, interval, is_worse };
    ChangedFigure { key: key(metric), change }
}

fn difference(what: &str, is_of_machine: bool) -> Difference {
    let [old, new] = ["1.26", "1.28"].map(str::to_owned);
    Difference { what: what.to_owned(), old, new, is_of_machine }
}

/// Returns the findings of 20 runs, or of 3 if nothing is judged.
fn findings(is_judged: bool, figures: &[Vec<ChangedFigure>], at: usize) -> HistoryFindings {
    let runs = (0..if is_judged { 20 } else { 3 }).map(|day| RunName {
        name: format!("night-{day}"),
        started_at: format!("2026-01-{:02}T03:00:00Z", day + 1),
    });
    let changes = figures.iter().map(|figures| ChangeFindings {
        at: 12,
        found: 15,
        figures: figures.clone(),
        differences: if at == 0 { Vec::new() } else { vec![difference("nginx", false)] },
        differences_at: at,
    });
    HistoryFindings {
        study: "nightly".to_owned(),
        runs: runs.collect(),
        level: 0.05,
        breaks: vec![MachineBreak { at: 2, differences: vec![difference("CPU model", true)] }],
        changes: changes.collect(),
        series: vec![series(is_judged, None)],
        left_out: Vec::new(),
    }
}

fn series(is_judged: bool, drift: Option<Drift>) -> Series {
    let segment = Segment { first: 0, last: 19, runs: 20, level: 9e6, spread: Some(0.01), drift };
    Series {
        key: key(Quantity::ResponseP99),
        values: Vec::new(),
        other_rates: 0,
        is_judged,
        segments: vec![segment],
        changes: Vec::new(),
    }
}

fn drift(per_week: Option<(f64, (f64, f64))>) -> Series {
    let per_run = (1.002, (1.001, 1.003));
    series(true, Some(Drift { per_run, per_week, found: 18, is_worse: true }))
}

fn drifting() -> HistoryFindings {
    HistoryFindings { series: vec![drift(None)], ..findings(true, &[], 0) }
}

fn declining() -> String {
    let figure = FigureVerdict {
        key: key(Quantity::Rate),
        values: [Some(20_000.0), Some(18_000.0)],
        ratio: Some(0.9),
        usual: Some((0.95, 1.05)),
        p_holm: 0.01,
        verdict: RunVerdict::Worse,
        why: None,
    };
    let runs = RunsFindings {
        old: "first".to_owned(),
        new: "today".to_owned(),
        differences: Vec::new(),
        history: (0..10).map(|number| format!("run-{number}")).collect(),
        verdict: RunVerdict::Worse,
        figures: vec![figure],
        unmatched: Vec::new(),
    };
    describe_verdict(&BaselineFindings { runs, is_decline: true })
}

pub(super) fn rows() -> Vec<Row> {
    let worse = vec![change(Quantity::ResponseP99, 1.031, true)];
    let both = vec![change(Quantity::Rate, 0.95, true), change(Quantity::ResponseP50, 0.9, false)];
    let doubled = vec![change(Quantity::ResponseP99, 2.4, true)];
    let better = vec![change(Quantity::Capacity, 1.2, false)];
    let damaged = WhyLeftOut::Damaged { problem: "records.jsonl:3: no JSON".to_owned() };
    vec![
        ("Too few runs", describe_history(&findings(false, &[], 0))),
        ("No change", describe_history(&findings(true, &[], 0))),
        ("A drift alone", describe_history(&drifting())),
        ("A change", describe_history(&findings(true, std::slice::from_ref(&worse), 0))),
        (
            "A change with another version",
            describe_history(&findings(true, std::slice::from_ref(&worse), 12)),
        ),
        ("Another version a run later", describe_history(&findings(true, &[worse, better], 13))),
        ("Worse and better", describe_history(&findings(true, &[both], 12))),
        ("A large change", describe_history(&findings(true, &[doubled], 12))),
        (
            "A drift by week",
            describe_drift(&drift(Some((1.014, (1.007, 1.02))))).unwrap_or_default(),
        ),
        ("A drift by run", describe_drift(&drift(None)).unwrap_or_default()),
        ("Another machine", describe_breaks(&findings(true, &[], 0)).join("; ")),
        ("The rule", rule(0.05)),
        ("A foreign run", explain_run(&WhyLeftOut::Foreign)),
        ("A damaged run", explain_run(&damaged)),
        ("An incomplete run", explain_run(&WhyLeftOut::Incomplete)),
        ("A run without valid figures", explain_run(&WhyLeftOut::Invalid)),
        ("Another study", explain_run(&WhyLeftOut::OtherStudy { study: "weekly".to_owned() })),
        ("A copy", explain_run(&WhyLeftOut::Copy)),
        ("A slow decline", declining()),
        ("A run is kept", describe_kept("kept", 7, 20)),
        ("A run that is worse is not kept", explain_left_out("kept", true, true)),
        ("Nor one without figures", explain_left_out("kept", true, false)),
        ("Nor an incomplete one", explain_left_out("kept", false, true)),
    ]
}
