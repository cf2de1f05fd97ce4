//! A run held against the runs that a baseline keeps, and which of these stay.
//!
//! A run that is not worse is kept, so the baseline follows slow changes, and a decline of one per cent a run would never
//! be worse than the runs just before it. Therefore the first runs stay ([`FIRST_RUNS`]) until the baseline is renewed
//! by hand, and each run is judged twice: by the newest of the others, which notice a loss of what was gained meanwhile,
//! and by the first ones, which notice a decline. Each judgement has half of the error rate.

use weir_stats::prediction::LEAST_VALUES;

use crate::differences::Difference;
use crate::figures::RunFigures;
use crate::judge::{RunVerdict, RunsFindings, WhyOpen, judge};

/// Maximum number of first runs that stay.
const FIRST_RUNS: usize = 10;

/// A run beside those of a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineFindings {
    /// The judgement that decides.
    pub runs: RunsFindings,
    /// True if the run is worse than the first runs, and not than the newest: a slow decline.
    pub is_decline: bool,
}

impl BaselineFindings {
    /// Returns true if too few runs are kept to judge anything yet.
    pub fn is_beginning(&self) -> bool {
        let mut reasons = self.runs.figures.iter().map(|figure| figure.why);
        self.runs.verdict == RunVerdict::Open
            && reasons.any(|why| matches!(why, Some(WhyOpen::FewRuns { .. })))
    }

    /// Returns true if the run may be kept: it is not worse, and has a valid figure.
    pub fn may_be_kept(&self) -> bool {
        let has_value = self.runs.figures.iter().any(|figure| figure.values[1].is_some());
        self.runs.verdict != RunVerdict::Worse && has_value
    }
}

/// Holds a run against those that a baseline of at most `most` runs keeps, in order of time; `None` if it keeps none.
pub fn judge_by_baseline(
    kept: &[&RunFigures],
    new: &RunFigures,
    differences: &[Difference],
    most: usize,
) -> Option<BaselineFindings> {
    let first = &kept[..first_of(most).min(kept.len())];
    if first.len() == kept.len() {
        let runs = judge_by(kept, new, differences)?;
        return Some(BaselineFindings { runs, is_decline: false });
    }
    let half = RunFigures { confidence: f64::midpoint(1.0, new.confidence), ..new.clone() };
    let later = &kept[first.len()..];
    let newest = if later.len() < LEAST_VALUES { kept } else { later };
    let by_newest = judge_by(newest, &half, differences)?;
    let by_first = judge_by(first, &half, differences)?;
    let is_decline =
        by_first.verdict == RunVerdict::Worse && by_newest.verdict != RunVerdict::Worse;
    Some(BaselineFindings { runs: if is_decline { by_first } else { by_newest }, is_decline })
}

fn judge_by(
    kept: &[&RunFigures],
    new: &RunFigures,
    differences: &[Difference],
) -> Option<RunsFindings> {
    let (newest, others) = kept.split_last()?;
    let history: Vec<RunFigures> = others.iter().map(|&run| run.clone()).collect();
    Some(judge([newest, new], &history, differences.to_vec()))
}

/// Returns the number of first runs that stay in a baseline of at most `most` runs.
fn first_of(most: usize) -> usize {
    FIRST_RUNS.min(most / 2)
}

/// Returns the indexes of the runs to remove from a baseline that has `kept` runs in order of time: the oldest after the
/// first ones, until at most `most` are left.
pub fn surplus(kept: usize, most: usize) -> std::ops::Range<usize> {
    let first = if kept > most { first_of(most) } else { 0 };
    first..first + kept.saturating_sub(most)
}

#[cfg(test)]
mod tests {
    use weir_stats::SplitMix64;

    use super::*;
    use crate::figures::{Figure, FigureKey, Quantity};

    fn draw(rng: &mut SplitMix64, level: f64, noise: f64) -> RunFigures {
        let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let key = FigureKey {
            load: "closed".to_owned(),
            arm: "stock".to_owned(),
            metric: Quantity::Rate,
        };
        let value = Some(20_000.0 * (level + noise * normal).exp());
        RunFigures {
            name: "run".to_owned(),
            figures: vec![Figure { key, value, rate: None }],
            confidence: 0.95,
            band: 0.02,
        }
    }

    /// Adds 60 runs to a baseline, each at the level that is returned for its number and renewed by the rule. Returns
    /// the level of the last run that was accepted.
    fn accepted(seed: u64, level_of: fn(u32) -> f64) -> f64 {
        let mut rng = SplitMix64::new(seed);
        let mut baseline: Vec<RunFigures> = Vec::new();
        let mut last = 0.0;
        for number in 0..60 {
            let new = draw(&mut rng, level_of(number), 0.01);
            let all: Vec<&RunFigures> = baseline.iter().collect();
            let findings = judge_by_baseline(&all, &new, &[], 20);
            if findings.is_none_or(|findings| findings.may_be_kept()) {
                last = level_of(number);
                baseline.push(new);
                baseline.drain(surplus(baseline.len(), 20));
            }
        }
        assert!(baseline.len() <= 20);
        last
    }

    #[test]
    fn a_slow_decline_does_not_renew_itself_away() {
        for seed in 0..20 {
            // One per cent a run, after twenty runs.
            let last = accepted(seed, |number| -0.01 * f64::from(number.saturating_sub(20)));
            assert!(last >= -0.07, "{last}");
            assert!(accepted(seed, |_| 0.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_first_runs_stay() {
        assert_eq!(surplus(20, 20), 0..0);
        assert_eq!(surplus(23, 20), 10..13);
        assert_eq!(surplus(7, 6), 3..4);
        let few: Vec<RunFigures> =
            (0..3).map(|_| draw(&mut SplitMix64::new(1), 0.0, 0.01)).collect();
        let all: Vec<&RunFigures> = few.iter().collect();
        let findings = judge_by_baseline(&all, &few[0], &[], 20).expect("kept");
        assert!(findings.is_beginning() && findings.may_be_kept());
        assert_eq!(judge_by_baseline(&[], &few[0], &[], 20), None);
    }
}
