//! Prints the table of docs/compare.md: how often a run is called worse, with a history of runs that differ by 3 %.
//!
//! ```text
//! error_rates [RUNS [SEED]]
//! ```

use std::io::{self, Write};

use weir_history::{Figure, FigureKey, Quantity, RunFigures, RunVerdict, judge};
use weir_stats::SplitMix64;

/// Standard deviation of the logarithm of a figure between runs.
const NOISE: f64 = 0.03;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().ok());
    let runs = arguments.next().flatten().unwrap_or(20_000);
    let seed = arguments.next().flatten().unwrap_or(1);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| earlier runs | figures | equal | one figure 5 % worse | one figure 10 % worse | all 10 % worse |\n\
         |---|---|---|---|---|---|"
    )?;
    for earlier in [5, 10, 20, 50] {
        for figures in [1, 3, 9] {
            let truths = [(1.0, 0), (1.05, 1), (1.10, 1), (1.10, figures)];
            let shares = truths.map(|truth| share_of_worse(runs, seed, (earlier, figures), truth));
            let cells = shares.map(|share| format!("{:.1} %", 100.0 * share));
            writeln!(out, "| {earlier} | {figures} | {} |", cells.join(" | "))?;
        }
    }
    Ok(())
}

/// Returns the share of runs that are called worse, if so many of their figures are worse by a factor.
fn share_of_worse(
    runs: u64,
    seed: u64,
    (earlier, figures): (usize, usize),
    (factor, worse): (f64, usize),
) -> f64 {
    let mut rng = SplitMix64::new(seed);
    let called = (0..runs).filter(|_| {
        let mut history: Vec<RunFigures> =
            (0..earlier).map(|_| draw(&mut rng, figures, (1.0, 0))).collect();
        let Some(old) = history.pop() else { return false };
        let new = draw(&mut rng, figures, (factor, worse));
        judge([&old, &new], &history, Vec::new()).verdict == RunVerdict::Worse
    });
    called.count() as f64 / runs as f64
}

/// Draws the p99 of so many arms, of which some are worse by a factor. Normal by the sum of twelve uniform numbers.
fn draw(rng: &mut SplitMix64, figures: usize, (factor, worse): (f64, usize)) -> RunFigures {
    let figures = (0..figures).map(|place| {
        let noise = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let factor = if place < worse { factor } else { 1.0 };
        Figure {
            key: FigureKey {
                load: "open".to_owned(),
                arm: format!("arm-{place}"),
                metric: Quantity::ResponseP99,
            },
            value: Some(1e6 * factor * (NOISE * noise).exp()),
            rate: Some((1_000.0, 1_000.0)),
        }
    });
    RunFigures { name: "run".to_owned(), figures: figures.collect(), confidence: 0.95, band: 0.02 }
}
