//! Searches on targets whose capacity is known: how often the interval covers it, how wide it is, and what it took,
//! beside what bisection and RFC 9971 answer.
//!
//! ```text
//! queues [SEARCHES [NAME [alone]]]
//! ```
//!
//! So many searches for each target, or for those with NAME in theirs; `alone`: without the others.

use std::io::{self, Write};

use weir_search::{Answer, Bound, Closed, Goal, Search, Seen, Stage, Trial, Why};
use weir_stats::SplitMix64;

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
    /// Known capacity, requests per second; 0: by long simulation.
    capacity: f64,
}

/// ln 100, for an objective of the quantile 0.99.
const LN_100: f64 = 4.605_170_185_988_092;

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
        capacity: 0.0,
        ..PLAIN
    },
    Queue {
        name: "M/D/4, 10000/s, 5 ms",
        servers: 4,
        service_s: 4e-4,
        is_random: false,
        limit_s: 0.005,
        capacity: 0.0,
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
        capacity: 0.0,
        ..EVEN
    },
    Queue {
        name: "M/M/1, speed wanders 3 %",
        wander: 0.03,
        capacity: 0.0,
        ..PLAIN
    },
    Queue {
        name: "D/D/1, speed wanders 3 %",
        wander: 0.03,
        capacity: 0.0,
        ..EVEN
    },
    Queue {
        name: "M/M/1, instances 1 %",
        instances: 0.01,
        capacity: 0.0,
        ..PLAIN
    },
    Queue {
        name: "D/D/1, instances 1 %, 30 ms",
        instances: 0.01,
        capacity: 0.0,
        ..EVEN
    },
    Queue {
        name: "M/M/1, stalls of 10 ms, one in a second",
        stall_s: 0.01,
        every_s: 1.0,
        capacity: 0.0,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, stalls of 40 ms",
        stall_s: 0.04,
        capacity: 0.0,
        ..PLAIN
    },
    Queue {
        name: "M/M/1, stalls of 300 ms",
        stall_s: 0.3,
        capacity: 0.0,
        ..PLAIN
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
        }
    }

    fn play(&mut self, trial: Trial) -> Vec<Seen> {
        let queue = self.queue;
        let rng = &mut self.rng;
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
            let mean = queue.service_s * (self.speed + self.instance).exp();
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
                    search.seen(&trial, &seen[..until.unwrap_or(most)]);
                }
                Err(answer) => return *answer,
            }
        }
    }
}

/// What others would have answered: a bracket, and what it took.
struct Bracket {
    low: f64,
    high: f64,
    seconds: f64,
}

impl World {
    fn holds(&mut self, rate: f64, seconds: f64, spent: &mut f64) -> bool {
        // Both give a trial a second that they do not look at.
        *spent += seconds + 1.0;
        let trial = Trial {
            rate,
            stage: Stage::Ramp,
            rest_s: 0.0,
            settle_s: 1.0,
            measure_s: seconds,
            windows: 1,
            is_fresh: true,
        };
        self.play(trial)[0].bad[0] <= 0.01
    }

    /// Bisection with trials of 30 s between nothing and what a closed loop carries, until the bracket is as narrow
    /// as our interval is to be.
    fn bisect(&mut self) -> Bracket {
        let most = self.queue.servers as f64 / self.queue.service_s;
        let (mut low, mut high, mut seconds) = (most * 0.2, most * 1.1, 0.0);
        while f64::ln(high / low) > 0.06 {
            let rate = f64::midpoint(low, high);
            match self.holds(rate, 30.0, &mut seconds) {
                true => low = rate,
                false => high = rate,
            }
        }
        Bracket { low, high, seconds }
    }

    /// RFC 9971 with the defaults of the authors' library: trials of 1 s, 20 s of them at a load, of which half may
    /// exceed the goal, a width of 0.5 %, and two coarser targets before.
    fn mlr(&mut self) -> Bracket {
        let most = self.queue.servers as f64 / self.queue.service_s;
        let mut seconds = 0.0;
        // Good and bad trials of a load.
        let mut loads: Vec<(f64, u32, u32)> = Vec::new();
        let (mut low, mut high) = (most * 0.2, most * 1.1);
        for (width, sum) in [(0.02, 1.0), (0.01, 4.47), (0.005, 20.0)] {
            let mut is_bound = |world: &mut World, rate: f64| loop {
                let place = loads
                    .iter()
                    .position(|load| load.0 == rate)
                    .unwrap_or_else(|| {
                        loads.push((rate, 0, 0));
                        loads.len() - 1
                    });
                let load = &mut loads[place];
                if f64::from(load.1) >= sum / 2.0 {
                    break true;
                }
                if f64::from(load.2) > sum / 2.0 {
                    break false;
                }
                match world.holds(rate, 1.0, &mut seconds) {
                    true => load.1 += 1,
                    false => load.2 += 1,
                }
            };
            // The bounds of the coarser target again, and outwards where they do not hold any more.
            let mut step = width;
            while !is_bound(self, low) && low > 1.0 {
                high = low;
                low *= 1.0 - step;
                step *= 2.0;
            }
            step = width;
            while is_bound(self, high) && high < 3.0 * most {
                low = high;
                high *= 1.0 + step;
                step *= 2.0;
            }
            while f64::ln(high / low) > width {
                let rate = f64::midpoint(low, high);
                match is_bound(self, rate) {
                    true => low = rate,
                    false => high = rate,
                }
            }
        }
        Bracket { low, high, seconds }
    }
}

/// Capacity by bisection with trials of a quarter of an hour.
fn capacity(queue: Queue) -> f64 {
    if queue.capacity > 0.0 {
        return queue.capacity;
    }
    let most = queue.servers as f64 / queue.service_s;
    let (mut low, mut high) = (most * 0.2, most * 1.05);
    let mut world = World::new(queue, 7);
    for _ in 0..12 {
        let rate = f64::midpoint(low, high);
        // Of many instances, where these differ.
        let instances = if queue.instances > 0.0 { 200 } else { 1 };
        let seconds = 4_000_000.0 / rate / f64::from(instances);
        let trial = Trial {
            rate,
            stage: Stage::Ramp,
            rest_s: 0.0,
            settle_s: seconds / 50.0,
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

/// How often others' brackets cover the truth, and how long they took.
fn others(queue: Queue, truth: f64, count: u64, of: impl Fn(&mut World) -> Bracket) -> String {
    let all: Vec<Bracket> = (0..count)
        .map(|seed| of(&mut World::new(queue, seed + 1)))
        .collect();
    let covers = |it: &&Bracket| it.low <= truth * 1.0001 && truth <= it.high * 1.0001;
    let covers = all.iter().filter(covers).count();
    let seconds = all.iter().map(|it| it.seconds).sum::<f64>() / all.len() as f64;
    format!(
        "{:.1} %, {seconds:.0} s",
        100.0 * covers as f64 / all.len() as f64
    )
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let only = arguments.next().unwrap_or_default();
    let is_alone = arguments.next().is_some();
    let mut out = io::stdout();
    writeln!(
        out,
        "| target | capacity | interval covers | above, below | half-width | verified | search | with verification | none \
         | bisection, 30 s | RFC 9971 |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for &queue in QUEUES.iter().filter(|queue| queue.name.contains(&only)) {
        let truth = capacity(queue);
        let answer = |seed| World::new(queue, seed + 1).search(seed);
        let all: Vec<Answer> = (0..count).map(answer).collect();
        let none = share(&all, |it| it.why == Why::Never);
        let found: Vec<Answer> = all.into_iter().filter(|it| it.why != Why::Never).collect();
        if found.is_empty() {
            writeln!(
                out,
                "| {} | none | – | – | – | – | – | – | {none:.1} % |  |  |",
                queue.name
            )?;
            continue;
        }
        let compared = |of: fn(&mut World) -> Bracket| match is_alone {
            true => String::new(),
            false => others(queue, truth, count, of),
        };
        writeln!(
            out,
            "| {} | {truth:.0} | {:.1} % | {:.1} %, {:.1} % | ±{:.2} % | {:.3} | {:.0} s | {:.0} s | {none:.1} % | {} | {} |",
            queue.name,
            share(&found, |it| it.interval.0 <= truth
                && truth <= it.interval.1),
            share(&found, |it| it.interval.0 > truth),
            share(&found, |it| it.interval.1 < truth),
            100.0 * median(&found, |it| (it.interval.1 / it.interval.0).ln() / 2.0),
            median(&found, |it| it.verified / truth),
            median(&found, |it| it.seconds.0),
            median(&found, |it| it.seconds.1),
            compared(World::bisect),
            compared(World::mlr),
        )?;
        out.flush()?;
    }
    Ok(())
}
