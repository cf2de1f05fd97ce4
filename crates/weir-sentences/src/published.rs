//! Reasons for verdicts on published results.

use weir_analysis::findings::{
    Comparison, EffectReason, FigureFindings, FiguresFindings, Findings, GainFindings, GainReason,
    TimeFindings,
};
use weir_model::study::{Metric, Study};

use crate::comparison::explain_verdict;
use crate::effects::explain_inert;

/// Returns the reason for the verdict on a figure; empty if its figures show it.
pub fn explain_published_figure(
    study: &Study,
    findings: &Findings,
    (figures, row): (&FiguresFindings, &FigureFindings),
) -> String {
    let comparison = find_comparison(findings, figures.load.as_deref(), &row.arm, figures.metric);
    explain_effect(study, findings, (&row.arm, comparison), row.because.as_ref())
        .unwrap_or_default()
}

/// Returns the reason for the verdict on a response time; empty if its figures show it.
pub fn explain_published_time(study: &Study, findings: &Findings, found: &TimeFindings) -> String {
    let mut metrics = [Metric::ResponseP50, Metric::ResponseP99].into_iter();
    let metric = metrics.find(|metric| metric.response_quantile() == Some(found.quantile));
    let ours = find_comparison(findings, found.load.as_deref(), &found.arm, metric);
    explain_effect(study, findings, (&found.arm, ours), found.because.as_ref()).unwrap_or_default()
}

/// Returns the reason for the verdict on a gain; empty if its figures show it.
pub fn explain_published_gain(found: &GainFindings) -> String {
    let Some(because) = found.because else {
        return String::new();
    };
    let all = found.arms.len();
    match because {
        GainReason::NoLoad => "no load gives this metric".to_owned(),
        GainReason::NoMetric => "this load does not give this metric".to_owned(),
        GainReason::NoArms => "no two arms differ in it alone".to_owned(),
        GainReason::NoPairs => "no valid figures of arms that differ in it alone; with `compare: pairs` every two arms \
                                are compared"
            .to_owned(),
        GainReason::NoFigures => "no valid figures".to_owned(),
        GainReason::SomeArms { arms } => format!("in {arms} of {all} arms"),
        GainReason::Both { confirmed, opposite } => {
            format!("confirmed in {confirmed} and the opposite in {opposite} of {all} arms")
        }
    }
}

/// Returns the reason for the verdict on a published effect of an arm, whose own comparison is given.
fn explain_effect(
    study: &Study,
    findings: &Findings,
    (arm, found): (&str, Option<&Comparison>),
    because: Option<&EffectReason>,
) -> Option<String> {
    Some(match because? {
        EffectReason::Comparison => explain_verdict(found?, &study.objective),
        EffectReason::Inert => {
            let mut inert = findings.inert.iter();
            explain_inert(inert.find(|inert| inert.arm == arm && inert.whole)?)
        }
        EffectReason::RuledOut => "the interval rules the published size out".to_owned(),
        EffectReason::Since(change) => change.clone(),
    })
}

fn find_comparison<'a>(
    findings: &'a Findings,
    load: Option<&str>,
    arm: &str,
    metric: Option<Metric>,
) -> Option<&'a Comparison> {
    let mut loads = findings.loads.iter();
    loads.find(|found| Some(&*found.load) == load)?.comparison(arm, metric?)
}
