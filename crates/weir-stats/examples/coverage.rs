//! Measures how often intervals cover, verdicts are wrong, and effects are found, for noise of many kinds: the table of
//! docs/statistics.md.
//!
//! ```text
//! coverage [STUDIES [BLOCKS [INSTANCES]]]
//! ```
//!
//! A study is one comparison: log ratios of blocks, made from the rates of two arms as in the analysis, then
//! [`Estimate`] and [`verdict`] as in the analysis. Effects of the lab and the proxies (queues, histograms, validity)
//! are left out; the example `simulate` of weir-lab includes them, at a thousand times the cost.

use std::f64::consts::TAU;
use std::io::{self, Write as _};

use weir_stats::clusters::{are_few, of_instances};
use weir_stats::{
    Estimate, Evidence, Outcome, SignedRank, SplitMix64, hodges_lehmann, power,
    relative_difference, verdict,
};

/// Half-width of the equivalence band.
const BAND: f64 = 0.02;
/// The effect of one half of the studies; the other half has none.
const EFFECT: f64 = 0.03;
/// Standard deviation of a block's log ratio, unless a row says otherwise.
const LOUD: f64 = 0.03;

/// Components of a study's noise.
#[derive(Debug, Clone, Copy)]
struct Noise {
    name: &'static str,
    /// Standard deviation of a block's log ratio.
    loud: f64,
    /// Standard deviation between instances of one arm.
    instances: f64,
    /// Lag-1 autocorrelation.
    lag_1: f64,
    /// Share of the blocks in which one of the arms takes longer, the size of the effect, and the number of consecutive
    /// blocks.
    hit: (f64, f64, f64),
    /// Degrees of freedom of a t distribution; 0: normal.
    freedom: u32,
    /// Remainder in a block's ratio of a drift over the study, and of a step in its middle.
    left: (f64, f64),
    /// Share of the blocks in which the arm stands still, and true if for the whole block.
    stalls: (f64, bool),
}

const QUIET: Noise = Noise {
    name: "independent",
    loud: LOUD,
    instances: 0.0,
    lag_1: 0.0,
    hit: (0.0, 0.0, 1.0),
    freedom: 0,
    left: (0.0, 0.0),
    stalls: (0.0, false),
};

#[rustfmt::skip]
const ROWS: [Noise; 22] = [
    QUIET,
    Noise { name: "independent, twice as loud", loud: 0.06, ..QUIET },
    Noise { name: "instances 0.5 %", instances: 0.005, ..QUIET },
    Noise { name: "instances 1.0 %", instances: 0.010, ..QUIET },
    Noise { name: "instances 1.5 %", instances: 0.015, ..QUIET },
    Noise { name: "AR(1) 0.2", lag_1: 0.2, ..QUIET },
    Noise { name: "AR(1) 0.4", lag_1: 0.4, ..QUIET },
    Noise { name: "AR(1) 0.6", lag_1: 0.6, ..QUIET },
    Noise { name: "AR(1) 0.4, outliers 3 %", lag_1: 0.4, hit: (0.03, 0.3, 1.0), ..QUIET },
    Noise { name: "AR(1) 0.4, instances 1.0 %", lag_1: 0.4, instances: 0.010, ..QUIET },
    Noise { name: "bursts of 3 blocks in 10 %", hit: (0.1, 0.3, 3.0), ..QUIET },
    Noise { name: "outliers 3 %", hit: (0.03, 0.3, 1.0), ..QUIET },
    Noise { name: "outliers 30 %", hit: (0.3, 0.5, 1.0), ..QUIET },
    Noise { name: "outliers 30 %, instances 1.0 %", hit: (0.3, 0.5, 1.0), instances: 0.010, ..QUIET },
    Noise { name: "drift, a twentieth of it left", left: (0.02, 0.0), ..QUIET },
    Noise { name: "step of 50 % within a block", left: (0.0, 0.25), ..QUIET },
    Noise { name: "heavy tails (t of 3)", freedom: 3, ..QUIET },
    Noise { name: "stalls in 5 % of the blocks", stalls: (0.05, false), ..QUIET },
    Noise { name: "stalls in 20 % of the blocks", stalls: (0.20, false), ..QUIET },
    Noise { name: "stalls in 40 % of the blocks", stalls: (0.40, false), ..QUIET },
    Noise { name: "overload: 10 % of the blocks without an answer", stalls: (0.10, true), ..QUIET },
    Noise { name: "overload: 60 % of the blocks without an answer", stalls: (0.60, true), ..QUIET },
];

/// Draws a standard normal number (Box & Muller).
fn normal(rng: &mut SplitMix64) -> f64 {
    (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (TAU * rng.unit()).cos()
}

/// Layout of a study.
#[derive(Debug, Clone, Copy)]
struct Plan {
    blocks: usize,
    instances: usize,
}

/// Simulates a study of equal arms. Returns the log ratios and the instance of each block; the stalls are the second
/// arm's.
fn study(noise: &Noise, plan: Plan, rng: &mut SplitMix64) -> (Vec<f64>, Vec<usize>) {
    let (mut sample, mut instances) = (Vec::new(), Vec::new());
    let (mut own, mut hit_for) = (0.0, 0.0);
    let mut follows = normal(rng);
    for block in 0..plan.blocks {
        let instance = block * plan.instances / plan.blocks;
        if instances.last() != Some(&instance) {
            own = noise.instances * (normal(rng) - normal(rng));
        }
        follows = noise.lag_1 * follows + (1.0 - noise.lag_1.powi(2)).sqrt() * normal(rng);
        let squares: f64 = (0..noise.freedom).map(|_| normal(rng).powi(2)).sum();
        let tail = match noise.freedom {
            0 => 1.0,
            freedom => (squares / f64::from(freedom)).sqrt(),
        };
        let mut log = own + noise.loud * follows / tail;
        let (share, size, length) = noise.hit;
        if hit_for <= 0.0 && rng.unit() < share / length {
            hit_for = length;
        }
        if hit_for > 0.0 {
            hit_for -= 1.0;
            log += if rng.unit() < 0.5 { size } else { -size };
        }
        // ABBA leaves what is not linear within a block, to either side by the order.
        let side = if rng.unit() < 0.5 { 1.0 } else { -1.0 };
        log += side * noise.left.0 * 0.05;
        log += if block == plan.blocks / 2 { side * noise.left.1 } else { 0.0 };
        if rng.unit() < noise.stalls.0 {
            log = if noise.stalls.1 {
                f64::NEG_INFINITY
            } else {
                log + (0.3 + 0.6 * rng.unit()).ln()
            };
        }
        sample.push(log);
        instances.push(instance);
    }
    (sample, instances)
}

/// Converts log ratios to relative differences, as in the analysis.
fn differences(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| relative_difference(log.exp())).collect()
}

/// Results of a row's studies.
#[derive(Debug, Default)]
struct RowResults {
    studies: u32,
    covered: u32,
    half_widths: Vec<f64>,
    /// Number of studies of equal arms with the verdict better or worse.
    false_differences: u32,
    /// Number of studies of arms with the effect with the verdict equivalent.
    false_equivalents: u32,
    found: u32,
    power: f64,
}

/// Results as shares of the studies.
#[derive(Debug, Clone, Copy)]
struct Shares {
    covered: f64,
    half_width: f64,
    false_differences: f64,
    false_equivalents: f64,
    found: f64,
    power: f64,
}

impl RowResults {
    fn shares(&mut self) -> Shares {
        let studies = f64::from(self.studies);
        let [covered, false_differences, false_equivalents, found] =
            [self.covered, self.false_differences, self.false_equivalents, self.found]
                .map(|count| f64::from(count) / studies);
        self.half_widths.sort_by(f64::total_cmp);
        Shares {
            covered,
            half_width: self.half_widths[self.half_widths.len() / 2],
            false_differences,
            false_equivalents,
            found,
            power: self.power / studies,
        }
    }
}

/// Method that decides a study.
type Decide = fn(&mut SignedRank, &[f64], &[usize]) -> Option<Estimate>;

fn decide(tests: &mut SignedRank, sample: &[f64], instances: &[usize]) -> Option<Estimate> {
    let all = Estimate::of(tests, sample, &of_instances(instances), 0.95)?;
    let estimate =
        if are_few(instances) { all.with_few_instances(sample, instances, 0.95) } else { all };
    let excludes = estimate.interval.low > 0.0 || estimate.interval.high < 0.0;
    assert_eq!(excludes, estimate.p <= 0.05, "p contradicts the interval");
    Some(estimate)
}

/// Simulates this many studies of a row. The true value is the pseudo-median of very many blocks.
fn row(noise: &Noise, plan: Plan, studies: u32, decide: Decide) -> Shares {
    let mut rng = SplitMix64::new(7);
    let mut tests = SignedRank::new();
    let many = Plan { blocks: 20_000, instances: 10_000 };
    let truth = match noise.stalls.0 {
        share if share > 0.0 => {
            hodges_lehmann(&differences(&study(noise, many, &mut rng).0)).unwrap_or(f64::NAN)
        }
        _ => 0.0,
    };
    let mut results = RowResults::default();
    for _ in 0..studies {
        let (mut logs, instances) = study(noise, plan, &mut rng);
        let sample = differences(&logs);
        let Some(equal) = decide(&mut tests, &sample, &instances) else {
            continue;
        };
        let interval = equal.interval;
        results.studies += 1;
        results.covered += u32::from(interval.low <= truth && truth <= interval.high);
        results.half_widths.push((interval.high - interval.low) / 2.0);
        let outcome = say(&equal, sample.len());
        results.false_differences += u32::from(matches!(outcome, Outcome::Better | Outcome::Worse));
        logs.iter_mut().for_each(|log| *log += EFFECT.ln_1p());
        let sample = differences(&logs);
        let Some(with) = decide(&mut tests, &sample, &instances) else {
            continue;
        };
        let outcome = say(&with, sample.len());
        results.false_equivalents += u32::from(outcome == Outcome::Equivalent);
        results.found += u32::from(outcome == Outcome::Better);
        results.power += power(EFFECT, with.minimum_detectable(0.05), 0.05);
    }
    results.shares()
}

fn say(found: &Estimate, n: usize) -> Outcome {
    let evidence = Evidence {
        interval: found.interval.ratios(),
        confidence: found.interval.confidence,
        p: found.p,
        n,
    };
    verdict(&evidence, BAND, 0.95, true)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    let mut arguments = std::env::args().skip(1);
    let studies = parse_next(&mut arguments, 10_000)? as u32;
    let plan =
        Plan { blocks: parse_next(&mut arguments, 40)?, instances: parse_next(&mut arguments, 8)? };
    writeln!(
        out,
        "{studies} studies a row, {} blocks of {} instances\n",
        plan.blocks, plan.instances
    )?;
    writeln!(
        out,
        "| noise | interval covers | half-width | false better or worse | false equivalent | 3 % found | as stated |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for noise in &ROWS {
        let shares = row(noise, plan, studies, decide);
        // A stall is a difference: what is said of it is no error.
        let is_equal = noise.stalls.0 <= 0.0;
        let of_equal =
            [shares.false_differences, shares.false_equivalents, shares.found, shares.power];
        let cells = of_equal.map(|share| if is_equal { percent(share) } else { "–".to_owned() });
        writeln!(
            out,
            "| {} | {} | ±{:.2} % | {} |",
            noise.name,
            percent(shares.covered),
            100.0 * shares.half_width,
            cells.join(" | "),
        )?;
    }
    Ok(())
}

fn parse_next(
    arguments: &mut impl Iterator<Item = String>,
    otherwise: usize,
) -> Result<usize, std::num::ParseIntError> {
    arguments.next().map_or(Ok(otherwise), |text| text.parse())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use weir_stats::autocorrelation;
    use weir_stats::clusters::BetweenClusters;

    use super::*;

    const PLAN: Plan = Plan { blocks: 40, instances: 8 };

    #[test]
    fn few_instances_are_not_taken_for_the_arms_and_p_agrees_with_the_interval() {
        for instances in [1, 3] {
            let plan = Plan { instances, ..PLAN };
            for noise in ROWS.iter().filter(|row| row.stalls.0 <= 0.0) {
                let shares = row(noise, plan, 100, decide);
                assert!(shares.false_differences <= 0.12, "{}: {shares:?}", noise.name);
            }
        }
    }

    fn of(name: &str, decide: Decide) -> Shares {
        let noise = ROWS.iter().find(|noise| noise.name == name);
        row(noise.expect("a row of the table"), PLAN, 400, decide)
    }

    #[test]
    fn intervals_cover_and_verdicts_are_right() {
        for noise in &ROWS {
            let shares = row(noise, PLAN, 200, decide);
            // 94 % less twice its standard error of 1.7 %, and 5 % plus as much.
            assert!(shares.covered >= 0.906, "{}: {shares:?}", noise.name);
            if noise.stalls.0 <= 0.0 {
                let wrong = shares.false_differences.max(shares.false_equivalents);
                assert!(wrong <= 0.084, "{}: {shares:?}", noise.name);
                assert!((shares.found - shares.power).abs() < 0.2, "{}: {shares:?}", noise.name);
            }
        }
    }

    #[test]
    fn each_part_of_the_method_is_needed() {
        let independent: Decide = |tests, sample, _| Estimate::of(tests, sample, &[], 0.95);
        let instances = of("instances 1.5 %", independent);
        assert!(instances.covered < 0.9, "without clusters: {instances:?}");
        let uncorrelated: Decide = |tests, sample, instances| {
            let mut estimate = Estimate::of(tests, sample, &[], 0.95)?;
            let between = BetweenClusters::of(sample, instances, estimate.value, None)?;
            estimate.interval = between.widen(estimate.value, estimate.interval);
            Some(estimate)
        };
        let alone = of("AR(1) 0.6", uncorrelated);
        let with = of("AR(1) 0.6", decide);
        assert!(alone.covered + 0.02 < with.covered, "without products: {alone:?} {with:?}");
        let by_values: Decide = |tests, sample, instances| {
            let mut estimate = Estimate::of(tests, sample, &[], 0.95)?;
            let lag_1 = autocorrelation(sample)
                .filter(|lag_1| *lag_1 > weir_stats::autocorrelation_critical(sample.len()));
            let between = BetweenClusters::of(sample, instances, estimate.value, lag_1)?;
            estimate.interval = between.widen(estimate.value, estimate.interval);
            Some(estimate)
        };
        let values = of("AR(1) 0.4, outliers 3 %", by_values);
        let ranks = of("AR(1) 0.4, outliers 3 %", decide);
        assert!(
            values.half_width < ranks.half_width && values.covered < ranks.covered,
            "by values: {values:?} {ranks:?}"
        );
    }
}
