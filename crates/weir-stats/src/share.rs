//! A share of all requests, and how well it is known when requests come in blocks that have much in common.

use crate::signed_rank::Interval;
use crate::student;

/// The interval of the mean of `shares`, one for each block (0..1, all blocks of about the same size),
/// when there were so many `requests` in all. Requests of a block follow from one another: they are worth as
/// many independent ones as the spread between the blocks says, and never more than there are. Of that many
/// the interval is Wilson's (JASA 22, 1927), which stays sensible where no block has any; Student's t in
/// place of z accounts for the spread being estimated (Korn & Graubard, "Confidence intervals for
/// proportions with small expected number of positive counts estimated from survey data", Survey
/// Methodology 24, 1998). `None` with fewer than two blocks, or without requests.
pub fn share_interval(shares: &[f64], requests: f64, confidence: f64) -> Option<Interval> {
    let blocks = shares.len() as f64;
    if shares.len() < 2 || requests < 1.0 || !shares.iter().all(|share| share.is_finite()) {
        return None;
    }
    let mean = shares.iter().sum::<f64>() / blocks;
    let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    let of_mean = squares / (blocks - 1.0) / blocks;
    let independent = mean * (1.0 - mean) / of_mean;
    let n = match independent.is_finite() {
        true => independent.clamp(1.0, requests),
        false => requests,
    };
    let t = student::quantile(1.0 - confidence, shares.len() as u32 - 1);
    let (share, square) = (mean, t * t);
    let centre = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half = t / (1.0 + square / n)
        * (share * (1.0 - share) / n + square / (4.0 * n * n))
            .max(0.0)
            .sqrt();
    Some(Interval {
        low: (centre - half).max(0.0),
        high: (centre + half).min(1.0),
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    #[test]
    fn without_anything_seen_the_requests_bound_the_share() {
        let none = share_interval(&[0.0; 1000], 10_000.0, 0.95).unwrap();
        // Wilson of 0 of 10,000: t² / (n + t²).
        assert!(
            (none.high - 3.85e-4).abs() < 1e-5 && none.low < 1e-12,
            "{none:?}"
        );
        assert_eq!(share_interval(&[0.1], 100.0, 0.95), None);
        assert_eq!(share_interval(&[0.1, f64::NAN], 100.0, 0.95), None);
    }

    /// Blocks of 100 requests; in a block each fails with a probability of the block's own.
    fn covered(blocks: usize, of_block: impl Fn(&mut SplitMix64) -> f64, truth: f64) -> f64 {
        let mut rng = SplitMix64::new(blocks as u64);
        let rounds = 2000;
        let holds = (0..rounds).filter(|_| {
            let share = |rng: &mut SplitMix64| {
                let chance = of_block(rng);
                (0..100).filter(|_| rng.unit() < chance).count() as f64 / 100.0
            };
            let shares: Vec<f64> = (0..blocks).map(|_| share(&mut rng)).collect();
            let interval = share_interval(&shares, 100.0 * blocks as f64, 0.95).unwrap();
            (interval.low..=interval.high).contains(&truth)
        });
        holds.count() as f64 / f64::from(rounds)
    }

    #[test]
    fn it_covers_the_share_whatever_blocks_have_in_common() {
        let independent = covered(30, |_| 0.05, 0.05);
        let spread = covered(30, |rng| 0.1 * rng.unit(), 0.05);
        let stalls = covered(60, |rng| if rng.unit() < 0.2 { 0.5 } else { 0.01 }, 0.108);
        for (name, seen) in [
            ("independent", independent),
            ("spread", spread),
            ("stalls", stalls),
        ] {
            assert!((0.93..=0.985).contains(&seen), "{name}: {seen}");
        }
    }
}
