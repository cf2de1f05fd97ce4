//! Compares methods for the p99 of two arms on a machine that holds its CPU up now and then: how often the interval
//! covers, and its width. The figures are in docs/statistics.md.
//!
//! ```text
//! quantiles [STUDIES [ways|requests]]
//! ```
//!
//! A study is 150 blocks of two arms, each with 1,920 requests a block (12,000/s, two slices of 100 ms); response times
//! are log-normal, and requests that are due in a hold-up of 1 to 4 ms wait for its end. Compared are
//!
//! * the typical p99: the pseudo-median of the log ratios of the blocks' p99s, with the interval of the analysis;
//! * the pooled p99 of groups of six blocks (10,000 requests), the same way;
//! * the pooled p99 of all requests, by Woodruff's intervals of both, each at 1 - 0.05 / 2.
//!
//! A second table has the typical p99 of two arms, one of which takes longer, by the number of requests in a replicate:
//! with the same total number of requests, and with few.

use std::f64::consts::TAU;
use std::io;

use weir_stats::{Estimate, SignedRank, SplitMix64, ratio_of, relative_difference, share_interval};

const BLOCKS: usize = 150;
const REQUESTS: usize = 1920;
/// Nanoseconds between two requests.
const EVERY_NS: f64 = 1e9 / 12_000.0;
/// Median response time without hold-ups.
const MEDIAN_NS: f64 = 150e3;
const WAYS: [&str; 3] = ["typical", "pooled, groups of 6", "pooled, all (Woodruff)"];

/// Simulates response times of this many requests of one arm, ascending, in nanoseconds. `median` is the one without
/// hold-ups.
fn block(
    rng: &mut SplitMix64,
    requests: usize,
    per_s: f64,
    (median, sigma): (f64, f64),
) -> Vec<f64> {
    let mut times = Vec::with_capacity(requests);
    let mut from = draw_wait(rng, per_s);
    let mut until = from + 1e6 + 3e6 * rng.unit();
    for number in 0..requests {
        let due = number as f64 * EVERY_NS;
        if due > until {
            from = until + draw_wait(rng, per_s);
            until = from + 1e6 + 3e6 * rng.unit();
        }
        let normal = (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (TAU * rng.unit()).cos();
        let waits = if due >= from && due <= until { until - due } else { 0.0 };
        times.push(median * (sigma * normal).exp() + waits);
    }
    times.sort_by(f64::total_cmp);
    times
}

fn draw_wait(rng: &mut SplitMix64, per_s: f64) -> f64 {
    if per_s > 0.0 { -(1.0 - rng.unit()).ln() * 1e9 / per_s } else { f64::INFINITY }
}

fn p99(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() * 99).div_ceil(100) - 1]
}

fn merged(blocks: &[Vec<f64>]) -> Vec<f64> {
    let mut all = blocks.concat();
    all.sort_by(f64::total_cmp);
    all
}

/// Returns Woodruff's interval of the p99 of all requests, with half of the error probability.
fn woodruff(blocks: &[Vec<f64>]) -> (f64, f64) {
    let all = merged(blocks);
    let value = p99(&all);
    let shares: Vec<f64> = blocks
        .iter()
        .map(|block| {
            let beyond = block.len() - block.partition_point(|ns| *ns <= value);
            beyond as f64 / block.len() as f64
        })
        .collect();
    let clusters: Vec<usize> = (0..shares.len()).map(|block| block * 8 / shares.len()).collect();
    let share = share_interval(&shares, &clusters, all.len() as f64, 0.975)
        .map_or((0.0, 1.0), |i| (i.low, i.high));
    let [low, high] = [share.1, share.0]
        .map(|beyond| all[(((1.0 - beyond) * all.len() as f64) as usize).min(all.len() - 1)]);
    (low, high)
}

/// Returns the interval of the log ratio for each of [`WAYS`].
fn intervals(tests: &mut SignedRank, arms: &[Vec<Vec<f64>>; 2]) -> [(f64, f64); 3] {
    let [typical, grouped] = [1, 6].map(|size| {
        let logs: Vec<f64> = arms[0]
            .chunks(size)
            .zip(arms[1].chunks(size))
            .map(|(one, other)| (p99(&merged(one)) / p99(&merged(other))).ln())
            .collect();
        let clusters: Vec<usize> = (0..logs.len()).map(|place| place * 8 / logs.len()).collect();
        Estimate::of(tests, &logs, &clusters, 0.95)
            .map_or((f64::NAN, f64::NAN), |found| (found.interval.low, found.interval.high))
    });
    let (one, other) = (woodruff(&arms[0]), woodruff(&arms[1]));
    [typical, grouped, ((one.0 / other.1).ln(), (one.1 / other.0).ln())]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    let studies: u32 = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let table = std::env::args().nth(2).unwrap_or_default();
    if table != "requests" {
        by_ways(&mut out, studies)?;
    }
    if table != "ways" {
        by_requests(&mut out, studies)?;
    }
    Ok(())
}

/// Number of replicates, and requests in each: for short loads, and for slices of 100 and 60 ms over 60 s.
const SIZES: [(usize, usize); 6] =
    [(8, 1000), (8, 500), (8, 200), (8, 100), (150, 1920), (250, 1152)];

fn by_requests(out: &mut impl io::Write, studies: u32) -> Result<(), Box<dyn std::error::Error>> {
    writeln!(
        out,
        "\n| hold-ups per second | replicates | requests in each | true ratio | covers | half-width, median | estimate, median \
         | p at most 0.05 |\n|---|---|---|---|---|---|---|---|"
    )?;
    let mut tests = SignedRank::new();
    for per_s in [0.0, 1.5, 5.0] {
        for (replicates, requests) in SIZES {
            // Short loads take less time to simulate.
            let count = if replicates < 100 { 10 * studies } else { studies };
            for truth in [1.0_f64, 1.1] {
                let mut rng = SplitMix64::new(77);
                let (mut covered, mut rejected) = (0, 0);
                let (mut widths, mut values) = (Vec::new(), Vec::new());
                for _ in 0..count {
                    let sample: Vec<f64> = (0..replicates)
                        .map(|_| {
                            let [changed, usual] = [truth, 1.0].map(|factor| {
                                p99(&block(&mut rng, requests, per_s, (MEDIAN_NS * factor, 0.5)))
                            });
                            relative_difference(changed / usual)
                        })
                        .collect();
                    let clusters: Vec<usize> =
                        (0..replicates).map(|place| place * 8 / replicates).collect();
                    let Some(found) = Estimate::of(&mut tests, &sample, &clusters, 0.95) else {
                        continue;
                    };
                    let (low, high) = found.interval.ratios();
                    covered += u32::from(low <= truth && truth <= high);
                    rejected += u32::from(found.p <= 0.05);
                    widths.push((high / low).ln() / 2.0);
                    values.push(ratio_of(found.value));
                }
                let percent = 100.0 / f64::from(count);
                writeln!(
                    out,
                    "| {per_s} | {replicates} | {requests} | {truth} | {:.1} % | ±{:.2} % | {:.3} | {:.1} % |",
                    f64::from(covered) * percent,
                    100.0 * middle(&mut widths),
                    middle(&mut values),
                    f64::from(rejected) * percent
                )?;
            }
        }
    }
    Ok(())
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn by_ways(out: &mut impl io::Write, studies: u32) -> Result<(), Box<dyn std::error::Error>> {
    writeln!(
        out,
        "| hold-ups per second | spread of the times | compared | covers 1 | half-width, median |"
    )?;
    writeln!(out, "|---|---|---|---|---|")?;
    let mut tests = SignedRank::new();
    for (per_s, sigma) in [(0.0, 0.5), (0.3, 0.5), (1.5, 0.5), (1.5, 1.0), (5.0, 0.5)] {
        let mut rng = SplitMix64::new(5);
        let mut covered = [0; 3];
        let mut widths = [const { Vec::new() }; 3];
        for _ in 0..studies {
            let arms = [(); 2].map(|()| {
                (0..BLOCKS).map(|_| block(&mut rng, REQUESTS, per_s, (MEDIAN_NS, sigma))).collect()
            });
            for (way, (low, high)) in intervals(&mut tests, &arms).into_iter().enumerate() {
                covered[way] += u32::from(low <= 0.0 && 0.0 <= high);
                widths[way].push((high - low) / 2.0);
            }
        }
        for (way, name) in WAYS.iter().enumerate() {
            let share = f64::from(covered[way]) / f64::from(studies);
            let width = middle(&mut widths[way]);
            writeln!(
                out,
                "| {per_s} | {sigma} | {name} | {:.1} % | ±{:.2} % |",
                100.0 * share,
                100.0 * width
            )?;
        }
    }
    Ok(())
}
