//! Known answers, textbook tables, and a comparison with all 2^n choices of signs.

use proptest::prelude::*;

use super::*;
use crate::walsh::tests::naive as naive_averages;

/// Returns the p of a symmetric sample.
fn p(sample: &[f64]) -> f64 {
    SignedRank::new().p_of_zero(&ascending(sample).unwrap(), 1.0)
}

/// Computes the p by enumerating the signs of a sample without zeros and equal magnitudes.
fn naive_p(sample: &[f64]) -> f64 {
    let ranks: Vec<f64> = sample
        .iter()
        .map(|value| sample.iter().filter(|x| x.abs() <= value.abs()).count() as f64)
        .collect();
    let middle = ranks.iter().sum::<f64>() / 2.0;
    let signs = (0..sample.len()).fold(0, |bits, i| bits | u32::from(sample[i] > 0.0) << i);
    let distance = (rank_sum(&ranks, signs) - middle).abs();
    let all = 1_u32 << sample.len();
    (0..all).filter(|signs| (rank_sum(&ranks, *signs) - middle).abs() >= distance).count() as f64
        / f64::from(all)
}

fn rank_sum(ranks: &[f64], signs: u32) -> f64 {
    ranks.iter().enumerate().filter(|(i, _)| signs >> i & 1 == 1).map(|(_, rank)| rank).sum()
}

#[test]
fn one_sided_samples_reach_the_published_p() {
    for (n, want) in [(6, 0.03125), (8, 0.0078125), (9, 0.00390625)] {
        let sample: Vec<f64> = (1..=n).map(f64::from).collect();
        assert_eq!(p(&sample), want, "n = {n}");
        let negative: Vec<f64> = sample.iter().map(|x| -x).collect();
        assert_eq!(p(&negative), want, "n = {n}, all negative");
    }
}

/// Critical values of the smaller rank sum, two-sided 5 % and 1 % (Wilcoxon 1947; Hollander & Wolfe,
/// table A.4): the largest W whose two-sided p does not exceed the level.
#[test]
fn critical_values_are_the_textbooks() {
    let five_percent = [
        (6, 0),
        (7, 2),
        (8, 3),
        (9, 5),
        (10, 8),
        (12, 13),
        (15, 25),
        (20, 52),
        (25, 89),
        (30, 137),
        (50, 434),
    ];
    let one_percent =
        [(8, 0), (9, 1), (10, 3), (12, 7), (15, 15), (20, 37), (25, 68), (30, 109), (50, 373)];
    let mut tables = SignedRank::new();
    for (level, cases) in [(0.05, &five_percent[..]), (0.01, &one_percent[..])] {
        for &(n, want) in cases {
            let table = tables.table(n);
            let critical = table.partition_point(|p| 2.0 * p <= level) - 1;
            assert_eq!(critical, want, "n = {n} at {level}");
        }
    }
}

/// Darwin's Zea mays: heights of cross-fertilised less self-fertilised plants, eighths of an inch
/// (Fisher, "The Design of Experiments", III). R: `wilcox.test(d, conf.int = TRUE)`.
#[test]
fn darwins_maize() {
    let d = [49., -67., 8., 16., 6., 23., 28., 41., 14., 29., 56., 24., 75., 60., -48.];
    // W+ = 96, W- = 24, no ties: P(W <= 24) = 676 / 32768.
    assert!((p(&d) - 0.041_259_765_625).abs() < 1e-12, "{}", p(&d));
    let interval = SignedRank::new().interval(&d, 0.95).unwrap();
    let averages = naive_averages(&d);
    assert_eq!((interval.low, interval.high), (averages[25], averages[120 - 26]));
    assert!(interval.confidence >= 0.95 && interval.confidence < 0.96, "{interval:?}");
    assert!(interval.low > 0.0, "p below 5 % and an interval without zero are one statement");
}

#[test]
fn six_replicates_reach_a_confidence_of_96_9_percent() {
    let d = [0.3, 0.1, 0.2, 0.6, 0.5, 0.4];
    let interval = SignedRank::new().interval(&d, 0.95).unwrap();
    assert_eq!((interval.low, interval.high), (0.1, 0.6));
    assert_eq!(interval.confidence, 0.96875);
}

#[test]
fn too_few_replicates_say_what_confidence_they_have() {
    let interval = SignedRank::new().interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
    assert_eq!(interval.confidence, 0.9375);
    let single = SignedRank::new().interval(&[1.0], 0.95).unwrap();
    assert_eq!((single.low, single.high, single.confidence), (1.0, 1.0, 0.0));
    assert_eq!(SignedRank::new().interval(&[], 0.95), None);
    assert_eq!(SignedRank::new().p_of_any(&[f64::INFINITY]), None);
}

#[test]
fn zeros_are_no_evidence() {
    assert_eq!(p(&[0.0; 10]), 1.0);
    assert_eq!(p(&[0.0]), 1.0);
    // Six positive ones among zeros: the interval begins at 0, whatever their signs say.
    let mut sample = vec![0.0; 20];
    sample.extend((1..=6).map(f64::from));
    let interval = SignedRank::new().interval_of_any(&sample, 0.95).unwrap();
    assert_eq!(interval.low, 0.0);
    assert!(p(&sample) > 0.05, "{}", p(&sample));
}

#[test]
fn a_thousand_replicates_are_exact_and_agree_with_the_approximation() {
    let n = EXACT_UP_TO;
    let mut tables = SignedRank::new();
    let table = tables.table(n);
    let middle = table[table.len() - 1];
    assert!(
        (middle - 0.5).abs() < 1e-3,
        "half of the distribution lies below its middle: {middle}"
    );
    let k = table.partition_point(|p| *p <= 0.025) - 1;
    let (approximate, probability) = approximate_rank(n, 0.025);
    assert!(approximate.abs_diff(k as u64) <= 10, "{approximate} against {k}");
    assert!((probability - table[approximate as usize]).abs() < 0.025 * 1e-3);

    // One replicate more takes the other way; its answer must not jump.
    let sample: Vec<f64> = (0..=n).map(|i| ((i * 7919) % 1009) as f64 - 470.0).collect();
    let exact = tables.interval(&sample[..n], 0.95).unwrap();
    let normal = tables.interval(&sample, 0.95).unwrap();
    assert!((exact.low - normal.low).abs() < 1.5, "{exact:?} {normal:?}");
    assert!((exact.confidence - normal.confidence).abs() < 1e-4);
    let (exact, normal) = (p(&sample[..n]), p(&sample));
    assert!((exact / normal - 1.0).abs() < 0.2, "{exact} {normal}");
}

proptest! {
    #[test]
    fn p_is_the_share_of_all_sign_choices(
        sample in prop::collection::vec(-5.0_f64..5.0, 1..=12)
    ) {
        let mut magnitudes: Vec<f64> = sample.iter().map(|x| x.abs()).collect();
        magnitudes.sort_by(f64::total_cmp);
        prop_assume!(magnitudes[0] > 0.0 && magnitudes.windows(2).all(|w| w[0] < w[1]));
        let want = naive_p(&sample);
        prop_assert!((p(&sample) - want).abs() < 1e-12, "{} against {want}", p(&sample));
    }

    // Whether or not the noise is symmetric, and whatever ties and zeros there are.
    #[test]
    fn the_interval_without_zero_is_the_p_below_the_level(
        sample in prop::collection::vec(
            prop_oneof![-1.0_f64..3.0, 0.0_f64..20.0, (-1_i8..=3).prop_map(f64::from)], 6..40
        ),
        confidence in 0.9_f64..0.99
    ) {
        let mut tests = SignedRank::new();
        let interval = tests.interval_of_any(&sample, confidence).unwrap();
        let excludes = interval.low > 0.0 || interval.high < 0.0;
        let p = tests.p_of_any(&sample).unwrap();
        // Without a rank that is as sure the interval is the whole range.
        prop_assume!(interval.confidence >= confidence);
        prop_assert_eq!(excludes, p <= 1.0 - confidence, "{} {:?}", p, interval);
        let estimate = crate::hodges_lehmann(&sample).unwrap();
        prop_assert!(interval.low <= estimate && estimate <= interval.high);
    }

    #[test]
    fn the_interval_covers_as_often_as_it_says(n in 1_usize..=10) {
        // Coverage from first principles: with |d| = 1..n and all sign choices equally likely, how
        // often does the interval around the truth (zero) hold it?
        let mut tables = SignedRank::new();
        let mut covered = 0;
        let mut confidence = 0.0;
        for signs in 0..1_u32 << n {
            // Distinct absolute values whose Walsh averages never are zero but by design.
            let d: Vec<f64> = (0..n)
                .map(|i| (1.0 + i as f64).sqrt() * if signs >> i & 1 == 1 { 1.0 } else { -1.0 })
                .collect();
            let interval = tables.interval(&d, 0.9).unwrap();
            confidence = interval.confidence;
            covered += u32::from(interval.low <= 0.0 && 0.0 <= interval.high);
        }
        let share = f64::from(covered) / f64::from(1_u32 << n);
        prop_assert!((share - confidence).abs() < 1e-12, "{share} against {confidence}");
    }
}
