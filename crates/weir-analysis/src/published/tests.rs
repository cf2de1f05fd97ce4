use weir_model::study::Metric;

use super::*;
use crate::findings::Basis;

fn measured(ratio: f64, interval: (f64, f64), verdict: Verdict) -> Comparison {
    Comparison {
        metric: Metric::Rate,
        arm: "b".into(),
        against: "a".into(),
        n: 20,
        merged: 1,
        requests: None,
        family: 1,
        autocorrelation: 0.0,
        ratio,
        pooled: ratio,
        interval,
        confidence: 0.95,
        p: 0.01,
        p_holm: 0.01,
        look: None,
        minimum_detectable: 0.02,
        verdict,
        because: Basis::ContainsOne.into(),
    }
}

fn exactly(ratio: f64) -> Ratios {
    (ratio, ratio)
}

#[test]
fn a_published_effect_is_judged_by_direction_and_size() {
    use Kind::{Figure, Time};
    use PublishedVerdict as P;
    use Verdict as V;
    const NAN: f64 = f64::NAN;
    let fell = (0.2, 0.25);

    #[rustfmt::skip]
    let cases = [
        (Figure, exactly(2.05), 2.0, (1.9, 2.1), V::Better, P::Confirmed),
        (Figure, exactly(2.05), 1.2, (1.1, 1.3), V::Better, P::ConfirmedSmaller),
        (Figure, exactly(2.05), 3.0, (2.9, 3.1), V::Better, P::ConfirmedLarger),
        (Figure, exactly(2.05), 1.0, (0.99, 1.01), V::Equivalent, P::NoEffectHere),
        (Figure, exactly(2.05), 0.8, (0.7, 0.9), V::Worse, P::Opposite),
        (Figure, exactly(2.05), 1.1, (0.9, 1.3), V::Inconclusive, P::Inconclusive),
        (Figure, exactly(1.01), 1.0, (0.99, 1.01), V::Equivalent, P::NoneEither),
        (Figure, exactly(1.01), 1.5, (1.4, 1.6), V::Better, P::EffectHere),
        (Figure, exactly(0.5), 0.4, (0.35, 0.45), V::Worse, P::ConfirmedLarger),
        (Figure, exactly(0.5), 0.8, (0.75, 0.85), V::Better, P::ConfirmedSmaller),
        (Figure, exactly(2.0), NAN, (NAN, NAN), V::Invalid, P::NotMeasured),
        (Figure, exactly(NAN), 2.0, (1.9, 2.1), V::Better, P::Inconclusive),
        (Figure, exactly(-1.0), 2.0, (1.9, 2.1), V::Better, P::Inconclusive),
        (Time, fell, 0.22, (0.15, 0.3), V::Better, P::Confirmed),
        (Time, fell, 0.6, (0.5, 0.7), V::Better, P::ConfirmedSmaller),
        (Time, fell, 0.1, (0.05, 0.15), V::Better, P::ConfirmedLarger),
        (Time, fell, 1.5, (1.2, 1.9), V::Worse, P::Opposite),
        (Time, fell, 1.0, (0.99, 1.01), V::Equivalent, P::NoEffectHere),
        (Time, fell, 1.0, (0.8, 1.3), V::Inconclusive, P::NoEffectHere),
        (Time, fell, 0.7, (0.22, 1.3), V::Inconclusive, P::Inconclusive),
        (Time, exactly(1.0), 1.0, (0.99, 1.01), V::Equivalent, P::NoneEither),
        (Time, exactly(1.0), 0.9, (0.85, 0.95), V::Better, P::EffectHere),
        (Time, (0.7, 1.3), 1.0, (0.8, 1.2), V::Inconclusive, P::Inconclusive),
        (Time, fell, NAN, (NAN, NAN), V::Invalid, P::NotMeasured),
    ];
    for (kind, theirs, ratio, interval, verdict, expected) in cases {
        let ours = measured(ratio, interval, verdict);
        let (judged, _) = compare(kind, theirs, Some(&ours), 0.02);
        assert_eq!(judged, expected, "{theirs:?} beside {ratio} {verdict:?}");
    }
    assert_eq!(compare(Figure, fell, None, 0.02).0, P::NotMeasured);
}
