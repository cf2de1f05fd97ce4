//! Measures how often a study that may end early is wrong if its blocks are autocorrelated: a table of
//! docs/statistics.md.
//!
//! ```text
//! looks [STUDIES [SEED]]
//! ```
//!
//! A study is one comparison of at most 40 blocks with looks as in the lab: its blocks are a process of order 1 with a
//! standard deviation of 3 %, two to an instance.

use std::f64::consts::TAU;
use std::io::{self, Write as _};

use weir_stats::{
    Estimate, Evidence, Outcome, SignedRank, SplitMix64, critical_values, level_of, verdict,
};

/// Number of blocks at each look.
const LOOKS: [u32; 5] = [12, 16, 22, 30, 40];
const LAG_1: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
/// The difference of one half of the studies; the other half has none.
const EFFECT: f64 = 0.05;

/// Draws a standard normal number (Box & Muller).
fn normal(rng: &mut SplitMix64) -> f64 {
    (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (TAU * rng.unit()).cos()
}

/// End of a study.
struct End {
    outcome: Outcome,
    blocks: u32,
}

/// Simulates one study with this true difference.
fn study(lag_1: f64, effect: f64, rng: &mut SplitMix64, tests: &mut SignedRank) -> End {
    let most = LOOKS[LOOKS.len() - 1];
    let mut follows = normal(rng);
    let all: Vec<f64> = (0..most)
        .map(|_| {
            follows = lag_1 * follows + (1.0 - lag_1 * lag_1).sqrt() * normal(rng);
            effect + 0.03 * follows
        })
        .collect();
    let clusters: Vec<usize> = (0..all.len()).map(|block| block / 2).collect();
    let levels = critical_values(&LOOKS, most, true, 0.05);
    for (blocks, level) in LOOKS.into_iter().zip(levels.into_iter().map(level_of)) {
        let n = blocks as usize;
        let is_last = blocks == most;
        let (sample, clusters) = (&all[..n], &clusters[..n]);
        let Some(found) = Estimate::at_look(tests, sample, clusters, 1.0 - level, is_last) else {
            continue;
        };
        let evidence = Evidence {
            interval: found.interval.ratios(),
            confidence: 0.95,
            p: found.p * 0.05 / level,
            n,
        };
        let outcome = verdict(&evidence, 0.02, 0.95, true);
        if outcome != Outcome::Inconclusive {
            return End { outcome, blocks };
        }
    }
    End { outcome: Outcome::Inconclusive, blocks: most }
}

/// Returns the shares of studies that end as better or worse and as equivalent, and of the blocks that they take.
fn row(lag_1: f64, effect: f64, studies: u32, seed: u64) -> [f64; 3] {
    let (mut rng, mut tests) = (SplitMix64::new(seed), SignedRank::new());
    let mut sums = [0.0; 3];
    for _ in 0..studies {
        let end = study(lag_1, effect, &mut rng, &mut tests);
        let differs = matches!(end.outcome, Outcome::Better | Outcome::Worse);
        sums[0] += f64::from(u8::from(differs));
        sums[1] += f64::from(u8::from(end.outcome == Outcome::Equivalent));
        sums[2] += f64::from(end.blocks) / f64::from(LOOKS[LOOKS.len() - 1]);
    }
    sums.map(|sum| sum / f64::from(studies))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    let mut arguments = std::env::args().skip(1);
    let studies: u32 = arguments.next().map_or(Ok(4000), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    writeln!(
        out,
        "| autocorrelation | equal arms: better or worse | equivalent | blocks | 5 % found | blocks |\n|---|---|---|---|---|---|"
    )?;
    for lag_1 in LAG_1 {
        let equal = row(lag_1, 0.0, studies, seed).map(percent);
        let [found, _, blocks] = row(lag_1, EFFECT, studies, seed).map(percent);
        let cells = equal.join(" | ");
        writeln!(out, "| {lag_1} | {cells} | {found} | {blocks} |")?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_look_is_too_early_for_what_blocks_have_in_common() {
        for lag_1 in LAG_1 {
            let [wrong, ..] = row(lag_1, 0.0, 300, 21);
            // 5 % and twice its standard error of 1.3 %; without it 13 % at 0.8.
            assert!(wrong <= 0.076, "{lag_1}: {wrong}");
        }
        let [found, _, blocks] = row(0.0, EFFECT, 300, 21);
        assert!(found > 0.95 && blocks < 0.5, "{found} {blocks}");
    }
}
