//! A share of all requests, and its precision if requests come in blocks that have much in common.

use crate::clusters::BetweenClusters;
use crate::signed_rank::Interval;
use crate::spread::{autocorrelation_critical, rank_autocorrelation};
use crate::student;

/// Returns the interval of the mean of `shares`, one for each block in order of time (0..1, all blocks of about the
/// same size), from this many `requests` in all. Requests of a block are correlated: they are worth as many independent
/// ones as the spread between the blocks indicates, and never more than there are. For that many the interval is
/// Wilson's (JASA 22, 1927), which stays sensible if all shares are 0; Student's t in place of z accounts for the
/// spread being estimated (Korn & Graubard, "Confidence intervals for proportions with small expected number of
/// positive counts estimated from survey data", Survey Methodology 24, 1998). Blocks are correlated, too: the spread is
/// also that between their `clusters` ([`BetweenClusters::of`]), and each end is the wider one of both. `None` with
/// fewer than two blocks, or without requests.
pub fn share_interval(
    shares: &[f64],
    clusters: &[usize],
    requests: f64,
    confidence: f64,
) -> Option<Interval> {
    let blocks = shares.len() as f64;
    if shares.len() < 2 || requests < 1.0 || !shares.iter().all(|share| share.is_finite()) {
        return None;
    }
    let mean = shares.iter().sum::<f64>() / blocks;
    let away: Vec<f64> = shares.iter().map(|share| share - mean).collect();
    let squares: f64 = away.iter().map(|away| away.powi(2)).sum();
    let independent = BetweenClusters {
        error: (squares / (blocks - 1.0) / blocks).sqrt(),
        freedom: shares.len() as u32 - 1,
    };
    let lag_1 = rank_autocorrelation(shares)
        .filter(|lag_1| *lag_1 > autocorrelation_critical(shares.len()));
    let alone = wilson(mean, independent, requests, confidence);
    let Some(between) = BetweenClusters::of_parts(&away, clusters, lag_1) else {
        return Some(alone);
    };
    let together = wilson(mean, between, requests, confidence);
    Some(Interval {
        low: alone.low.min(together.low),
        high: alone.high.max(together.high),
        confidence,
    })
}

/// Returns Wilson's interval of a share of `requests` whose standard error is known from blocks.
fn wilson(share: f64, known: BetweenClusters, requests: f64, confidence: f64) -> Interval {
    let independent = share * (1.0 - share) / known.error.powi(2);
    let n = if independent.is_finite() { independent.clamp(1.0, requests) } else { requests };
    let t = student::quantile(1.0 - confidence, known.freedom);
    let square = t * t;
    let centre = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half = t / (1.0 + square / n)
        * (share * (1.0 - share) / n + square / (4.0 * n * n)).max(0.0).sqrt();
    Interval { low: (centre - half).max(0.0), high: (centre + half).min(1.0), confidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    #[test]
    fn without_anything_seen_the_requests_bound_the_share() {
        let none = share_interval(&[0.0; 1000], &[], 10_000.0, 0.95).unwrap();
        // Wilson of 0 of 10,000: t² / (n + t²).
        assert!((none.high - 3.85e-4).abs() < 1e-5 && none.low < 1e-12, "{none:?}");
        assert_eq!(share_interval(&[0.1], &[], 100.0, 0.95), None);
        assert_eq!(share_interval(&[0.1, f64::NAN], &[], 100.0, 0.95), None);
    }

    /// Returns how often the interval covers the truth, for eight instances with `blocks` blocks in all. The share of
    /// each block may depend on a normal process with this autocorrelation.
    fn covered(
        blocks: usize,
        lag_1: f64,
        of_block: impl Fn(&mut SplitMix64, f64) -> f64,
        truth: f64,
    ) -> f64 {
        let mut rng = SplitMix64::new(blocks as u64);
        let rounds = 2000;
        let clusters: Vec<usize> = (0..blocks).map(|block| block * 8 / blocks).collect();
        let holds = (0..rounds).filter(|_| {
            let mut follows = normal(&mut rng);
            let shares: Vec<f64> = (0..blocks)
                .map(|_| {
                    follows = lag_1 * follows + (1.0 - lag_1 * lag_1).sqrt() * normal(&mut rng);
                    of_block(&mut rng, follows)
                })
                .collect();
            // Those of a process are exact, as of very many requests.
            let requests = if lag_1 > 0.0 { 1e5 } else { 100.0 };
            let interval =
                share_interval(&shares, &clusters, requests * blocks as f64, 0.95).unwrap();
            (interval.low..=interval.high).contains(&truth)
        });
        holds.count() as f64 / f64::from(rounds)
    }

    fn normal(rng: &mut SplitMix64) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    /// Draws the share of 100 requests that fail with this chance.
    fn failed(rng: &mut SplitMix64, chance: f64) -> f64 {
        (0..100).filter(|_| rng.unit() < chance).count() as f64 / 100.0
    }

    #[test]
    fn it_covers_the_share_whatever_blocks_have_in_common() {
        let wandering = |_: &mut SplitMix64, follows: f64| 0.05 * (0.3 * follows - 0.045).exp();
        for (name, covered) in [
            ("independent", covered(30, 0.0, |rng, _| failed(rng, 0.05), 0.05)),
            (
                "spread",
                covered(
                    30,
                    0.0,
                    |rng, _| {
                        let chance = 0.1 * rng.unit();
                        failed(rng, chance)
                    },
                    0.05,
                ),
            ),
            (
                "stalls",
                covered(
                    60,
                    0.0,
                    |rng, _| {
                        let chance = if rng.unit() < 0.2 { 0.5 } else { 0.01 };
                        failed(rng, chance)
                    },
                    0.108,
                ),
            ),
            ("autocorrelation 0.3", covered(40, 0.3, wandering, 0.05)),
            ("autocorrelation 0.6", covered(40, 0.6, wandering, 0.05)),
        ] {
            println!("{name} {covered}");
            assert!((0.93..=0.99).contains(&covered), "{name}: {covered}");
        }
    }
}
