//! Sentences about synthetic runs whose truth is known.

mod answer;
mod capacity;
mod effects;
mod limits;
mod limits_guide;
mod matrix;
mod pairs;
mod rests;
mod surroundings;
mod table;

use std::ops::Deref;

use weir_analysis::findings::{Comparison, Findings};
use weir_analysis::fixture::{Moment, normal};
use weir_model::study::{Metric, Study};
use weir_record::Run;

/// Findings of a run, with the study that they answer.
struct AnalyzedRun {
    study: Study,
    findings: Findings,
}

impl AnalyzedRun {
    fn of(run: &Run) -> AnalyzedRun {
        AnalyzedRun { study: run.header.study.clone(), findings: weir_analysis::analyze(run) }
    }

    fn answer(&self) -> String {
        weir_sentences::answer(&self.study, &self.findings)
    }

    fn reason(&self, comparison: &Comparison) -> String {
        weir_sentences::explain_verdict(comparison, &self.study.objective)
    }
}

impl Deref for AnalyzedRun {
    type Target = Findings;

    fn deref(&self) -> &Findings {
        &self.findings
    }
}

fn comparison<'a>(
    findings: &'a Findings,
    load: usize,
    metric: Metric,
    arm: &str,
) -> &'a Comparison {
    let mut all = findings.loads[load].comparisons.iter();
    all.find(|c| c.metric == metric && c.arm == arm).expect("a comparison")
}

/// Rates of 20,000 per second with noise of this standard deviation; 2.6 times as much for arm 2.
fn world(noise: f64) -> impl FnMut(Moment<'_>) -> f64 {
    move |moment| {
        let effect = if moment.arm == 2 { 2.6 } else { 1.0 };
        20_000.0 * effect * (noise * normal(moment.rng)).exp()
    }
}
