//! The verdict of a run in a few words, for a list of runs.

use weir_analysis::findings::{CapacityFindings, Findings, LoadFindings, Verdict};
use weir_model::study::{ArmRole, Metric, Study};

use crate::names::join_names;
use crate::numbers::{rate, ratio, time};

/// Maximum number of arms that are named; more are counted.
const ARMS_NAMED: usize = 2;

/// Describes the verdict of a run: `keepalive better (2.61)`, `stock 4,310 to 4,520/s`.
pub fn describe_briefly(study: &Study, findings: &Findings) -> String {
    if let Some(capacity) = &findings.capacity {
        return describe_capacities(capacity);
    }
    if let Some(overall) = &findings.overall {
        return format!("{} {}", overall.arm, overall.verdict.word());
    }
    let metric = study.objective.metric;
    let loads: Vec<&LoadFindings> = findings
        .loads
        .iter()
        .filter(|load| load.is_usable() && load.metrics.contains(&metric))
        .collect();
    let usable = if loads.is_empty() {
        findings.loads.iter().filter(|load| load.is_usable()).collect()
    } else {
        loads
    };
    let Some(first) = usable.first() else {
        return "nothing usable was measured".to_owned();
    };
    if study.arms.len() == 1 {
        return describe_figures(first);
    }
    let arms = verdicts(study, &usable, metric);
    describe_verdicts(&arms)
}

fn describe_capacities(found: &CapacityFindings) -> String {
    let mut arms = found.arms.iter().map(|arm| {
        let name = &arm.answer.arm;
        if arm.claimed {
            format!("{name} {} to {}/s", rate(arm.answer.low), rate(arm.answer.high))
        } else {
            format!("{name} not known")
        }
    });
    let named: Vec<String> = arms.by_ref().take(ARMS_NAMED).collect();
    match arms.count() {
        0 => named.join(", "),
        more => format!("{}, {more} more", named.join(", ")),
    }
}

/// Describes the only arm under a load: `12,000/s, p99 1.2 ms`.
fn describe_figures(load: &LoadFindings) -> String {
    match load.arms.first() {
        None => "nothing usable was measured".to_owned(),
        Some(arm) if load.metrics.contains(&Metric::ResponseP99) => {
            format!("{}/s, p99 {}", rate(arm.rate_completed), time(arm.response_ns[2] as f64))
        }
        Some(arm) => format!("{}/s", rate(arm.rate_completed)),
    }
}

/// Verdict on a change over all loads.
struct ArmVerdict<'a> {
    arm: &'a str,
    verdict: Verdict,
    /// Ratio to the arm that it is compared with, if there is one load.
    ratio: Option<f64>,
}

fn verdicts<'a>(study: &'a Study, loads: &[&LoadFindings], metric: Metric) -> Vec<ArmVerdict<'a>> {
    let changes = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
    changes
        .filter_map(|arm| {
            let comparisons: Vec<_> = loads
                .iter()
                .filter_map(|load| {
                    let has_metric = load.metrics.contains(&metric);
                    let shown = if has_metric { metric } else { *load.metrics.first()? };
                    load.comparison(&arm.name, shown)
                })
                .collect();
            let verdicts: Vec<Verdict> = comparisons.iter().map(|one| one.verdict).collect();
            let verdict = combine(&verdicts)?;
            let ratio = match comparisons[..] {
                [only] => Some(only.ratio),
                _ => None,
            };
            Some(ArmVerdict { arm: &arm.name, verdict, ratio })
        })
        .collect()
}

/// Returns the verdict over all loads: worse under one of them is worse; `None` without loads.
fn combine(verdicts: &[Verdict]) -> Option<Verdict> {
    let clear = [Verdict::Worse, Verdict::Better];
    if let Some(verdict) = clear.into_iter().find(|verdict| verdicts.contains(verdict)) {
        return Some(verdict);
    }
    // An arm is equivalent only if it is under every load.
    verdicts.iter().copied().max()
}

fn describe_verdicts(arms: &[ArmVerdict<'_>]) -> String {
    let order = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::Equivalent,
        Verdict::Inconclusive,
        Verdict::Invalid,
    ];
    let groups = order.into_iter().filter_map(|verdict| {
        let group: Vec<_> = arms.iter().filter(|arm| arm.verdict == verdict).collect();
        let word = verdict.word();
        let names: Vec<String> = group.iter().map(|arm| arm.arm.to_owned()).collect();
        match group[..] {
            [] => None,
            [ArmVerdict { arm, ratio: Some(value), .. }] if value.is_finite() => {
                Some(format!("{arm} {word} ({})", ratio(*value)))
            }
            _ if names.len() <= ARMS_NAMED => Some(format!("{} {word}", join_names(&names))),
            _ => Some(format!("{} {word}", names.len())),
        }
    });
    let groups: Vec<String> = groups.collect();
    if groups.is_empty() { "nothing was compared".to_owned() } else { groups.join(", ") }
}
