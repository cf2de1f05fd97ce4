//! Verdicts on recommendations.

use weir_analysis::findings::{Comparison, Findings, Verdict};
use weir_model::record::{Inert, ProxyRecord, Record};
use weir_model::study::Metric;
use weir_record::Run;

use crate::book::Recommendation;
use crate::findings::{AdviceFinding, AdviceVerdict, Because, InForce};
use crate::standing::{Installed, Standing};

/// Result of the arm that has the recommended levels.
#[derive(Debug, Clone, Default)]
pub struct ArmResult {
    /// Comparison with the unchanged proxy on the metric of the recommendation; `None` if there is none.
    pub comparison: Option<Comparison>,
    /// Levels that were not in force, if they are all that the arm changes.
    pub inert: Vec<Inert>,
    /// Levels in force.
    pub in_force: Vec<InForce>,
}

impl ArmResult {
    /// Reads the result of an arm from its run.
    pub fn read(run: &Run, findings: &Findings, arm: &str, metric: Metric) -> ArmResult {
        let comparison = findings
            .loads
            .iter()
            .filter(|load| load.is_usable())
            .find_map(|load| load.comparison(arm, metric).cloned());
        let inert = findings.inert.iter().find(|inert| inert.arm == arm && inert.whole);
        ArmResult {
            comparison,
            inert: inert.map_or_else(Vec::new, |inert| inert.levels.clone()),
            in_force: read_levels(run, arm),
        }
    }
}

/// Returns the levels in force of what an arm changes, without and with the change.
fn read_levels(run: &Run, arm: &str) -> Vec<InForce> {
    let arms = &run.header.study.arms;
    let Some(changed) = arms.iter().find(|one| one.name == arm) else {
        return Vec::new();
    };
    let [before, after] = [&*arms[changed.against].name, arm].map(|arm| find_proxy(run, arm));
    let levels = changed.changes.keys().map(|id| {
        let [before, after] = [before, after].map(|proxy| proxy?.effective.get(id).cloned());
        InForce { id: id.clone(), before, after }
    });
    levels.collect()
}

/// Returns the last record of an arm's proxy.
fn find_proxy<'r>(run: &'r Run, arm: &str) -> Option<&'r ProxyRecord> {
    run.records.iter().rev().find_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm => Some(proxy),
        _ => None,
    })
}

/// Judges a recommendation by its standing and, if it was tried, by the result of its arm.
pub fn judge(
    advice: &Recommendation,
    standing: &Standing,
    result: Option<&ArmResult>,
    installed: &Installed,
) -> AdviceFinding {
    let (found, because) = match (standing, result) {
        (Standing::Untried(why), _) => (AdviceVerdict::NotTried, Because::Untried(why.clone())),
        (Standing::Stock, _) => (AdviceVerdict::Inert, Because::Stock),
        (Standing::Applies, None) => (AdviceVerdict::Undecided, Because::NoFigures),
        (Standing::Applies, Some(result)) => judge_result(advice, result),
    };
    // Whoever cannot gain any more by advice for older versions is told so.
    let is_without_gain = matches!(found, AdviceVerdict::NoEffect | AdviceVerdict::Inert);
    let obsolete = advice.obsolete.clone().filter(|_| installed.is_obsolete(advice));
    let (verdict, because) = match obsolete {
        Some(obsolete) if is_without_gain => (AdviceVerdict::Obsolete, Because::Since(obsolete)),
        _ => (found, because),
    };
    let comparison = result.and_then(|result| result.comparison.as_ref());
    let valid = comparison.filter(|found| found.verdict != Verdict::Invalid);
    AdviceFinding {
        recommendation: advice.clone(),
        verdict,
        because,
        metric: advice.metric,
        ratio: valid.map(|found| found.ratio),
        interval: valid.map(|found| found.interval),
        in_force: result.map_or_else(Vec::new, |result| result.in_force.clone()),
        arm: None,
    }
}

/// Judges what was measured.
fn judge_result(advice: &Recommendation, result: &ArmResult) -> (AdviceVerdict, Because) {
    if !result.inert.is_empty() {
        return (AdviceVerdict::Inert, Because::NotInForce(result.inert.clone()));
    }
    let Some(comparison) = &result.comparison else {
        return (AdviceVerdict::Undecided, Because::NoFigures);
    };
    match comparison.verdict {
        Verdict::Better if is_smaller(advice, comparison) => {
            (AdviceVerdict::Smaller, Because::BelowPublished)
        }
        Verdict::Better => (AdviceVerdict::Confirmed, Because::Measured),
        Verdict::Worse => (AdviceVerdict::Harmful, Because::Measured),
        Verdict::Equivalent => (AdviceVerdict::NoEffect, Because::Measured),
        Verdict::Inconclusive => (AdviceVerdict::Undecided, Because::TooLittleTime),
        Verdict::Invalid => (AdviceVerdict::Undecided, Because::NoFigures),
    }
}

/// Returns true if the whole interval is closer to 1 than the smallest published effect.
fn is_smaller(advice: &Recommendation, comparison: &Comparison) -> bool {
    let Some((lowest, highest)) = advice.figure else {
        return false;
    };
    let (low, high) = comparison.interval;
    if advice.metric.higher_is_better() { high < lowest } else { low > highest }
}
