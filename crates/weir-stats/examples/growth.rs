//! Measures how often growth is called linear or bent, rightly or wrongly: the table of docs/limits.md.
//!
//! ```text
//! growth [RUNS]
//! ```
//!
//! A run is a matrix of rates, each measured in several windows; the measured quantity grows along a line, along two
//! lines that meet, or along a curve, with noise of several kinds.

use std::io::{self, Write as _};

use weir_stats::SplitMix64;
use weir_stats::growth::growth_of;

/// True shape of the growth.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Truth {
    Line,
    /// The slope increases by the second value at this share (first value) of the highest rate.
    Bend(f64, f64),
    /// Growth of a queue: x / (1 - x).
    Queue,
}

/// Kinds of noise.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    Even,
    /// Standard deviation in proportion to the value.
    Growing,
    /// Standard deviation in proportion to the value, and one window in twenty takes a third more.
    Hit,
}

const LEVELS: usize = 8;
const NOISE: f64 = 0.02;

fn normal(rng: &mut SplitMix64) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

fn points(truth: Truth, noise: Noise, windows: usize, rng: &mut SplitMix64) -> Vec<(f64, f64)> {
    (1..=LEVELS)
        .flat_map(|level| std::iter::repeat_n(level as f64 / LEVELS as f64, windows))
        .map(|x| {
            let y = 0.1
                + match truth {
                    Truth::Line => x,
                    Truth::Bend(at, more) => x + more * (x - at).max(0.0),
                    Truth::Queue => 0.5 * x / (1.05 - x),
                };
            let spread = NOISE * if noise == Noise::Even { 1.0 } else { 2.0 * y };
            let hit = noise == Noise::Hit && rng.unit() < 0.05;
            // A rate that was reached is nearly the one that was asked for.
            let x = x * (1.0 + 0.002 * normal(rng));
            (x, y + spread * normal(rng) + if hit { y / 3.0 } else { 0.0 })
        })
        .collect()
}

/// Results as shares of runs.
#[derive(Debug, Default, PartialEq)]
struct Row {
    linear: f64,
    bent: f64,
    /// Share of the bent runs whose interval contains the true position.
    held: f64,
    /// Share of runs whose interval of the slope contains the true one; only for lines.
    slope: f64,
}

fn simulate_row(truth: Truth, noise: Noise, windows: usize, runs: u64) -> Row {
    let mut row = Row::default();
    for run in 0..runs {
        let mut rng = SplitMix64::new(run * 7 + 1);
        let Some(growth) = growth_of(&points(truth, noise, windows, &mut rng), run) else {
            continue;
        };
        row.linear += f64::from(u8::from(growth.is_linear()));
        row.slope += f64::from(u8::from(growth.slope.low <= 1.0 && 1.0 <= growth.slope.high));
        if let Some(bend) = growth.bend {
            row.bent += 1.0;
            if let Truth::Bend(at, _) = truth {
                row.held += f64::from(u8::from(bend.at.low <= at && at <= bend.at.high));
            }
        }
    }
    row.held /= row.bent.max(1.0);
    for share in [&mut row.linear, &mut row.bent, &mut row.slope] {
        *share /= runs as f64;
    }
    row
}

fn main() -> io::Result<()> {
    let runs = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| truth | noise | windows a rate | linear | bent | place held | slope held |\n|---|---|---|---|---|---|---|"
    )?;
    let truths = [Truth::Line, Truth::Bend(0.6, 0.5), Truth::Bend(0.6, 1.0), Truth::Queue];
    for truth in truths {
        for noise in [Noise::Even, Noise::Growing, Noise::Hit] {
            for windows in [2, 4] {
                let row = simulate_row(truth, noise, windows, runs);
                let held = if matches!(truth, Truth::Bend(..)) {
                    percent(row.held)
                } else {
                    String::new()
                };
                let slope = if truth == Truth::Line { percent(row.slope) } else { String::new() };
                let (linear, bent) = (percent(row.linear), percent(row.bent));
                writeln!(
                    out,
                    "| {truth:?} | {noise:?} | {windows} | {linear} | {bent} | {held} | {slope} |"
                )?;
            }
        }
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[test]
fn lines_are_called_linear_and_bends_are_found() {
    for noise in [Noise::Even, Noise::Growing] {
        let line = simulate_row(Truth::Line, noise, 4, 50);
        assert!(line.linear >= 0.88 && line.slope >= 0.88, "{noise:?} {line:?}");
        let bend = simulate_row(Truth::Bend(0.6, 1.0), noise, 4, 30);
        assert!(bend.bent >= 0.9 && bend.held >= 0.8, "{noise:?} {bend:?}");
    }
}
