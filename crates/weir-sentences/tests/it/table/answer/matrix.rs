//! The answer of a matrix of loads.

use weir_analysis::findings::{
    PooledArm,
    Verdict::{self, Better, Equivalent, Inconclusive, Worse},
};
use weir_model::record::Validity;
use weir_model::study::{MatrixCell, Metric, Until};

use super::Row;
use super::notes::{ineffective, inert_arm};
use crate::table::example::{Example, set_result, stock};

/// Makes cells of a matrix of the first load and of one more for each of these verdicts and ratios of the last arm.
fn add_cells(example: &mut Example, cells: &[(Verdict, f64)]) {
    for (number, (verdict, ratio)) in cells.iter().enumerate() {
        let load = example.add_load(&format!("c{}", number + 2));
        if let Some(comparison) = load.comparisons.last_mut() {
            set_result(comparison, *verdict, *ratio);
        }
    }
    for (connections, load) in (1..).zip(&mut example.study.loads) {
        load.cell = Some(MatrixCell { matrix: String::new(), connections, rate: None });
    }
}

/// Creates a matrix with cells of each verdict.
fn with_all_verdicts() -> Example {
    let mut example = Example::of_changes(Metric::Rate, &[("keepalive", Better, 1.2)]);
    let cells = [
        (Better, 1.4),
        (Worse, 0.9),
        (Worse, 0.95),
        (Equivalent, 1.0),
        (Inconclusive, 1.01),
        (Better, 2.0),
        (Verdict::Invalid, f64::NAN),
    ];
    add_cells(&mut example, &cells);
    example.findings.loads[6].validity = Validity::Invalid;
    example.findings.loads[0].ineffective = vec![ineffective()];
    example
}

/// Creates a matrix of two cells without a difference, with this effect of the change over both.
fn pooled(verdict: Verdict, ratio: f64) -> String {
    let change = [("keepalive", Equivalent, 1.0)];
    Example::of_changes(Metric::Rate, &change).answer_with(|example| {
        add_cells(example, &[(Inconclusive, 1.01)]);
        example.findings.pooled = vec![PooledArm {
            matrix: String::new(),
            arm: "keepalive".to_owned(),
            ratio,
            interval: (ratio * 0.99, ratio * 1.01),
            verdict,
        }];
    })
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("A matrix with cells of all verdicts", with_all_verdicts().answer()),
        (
            "The same, measured until everything is decided",
            with_all_verdicts().answer_with(|example| example.study.until = Until::Decided),
        ),
        ("A matrix whose change is better on average", pooled(Better, 1.05)),
        ("A matrix whose change is worse on average", pooled(Worse, 0.95)),
        ("A matrix whose change makes no difference on average", pooled(Equivalent, 1.0)),
        ("A matrix whose average is open", pooled(Inconclusive, 1.01)),
        (
            "A matrix with an inert arm",
            with_all_verdicts().answer_with(|example| example.findings.inert = vec![inert_arm()]),
        ),
        (
            "A matrix of equal arms",
            Example::new(Metric::Rate, stock().into())
                .answer_with(|example| add_cells(example, &[(Equivalent, 1.0)])),
        ),
    ]
}
