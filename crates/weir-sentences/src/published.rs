//! Reasons for verdicts on published results.

use weir_analysis::findings::{
    Comparison, EffectReason, FigureFindings, FiguresFindings, Findings, GainFindings, GainReason,
    InertArm, TimeFindings,
};
use weir_model::study::{Metric, Study};

use crate::comparison;

/// Returns the reason for the verdict on a figure; empty if its figures show it.
pub fn describe_figure_reason(
    study: &Study,
    findings: &Findings,
    (figures, row): (&FiguresFindings, &FigureFindings),
) -> String {
    let arm = ArmUnderLoad { arm: &row.arm, load: figures.load.as_deref(), metric: figures.metric };
    describe_effect_reason(study, findings, &arm, row.because.as_ref())
}

/// Returns the reason for the verdict on a response time; empty if its figures show it.
pub fn describe_time_reason(study: &Study, findings: &Findings, found: &TimeFindings) -> String {
    let mut metrics = [Metric::ResponseP50, Metric::ResponseP99].into_iter();
    let metric = metrics.find(|metric| metric.response_quantile() == Some(found.quantile));
    let arm = ArmUnderLoad { arm: &found.arm, load: found.load.as_deref(), metric };
    describe_effect_reason(study, findings, &arm, found.because.as_ref())
}

/// Returns the reason for the verdict on a gain; empty if its figures show it.
pub fn describe_gain_reason(found: &GainFindings) -> String {
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

/// An arm under a load, by a metric.
struct ArmUnderLoad<'a> {
    arm: &'a str,
    load: Option<&'a str>,
    metric: Option<Metric>,
}

fn describe_effect_reason(
    study: &Study,
    findings: &Findings,
    of: &ArmUnderLoad<'_>,
    because: Option<&EffectReason>,
) -> String {
    let found = match because {
        None => None,
        Some(EffectReason::Comparison) => find_comparison(findings, of)
            .map(|found| comparison::describe_reason(found, &study.objective)),
        Some(EffectReason::Inert) => findings
            .inert
            .iter()
            .find(|inert| inert.arm == of.arm && inert.whole)
            .map(InertArm::why),
        Some(EffectReason::RuledOut) => {
            Some("the interval rules the published size out".to_owned())
        }
        Some(EffectReason::Since(change)) => Some(change.clone()),
    };
    found.unwrap_or_default()
}

fn find_comparison<'a>(findings: &'a Findings, of: &ArmUnderLoad<'_>) -> Option<&'a Comparison> {
    let load = findings.loads.iter().find(|load| Some(&*load.load) == of.load)?;
    load.comparison(of.arm, of.metric?)
}
