//! Capacities of arms against each other.

use weir_model::study::{ArmRole, Study};
use weir_stats::verdict::LEAST_REPLICATES;
use weir_stats::{
    Evidence, Interval, Outcome, difference, holm, student_quantile, student_two_sided, verdict,
};

use super::{Capacity, Ratio, RatioReason};
use crate::equal;
use crate::findings::Verdict;

/// Assumed degrees of freedom of a search's interval: a search has a few ladders of a few rates each. Fewer degrees
/// make small p larger.
const FREEDOM: u32 = 6;

/// Compares each arm with the arm given in its `against`. The interval is that of independent searches: disturbances of
/// the machine that affect both searches at once do not cancel, so it is too wide rather than too narrow. It does not
/// cover disturbances of one of two searches that ran one after the other.
pub(super) fn of(study: &Study, found: &[Capacity]) -> Vec<Ratio> {
    let mut ratios: Vec<Ratio> = (1..found.len())
        .map(|arm| {
            let against = &found[study.arms[arm].against.min(arm - 1)];
            ratio(&found[arm], against, study.objective.band)
        })
        .collect();
    let family: Vec<usize> = (0..ratios.len())
        .filter(|index| ratios[*index].p.is_finite())
        .filter(|index| study.arms[index + 1].role == ArmRole::Change)
        .collect();
    let p: Vec<f64> = family.iter().map(|index| ratios[*index].p).collect();
    let corrected = holm(&p);
    for (index, ratio) in ratios.iter_mut().enumerate() {
        let position = family.iter().position(|of| *of == index);
        // The same arm once more is none of the changes, and is corrected for as many comparisons.
        let alone = (ratio.p * family.len().max(1) as f64).clamp(0.0, 1.0);
        ratio.p_holm = position.map_or(alone, |position| corrected[position]);
        ratio.family = family.len().max(1) as u32;
        if ratio.verdict != Verdict::Invalid {
            (ratio.verdict, ratio.because) = judge(study, ratio);
        }
    }
    withdraw_within_equal_arms(study, &mut ratios);
    ratios
}

/// Withdraws claims about changes whose ratio is no further from 1 than that of the A/A arm. If searches ran one after
/// the other, the A/A arm shows how much the machine alone changes; without an A/A arm nothing is claimed then.
fn withdraw_within_equal_arms(study: &Study, ratios: &mut [Ratio]) {
    let same = (0..ratios.len())
        .find(|index| study.arms[index + 1].role == ArmRole::SameAsBaseline)
        .map(|index| ratios[index].clone());
    let same_name = same.as_ref().map(|same| same.arm.clone());
    let usable = same.filter(|same| same.verdict != Verdict::Invalid);
    if usable.is_none() && !study.is_in_turn() {
        return;
    }
    let reach = usable
        .map(|same| (equal::compute_reach(same.verdict, same.ratio, same.interval), same.arm));
    for (index, claimed) in ratios.iter_mut().enumerate() {
        let is_of_change = study.arms[index + 1].role == ArmRole::Change;
        let is_claim = !matches!(claimed.verdict, Verdict::Invalid | Verdict::Inconclusive);
        if !is_claim || !is_of_change {
            continue;
        }
        let why = match &reach {
            None => Some(RatioReason::ChangeBetweenUnknown { same: same_name.clone() }),
            Some((reach, same)) => equal::doubt(
                (claimed.verdict, claimed.ratio),
                (*reach, [same, &claimed.against]),
                study.objective.band,
            )
            .map(RatioReason::EqualArms),
        };
        if let Some(why) = why {
            (claimed.verdict, claimed.because) = (Verdict::Inconclusive, why);
        }
    }
}

/// Returns estimate, interval and p, not yet judged; INVALID with NaN if one of the two has no capacity.
fn ratio(arm: &Capacity, against: &Capacity, band: f64) -> Ratio {
    let both = [arm, against];
    let unclaimed = both.into_iter().find(|found| !found.claimed);
    let without = unclaimed.or(both.into_iter().find(|found| !is_known(found)));
    let (log, log_against) = (logs(arm), logs(against));
    let is_bracket = arm.answer.is_bracket || against.answer.is_bracket;
    let between = if is_bracket {
        // Of a rate that held and one that broke nothing is known but that the limit is between them.
        Interval {
            low: log.1.low - log_against.1.high,
            high: log.1.high - log_against.1.low,
            confidence: arm.answer.confidence,
        }
    } else {
        difference(log, log_against)
    };
    let value = log.0 - log_against.0;
    // How many times farther from 0 the estimate is than its interval reaches, in units of the latter's t.
    let half = if value > 0.0 { value - between.low } else { between.high - value };
    let t = value.abs() / half * student_quantile(1.0 - between.confidence, FREEDOM);
    let p = if is_bracket || without.is_some() {
        f64::NAN
    } else if value == 0.0 {
        1.0
    } else {
        student_two_sided(t, FREEDOM)
    };
    let [ratio, low, high] = [value, between.low, between.high]
        .map(|log| if without.is_some() { f64::NAN } else { log.exp() });
    let (verdict, because) = match without {
        None => (Verdict::Inconclusive, RatioReason::Open { band }),
        Some(found) if found.claimed => {
            (Verdict::Invalid, RatioReason::NoUpperEnd { arm: found.answer.arm.clone() })
        }
        Some(found) => (Verdict::Invalid, RatioReason::Unclaimed { arm: found.answer.arm.clone() }),
    };
    Ratio {
        arm: arm.answer.arm.clone(),
        against: against.answer.arm.clone(),
        ratio,
        interval: (low, high),
        p,
        p_holm: f64::NAN,
        family: 1,
        verdict,
        because,
    }
}

/// Returns true if the arm's own capacity is known. It is not if the limit found is that of the generator or the
/// origin.
fn is_known(found: &Capacity) -> bool {
    found.claimed && found.answer.low > 0.0 && found.answer.ceiling.is_none()
}

/// Returns the middle of the interval and the interval, on the logarithmic scale.
fn logs(found: &Capacity) -> (f64, Interval) {
    let (low, high) = (found.answer.low.ln(), found.answer.high.ln());
    let interval = Interval { low, high, confidence: found.answer.confidence };
    (0.5 * (low + high), interval)
}

/// Returns the verdict on a ratio whose p is corrected, and its reason.
fn judge(study: &Study, ratio: &Ratio) -> (Verdict, RatioReason) {
    let objective = &study.objective;
    // Brackets have no p: the whole range must be on one side.
    let is_beyond_one = ratio.interval.0 > 1.0 || ratio.interval.1 < 1.0;
    let p_of_bracket = if is_beyond_one { 0.0 } else { 1.0 };
    let evidence = Evidence {
        interval: ratio.interval,
        confidence: objective.confidence,
        p: if ratio.p_holm.is_finite() { ratio.p_holm } else { p_of_bracket },
        // Searches have a rule of their own for when they know enough.
        n: LEAST_REPLICATES,
    };
    let band = objective.band;
    match verdict(&evidence, band, objective.confidence, true) {
        Outcome::Better => (Verdict::Better, RatioReason::AboveOne),
        Outcome::Worse => (Verdict::Worse, RatioReason::BelowOne),
        Outcome::Equivalent => (Verdict::Equivalent, RatioReason::WithinBand { band }),
        Outcome::Inconclusive => (Verdict::Inconclusive, RatioReason::Open { band }),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::study::ControllerSpec;

    use super::*;
    use crate::findings::EqualArms;

    fn ratio_of(arm: &str, ratio: f64, verdict: Verdict) -> Ratio {
        Ratio {
            arm: arm.to_owned(),
            against: "stock".to_owned(),
            ratio,
            interval: (ratio * 0.96, ratio * 1.04),
            p: 0.01,
            p_holm: 0.01,
            family: 1,
            verdict,
            because: RatioReason::AboveOne,
        }
    }

    #[test]
    fn a_ratio_must_be_larger_than_what_equal_arms_show() {
        use Verdict::{Better, Equivalent, Inconclusive, Invalid};
        let arms = [
            fixture::arm("stock", ArmRole::Baseline, &[]),
            fixture::arm("same", ArmRole::SameAsBaseline, &[]),
            fixture::arm("other", ArmRole::Change, &[]),
        ];
        let study = fixture::study(arms.to_vec());
        // The last number is the difference of the two equal arms if the claim does not stand.
        for (same, (other, claimed), wanted) in [
            ((1.01, Equivalent), (1.06, Better), None),
            ((0.94, Inconclusive), (1.06, Better), Some(0.0638)),
            ((1.05, Better), (1.08, Better), Some(0.092)),
            ((f64::NAN, Invalid), (1.06, Better), None),
            ((1.001, Equivalent), (1.0, Equivalent), None),
            ((1.2, Better), (1.0, Equivalent), Some(0.248)),
        ] {
            let mut both = [ratio_of("same", same.0, same.1), ratio_of("other", other, claimed)];
            withdraw_within_equal_arms(&study, &mut both);
            let (verdict, difference) = match &both[1].because {
                RatioReason::AboveOne => (claimed, None),
                RatioReason::EqualArms(EqualArms { arms, difference, was_equivalent }) => {
                    assert_eq!(*arms, ["same", "stock"]);
                    assert_eq!(*was_equivalent, claimed == Equivalent);
                    (Inconclusive, Some((difference * 1e4).round() / 1e4))
                }
                because => panic!("{because:?}"),
            };
            assert_eq!((both[1].verdict, difference), (verdict, wanted), "{same:?} {other}");
            assert_eq!(both[0].verdict, same.1, "{same:?}");
        }
    }

    #[test]
    fn searches_one_after_the_other_claim_nothing_without_a_capacity_of_an_a_a_arm() {
        let arms = [
            fixture::arm("stock", ArmRole::Baseline, &[]),
            fixture::arm("other", ArmRole::Change, &[]),
            fixture::arm("same", ArmRole::SameAsBaseline, &[]),
        ];
        // Without an A/A arm, and with one of which no capacity is known.
        for (same, is_in_turn, claimed, wanted) in [
            (false, false, Verdict::Better, Verdict::Better),
            (false, true, Verdict::Better, Verdict::Inconclusive),
            (false, true, Verdict::Equivalent, Verdict::Inconclusive),
            (false, true, Verdict::Invalid, Verdict::Invalid),
            (true, true, Verdict::Better, Verdict::Inconclusive),
            (true, false, Verdict::Better, Verdict::Better),
        ] {
            let count = if same { 3 } else { 2 };
            let mut study = fixture::study(arms[..count].to_vec());
            study.proxy.controller = is_in_turn.then(ControllerSpec::default);
            let mut ratios = vec![ratio_of("other", 1.3, claimed)];
            ratios.extend(same.then(|| ratio_of("same", f64::NAN, Verdict::Invalid)));
            withdraw_within_equal_arms(&study, &mut ratios);
            assert_eq!(ratios[0].verdict, wanted, "{is_in_turn} {claimed:?}");
            let because = if wanted == claimed {
                RatioReason::AboveOne
            } else {
                RatioReason::ChangeBetweenUnknown { same: same.then(|| "same".to_owned()) }
            };
            assert_eq!(ratios[0].because, because, "{ratios:?}");
        }
    }
}
