//! The answer of studies with `compare: overall`.

use weir_analysis::findings::Verdict::{self, Better, Equivalent, Inconclusive, Invalid, Worse};
use weir_analysis::findings::{OverallFindings, WorstCase};
use weir_analysis::fixture::arm;
use weir_model::study::{ArmRole, Compare, ExternalSpec, Metric, ProxyKind};

use super::Row;
use crate::table::example::{Example, set_result};

/// Returns the example of two servers whose comparison has this verdict and ratio.
fn build_example(metric: Metric, verdict: Verdict, ratio: f64) -> Example {
    let arms = vec![arm("old", ArmRole::Baseline, 0), arm("new", ArmRole::Change, 0)];
    let mut example = Example::new(metric, arms);
    example.study.proxy.kind = ProxyKind::External;
    example.study.proxy.external = Some(ExternalSpec::at(([127, 0, 0, 1], 80).into()));
    example.load().rate_intended = metric.response_quantile().map(|_| 20_000.0);
    set_result(example.comparison("new"), verdict, ratio);
    example.study.compare = Compare::Overall;
    decide(&mut example, verdict, &[(metric, verdict, Some(0.07))]);
    example
}

/// Sets the verdict on all figures, and the figures with their verdicts and bounds.
fn decide(example: &mut Example, verdict: Verdict, cases: &[(Metric, Verdict, Option<f64>)]) {
    let figures = cases.iter().map(|&(metric, verdict, by)| {
        let load = if metric == Metric::Rate { "closed" } else { "open" };
        WorstCase { load: load.to_owned(), metric, verdict, by }
    });
    let cases = figures.collect();
    let [arm, against] = ["new", "old"].map(str::to_owned);
    example.findings.overall = Some(OverallFindings { arm, against, verdict, cases });
}

fn of_all(verdict: Verdict, cases: &[(Metric, Verdict, Option<f64>)]) -> String {
    let mut example = build_example(Metric::Rate, Equivalent, 1.0);
    decide(&mut example, verdict, cases);
    example.answer()
}

fn of(metric: Metric, verdict: Verdict, ratio: f64) -> String {
    build_example(metric, verdict, ratio).answer()
}

fn of_idle_servers() -> String {
    let mut example = build_example(Metric::Rate, Worse, 0.7);
    example.load().idle = Some(super::notes::idle_load());
    example.answer()
}

fn of_both_quantiles() -> String {
    let mut example = build_example(Metric::ResponseP50, Equivalent, 1.0);
    let mut tail = example.comparison("new").clone();
    tail.metric = Metric::ResponseP99;
    set_result(&mut tail, Worse, 1.4);
    example.load().comparisons.push(tail);
    let (half, tail) = (Metric::ResponseP50, Metric::ResponseP99);
    decide(&mut example, Worse, &[(half, Equivalent, Some(0.01)), (tail, Worse, Some(0.5))]);
    example.answer()
}

pub(super) fn rows() -> Vec<Row> {
    let (rate, half, tail) = (Metric::Rate, Metric::ResponseP50, Metric::ResponseP99);
    let mixed = [(rate, Better, Some(0.0)), (half, Worse, Some(0.2)), (tail, Worse, None)];
    let open = [
        (rate, Equivalent, Some(0.011)),
        (half, Inconclusive, Some(0.034)),
        (tail, Inconclusive, None),
    ];
    let half_known =
        [(rate, Inconclusive, Some(0.05)), (half, Invalid, None), (tail, Invalid, None)];
    let many_times = [
        (rate, Inconclusive, Some(0.05)),
        (half, Inconclusive, Some(1.32)),
        (tail, Inconclusive, Some(93.0)),
    ];
    vec![
        ("A change that is better in one figure and worse in others", of_all(Worse, &mixed)),
        ("A change whose figures are known only so far", of_all(Inconclusive, &open)),
        ("A change whose tail may be many times as long", of_all(Inconclusive, &many_times)),
        ("A change of which half is known", of_all(Inconclusive, &half_known)),
        ("A new server that carries less", of(Metric::Rate, Worse, 0.69)),
        ("A new server that carries more", of(Metric::Rate, Better, 1.2)),
        ("A new server that answers less, with nobody busy", of_idle_servers()),
        ("A new server that carries as much", of(Metric::Rate, Equivalent, 1.0)),
        ("A new server that may carry less", of(Metric::Rate, Inconclusive, 0.98)),
        ("A new server without valid figures", of(Metric::Rate, Invalid, f64::NAN)),
        ("A new server that answers nothing", of(Metric::Rate, Worse, 0.0)),
        ("A new server with a longer tail", of_both_quantiles()),
        ("A new server whose tail may be longer", of(Metric::ResponseP99, Inconclusive, 1.05)),
    ]
}
