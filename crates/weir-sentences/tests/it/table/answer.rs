//! Answers of studies that compare arms.

use weir_analysis::analyze;
use weir_analysis::fixture::{Moment, build_header, build_trials, run, three_arms};
use weir_model::study::Metric;

use super::Row;

/// Returns the answer of a study whose change multiplies the rate by this factor.
fn of_factor(metric: Metric, factor: f64) -> String {
    let mut header = build_header(three_arms());
    header.study.objective.metric = metric;
    let rate = |moment: Moment<'_>| {
        let noise = 1.0 + 0.01 * (moment.rng.unit() - 0.5);
        20_000.0 * noise * if moment.arm == 2 { factor } else { 1.0 }
    };
    let (_folder, run) = run(&header, build_trials(&header, "closed", 30, rate));
    weir_sentences::answer(&run.header.study, &analyze(&run))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("A change that carries more", of_factor(Metric::Rate, 2.6)),
        ("A change that carries less", of_factor(Metric::Rate, 0.7)),
        ("A change without an effect", of_factor(Metric::Rate, 1.0)),
        ("A change that costs less CPU time", of_factor(Metric::CpuPerRequest, 2.6)),
    ]
}
