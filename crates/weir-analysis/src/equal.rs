//! Withdrawal of effects that are no larger than the difference between two equal arms.

use std::collections::BTreeMap;

use weir_model::study::{ArmRole, Metric, Study};

use crate::findings::{Basis, Comparison, EqualArms, Verdict};

/// Withdraws claims about changes whose estimate is no further from 1 than that of the A/A arm: in the same blocks the
/// machine shows as much without any difference. If the A/A arm itself came out as better or worse, the far end of its
/// interval is the bound. Nothing is called equivalent if the A/A arm is beyond the band.
pub(crate) fn withdraw_within_equal_arms(comparisons: &mut [Comparison], study: &Study) {
    let same_arms: Vec<&str> = study
        .arms
        .iter()
        .filter(|arm| arm.role == ArmRole::SameAsBaseline)
        .map(|arm| &*arm.name)
        .collect();
    let shown: BTreeMap<Metric, (f64, String)> = comparisons
        .iter()
        .filter(|same| same_arms.contains(&&*same.arm) && same.verdict != Verdict::Invalid)
        .map(|same| {
            let reach = compute_reach(same.verdict, same.ratio, same.interval);
            (same.metric, (reach, same.arm.clone()))
        })
        .collect();
    for claimed in comparisons.iter_mut().filter(|claimed| !same_arms.contains(&&*claimed.arm)) {
        let Some((reach, same)) = shown.get(&claimed.metric) else {
            continue;
        };
        let (verdict, ratio) = (claimed.verdict, claimed.ratio);
        let names = [&**same, &*claimed.against];
        if let Some(why) = doubt((verdict, ratio), (*reach, names), study.objective.band) {
            claimed.verdict = Verdict::Inconclusive;
            claimed.because = Basis::EqualArms(why).into();
        }
    }
}

/// Returns the difference because of which a claim about a ratio does not stand, given that two equal arms differ by
/// `reach` (logarithm of a ratio); `None` if the claim stands, or nothing is claimed.
pub(crate) fn doubt(
    (verdict, ratio): (Verdict, f64),
    (reach, [same, against]): (f64, [&str; 2]),
    band: f64,
) -> Option<EqualArms> {
    let is_doubtful = match verdict {
        Verdict::Better | Verdict::Worse => ratio.ln().abs() <= reach,
        Verdict::Equivalent => reach > band.ln_1p(),
        Verdict::Inconclusive | Verdict::Invalid => false,
    };
    is_doubtful.then(|| EqualArms {
        arms: [same, against].map(str::to_owned),
        difference: reach.exp_m1(),
        was_equivalent: verdict == Verdict::Equivalent,
    })
}

/// Returns how far from 1 the A/A arm may be, as the logarithm of a ratio.
pub(crate) fn compute_reach(verdict: Verdict, ratio: f64, (low, high): (f64, f64)) -> f64 {
    match verdict {
        Verdict::Better | Verdict::Worse => low.ln().abs().max(high.ln().abs()),
        _ => ratio.ln().abs(),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;

    use super::*;

    fn comparison_of(arm: &str, ratio: f64, verdict: Verdict) -> Comparison {
        Comparison {
            metric: Metric::Rate,
            arm: arm.to_owned(),
            against: "stock".to_owned(),
            n: 20,
            merged: 1,
            requests: None,
            family: 1,
            autocorrelation: 0.0,
            ratio,
            interval: (ratio * 0.98, ratio * 1.02),
            pooled: ratio,
            confidence: 0.95,
            p: 0.01,
            p_holm: 0.01,
            look: None,
            minimum_detectable: 0.02,
            verdict,
            because: Basis::ContainsOne.into(),
        }
    }

    #[test]
    fn an_effect_must_be_larger_than_what_equal_arms_show() {
        use Verdict::{Better, Equivalent, Inconclusive};
        let arms = [
            fixture::arm("stock", ArmRole::Baseline, &[]),
            fixture::arm("same", ArmRole::SameAsBaseline, &[]),
            fixture::arm("other", ArmRole::Change, &[]),
        ];
        let study = fixture::study(arms.to_vec());
        for (same, other, wanted) in [
            ((1.001, Inconclusive), 1.03, Better),
            ((0.999, Equivalent), 1.002, Better),
            ((1.31, Inconclusive), 1.29, Inconclusive),
            // As far below as the other is above.
            ((0.95, Inconclusive), 1.04, Inconclusive),
            // It reaches up to 5.06 %.
            ((1.03, Better), 1.05, Inconclusive),
            ((1.03, Better), 1.06, Better),
            // What is equal within the band of 2 % must not be less alike than two equal arms are.
            ((1.015, Inconclusive), 1.0, Equivalent),
            ((0.975, Inconclusive), 1.0, Inconclusive),
            ((1.03, Better), 1.0, Inconclusive),
        ] {
            let claim = if other == 1.0 { Equivalent } else { Better };
            let mut both =
                [comparison_of("same", same.0, same.1), comparison_of("other", other, claim)];
            withdraw_within_equal_arms(&mut both, &study);
            assert_eq!(both[1].verdict, wanted, "{same:?} {other}");
            assert_eq!(both[0].verdict, same.1, "the A/A arm's own verdict stays");
            let arms = match &both[1].because.basis {
                Basis::EqualArms(found) => Some(found.arms.each_ref().map(String::as_str)),
                _ => None,
            };
            assert_eq!(arms, (wanted == Inconclusive).then_some(["same", "stock"]));
        }
    }
}
