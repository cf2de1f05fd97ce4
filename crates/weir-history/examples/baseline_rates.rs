//! Prints the table of docs/compare.md about kept baselines: how often a run is called worse, and what is accepted.
//!
//! ```text
//! baseline_rates [HISTORIES [SEED]]
//! ```

use std::io::{self, Write};

use weir_history::{
    Figure, FigureKey, Quantity, RunFigures, RunVerdict, judge_by_baseline, surplus,
};
use weir_stats::SplitMix64;

/// Number of runs of a history.
const RUNS: u32 = 120;
/// Run with which something begins to change.
const BEGIN: u32 = 30;
/// Number of runs that a baseline keeps.
const KEPT: usize = 20;

/// Level of a figure by the number of the run, as a logarithm.
type Level = fn(u32) -> f64;

const WORLDS: [(&str, Level); 7] = [
    ("nothing changes", |_| 0.0),
    ("declines by 0.3 % a run", |run| -0.003 * f64::from(run.saturating_sub(BEGIN))),
    ("declines by 1 % a run", |run| -0.01 * f64::from(run.saturating_sub(BEGIN))),
    ("declines by 1 % a run from the first run on", |run| -0.01 * f64::from(run)),
    ("5 % worse at once", |run| if run < BEGIN { 0.0 } else { -0.05 }),
    ("10 % worse at once", |run| if run < BEGIN { 0.0 } else { -0.1 }),
    ("10 % better, and lost again 20 runs later", |run| match run {
        ..BEGIN => 0.0,
        run if run < BEGIN + 20 => 0.1,
        _ => 0.0,
    }),
];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().ok());
    let histories = arguments.next().flatten().unwrap_or(1_000);
    let mut rng = SplitMix64::new(arguments.next().flatten().unwrap_or(1));
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| the proxy | noise | figures | runs before it that fail | first failure after | fail of the runs from then on | level of the last that was kept |\n\
         |---|---|---|---|---|---|---|"
    )?;
    for (name, level) in WORLDS {
        for (noise, figures) in [(0.01, 1), (0.01, 3), (0.03, 1), (0.03, 3)] {
            let row = simulate(&mut rng, level, (noise, figures), histories);
            writeln!(out, "| {name} | {} % | {figures} | {row} |", noise * 100.0)?;
        }
    }
    Ok(())
}

/// Simulates histories of which each run is kept by the rule.
fn simulate(
    rng: &mut SplitMix64,
    level: Level,
    (noise, figures): (f64, usize),
    histories: u64,
) -> String {
    let (mut false_fails, mut early, mut fails, mut late) = (0_u32, 0_u32, 0_u32, 0_u32);
    let (mut delays, mut last_kept) = (Vec::new(), Vec::new());
    for _ in 0..histories {
        let mut baseline: Vec<RunFigures> = Vec::new();
        let (mut first_fail, mut last) = (None, 0.0);
        for run in 0..RUNS {
            let new = draw(rng, level(run), noise, figures);
            let all: Vec<&RunFigures> = baseline.iter().collect();
            let findings = judge_by_baseline(&all, &new, &[], KEPT);
            let is_worse =
                findings.is_some_and(|findings| findings.runs.verdict == RunVerdict::Worse);
            if is_worse && run >= BEGIN {
                first_fail = first_fail.or(Some(run - BEGIN + 1));
            }
            if (5..BEGIN).contains(&run) {
                (false_fails, early) = (false_fails + u32::from(is_worse), early + 1);
            }
            if first_fail.is_some() {
                (fails, late) = (fails + u32::from(is_worse), late + 1);
            }
            if !is_worse {
                last = level(run);
                baseline.push(new);
                baseline.drain(surplus(baseline.len(), KEPT));
            }
        }
        delays.push(first_fail.unwrap_or(RUNS));
        last_kept.push(last);
    }
    delays.sort_unstable();
    last_kept.sort_by(f64::total_cmp);
    let middle = delays.len() / 2;
    format!(
        "{:.1} % | {} runs | {:.1} % | {:.1} %",
        100.0 * f64::from(false_fails) / f64::from(early.max(1)),
        delays[middle],
        100.0 * f64::from(fails) / f64::from(late.max(1)),
        100.0 * last_kept[middle].exp_m1()
    )
}

/// Draws the rates of so many arms, all at one level. Normal by the sum of twelve uniform numbers.
fn draw(rng: &mut SplitMix64, level: f64, noise: f64, figures: usize) -> RunFigures {
    let figures = (0..figures).map(|place| {
        let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        Figure {
            key: FigureKey {
                load: "closed".to_owned(),
                arm: format!("arm-{place}"),
                metric: Quantity::Rate,
            },
            value: Some(20_000.0 * (level + noise * normal).exp()),
            rate: None,
        }
    });
    RunFigures { name: "run".to_owned(), figures: figures.collect(), confidence: 0.95, band: 0.02 }
}
