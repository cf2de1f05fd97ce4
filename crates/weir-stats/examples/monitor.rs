//! Prints the tables of docs/history.md: false claims about series that did not change, and steps of 3 % that are found.
//!
//! ```text
//! monitor [SERIES [SEED]]
//! ```

use std::io::{self, Write};

use weir_stats::SplitMix64;
use weir_stats::monitor::{Change, Monitored, monitor, size_of};

/// Number of runs of a series without a change.
const RUNS: usize = 100;
/// Chance of a false claim in 100 runs.
const LEVEL: f64 = 0.05;
/// Step that is planted, as a logarithm.
const STEP: f64 = -0.03;
/// Number of runs after a step in which it may be found at all.
const AFTER: usize = 60;

/// Noise between runs, with a standard deviation near 1.
#[derive(Clone, Copy)]
enum World {
    Normal,
    /// Student's t of 3, scaled.
    HeavyTails,
    /// Normal, with one run in twenty that is 4 to 8 standard deviations worse.
    BadRuns,
    /// A skewed logarithm.
    Skewed,
    /// Each run is like the one before, by this autocorrelation.
    Autocorrelated(f64),
    /// A level that wanders by a twentieth of the noise from run to run.
    Wandering,
    /// A level that rises by so many standard deviations in each run.
    Drifting(f64),
}

const WORLDS: [(&str, World); 9] = [
    ("normal", World::Normal),
    ("heavy tails (Student's t of 3)", World::HeavyTails),
    ("one run in twenty is bad by 4 to 8 standard deviations", World::BadRuns),
    ("skewed (log-normal)", World::Skewed),
    ("autocorrelated by 0.2", World::Autocorrelated(0.2)),
    ("autocorrelated by 0.3", World::Autocorrelated(0.3)),
    ("autocorrelated by 0.5", World::Autocorrelated(0.5)),
    ("the level wanders by 5 % of the noise in each run", World::Wandering),
    ("the level drifts by 5 % of the noise in each run", World::Drifting(0.05)),
];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().ok());
    let series = arguments.next().flatten().unwrap_or(2_000);
    let seed = arguments.next().flatten().unwrap_or(1);
    let mut rng = SplitMix64::new(seed);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| runs | a change is claimed, 1 figure | 3 figures | 9 figures | a drift, 1 figure |\n|---|---|---|---|---|"
    )?;
    for (name, world) in WORLDS {
        let claims = [1, 3, 9].map(|figures| claims(&mut rng, world, figures, series));
        let [one, three, nine] = claims.map(|(change, _)| percent(change));
        writeln!(out, "| {name} | {one} | {three} | {nine} | {} |", percent(claims[0].1))?;
    }
    writeln!(
        out,
        "\n| noise between runs | runs before | found within 5 | median | nine of ten | first run exact, ±1 | size covered |\n\
         |---|---|---|---|---|---|---|"
    )?;
    for noise in [0.005, 0.01, 0.015, 0.02, 0.03] {
        for before in [10, 20, 30, 50] {
            let outcomes = StepOutcomes::of(&mut rng, World::Normal, (noise, before), series);
            writeln!(out, "| {} % | {before} | {} |", noise * 100.0, outcomes.row())?;
        }
    }
    writeln!(
        out,
        "\n| runs, noise 1 %, 30 before | found within 5 | median | nine of ten | first run exact, ±1 | size covered |\n|---|---|---|---|---|---|"
    )?;
    for (name, world) in WORLDS.into_iter().take(7) {
        writeln!(
            out,
            "| {name} | {} |",
            StepOutcomes::of(&mut rng, world, (0.01, 30), series).row()
        )?;
    }
    writeln!(
        out,
        "\n| second step of 3 %, noise 1 %, 30 runs before the first | found within 5 | exactly two changes in 90 runs |\n|---|---|---|"
    )?;
    for between in [5, 8, 12, 20] {
        let (found, exact) = second_steps(&mut rng, between, series);
        writeln!(out, "| {between} runs after it | {} | {} |", percent(found), percent(exact))?;
    }
    Ok(())
}

/// Returns the shares of histories of 100 runs in which a change and a drift are claimed for some figure.
fn claims(rng: &mut SplitMix64, world: World, figures: usize, series: u64) -> (f64, f64) {
    let (mut changes, mut drifts) = (0_u32, 0_u32);
    for _ in 0..series {
        let all: Vec<Monitored> = (0..figures)
            .map(|_| monitor(&draw(rng, world, RUNS), LEVEL / figures as f64))
            .collect();
        changes += u32::from(all.iter().any(|found| !found.changes.is_empty()));
        drifts += u32::from(all.iter().any(|found| found.drift.is_some()));
    }
    [changes, drifts].map(|count| f64::from(count) / series as f64).into()
}

/// Outcome of planted steps.
struct StepOutcomes {
    within_five: f64,
    /// Runs after the step with which it was found, ascending.
    delays: Vec<usize>,
    exact: f64,
    nearly: f64,
    covered: f64,
}

impl StepOutcomes {
    /// Plants a step after so many runs. Series with a claim before it are drawn again.
    fn of(
        rng: &mut SplitMix64,
        world: World,
        (noise, before): (f64, usize),
        series: u64,
    ) -> StepOutcomes {
        let (mut delays, mut exact, mut nearly, mut covered, mut sized) = (Vec::new(), 0, 0, 0, 0);
        while (delays.len() as u64) < series {
            let mut values: Vec<f64> =
                draw(rng, world, before + AFTER).iter().map(|value| value * noise).collect();
            values[before..].iter_mut().for_each(|value| *value += STEP);
            let monitored = monitor(&values, LEVEL);
            match monitored.changes.first() {
                Some(change) if change.found < before => continue,
                Some(&change) => {
                    let away = change.place.abs_diff(before);
                    exact += u32::from(away == 0);
                    nearly += u32::from(away <= 1);
                    delays.push(change.found + 1 - before);
                    sized += 1;
                    covered += u32::from(is_covered(&values, change, &monitored));
                }
                None => delays.push(usize::MAX),
            }
        }
        delays.sort_unstable();
        let within = delays.iter().filter(|delay| **delay <= 5).count();
        StepOutcomes {
            within_five: within as f64 / delays.len() as f64,
            exact: share_of(exact, sized),
            nearly: share_of(nearly, sized),
            covered: share_of(covered, sized),
            delays,
        }
    }

    /// Returns the runs within which so many tenths of the steps are found.
    fn after(&self, tenths: usize) -> String {
        match self.delays[self.delays.len() * tenths / 10] {
            usize::MAX => format!("more than {AFTER} runs"),
            delay => format!("{delay} runs"),
        }
    }

    fn row(&self) -> String {
        format!(
            "{} | {} | {} | {}, {} | {}",
            percent(self.within_five),
            self.after(5),
            self.after(9),
            percent(self.exact),
            percent(self.nearly),
            percent(self.covered)
        )
    }
}

/// Returns true if the interval of a change, as it was when it was found, has the step.
fn is_covered(values: &[f64], change: Change, all: &Monitored) -> bool {
    let end = all.changes.get(1).map_or(values.len(), |next| next.place).min(change.found + 1);
    let size = size_of(&values[..change.place], &values[change.place..end], 0.95);
    size.is_some_and(|(size, half)| (size - STEP).abs() <= half)
}

/// Plants two steps, so many runs apart. Returns the shares of series in which the second is found within five runs of
/// it, and in which there are exactly two changes.
fn second_steps(rng: &mut SplitMix64, between: usize, series: u64) -> (f64, f64) {
    let (mut found, mut exact) = (0_u32, 0_u32);
    for _ in 0..series {
        let mut values: Vec<f64> =
            draw(rng, World::Normal, 90).iter().map(|value| value * 0.01).collect();
        let second = 30 + between;
        values[30..].iter_mut().for_each(|value| *value += STEP);
        values[second..].iter_mut().for_each(|value| *value += STEP);
        let all = monitor(&values, LEVEL).changes;
        found += u32::from(all.iter().any(|change| {
            change.place.abs_diff(second) <= 2 && (second..second + 5).contains(&change.found)
        }));
        exact += u32::from(all.len() == 2);
    }
    [found, exact].map(|count| f64::from(count) / series as f64).into()
}

/// Draws a series of a world.
fn draw(rng: &mut SplitMix64, world: World, runs: usize) -> Vec<f64> {
    let mut last = normal(rng);
    let mut level = 0.0;
    (0..runs)
        .map(|_| {
            let noise = normal(rng);
            match world {
                World::Normal => noise,
                World::HeavyTails => {
                    let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
                    noise / (squares / 3.0).sqrt() / 3_f64.sqrt()
                }
                World::BadRuns if rng.below(20) == 0 => noise - 4.0 - 4.0 * rng.unit(),
                World::BadRuns => noise,
                World::Skewed => ((0.5 * noise).exp() - 1.133) / 0.604,
                World::Autocorrelated(by) => {
                    last = by * last + (1.0 - by * by).sqrt() * noise;
                    last
                }
                World::Wandering => {
                    level += 0.05 * normal(rng);
                    level + noise
                }
                World::Drifting(by) => {
                    level += by;
                    level + noise
                }
            }
        })
        .collect()
}

/// Draws a normal number (Box & Muller, Ann. Math. Statist. 29, 1958).
fn normal(rng: &mut SplitMix64) -> f64 {
    (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

fn share_of(count: u32, all: u32) -> f64 {
    f64::from(count) / f64::from(all.max(1))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short version of the tables.
    #[test]
    fn steps_are_found_and_noise_has_none() {
        let mut rng = SplitMix64::new(20);
        for world in [World::Normal, World::HeavyTails, World::BadRuns] {
            let (change, drift) = claims(&mut rng, world, 1, 300);
            assert!(change <= 0.1 && drift <= 0.03, "{change} {drift}");
        }
        let outcomes = StepOutcomes::of(&mut rng, World::Normal, (0.01, 30), 100);
        assert!(outcomes.within_five >= 0.8 && outcomes.nearly >= 0.8, "{}", outcomes.row());
        let none = StepOutcomes::of(&mut rng, World::Normal, (0.03, 10), 100);
        assert!(none.within_five <= 0.3, "3 % of noise hide it: {}", none.row());
        let (second, _) = second_steps(&mut rng, 12, 100);
        assert!(second >= 0.6, "{second}");
    }
}
