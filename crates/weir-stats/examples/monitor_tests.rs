//! Prints the number of tests that a look at a series is worth, the table in `src/monitor.rs`: normal noise, series that
//! had a claim at an earlier look left out.
//!
//! ```text
//! monitor_tests [SERIES [SEED [EARLIER]]]
//! ```

use std::io::{self, Write};

use weir_stats::SplitMix64;
use weir_stats::monitor::p_of_one_place;

/// Lengths of the series up to which claims are counted.
const LONGEST: usize = 150;
/// Chances of a claim at a look, for one series and for ten of which any counts.
const CHANCES: [f64; 3] = [5e-4, 1.6e-4, 5e-5];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().ok());
    let series = arguments.next().flatten().unwrap_or(20_000);
    let mut rng = SplitMix64::new(arguments.next().flatten().unwrap_or(1));
    let earlier = arguments.next().flatten().unwrap_or(0) as usize;
    let looks: Vec<Vec<f32>> = (0..series).map(|_| look(&mut rng, earlier)).collect();
    let mut out = io::stdout().lock();
    for chance in CHANCES {
        let tests = count_tests(&looks, chance);
        let line: Vec<String> = [6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 25, 30, 40, 50, 75, 100, 130]
            .iter()
            .map(|&length| format!("({length}, {:.2})", smooth(&tests, length)))
            .collect();
        writeln!(out, "chance {chance}: {}", line.join(", "))?;
    }
    Ok(())
}

/// Draws a series and returns the p of each look, by length; 1 if nothing can be said.
fn look(rng: &mut SplitMix64, earlier: usize) -> Vec<f32> {
    let values: Vec<f64> = (0..LONGEST).map(|_| normal(rng)).collect();
    let before: Vec<f64> = (0..earlier).map(|_| normal(rng)).collect();
    let segments: Vec<&[f64]> = if before.is_empty() { Vec::new() } else { vec![&before] };
    (0..=LONGEST)
        .map(|length| p_of_one_place(&values[..length], &segments).unwrap_or(1.0) as f32)
        .collect()
}

/// Draws a normal number (Box & Muller, Ann. Math. Statist. 29, 1958).
fn normal(rng: &mut SplitMix64) -> f64 {
    (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Returns, for each length, the chance of a claim divided by the p that leads to it.
fn count_tests(looks: &[Vec<f32>], chance: f64) -> Vec<f64> {
    let mut alive: Vec<&Vec<f32>> = looks.iter().collect();
    (0..=LONGEST)
        .map(|length| {
            let claims = (chance * alive.len() as f64).round() as usize;
            if alive.iter().all(|p| p[length] >= 1.0) || claims == 0 {
                return f64::NAN;
            }
            alive.select_nth_unstable_by(claims, |a, b| a[length].total_cmp(&b[length]));
            let critical = f64::from(alive[claims][length]);
            alive.drain(..claims);
            chance / critical
        })
        .collect()
}

/// Returns the mean of the logarithms around a length, which are noisy.
fn smooth(tests: &[f64], length: usize) -> f64 {
    let around = length / 10;
    let last = (length + around).min(tests.len() - 1);
    let logs = tests[length - around..=last].iter().filter(|tests| tests.is_finite());
    let count = logs.clone().count();
    (logs.map(|tests| tests.ln()).sum::<f64>() / count as f64).exp()
}
