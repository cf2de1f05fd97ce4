//! Published gains.
//!
//! They are means and peaks over other machines and settings, so sizes are not compared: a gain is confirmed if the
//! measured one has the same direction and lies beyond the equivalence band.

use weir_model::study::{Arm, ArmRole, GainOf, Metric, Published, PublishedGain, Study};

use crate::findings::{
    Comparison, GainFindings, GainReason, LoadFindings, PublishedVerdict, Verdict,
};
use crate::names::are_different_proxies;

/// Judges all published gains, each under each load that it applies to.
pub(super) fn gains(
    study: &Study,
    published: &Published,
    loads: &[LoadFindings],
) -> Vec<GainFindings> {
    let mut all = Vec::new();
    for gain in &published.gains {
        let before = all.len();
        let under = loads.iter().filter(|load| match &gain.load {
            Some(name) => load.load == *name,
            None => load.metrics.contains(&gain.metric),
        });
        all.extend(under.map(|load| of_gain(study, Some(load), gain)));
        if all.len() == before {
            all.push(of_gain(study, None, gain));
        }
    }
    all
}

fn of_gain(study: &Study, load: Option<&LoadFindings>, gain: &PublishedGain) -> GainFindings {
    let arms = load.map_or_else(Vec::new, |load| measured(study, load, gain));
    let up = gain.mean.or(gain.peak).is_some_and(|change| change > 0.0);
    let (verdict, because) = if arms.is_empty() {
        (PublishedVerdict::NotMeasured, Some(missing(study, load, gain)))
    } else {
        judge(&arms, up, study.objective.band)
    };
    let ratios = arms.iter().map(|comparison| comparison.ratio);
    let logs = ratios.clone().map(f64::ln).sum::<f64>();
    let largest = if up { ratios.reduce(f64::max) } else { ratios.reduce(f64::min) };
    GainFindings {
        of: gain.of.clone(),
        metric: gain.metric,
        load: load.map(|load| load.load.clone()),
        mean: gain.mean,
        peak: gain.peak,
        mean_here: (!arms.is_empty()).then(|| (logs / arms.len() as f64).exp()),
        peak_here: largest,
        arms,
        verdict,
        because,
    }
}

/// Returns the measured comparison of each arm that the gain applies to and that has valid figures.
fn measured(study: &Study, load: &LoadFindings, gain: &PublishedGain) -> Vec<Comparison> {
    let arms = study.arms.iter();
    arms.filter(|arm| arm.role != ArmRole::SameAsBaseline)
        .filter_map(|arm| -> Option<Comparison> {
            let against = match &gain.of {
                GainOf::Arms(names) if names.contains(&arm.name) => study.arms.get(arm.against)?,
                GainOf::Arms(_) => return None,
                GainOf::Level { id, level } => without(study, arm, id, level)?,
            };
            pair(load, gain.metric, &arm.name, &against.name)
        })
        .filter(|comparison| comparison.verdict != Verdict::Invalid && comparison.ratio > 0.0)
        .collect()
}

/// Returns the arm that differs from `arm` only in that it does not have `level`: the one in its `against` if that
/// fits, else the first that does.
fn without<'a>(study: &'a Study, arm: &Arm, id: &str, level: &str) -> Option<&'a Arm> {
    if arm.settings.get(id).map(String::as_str) != Some(level) {
        return None;
    }
    study.arms.get(arm.against).into_iter().chain(&study.arms).find(|other| {
        let [ours, theirs] = [arm, other].map(|arm| {
            let mut settings = arm.settings.clone();
            settings.remove(id);
            settings
        });
        other.role != ArmRole::SameAsBaseline
            && other.settings.get(id) != arm.settings.get(id)
            && !are_different_proxies(study, &other.name, &arm.name)
            && ours == theirs
    })
}

/// Returns the comparison of two arms, as the study makes it or from its pairs.
fn pair(load: &LoadFindings, metric: Metric, arm: &str, against: &str) -> Option<Comparison> {
    let mut all = load.comparisons.iter().chain(&load.pairs);
    all.find_map(|comparison| match () {
        () if comparison.metric != metric => None,
        () if comparison.arm == arm && comparison.against == against => Some(comparison.clone()),
        () if comparison.arm == against && comparison.against == arm => Some(comparison.mirrored()),
        () => None,
    })
}

/// Returns the reason why a gain has no measured comparison.
fn missing(study: &Study, load: Option<&LoadFindings>, gain: &PublishedGain) -> GainReason {
    match (load, &gain.of) {
        (None, _) => GainReason::NoLoad,
        (Some(load), _) if !load.metrics.contains(&gain.metric) => GainReason::NoMetric,
        (_, GainOf::Level { id, level }) => {
            let mut arms = study.arms.iter();
            if arms.any(|arm| without(study, arm, id, level).is_some()) {
                GainReason::NoPairs
            } else {
                GainReason::NoArms
            }
        }
        (_, GainOf::Arms(_)) => GainReason::NoFigures,
    }
}

/// Judges a gain. It is confirmed if an arm's whole interval lies beyond the band in the published direction and none
/// in the other.
fn judge(measured: &[Comparison], up: bool, band: f64) -> (PublishedVerdict, Option<GainReason>) {
    let (higher, lower): (usize, usize) = measured
        .iter()
        .filter(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse))
        .fold((0, 0), |(higher, lower), Comparison { interval: (low, high), .. }| {
            let is_higher = *low > 1.0 + band;
            let is_lower = *high < (1.0 + band).recip();
            (higher + usize::from(is_higher), lower + usize::from(is_lower))
        });
    let all = measured.len();
    let (same, opposite) = if up { (higher, lower) } else { (lower, higher) };
    match (same, opposite) {
        (0, 0) if measured.iter().all(|c| c.verdict == Verdict::Equivalent) => {
            (PublishedVerdict::NoEffectHere, None)
        }
        (0, 0) => (PublishedVerdict::Inconclusive, None),
        (0, opposite) => (PublishedVerdict::Opposite, some_of(opposite, all)),
        (same, 0) => (PublishedVerdict::Confirmed, some_of(same, all)),
        (confirmed, opposite) => {
            let both = GainReason::Both { confirmed: confirmed as u32, opposite: opposite as u32 };
            (PublishedVerdict::Inconclusive, Some(both))
        }
    }
}

/// Returns the reason of a verdict that `count` of all arms show; `None` if all do.
fn some_of(count: usize, all: usize) -> Option<GainReason> {
    (count < all).then_some(GainReason::SomeArms { arms: count as u32 })
}
