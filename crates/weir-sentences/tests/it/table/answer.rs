//! The answer of studies that compare arms.

mod limits;
mod matrix;
pub(super) mod notes;
mod overall;
mod proxies;

use weir_analysis::findings::Verdict::{self, Better, Equivalent, Inconclusive, Invalid, Worse};
use weir_analysis::fixture::arm;
use weir_model::study::{ArmRole, Metric};

use super::Row;
use super::example::{Example, set_result, stock};

pub(super) fn rows() -> Vec<Row> {
    let parts = [
        differences(),
        metrics(),
        without_bound(),
        without_difference(),
        what_is_compared(),
        loads(),
        proxies::rows(),
        overall::rows(),
        limits::rows(),
        matrix::rows(),
        notes::rows(),
    ];
    parts.concat()
}

/// Returns the answer about changes with these verdicts and ratios, by the completed rate.
fn of_changes(changes: &[(&str, Verdict, f64)]) -> String {
    Example::of_changes(Metric::Rate, changes).answer()
}

fn differences() -> Vec<Row> {
    let several = [
        ("keepalive", Better, 2.6),
        ("access_log off", Better, 1.08),
        ("gzip", Worse, 0.7),
        ("buffers", Equivalent, 1.0),
        ("backlog", Inconclusive, 1.01),
        ("sendfile", Invalid, f64::NAN),
    ];
    vec![
        ("A change that carries more", of_changes(&several[..1])),
        ("A change that carries less", of_changes(&several[2..3])),
        ("Several changes, the largest effect first", of_changes(&several)),
    ]
}

/// Returns the answer about one change with this ratio.
fn of_metric(metric: Metric, verdict: Verdict, ratio: f64) -> String {
    Example::of_changes(metric, &[("keepalive", verdict, ratio)]).answer()
}

fn metrics() -> Vec<Row> {
    vec![
        ("A change that passes on more bytes", of_metric(Metric::ReceivedBytes, Better, 1.3)),
        ("A change that costs less CPU time", of_metric(Metric::CpuPerRequest, Better, 0.38)),
        ("A change with a shorter median", of_metric(Metric::ResponseP50, Better, 0.8)),
        ("A change with a longer tail", of_metric(Metric::ResponseP99, Worse, 1.9)),
        ("A metric without valid figures", of_metric(Metric::ReceivedBytes, Invalid, f64::NAN)),
    ]
}

fn without_bound() -> Vec<Row> {
    let never = f64::INFINITY;
    vec![
        ("A change that answers nothing", of_metric(Metric::Rate, Worse, 0.0)),
        (
            "A change beside one that answers nothing",
            of_changes(&[("keepalive", Worse, 0.0), ("gzip", Worse, 0.7)]),
        ),
        ("A baseline that answers nothing", of_metric(Metric::Rate, Better, never)),
        ("A change too slow to answer", of_metric(Metric::ResponseP99, Worse, never)),
        ("A baseline too slow to answer", of_metric(Metric::ResponseP99, Better, 0.0)),
    ]
}

fn without_difference() -> Vec<Row> {
    let [equivalent, open, invalid] = [Equivalent, Inconclusive, Invalid]
        .map(|verdict| ["a", "b", "c", "d"].map(|name| (name, verdict, 1.0)));
    let better = [("keepalive", Better, 2.6)];
    vec![
        ("A change without an effect", of_changes(&equivalent[..1])),
        ("Three changes without an effect", of_changes(&equivalent[..3])),
        ("Many changes without an effect", of_changes(&equivalent)),
        (
            "Many changes without an effect beside one with",
            of_changes(&[&better[..], &equivalent].concat()),
        ),
        ("A change whose effect is open", of_changes(&open[..1])),
        ("Two changes whose effect is open", of_changes(&open[..2])),
        (
            "Many changes whose effect is open beside one with",
            of_changes(&[&better[..], &open].concat()),
        ),
        ("A change without valid figures", of_changes(&invalid[..1])),
        ("Many changes without valid figures", of_changes(&invalid)),
    ]
}

/// Returns the answer about changes that are each better than the arm with this index.
fn of_steps(changes: [(&str, usize); 3]) -> String {
    let arms = changes.map(|(name, against)| arm(name, ArmRole::Change, against));
    let mut example = Example::new(Metric::Rate, stock().into_iter().chain(arms).collect());
    for comparison in &mut example.load().comparisons[1..] {
        set_result(comparison, Better, 1.1);
    }
    example.answer()
}

/// Returns the answer of a study that compares the baseline with itself alone.
fn of_equal_arms(verdict: Verdict, ratio: f64) -> String {
    let mut example = Example::new(Metric::Rate, stock().into());
    set_result(example.comparison("stock-again"), verdict, ratio);
    example.answer()
}

fn what_is_compared() -> Vec<Row> {
    vec![
        ("Steps, each on top of the one before", of_steps([("a", 0), ("and b", 2), ("and c", 3)])),
        (
            "Strata, each with a baseline of its own",
            of_steps([("b", 0), ("a", 0), ("a with b", 2)]),
        ),
        ("Equal arms and nothing else", of_equal_arms(Equivalent, 1.0)),
        ("Equal arms without valid figures", of_equal_arms(Invalid, f64::NAN)),
        (
            "Equal arms that differ",
            better().answer_with(|example| {
                set_result(example.comparison("stock-again"), Worse, 0.9);
            }),
        ),
    ]
}

/// Creates an example of a change that carries more.
fn better() -> Example {
    Example::of_changes(Metric::Rate, &[("keepalive", Better, 2.6)])
}

/// Creates an example of a change that carries more under one of two loads.
fn under_two_loads() -> Example {
    let mut example = better();
    set_result(&mut example.add_load("slow").comparisons[1], Equivalent, 1.0);
    example
}

fn loads() -> Vec<Row> {
    vec![
        ("Two loads", under_two_loads().answer()),
        ("Nothing was measured", better().answer_with(|example| example.load().blocks = 0)),
        (
            "A run that was cut short",
            better().answer_with(|example| example.findings.complete = false),
        ),
        (
            "A run of two loads that was cut short",
            under_two_loads().answer_with(|example| example.findings.complete = false),
        ),
    ]
}
