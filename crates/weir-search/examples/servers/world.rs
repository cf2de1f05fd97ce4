//! Simulated servers: queues with the flaws of real ones.

use std::collections::VecDeque;

use weir_search::{Answer, Bound, Goal, Search, Trial, Window};
use weir_stats::SplitMix64;

/// Parameters of a server, and of its load.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// Number of workers, and the mean time that a worker needs for a request, seconds.
    pub(crate) workers: usize,
    pub(crate) service_s: f64,
    /// True if service times are exponentially distributed, else constant.
    pub(crate) is_random: bool,
    /// True if arrivals are Poisson, else evenly spaced.
    pub(crate) is_poisson: bool,
    /// Limit of the p99, seconds.
    pub(crate) limit_s: f64,
    /// Share of its speed that the server loses while more than 20 ms of work are waiting.
    pub(crate) penalty: f64,
    /// Standard deviation of the logarithm of the speed from second to second (autocorrelation 0.5).
    pub(crate) noise: f64,
    /// Standard deviation and correlation time (seconds) of a slow drift of the logarithm of the speed (Ornstein &
    /// Uhlenbeck 1930).
    pub(crate) drift: (f64, f64),
    /// Duration of stalls and mean time between them, seconds.
    pub(crate) stalls: (f64, f64),
    /// Standard deviation of the logarithm of the speed between instances.
    pub(crate) instances: f64,
    /// Seconds of trials until a change, and the divisor of the speed after it. If `is_alternating`, it changes back
    /// and forth.
    pub(crate) change: (f64, f64),
    pub(crate) is_alternating: bool,
    /// Effect that builds up with the requests of the last minute.
    pub(crate) memory: Memory,
    /// Hold-ups of the machine: mean time between them and duration, seconds. `has_meters`: meters show them.
    pub(crate) hold_ups: (f64, f64),
    pub(crate) has_meters: bool,
    /// True if weir can restart the server.
    pub(crate) renews: bool,
    /// Rate at which half of all holds succeed, according to `truth`; 0 until computed.
    pub(crate) capacity: f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Memory {
    None,
    /// Each request occupies one of this many ports for a minute; without a free one it fails.
    Ports(f64),
    /// Each request of the last minute slows down all others: to half the speed after this many.
    Dearer(f64),
}

const REMEMBERED_S: f64 = 60.0;
/// Amount of waiting work, in seconds, above which the penalty applies.
const BACKLOG_S: f64 = 0.02;
const HOLD_S: f64 = 65.0;

fn exponential(rng: &mut SplitMix64, mean: f64) -> f64 {
    -mean * (1.0 - rng.unit()).ln()
}

fn normal(rng: &mut SplitMix64) -> f64 {
    let (radius, angle) = (1.0 - rng.unit(), rng.unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// State of a server across trials.
pub(crate) struct World {
    server: Server,
    rng: SplitMix64,
    noise: f64,
    drift: f64,
    instance: f64,
    now_s: f64,
    /// Number of requests in each past second that is remembered.
    used: VecDeque<(f64, f64)>,
    used_sum: f64,
}

/// State of a running trial.
struct Running {
    rate: f64,
    /// Time at which each worker becomes free; after it the time of the next request. Seconds since the trial began.
    free: Vec<f64>,
    at: f64,
    next_second: f64,
    next_stall: f64,
    next_hold_up: f64,
    /// Completions in each window, future ones included.
    completed: Vec<u64>,
}

impl World {
    pub(crate) fn new(server: Server, seed: u64) -> World {
        let mut rng = SplitMix64::new(seed);
        World {
            server,
            noise: server.noise * normal(&mut rng),
            drift: server.drift.0 * normal(&mut rng),
            instance: server.instances * normal(&mut rng),
            rng,
            now_s: 0.0,
            used: VecDeque::new(),
            used_sum: 0.0,
        }
    }

    fn begin(&mut self, trial: &Trial) -> Running {
        let server = self.server;
        if trial.is_fresh && server.renews {
            self.instance = server.instances * normal(&mut self.rng);
            self.used.clear();
            self.used_sum = 0.0;
        }
        self.pass(trial.rest_s);
        Running {
            rate: trial.rate,
            free: vec![0.0; server.workers],
            at: self.rng.unit() / trial.rate,
            next_second: 0.0,
            next_stall: exponential(&mut self.rng, server.stalls.1),
            next_hold_up: exponential(&mut self.rng, server.hold_ups.0),
            completed: vec![0; trial.windows + 1],
        }
    }

    fn pass(&mut self, seconds: f64) {
        let (sd, correlation_s) = self.server.drift;
        let retained = (-seconds / correlation_s).exp();
        self.drift =
            retained * self.drift + (1.0 - retained * retained).sqrt() * sd * normal(&mut self.rng);
        self.now_s += seconds;
    }

    /// Advances noise, drift and memory by one second.
    fn tick(&mut self, offset_s: f64) {
        self.noise = 0.5 * self.noise + 0.75_f64.sqrt() * self.server.noise * normal(&mut self.rng);
        let now = self.now_s;
        self.pass(1.0);
        self.now_s = now;
        while let Some((at, count)) = self.used.front().copied() {
            if at > self.now_s + offset_s - REMEMBERED_S {
                break;
            }
            self.used.pop_front();
            self.used_sum -= count;
        }
        self.used.push_back((self.now_s + offset_s, 0.0));
    }

    /// Returns the factor by which service times are longer than initially, at this time of the trial.
    fn factor(&self, offset_s: f64, backlog_s: f64) -> f64 {
        let server = &self.server;
        let changes = ((self.now_s + offset_s) / server.change.0) as u64;
        let is_changed = changes > 0 && !(server.is_alternating && changes.is_multiple_of(2));
        let changed = if is_changed { server.change.1 } else { 1.0 };
        let burdened = if backlog_s > BACKLOG_S { 1.0 / (1.0 - server.penalty) } else { 1.0 };
        let remembered = match server.memory {
            Memory::Dearer(half) => 1.0 + self.used_sum / half,
            _ => 1.0,
        };
        changed * burdened * remembered * (self.noise + self.drift + self.instance).exp()
    }

    /// Simulates the time from `from_s` to `until_s`. `windows`: begin of the first window, and length of a window.
    fn play(
        &mut self,
        running: &mut Running,
        (from_s, until_s): (f64, f64),
        windows: (f64, f64),
    ) -> Window {
        let server = self.server;
        let (settle_s, window_s) = windows;
        let (mut due, mut bad) = (0_u64, 0_u64);
        let mut is_held_up = false;
        while running.at < until_s {
            let at = running.at;
            while running.next_second < at {
                self.tick(running.next_second);
                running.next_second += 1.0;
            }
            while running.next_stall < at {
                let stall = running.next_stall;
                for free in &mut running.free {
                    *free = free.max(stall) + server.stalls.0;
                }
                running.next_stall += exponential(&mut self.rng, server.stalls.1);
            }
            while running.next_hold_up < at {
                let hold_up = running.next_hold_up;
                for free in &mut running.free {
                    *free = free.max(hold_up) + server.hold_ups.1;
                }
                is_held_up |= server.has_meters && server.hold_ups.1 > server.limit_s;
                running.next_hold_up += exponential(&mut self.rng, server.hold_ups.0);
            }
            let done = self.serve(running, at);
            if at >= from_s {
                due += 1;
                bad += u64::from(done - at > server.limit_s);
            }
            let window = ((done - settle_s) / window_s).max(0.0) as usize;
            if done >= settle_s && window < running.completed.len() {
                running.completed[window] += 1;
            }
            let gap = 1.0 / running.rate;
            running.at += if server.is_poisson { exponential(&mut self.rng, gap) } else { gap };
        }
        let window = ((from_s - settle_s) / window_s).round().max(0.0) as usize;
        let seconds = until_s - from_s;
        Window {
            bad: vec![bad as f64 / due.max(1) as f64],
            value: Vec::new(),
            due: due as f64 / seconds,
            sent: 1.0,
            completed: running.completed.get(window).copied().unwrap_or(0) as f64 / seconds,
            is_held_up,
        }
    }

    /// Serves a request that arrives at this time. Returns the time when it is done; infinite if it fails.
    fn serve(&mut self, running: &mut Running, at: f64) -> f64 {
        let server = self.server;
        if matches!(server.memory, Memory::Ports(room) if self.used_sum >= room) {
            return f64::INFINITY;
        }
        let first = (0..running.free.len())
            .min_by(|a, b| running.free[*a].total_cmp(&running.free[*b]))
            .unwrap_or(0);
        let mean = server.service_s * self.factor(at, running.free[first] - at);
        let service = if server.is_random { exponential(&mut self.rng, mean) } else { mean };
        running.free[first] = running.free[first].max(at) + service;
        if let Some(second) = self.used.back_mut() {
            second.1 += 1.0;
            self.used_sum += 1.0;
        }
        running.free[first]
    }

    /// Runs a trial until it is complete or `go_on` returns false.
    pub(crate) fn trial(
        &mut self,
        trial: &Trial,
        go_on: &mut dyn FnMut(&[Window]) -> bool,
    ) -> Vec<Window> {
        let mut running = self.begin(trial);
        let mut windows = Vec::new();
        if trial.settle_s > 0.0 {
            self.play(&mut running, (0.0, trial.settle_s), (trial.settle_s, trial.window_s));
        }
        while windows.len() < trial.windows && go_on(&windows) {
            let from_s = trial.settle_s + trial.window_s * windows.len() as f64;
            let span = (from_s, from_s + trial.window_s);
            windows.push(self.play(&mut running, span, (trial.settle_s, trial.window_s)));
        }
        let seconds = trial.settle_s + trial.window_s * windows.len() as f64;
        self.now_s += seconds;
        windows
    }

    pub(crate) fn goal(&mut self, time_s: f64, precision: f64) -> Goal {
        let saturated = self.server.workers as f64 / self.server.service_s;
        let trial = Trial {
            rate: 1.5 * saturated,
            window_s: 3.0,
            windows: 1,
            needed: 1,
            ..long_trial(1.0)
        };
        let windows = self.trial(&trial, &mut |_| true);
        Goal {
            bounds: vec![Bound::quantile(0.99, self.server.limit_s)],
            confidence: 0.95,
            precision,
            hold_s: HOLD_S,
            time_s,
            until_held_s: HOLD_S + 25.0,
            burst_s: None,
            ceiling: None,
            closed_rate: windows[0].completed.max(1.0),
            renews: self.server.renews,
        }
    }

    pub(crate) fn search(&mut self, goal: Goal) -> Answer {
        let mut search = Search::new(goal);
        loop {
            match search.propose() {
                Ok(trial) => {
                    let windows = self.trial(&trial, &mut |windows| search.go_on(&trial, windows));
                    search.observe(&trial, &windows);
                }
                Err(answer) => return *answer,
            }
        }
    }

    /// Returns true if a trial of this many seconds keeps the limit of the p99.
    pub(crate) fn holds(&mut self, rate: f64, seconds: f64) -> bool {
        let trial = Trial { rate, window_s: seconds, needed: 1, windows: 1, ..long_trial(rate) };
        self.trial(&trial, &mut |_| true)[0].bad[0] <= 0.01
    }
}

fn long_trial(rate: f64) -> Trial {
    Trial {
        stage: weir_search::Stage::Hold,
        rate,
        rest_s: 0.0,
        settle_s: 0.5,
        window_s: HOLD_S,
        needed: 1,
        windows: 1,
        lead: 0,
        is_fresh: true,
    }
}

/// Returns the rate at which half of all holds succeed, requests/s. Each hold has a world of its own, late enough for a
/// change to have happened. Found by bisection on the majority.
pub(crate) fn truth(server: Server) -> f64 {
    let most = server.workers as f64 / server.service_s;
    let (mut low, mut high) = (0.02 * most, 2.2 * most);
    let mut step = 0;
    while high / low > 1.002 {
        step += 1;
        let middle = (low * high).sqrt();
        let holds = if high / low > 1.2 { 15 } else { 81 };
        let held = (0..holds).filter(|hold| {
            let mut world = World::new(server, (77 + step) * 10_000 + hold);
            world.now_s = 1e6 + 37.0 * *hold as f64;
            world.holds(middle, HOLD_S)
        });
        if held.count() as f64 / holds as f64 >= 0.5 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}
