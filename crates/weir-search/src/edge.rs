//! The rate at which as many responses break an objective as are allowed, estimated from trials around it.
//!
//! The share of the responses that break an objective grows with the rate as a psychometric function does: from a
//! floor that no rate avoids (stalls, errors) to all of them (Treutwein 1995, Vision Research 35; Watson 2017, Journal
//! of Vision 17). In a queue its logarithm grows about linearly with the rate, and the share is one where the target is
//! saturated (Kingman 1962, heavy traffic): how steep it is follows from where it is, but for a factor. The model is
//! quasi-binomial (McCullagh & Nelder 1989, chapter 4.5), because responses of one queue go together.

use weir_stats::student_quantile;

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
    /// How much more than expected of a queue responses go together.
    pub dispersion: f64,
}

/// How much steeper the share may be than the law of a simple queue has it, and how well that is known beforehand
/// (standard deviation of its logarithm).
const FACTORS: [f64; 8] = [0.25, 0.4, 0.63, 1.0, 1.6, 2.5, 4.0, 8.0];
const FACTOR_SD: f64 = 0.3;
/// Floors that are tried, as shares of what is allowed, and how much each is doubted beforehand.
const FLOORS: [(f64, f64); 4] = [(0.0, 0.0), (0.2, 1.5), (0.5, 2.5), (0.8, 3.5)];
/// A target that completed this share of what was due at most, and by so many standard deviations of two Poisson processes less,
/// had more to do than it can.
const OVERLOADED: f64 = 0.97;
const SIGNIFICANT: f64 = 4.0;
/// Half of the interval of what a saturated target completes is between these, as a share: instances differ by a per
/// cent or so.
const OFF: (f64, f64) = (0.015, 0.05);
/// A target wanders whose closed loop did by so much from window to window beyond a Poisson process; and how many groups
/// are believed that differ as the model has it.
pub(crate) const WANDERS: f64 = 0.015;
const GROUPS: f64 = 4.0;
/// Places of the edge that are tried, at first and at last; and how far about the peak it is looked at last.
const COARSE: usize = 40;
const STEPS: usize = 80;
const WIDE: f64 = 2.0;
/// The interval is never narrower than this, as a share of the rate on either side: instances differ.
const NARROWEST: f64 = 0.02;
/// Shares below and above these, in units of what is allowed, are not told from these.
const LEAST: f64 = 0.02;
const MOST: f64 = 15.0;
/// How much is believed beforehand of the dispersion, in trials.
const KNOWN: f64 = 4.0;
/// The dispersion that is believed beforehand: targets know more memories than their queue.
const LIKELY: f64 = 1.1;
/// What regular trials may make of it at least.
const LEAST_DISPERSION: f64 = 0.8;
/// What a target's wandering speed may make of it at most.
const WANDERING: f64 = 6.0;
/// Sum of the squared coefficients of variation of the times between arrivals and of the service times, which a queue's
/// memory is proportional to: what it may be, and what it is of M/M/1.
const VARIABILITY: (f64, f64) = (0.05, 4.0);
const OF_MM1: f64 = 2.0;
/// The least margin to saturation.
const MARGIN: f64 = 0.005;

/// What a closed loop has completed: what the target carries at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Closed {
    /// Responses per second.
    pub rate: f64,
    /// Half of the interval of its mean, as a share.
    pub off: f64,
    /// How much the target's speed wanders from one second to the next: the standard deviation of the logarithm of what
    /// windows of about a second completed, beyond that of a Poisson process.
    pub wander: f64,
}

impl Closed {
    /// Of windows of a closed loop, each so many responses in so many seconds; `None` with fewer than two.
    pub fn of(windows: &[(u64, f64)]) -> Option<Closed> {
        let rates: Vec<f64> = windows
            .iter()
            .map(|(n, seconds)| *n as f64 / seconds)
            .collect();
        let n = rates.len() as f64;
        let rate = rates.iter().sum::<f64>() / n;
        let sd = weir_stats::sd(&rates)? / rate;
        let counted = windows.iter().map(|(n, _)| *n as f64).sum::<f64>() / n;
        let half = student_quantile(0.05, windows.len() as u32 - 1) * sd / n.sqrt();
        Some(Closed {
            rate,
            off: half.clamp(OFF.0, OFF.1),
            wander: (sd * sd - 1.0 / counted).max(0.0).sqrt(),
        })
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

/// How steep, and the floor.
#[derive(Debug, Clone, Copy)]
struct Shape {
    factor: f64,
    floor: f64,
    doubt: f64,
}

/// Trials, and what is known of them before any model.
struct Model {
    /// Trial, the place of its group, and how many responses it counts for: those of a queue go together for
    /// 2 / margin² requests.
    rungs: Vec<(Rung, usize, f64)>,
    /// How many groups there are.
    groups: usize,
    allowed: f64,
    /// Logarithm of the responses per second of a saturated target.
    saturated: f64,
}

impl Model {
    fn new(rungs: &[Rung], allowed: f64, saturated: f64) -> Model {
        let mut groups: Vec<usize> = rungs.iter().map(|rung| rung.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let place = |rung: &Rung| groups.binary_search(&rung.group).unwrap_or(0);
        Model {
            rungs: rungs.iter().map(|rung| (*rung, place(rung), 1.0)).collect(),
            groups: groups.len(),
            allowed,
            saturated,
        }
    }

    /// Counts the responses of each trial that are independent: a queue forgets within variability / margin² requests.
    fn count(&mut self, variability: f64) {
        for (rung, _, counts) in &mut self.rungs {
            let margin = (self.saturated - rung.rate.ln()).max(MARGIN);
            *counts = (rung.rate * rung.seconds * margin * margin / variability).max(1.0);
        }
    }

    /// Share that is expected to be bad at a rate.
    fn share(&self, rate: f64, edge: f64, shape: Shape) -> f64 {
        let margin = (self.saturated - edge).max(MARGIN);
        let own = (self.allowed - shape.floor) / (1.0 - shape.floor);
        let slope = shape.factor * -own.ln() / margin;
        let share = shape.floor
            + (1.0 - shape.floor) * (own.ln() + slope * (rate.ln() - edge)).min(0.0).exp();
        share.clamp(self.allowed * LEAST, self.most())
    }

    /// Shares above this are not told from it.
    fn most(&self) -> f64 {
        (self.allowed * MOST).min(1.0 - self.allowed * LEAST)
    }

    /// Logarithm of the quasi-likelihood, of each group.
    fn likelihood(&self, edge: f64, shape: Shape) -> Vec<f64> {
        let mut sums = vec![0.0; self.groups];
        for (rung, group, counts) in &self.rungs {
            let share = self.share(rung.rate, edge, shape);
            let bad = rung.bad;
            sums[*group] += counts * (bad * share.ln() + (1.0 - bad) * (1.0 - share).ln());
        }
        sums
    }

    /// How much more than expected goes together: Pearson's statistic per degree of freedom, over trials, or over
    /// groups where these differ more from one another than their trials do.
    fn dispersion(&self, edge: f64, shape: Shape, believed: f64) -> f64 {
        let mut groups = vec![(0.0, 0.0); self.groups];
        let mut sum = 0.0;
        for (rung, group, counts) in &self.rungs {
            let share = self.share(rung.rate, edge, shape);
            let variance = counts * share * (1.0 - share);
            // At that share more are as good as expected.
            let off = match share < self.most() {
                true => counts * (rung.bad - share),
                false => counts * (rung.bad - share).min(0.0),
            };
            sum += off * off / variance;
            groups[*group].0 += off;
            groups[*group].1 += variance;
        }
        let per = |sum: f64, freedom: f64| (KNOWN * believed + sum) / (KNOWN + freedom.max(0.0));
        let over_groups = groups
            .iter()
            .map(|(off, variance)| off * off / variance)
            .sum();
        let over_trials = per(sum, self.rungs.len() as f64 - 3.0);
        over_trials
            .max(per(over_groups, groups.len() as f64 - 1.0))
            .max(LEAST_DISPERSION)
    }
}

/// Quasi-likelihoods over places of the edge and shapes, of each group.
struct Table<'a> {
    shapes: &'a [Shape],
    low: f64,
    step: f64,
    /// Of a place: of a shape: of a group.
    cells: Vec<Vec<Vec<f64>>>,
}

impl Table<'_> {
    fn of<'a>(
        model: &Model,
        shapes: &'a [Shape],
        (low, high): (f64, f64),
        steps: usize,
    ) -> Table<'a> {
        let step = (high - low) / steps as f64;
        let row = |at: usize| {
            let edge = low + step * at as f64;
            shapes
                .iter()
                .map(|shape| model.likelihood(edge, *shape))
                .collect()
        };
        Table {
            shapes,
            low,
            step,
            cells: (0..=steps).map(row).collect(),
        }
    }

    fn place(&self, at: f64) -> f64 {
        self.low + self.step * at
    }

    /// The best shape and its value at each place, without one of the groups or with all.
    fn profile(&self, dispersion: f64, without: Option<usize>) -> Vec<(usize, f64)> {
        let best = |row: &Vec<Vec<f64>>| {
            let value = |(place, groups): (usize, &Vec<f64>)| {
                let left_out = without.map_or(0.0, |group| groups[group]);
                let sum = groups.iter().sum::<f64>() - left_out;
                (place, sum / dispersion - self.shapes[place].doubt)
            };
            let values = row.iter().enumerate().map(value);
            values.fold((0, f64::NEG_INFINITY), |best, next| match next.1 > best.1 {
                true => next,
                false => best,
            })
        };
        self.cells.iter().map(best).collect()
    }

    /// The place where a profile is highest, and the value there, between the places of the table: the vertex of the
    /// parabola through three of them.
    fn peak(profile: &[(usize, f64)]) -> (f64, f64) {
        let at = (0..profile.len()).max_by(|a, b| profile[*a].1.total_cmp(&profile[*b].1));
        let at = at.unwrap_or(0);
        let value = |place: usize| profile[place].1;
        if at == 0 || at + 1 == profile.len() {
            return (at as f64, value(at));
        }
        let (before, here, after) = (value(at - 1), value(at), value(at + 1));
        let bend = before - 2.0 * here + after;
        let off = match bend < 0.0 {
            true => 0.5 * (before - after) / bend,
            false => 0.0,
        };
        (at as f64 + off.clamp(-0.5, 0.5), here)
    }
}

/// The shapes that are tried.
fn shapes(frame: &Frame) -> Vec<Shape> {
    let (allowed, sd) = (frame.allowed, frame.factor_sd());
    let of_factor = |factor: &f64| {
        let steep = (factor.ln() / sd).powi(2) / 2.0;
        let factor = *factor;
        FLOORS.map(move |(floor, doubt)| Shape {
            factor,
            floor: floor * allowed,
            doubt: doubt + steep,
        })
    };
    FACTORS.iter().flat_map(of_factor).collect()
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
        let shapes = shapes(frame);
        let mut range = (frame.between.0.ln(), frame.between.1.ln().min(most + off));
        let freedom = (rungs.len() as u32).saturating_sub(3).max(1);
        let t = student_quantile(1.0 - frame.confidence, freedom);
        let (mut dispersion, mut variability) = (LIKELY, OF_MM1);
        // Coarse, with what is believed; then with what was seen, around it.
        for _ in 0..2 {
            model.count(variability);
            let table = Table::of(&model, &shapes, range, COARSE);
            let profile = table.profile(dispersion, None);
            let (at, value) = Table::peak(&profile);
            let edge = table.place(at);
            let wander = 2.0 * frame.closed.wander / (most - edge).max(MARGIN);
            let believed = LIKELY * (1.0 + wander * wander).min(WANDERING);
            dispersion = model.dispersion(edge, shapes[profile[at.round() as usize].0], believed);
            variability = frame.variability(edge, most);
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
        let between = between_groups(&table, dispersion, at, model.groups);
        let single = table.step * (last - first + 1) as f64 / 2.0 / t;
        let half = t * frame.shrunk(single, between, model.groups);
        let half = half.max(NARROWEST);
        let low = table.place(first as f64 - 0.5).min(edge - half);
        let high = table.place(last as f64 + 0.5).max(edge + half);
        Some(Edge {
            rate: edge.exp(),
            low: low.min(most - off).exp(),
            high: high.min(most + off).exp(),
            saturated: most.exp(),
            floor: shapes[profile[at.round() as usize].0].floor,
            dispersion,
        })
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
        let once = trials(1846.0, 1.0);
        let often: Vec<Rung> = (0..6)
            .flat_map(|group| once.iter().map(move |rung| Rung { group, ..*rung }))
            .collect();
        let widths = [&once, &often].map(|rungs| Edge::of(rungs, &frame()).unwrap().half_width());
        assert!(widths[1] < 0.7 * widths[0], "{widths:?}");
    }

    #[test]
    fn a_closed_loop_tells_wandering_from_counting() {
        let steady = Closed::of(&[(1000, 0.5), (1030, 0.5), (970, 0.5)]).unwrap();
        assert_eq!((steady.rate, steady.wander), (2000.0, 0.0));
        let wandering = Closed::of(&[(1000, 0.5), (1100, 0.5), (900, 0.5)]).unwrap();
        assert!(
            wandering.wander > 0.09 && wandering.off == OFF.1,
            "{wandering:?}"
        );
        assert_eq!(Closed::of(&[(1000, 0.5)]), None);
    }
}
