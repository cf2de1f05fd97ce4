//! Searches on targets whose capacity is known: how often the interval covers it, how wide it is, and what it took,
//! beside what bisection and RFC 9971 answer.
//!
//! ```text
//! queues [SEARCHES [NAME [FROM [alone | each | truth]]]]
//! ```
//!
//! So many searches for each target, or for those with NAME in theirs, with seeds from FROM on; `alone`: without the
//! others; `each`: a line for each search and no table, so that a row can be made in pieces; `truth`: what the targets
//! carry, by long simulation, and no search.

use std::io::{self, Write};
use std::ops::Range;

use weir_search::{Answer, Bound, Closed, Goal, Search, Seen, Stage, Trial};
use weir_stats::SplitMix64;

mod others;

/// A queue: servers, their service time, arrivals.
#[derive(Clone, Copy)]
struct Queue {
    name: &'static str,
    servers: usize,
    /// Mean service time, seconds.
    service_s: f64,
    /// Exponentially distributed service, else always as long.
    is_random: bool,
    /// Poisson arrivals, else evenly spaced.
    is_poisson: bool,
    /// Standard deviation of the logarithm of the service time over seconds (autocorrelation 0.5).
    wander: f64,
    /// Length of stalls, and the mean time between them, seconds.
    stall_s: f64,
    every_s: f64,
    limit_s: f64,
    /// Standard deviation of the logarithm of the service time between instances.
    instances: f64,
    /// After so many seconds of trials a service takes so many times as long; and it changes back and again after as many
    /// more, or never.
    change: (f64, f64),
    is_alternating: bool,
    /// Known capacity, requests per second: by theory, or by a long simulation (`truth`); after the change.
    capacity: f64,
}

impl Queue {
    /// By how many times longer a service takes than at first.
    fn times(&self, now_s: f64) -> f64 {
        let changes = (now_s / self.change.0) as u64;
        match changes == 0 || (self.is_alternating && changes.is_multiple_of(2)) {
            true => 1.0,
            false => self.change.1,
        }
    }
}

/// ln 100, for an objective of the quantile 0.99.
const LN_100: f64 = 4.605_170_185_988_092;

const LN_50: f64 = LN_100 - std::f64::consts::LN_2;

/// One server with Poisson arrivals and exponentially distributed service.
const PLAIN: Queue = Queue {
    name: "M/M/1, 2000/s, 30 ms",
    servers: 1,
    service_s: 1.0 / 2000.0,
    is_random: true,
    is_poisson: true,
    wander: 0.0,
    instances: 0.0,
    stall_s: 0.0,
    every_s: 10.0,
    limit_s: 0.03,
    change: (f64::INFINITY, 1.0),
    is_alternating: false,
    capacity: 2000.0 - LN_100 / 0.03,
};

/// Everything as even as can be.
const EVEN: Queue = Queue {
    is_random: false,
    is_poisson: false,
    ..PLAIN
};

const QUEUES: &[Queue] = &[
    PLAIN,
    Queue {
        name: "M/M/1, 500/s, 100 ms",
        service_s: 0.002,
        limit_s: 0.1,
        capacity: 500.0 - LN_100 / 0.1,
        ..PLAIN
    },
    Queue {
        name: "M/D/1, 2000/s, 10 ms",
        is_random: false,
        limit_s: 0.01,
        capacity: 1_771.7,
        ..PLAIN
    },
    Queue {
        name: "M/D/4, 10000/s, 5 ms",
        servers: 4,
        service_s: 4e-4,
        is_random: false,
        limit_s: 0.005,
        capacity: 9_516.1,
        ..PLAIN
    },
    Queue {
        name: "D/D/1, 500/s, 30 ms",
        service_s: 0.002,
        capacity: 500.0,
        ..EVEN
    },
    Queue {
        name: "D/D/1, 2000/s, 300 ms",
        limit_s: 0.3,
        capacity: 2000.0,
        ..EVEN
    },
    Queue {
        name: "D/M/1, 2000/s, 30 ms",
        is_random: true,
        capacity: 1_922.1,
        ..EVEN
    },
    Queue {
        name: "M/M/1, speed wanders 3 %",
        wander: 0.03,
        capacity: 1_802.6,
        ..PLAIN
    },
    Queue {
        name: "D/D/1, speed wanders 3 %",
        wander: 0.03,
        capacity: 1_900.3,
        ..EVEN
    },
    Queue {
        name: "M/M/1, instances 1 %",
        instances: 0.01,
        capacity: 1_840.2,
        ..PLAIN
    },
    Queue {
        name: "D/D/1, instances 1 %, 30 ms",
        instances: 0.01,
        // As slow as the slowest hundredth, for ever: exp(-2.326 * 0.01).
        capacity: 1954.0,
        ..EVEN
    },
    Queue {
        name: "M/M/1, stalls of 10 ms, one in a second",
        stall_s: 0.01,
        every_s: 1.0,
        capacity: 1_804.4,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, stalls of 40 ms",
        stall_s: 0.04,
        capacity: 1_677.1,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, stalls of 300 ms",
        stall_s: 0.3,
        capacity: 0.0,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, becomes 15 % slower",
        change: (40.0, 1.0 / 0.85),
        capacity: 0.85 * 2000.0 - LN_100 / 0.03,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, becomes half as fast",
        change: (40.0, 2.0),
        capacity: 0.5 * 2000.0 - LN_100 / 0.03,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, becomes 20 % faster",
        change: (40.0, 1.0 / 1.2),
        capacity: 1.2 * 2000.0 - LN_100 / 0.03,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, becomes twice as fast",
        change: (40.0, 0.5),
        capacity: 2.0 * 2000.0 - LN_100 / 0.03,
        ..PLAIN
    },
    // Of the slow half twice as many may be bad.
    Queue {
        name: "M/M/1, half as fast every other 15 s",
        change: (15.0, 2.0),
        is_alternating: true,
        capacity: 0.5 * 2000.0 - LN_50 / 0.03,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, a quarter as fast every other 7 s",
        change: (7.0, 4.0),
        is_alternating: true,
        capacity: 0.25 * 2000.0 - LN_50 / 0.03,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, half as fast every other 40 s",
        change: (40.0, 2.0),
        is_alternating: true,
        capacity: 0.5 * 2000.0 - LN_50 / 0.03,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, 20 % slower every other 40 s",
        change: (40.0, 1.25),
        is_alternating: true,
        capacity: 0.8 * 2000.0 - LN_50 / 0.03,
        ..PLAIN
    },
    Queue {
        name: "D/D/1, becomes 15 % slower",
        change: (30.0, 1.0 / 0.85),
        capacity: 0.85 * 2000.0,
        ..EVEN
    },
    Queue {
        name: "D/D/1, becomes 20 % faster",
        change: (40.0, 1.0 / 1.2),
        capacity: 1.2 * 2000.0,
        ..EVEN
    },
];

fn exponential(rng: &mut SplitMix64, mean: f64) -> f64 {
    -mean * (1.0 - rng.unit()).ln()
}

fn normal(rng: &mut SplitMix64) -> f64 {
    let (one, two) = (1.0 - rng.unit(), rng.unit());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
}

/// State of the world that goes on between trials.
struct World {
    queue: Queue,
    rng: SplitMix64,
    speed: f64,
    instance: f64,
    /// Seconds of trials so far.
    now_s: f64,
}

impl World {
    fn new(queue: Queue, seed: u64) -> World {
        let mut rng = SplitMix64::new(seed);
        let speed = queue.wander * normal(&mut rng);
        World {
            queue,
            rng,
            speed,
            instance: 0.0,
            now_s: 0.0,
        }
    }

    fn play(&mut self, trial: Trial) -> Vec<Seen> {
        let (queue, rng) = (self.queue, &mut self.rng);
        if trial.is_fresh {
            self.instance = queue.instances * normal(rng);
        }
        let mut free = vec![0.0_f64; queue.servers];
        let end = trial.settle_s + trial.measure_s;
        let (mut at, mut step) = (0.0, 0.0);
        let length = trial.measure_s / trial.windows as f64;
        // Bad, due, completed, first and last completion of each window.
        let mut windows = vec![(0_u64, 0_u64, 0_u64, f64::MAX, 0.0_f64); trial.windows];
        let window = |at: f64| {
            (at >= trial.settle_s && at < end)
                .then(|| (((at - trial.settle_s) / length) as usize).min(trial.windows - 1))
        };
        let mut stall = exponential(rng, queue.every_s);
        let gap = 1.0 / trial.rate;
        at += gap * rng.unit();
        while at < end {
            while step < at {
                step += 1.0;
                self.speed = 0.5 * self.speed + 0.75_f64.sqrt() * queue.wander * normal(rng);
            }
            while queue.stall_s > 0.0 && stall < at {
                free.iter_mut()
                    .for_each(|free| *free = free.max(stall) + queue.stall_s);
                stall += exponential(rng, queue.every_s);
            }
            let mean =
                queue.times(self.now_s + at) * queue.service_s * (self.speed + self.instance).exp();
            let service = match queue.is_random {
                true => exponential(rng, mean),
                false => mean,
            };
            let first = (0..free.len())
                .min_by(|a, b| free[*a].total_cmp(&free[*b]))
                .unwrap_or(0);
            let done = free[first].max(at) + service;
            free[first] = done;
            if let Some(window) = window(at) {
                windows[window].0 += u64::from(done - at > queue.limit_s);
                windows[window].1 += 1;
            }
            if let Some(window) = window(done) {
                let window = &mut windows[window];
                *window = (
                    window.0,
                    window.1,
                    window.2 + 1,
                    window.3.min(done),
                    window.4.max(done),
                );
            }
            at += match queue.is_poisson {
                true => exponential(rng, gap),
                false => gap,
            };
        }
        windows
            .iter()
            .map(|(bad, all, completed, first, last)| Seen {
                bad: vec![*bad as f64 / (*all).max(1) as f64],
                value: Vec::new(),
                sent: 1.0,
                due: *all as f64 / length,
                completed: completed.saturating_sub(1) as f64 / (last - first).max(1e-9),
                is_held_up: false,
            })
            .collect()
    }

    fn search(&mut self, seed: u64) -> Answer {
        let saturated = self.queue.servers as f64 / self.queue.service_s;
        let trial = Trial {
            rate: 1.5 * saturated,
            stage: Stage::Ramp,
            rest_s: 0.0,
            settle_s: 0.5,
            measure_s: 3.0,
            windows: 30,
            is_fresh: true,
        };
        let windows = self.play(trial);
        let windows: Vec<(u64, f64)> = windows
            .iter()
            .map(|seen| ((seen.completed * 0.1).round() as u64, 0.1))
            .collect();
        let closed = Closed::of(&windows).expect("there are windows");
        let mut search = Search::new(Goal {
            bounds: vec![Bound::quantile(0.99, self.queue.limit_s)],
            confidence: 0.95,
            half_width: 0.03,
            budget_s: 100.0,
            verify_s: 65.0,
            long_s: 400.0,
            burst_s: None,
            ceiling: None,
            closed,
            seed,
        });
        loop {
            match search.propose() {
                Ok(trial) => {
                    let seen = self.play(trial);
                    let most = seen.len();
                    let until = (1..most).find(|count| !search.go_on(&trial, &seen[..*count]));
                    let seen = &seen[..until.unwrap_or(most)];
                    self.now_s +=
                        trial.rest_s + trial.settle_s + trial.window_s() * seen.len() as f64;
                    search.seen(&trial, seen);
                }
                Err(answer) => return *answer,
            }
        }
    }
}

/// Capacity by bisection with trials of hours, of many instances where these differ.
fn simulated(queue: Queue) -> f64 {
    let most = queue.servers as f64 / queue.service_s;
    let (mut low, mut high) = (most * 0.2, most * 1.05);
    let mut world = World::new(queue, 7);
    for step in 0..14 {
        let rate = f64::midpoint(low, high);
        let instances = if queue.instances > 0.0 { 4000 } else { 1 };
        let requests = if step < 5 { 4e6 } else { 6e7 };
        let seconds = requests / rate / f64::from(instances);
        let trial = Trial {
            rate,
            stage: Stage::Ramp,
            rest_s: 0.0,
            settle_s: 1.0,
            measure_s: seconds,
            windows: 1,
            is_fresh: true,
        };
        let bad: f64 = (0..instances).map(|_| world.play(trial)[0].bad[0]).sum();
        match bad / f64::from(instances) <= 0.01 {
            true => low = rate,
            false => high = rate,
        }
    }
    f64::midpoint(low, high)
}

/// A quantity's middle value over the answers.
fn median(answers: &[Answer], of: impl Fn(&Answer) -> f64) -> f64 {
    let mut all: Vec<f64> = answers.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Per cent of the answers.
fn share(answers: &[Answer], is_so: impl Fn(&Answer) -> bool) -> f64 {
    let count = answers.iter().filter(|answer| is_so(answer)).count();
    100.0 * count as f64 / answers.len() as f64
}

/// One row of the table.
fn row(queue: Queue, seeds: &Range<u64>, is_alone: bool) -> String {
    let answer = |seed| World::new(queue, seed + 1).search(seed);
    let all: Vec<Answer> = seeds.clone().map(answer).collect();
    let truth = queue.capacity;
    let claims = |it: &Answer| it.verified > 0.0;
    let none = share(&all, |it| !claims(it));
    let seconds = |of: fn(&Answer) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let (search_s, all_s) = (seconds(|it| it.seconds.0), seconds(|it| it.seconds.1));
    let found: Vec<Answer> = all.iter().filter(|it| claims(it)).cloned().collect();
    let mut row = format!(
        "| {} | {truth:.0} | {none:.1} %{} | ",
        queue.name,
        others::ends(&all)
    );
    if !found.is_empty() {
        let half = |it: &Answer| (it.interval.1 / it.interval.0).ln() / 2.0;
        row += &format!(
            "{:.1} % | {:.1} %, {:.1} % | ±{:.2} % | {:.3} | ",
            share(&found, |it| it.interval.0 <= truth
                && truth <= it.interval.1),
            share(&found, |it| it.interval.0 > truth),
            share(&found, |it| it.interval.1 < truth),
            100.0 * median(&found, half),
            median(&found, |it| it.verified / truth),
        );
    }
    row += &format!("{search_s:.0} s | {all_s:.0} s |");
    if !is_alone {
        let bisection = others::others(queue, truth, seeds, World::bisect);
        row += &format!(
            " {bisection} | {} |",
            others::others(queue, truth, seeds, World::mlr)
        );
    }
    row
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let only = arguments.next().unwrap_or_default();
    let from: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let how = arguments.next().unwrap_or_default();
    let queues = || QUEUES.iter().filter(|queue| queue.name.contains(&only));
    if how == "each" {
        return queues().try_for_each(|queue| others::each(*queue, from..from + count));
    }
    let mut out = io::stdout();
    writeln!(
        out,
        "| target | capacity | no claim | interval covers | above, below | half-width | verified | search | with verification \
         | bisection, 30 s | RFC 9971 |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for &queue in queues() {
        let row = match how.as_str() {
            "truth" => format!("| {} | {:.1} |", queue.name, simulated(queue)),
            how => row(queue, &(from..from + count), how == "alone"),
        };
        writeln!(out, "{row}")?;
        out.flush()?;
    }
    Ok(())
}
