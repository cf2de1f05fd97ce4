//! The rate at which as many responses break an objective as are allowed, estimated from trials around it.
//!
//! The share of the responses that break an objective grows with the rate as a psychometric function does: from a
//! floor that no rate avoids (stalls, errors) to all of them (Treutwein 1995, Vision Research 35; Watson 2017, Journal
//! of Vision 17). In a queue its logarithm grows about linearly with the rate, and the share is one where the target is
//! saturated (Kingman 1962, heavy traffic): how steep it is follows from where it is, but for a factor. The model is
//! quasi-binomial (McCullagh & Nelder 1989, chapter 4.5), because responses of one queue go together.

use weir_stats::student_quantile;

use crate::model::{FACTOR_SD, Model, Table, shapes};

/// A window breaks a bound clearly with so many times the share that is allowed.
pub(crate) const CLEARLY: f64 = 3.0;

/// What a trial at one rate showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// Requests per second that were due.
    pub rate: f64,
    /// Share of the responses that broke the objective, 0..1; those that never came did.
    pub bad: f64,
    /// Requests that were due per second, as they came.
    pub due: f64,
    /// Responses per second while the load lasted.
    pub completed: f64,
    /// How long it was looked at, seconds.
    pub seconds: f64,
    /// Trials of one group were made in the same minute on the same instance.
    pub group: usize,
}

/// An estimate of the edge with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Requests per second.
    pub rate: f64,
    /// Lower and upper end at the confidence that was asked for.
    pub low: f64,
    /// See [`Edge::low`].
    pub high: f64,
    /// Responses per second of the saturated target.
    pub saturated: f64,
    /// Share of responses that break the objective at any rate.
    pub floor: f64,
    /// How much steeper the share is than that of a simple queue.
    pub factor: f64,
    /// How much more than expected of a queue responses go together.
    pub dispersion: f64,
}

/// A target that completed this share of what was due at most, and by so many standard deviations of two Poisson processes less,
/// had more to do than it can.
const OVERLOADED: f64 = 0.97;
const SIGNIFICANT: f64 = 4.0;
/// Half of the interval of what a saturated target completes is between these, as a share: instances differ by a per
/// cent or so.
const OFF: (f64, f64) = (0.015, 0.05);
/// That of what one has completed that has become faster.
const RAISED: f64 = 0.08;
/// A target wanders whose closed loop did by so much from window to window beyond a Poisson process; how many groups
/// are believed that differ as the model has it; by how much wider the interval of a target is that wanders, and by what
/// share its lower end is lower still.
pub(crate) const WANDERS: f64 = 0.005;
const GROUPS: f64 = 4.0;
const DOUBT: f64 = 1.5;
const UNSEEN: f64 = 0.012;
/// Stretches of a closed loop, and how much more they must vary than their windows let them: F of 5 and 24 degrees of
/// freedom is beyond it one time in twenty.
const STRETCHES: usize = 6;
const RATIO: f64 = 2.6;
/// Where some are bad at any rate, or at one where nearly none should be, they come in lumps of which there are few: the
/// dispersion is by so much larger than it seems.
const LUMPY: f64 = 2.5;
/// The wider of two intervals is taken at either end, so they may be narrower than each alone: so much, by the simulated
/// queues.
const CAUTIOUS: f64 = 0.92;
/// From this factor on the edge is a cliff that is not where the target is saturated.
const CLIFF: f64 = 2.5;
/// Places of the edge that are tried, at first and at last; and how far about the peak it is looked at last.
const COARSE: usize = 40;
const STEPS: usize = 80;
const WIDE: f64 = 2.0;
/// The interval is never narrower than this, as a share of the rate on either side: instances differ. Of a target that
/// wanders it may have to be so wide at least.
const NARROWEST: (f64, f64) = (0.02, 0.028);
/// The slowest of a hundred instances that differ by a per cent is slower than the mean one by 2.3 %, and the mean one is not
/// known: where the share is a cliff, it decides.
const INSTANCES: f64 = 0.035;
/// The dispersion that is believed beforehand: targets know more memories than their queue.
const LIKELY: f64 = 1.1;
/// What a target's wandering speed may make of it at most.
const WANDERING: f64 = 6.0;
/// Sum of the squared coefficients of variation of the times between arrivals and of the service times, which a queue's
/// memory is proportional to: what it may be, and what it is of M/M/1.
const VARIABILITY: (f64, f64) = (0.05, 4.0);
/// One that would have to vary more than that, and is no cliff, waits for something else, for stalls: these are few.
const STALLS: f64 = 3.5;
const FEW: f64 = 4.0;
const OF_MM1: f64 = 2.0;
/// The least margin to saturation.
pub(crate) const MARGIN: f64 = 0.005;

/// What a closed loop has completed: what the target carries at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Closed {
    /// Responses per second.
    pub rate: f64,
    /// Half of the interval of its mean, as a share.
    pub off: f64,
    /// How much the target's speed wanders from one second to the next: the standard deviation of what stretches of about
    /// half a second completed, as a share, beyond what their windows tell; 0 where it may be chance.
    pub wander: f64,
}

impl Closed {
    /// Of windows of a closed loop, each so many responses in so many seconds, all as long; `None` with fewer than two.
    /// Thirty windows of 0.1 s tell wandering from counting, which six of 0.5 s do not.
    pub fn of(windows: &[(u64, f64)]) -> Option<Closed> {
        let rates: Vec<f64> = windows
            .iter()
            .map(|(n, seconds)| *n as f64 / seconds)
            .collect();
        let n = rates.len() as f64;
        let rate = rates.iter().sum::<f64>() / n;
        let sd = weir_stats::sd(&rates)? / rate;
        let half = student_quantile(0.05, windows.len() as u32 - 1) * sd / n.sqrt();
        Some(Closed {
            rate,
            off: half.clamp(OFF.0, OFF.1),
            wander: wander(&rates, rate),
        })
    }

    /// Tries more, where the target has become faster and nobody knows by how much.
    pub(crate) fn guess(&mut self) {
        if self.off >= RAISED {
            self.rate *= 1.0 + OFF.1;
        }
    }

    /// Takes in what an open loop completed for some seconds: of a target that has become faster it may be more.
    pub(crate) fn raise(&mut self, completed: f64, seconds: f64) {
        let noise = SIGNIFICANT * (completed / seconds).sqrt();
        if completed > self.rate * (1.0 + OFF.1) + noise {
            (self.rate, self.off) = (completed, RAISED);
        }
    }
}

/// How much the means of stretches differ beyond what their windows do: the component of variance between them (Fisher
/// 1925, chapter 7); 0 where it may be chance.
fn wander(rates: &[f64], mean: f64) -> f64 {
    let each = rates.len() / STRETCHES;
    if each < 2 {
        return 0.0;
    }
    let of = |stretch: &[f64]| {
        let mean = stretch.iter().sum::<f64>() / each as f64;
        (mean, weir_stats::sd(stretch).unwrap_or(0.0).powi(2))
    };
    let stretches: Vec<(f64, f64)> = rates.chunks_exact(each).map(of).collect();
    let means: Vec<f64> = stretches.iter().map(|stretch| stretch.0).collect();
    let within = stretches.iter().map(|stretch| stretch.1).sum::<f64>() / means.len() as f64;
    let between = weir_stats::sd(&means).unwrap_or(0.0).powi(2);
    let by_chance = within / each as f64;
    match between > RATIO * by_chance {
        true => (between - by_chance).sqrt() / mean,
        false => 0.0,
    }
}

/// What is known of the target beside the trials.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Share of the responses that may be bad.
    pub allowed: f64,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// The limit of the response time, seconds; 0 where the objective has none.
    pub limit_s: f64,
    /// What a closed loop has completed.
    pub closed: Closed,
    /// The edge is thought to be between these, requests per second.
    pub between: (f64, f64),
}

impl Frame {
    /// Standard error by what groups differ, which few of them tell badly: as many more are believed that differ by what
    /// the model has them differ (Stein 1956). Of a target that wanders none are.
    fn shrunk(&self, single: f64, between: f64, groups: usize) -> f64 {
        let known = groups.saturating_sub(1) as f64;
        let believed = match self.closed.wander > WANDERS {
            true => 1.0,
            false => GROUPS,
        };
        let squares = believed * single * single + known * between * between;
        (squares / (believed + known)).sqrt()
    }

    /// By how much wider an interval is than trials of some seconds make it, which a wandering speed does not let see all
    /// that happens within a minute.
    fn doubt(&self) -> f64 {
        match self.closed.wander > WANDERS {
            true => DOUBT,
            false => 1.0,
        }
    }

    /// The least half of an interval: how far the speed wanders within a minute, no trials of one tell.
    fn narrowest(&self) -> f64 {
        match self.closed.wander > WANDERS {
            true => (1.5 * self.closed.wander).clamp(NARROWEST.0, NARROWEST.1),
            false => NARROWEST.0,
        }
    }

    /// How far below the interval the edge may be as a share, because of long slow times that are too rare for trials of a
    /// minute or two to have one.
    fn unseen(&self) -> f64 {
        match self.closed.wander > WANDERS {
            true => UNSEEN,
            false => 0.0,
        }
    }

    /// How well it is known beforehand how steep the share is: of a target whose speed wanders less well.
    fn factor_sd(&self) -> f64 {
        match self.closed.wander > WANDERS {
            true => 2.0 * FACTOR_SD,
            false => FACTOR_SD,
        }
    }

    /// The variability of a queue that has its edge there. Its waiting time is beyond a limit for a share of
    /// exp(-2 · margin · limit / variability) of the requests, the limit in requests (Kingman 1962).
    fn variability(&self, edge: f64, saturated: f64) -> f64 {
        if self.limit_s <= 0.0 {
            return OF_MM1;
        }
        let margin = (saturated - edge).max(MARGIN);
        let variability = 2.0 * margin * self.limit_s * saturated.exp() / -self.allowed.ln();
        variability.clamp(VARIABILITY.0, VARIABILITY.1)
    }
}

/// Between which rates a cliff is, as logarithms: all trials up to there have held, and all from there on broke clearly.
fn gap(rungs: &[Rung], allowed: f64) -> Option<(f64, f64)> {
    let holds = |rung: &&Rung| rung.bad <= CLEARLY * allowed;
    let held = rungs.iter().filter(holds).map(|rung| rung.rate);
    let broke = rungs
        .iter()
        .filter(|rung| !holds(rung))
        .map(|rung| rung.rate);
    let (held, broke) = (
        held.fold(0.0, f64::max),
        broke.fold(f64::INFINITY, f64::min),
    );
    (held > 0.0 && broke.is_finite() && held < broke).then(|| (held.ln(), broke.ln()))
}

/// The first and the last place of a profile that is at least so high.
fn within(profile: &[(usize, f64)], least: f64) -> (usize, usize) {
    let is_so = |place: &(usize, f64)| place.1 >= least;
    let first = profile.iter().position(is_so).unwrap_or(0);
    let last = profile.iter().rposition(is_so).unwrap_or(0);
    (first, last)
}

/// Standard error of the edge by how much it depends on single groups: the jackknife (Tukey 1958; Efron & Stein 1981,
/// Annals of Statistics 9), whatever it is that the trials of a group have in common.
fn between_groups(table: &Table<'_>, dispersion: f64, at: f64, groups: usize) -> f64 {
    let place = |group| Table::peak(&table.profile(dispersion, Some(group))).0;
    let squares: f64 = (0..groups).map(|group| (place(group) - at).powi(2)).sum();
    let n = groups as f64;
    match groups > 2 {
        true => table.step * (squares * (n - 1.0) / n).sqrt(),
        false => 0.0,
    }
}

/// Responses per second of a target that has more to do than it can, and half of its interval, as logarithms.
fn saturated(rungs: &[Rung], frame: &Frame) -> (f64, f64) {
    let over = rungs.iter().filter(|rung| {
        let less = (rung.due - rung.completed) * rung.seconds;
        let noise = SIGNIFICANT * (2.0 * rung.due * rung.seconds).sqrt();
        rung.completed > 0.0 && rung.completed < OVERLOADED * rung.due && less > noise
    });
    let over: Vec<f64> = over.map(|rung| rung.completed.ln()).collect();
    let mean = over.iter().sum::<f64>() / over.len() as f64;
    match over.len() {
        0 => (frame.closed.rate.ln(), frame.closed.off),
        1 | 2 => (mean, frame.closed.off),
        n => {
            let sd = weir_stats::sd(&over).unwrap_or(0.05);
            let t = student_quantile(1.0 - frame.confidence, n as u32 - 1);
            (mean, (sd / (n as f64).sqrt() * t).clamp(OFF.0, OFF.1))
        }
    }
}

impl Edge {
    /// Estimates it; `None` without any trial.
    pub fn of(rungs: &[Rung], frame: &Frame) -> Option<Edge> {
        if rungs.is_empty() {
            return None;
        }
        let (most, off) = saturated(rungs, frame);
        let mut model = Model::new(rungs, frame.allowed, most);
        let shapes = shapes(frame.allowed, frame.factor_sd());
        let mut range = (frame.between.0.ln(), frame.between.1.ln().min(most + off));
        let freedom = (rungs.len() as u32).saturating_sub(3).max(1);
        let student = student_quantile(1.0 - frame.confidence, freedom);
        let t = CAUTIOUS * student;
        let (mut dispersion, mut variability, mut lumps) = (LIKELY, OF_MM1, 1.0);
        // Coarse, with what is believed; then with what was seen, around it.
        for _ in 0..2 {
            model.count(variability);
            let table = Table::of(&model, &shapes, range, COARSE);
            let profile = table.profile(dispersion, None);
            let (at, value) = Table::peak(&profile);
            let edge = table.place(at);
            let wander = 2.0 * frame.closed.wander / (most - edge).max(MARGIN);
            let believed = LIKELY * (1.0 + wander * wander).min(WANDERING);
            let shape = shapes[profile[at.round() as usize].0];
            dispersion = model.dispersion(edge, shape, believed);
            variability = frame.variability(edge, most);
            lumps = match variability > STALLS && shape.factor < CLIFF {
                true => FEW,
                false if shape.floor > 0.0 || model.has_lumps(edge, shape) => LUMPY,
                false => 1.0,
            };
            dispersion *= lumps;
            let (first, last) = within(&profile, value - WIDE * t * t);
            range = (
                table.place(first as f64 - 1.0),
                table.place(last as f64 + 1.0),
            );
            range.1 = range.1.min(most + off);
        }
        model.count(variability);
        let table = Table::of(&model, &shapes, range, STEPS);
        let profile = table.profile(dispersion, None);
        let (at, value) = Table::peak(&profile);
        let (first, last) = within(&profile, value - t * t / 2.0);
        let edge = table.place(at).min(most);
        let shape = shapes[profile[at.round() as usize].0];
        let between = between_groups(&table, dispersion, at, model.groups);
        let single = table.step * (last - first + 1) as f64 / 2.0 / t;
        let half = t * frame.shrunk(single, between, model.groups) * frame.doubt();
        let half = half.max(frame.narrowest());
        let (held, broke) = gap(rungs, frame.allowed).unwrap_or((edge, edge));
        let low = table.place(first as f64 - 0.5).min(edge - half).min(held);
        let high = table.place(last as f64 + 0.5).max(edge + half).max(broke);
        let stops = model.stops(edge, shape, student).filter(|_| lumps > 1.0);
        let (few, many) = stops.unwrap_or((1.0, 1.0));
        let margin = (most - edge).max(MARGIN);
        let (low, high) = (
            low.min((most - many * margin).max(frame.between.0.ln())),
            high.max(most - few * margin),
        );
        Some(Edge {
            rate: edge.exp(),
            low: (low.min(most - off.max(INSTANCES)) - frame.unseen()).exp(),
            high: high.min(most + off).exp(),
            saturated: most.exp(),
            floor: shape.floor,
            factor: shape.factor,
            dispersion,
        })
    }

    /// How much nearer the rate is at which all would be bad than saturation is: 1 for a queue, more for a cliff below
    /// saturation.
    pub(crate) fn steep(&self) -> f64 {
        match self.factor >= CLIFF {
            true => self.factor,
            false => 1.0,
        }
    }

    /// Half of the interval as a share of the rate.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trials whose shares are those of a queue with this edge and variability, saturated at 2000/s.
    fn trials(edge: f64, factor: f64) -> Vec<Rung> {
        let slope = factor * 100.0_f64.ln() / (2000.0 / edge).ln();
        let rungs = [0.9, 0.94, 0.97, 1.0, 1.02, 1.04];
        let rung = |(place, share): (usize, &f64)| {
            let rate = share * edge;
            Rung {
                rate,
                bad: (0.01_f64.ln() + slope * share.ln()).exp().min(1.0),
                due: rate,
                completed: rate,
                seconds: 20.0,
                group: place % 3,
            }
        };
        rungs.iter().enumerate().map(rung).collect()
    }

    fn frame() -> Frame {
        Frame {
            allowed: 0.01,
            confidence: 0.95,
            limit_s: 0.03,
            closed: Closed {
                rate: 2000.0,
                off: 0.01,
                wander: 0.0,
            },
            between: (200.0, 2200.0),
        }
    }

    #[test]
    fn the_edge_is_where_as_many_are_bad_as_are_allowed() {
        for (edge, factor) in [(1846.0, 1.0), (1846.0, 2.5), (1700.0, 0.63), (1900.0, 1.0)] {
            let found = Edge::of(&trials(edge, factor), &frame()).unwrap();
            assert!((found.rate / edge - 1.0).abs() < 0.015, "{edge}: {found:?}");
            assert!(found.low < edge && edge < found.high, "{edge}: {found:?}");
        }
    }

    #[test]
    fn no_edge_is_beyond_what_the_saturated_target_completes() {
        let over = |rate: f64| Rung {
            rate,
            bad: 0.0,
            due: rate,
            completed: 1500.0,
            seconds: 5.0,
            group: 0,
        };
        let rungs = [1400.0, 1450.0, 1700.0, 1800.0, 1900.0].map(|rate| match rate < 1500.0 {
            true => Rung {
                completed: rate,
                ..over(rate)
            },
            false => over(rate),
        });
        let found = Edge::of(&rungs, &frame()).unwrap();
        assert!((found.saturated - 1500.0).abs() < 1.0, "{found:?}");
        assert!(found.rate <= 1500.0 && found.high < 1530.0, "{found:?}");
    }

    #[test]
    fn more_of_the_same_makes_the_interval_narrower() {
        // Of long ones both are as narrow as an interval may be.
        let short = |rung| Rung {
            seconds: 8.0,
            ..rung
        };
        let once: Vec<Rung> = trials(1846.0, 1.0).into_iter().map(short).collect();
        let often: Vec<Rung> = (0..6)
            .flat_map(|group| once.iter().map(move |rung| Rung { group, ..*rung }))
            .collect();
        let widths = [&once, &often].map(|rungs| Edge::of(rungs, &frame()).unwrap().half_width());
        assert!(widths[1] < 0.85 * widths[0], "{widths:?}");
    }

    #[test]
    fn a_closed_loop_tells_wandering_from_counting() {
        let windows = |stretch: f64| -> Vec<(u64, f64)> {
            let count = |at: u32| {
                let counting = [-20.0, 15.0, -5.0, 20.0, -10.0][at as usize % 5];
                let place = f64::from(at / 5) - 2.5;
                (200.0 + counting + stretch * place) as u64
            };
            (0..30).map(|at| (count(at), 0.1)).collect()
        };
        let steady = Closed::of(&windows(0.0)).unwrap();
        assert_eq!((steady.rate, steady.wander), (2000.0, 0.0));
        let wandering = Closed::of(&windows(8.0)).unwrap();
        assert!((0.05..0.1).contains(&wandering.wander), "{wandering:?}");
        assert_eq!(Closed::of(&windows(8.0)[..6]).unwrap().wander, 0.0);
        assert_eq!(Closed::of(&[(1000, 0.5)]), None);
    }
}
