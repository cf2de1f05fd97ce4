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
const FACTOR_SD: f64 = 0.5;
/// Floors that are tried, as shares of what is allowed, and how much each is doubted beforehand.
const FLOORS: [(f64, f64); 4] = [(0.0, 0.0), (0.2, 1.0), (0.5, 1.5), (0.8, 2.0)];
/// A target that completed this share of what was due at most, and by so many standard deviations of two Poisson processes less,
/// had more to do than it can.
const OVERLOADED: f64 = 0.97;
const SIGNIFICANT: f64 = 4.0;
/// Half of the interval of what a saturated target completes is between these, as a share: instances differ by a per
/// cent or so.
const OFF: (f64, f64) = (0.015, 0.05);
/// Places of the edge that are tried.
const STEPS: usize = 100;
/// The interval is never narrower than this, as a share of the rate on either side.
const NARROWEST: f64 = 0.005;
/// Shares below and above these, in units of what is allowed, are not told from these.
const LEAST: f64 = 0.02;
const MOST: f64 = 15.0;
/// How much is believed beforehand of the dispersion, in trials.
const KNOWN: f64 = 4.0;
/// The dispersion that is believed beforehand: targets know more memories than their queue.
const LIKELY: f64 = 1.2;
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
    /// Trial, and how many responses it counts for: those of a queue go together for 2 / margin² requests.
    rungs: Vec<(Rung, f64)>,
    allowed: f64,
    /// Logarithm of the responses per second of a saturated target.
    saturated: f64,
}

impl Model {
    /// Counts the responses of each trial that are independent: a queue forgets within variability / margin² requests.
    fn count(&mut self, variability: f64) {
        for (rung, counts) in &mut self.rungs {
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

    /// Logarithm of the quasi-likelihood, and its statistic of Pearson over trials.
    fn likelihood(&self, edge: f64, shape: Shape) -> f64 {
        let each = self.rungs.iter().map(|(rung, counts)| {
            let share = self.share(rung.rate, edge, shape);
            let bad = rung.bad.min(self.most());
            counts * (bad * share.ln() + (1.0 - bad) * (1.0 - share).ln())
        });
        each.sum()
    }

    /// How much more than expected goes together: Pearson's statistic per degree of freedom, over trials, or over
    /// groups where these differ more from one another than their trials do.
    fn dispersion(&self, edge: f64, shape: Shape, believed: f64) -> f64 {
        let mut groups: Vec<(usize, f64, f64)> = Vec::new();
        let mut sum = 0.0;
        for (rung, counts) in &self.rungs {
            let share = self.share(rung.rate, edge, shape);
            let variance = counts * share * (1.0 - share);
            let off = counts * (rung.bad.min(self.most()) - share);
            sum += off * off / variance;
            match groups.iter_mut().find(|group| group.0 == rung.group) {
                Some(group) => (group.1, group.2) = (group.1 + off, group.2 + variance),
                None => groups.push((rung.group, off, variance)),
            }
        }
        let per = |sum: f64, freedom: f64| (KNOWN * believed + sum) / (KNOWN + freedom.max(0.0));
        let over_groups = groups
            .iter()
            .map(|(_, off, variance)| off * off / variance)
            .sum();
        let over_trials = per(sum, self.rungs.len() as f64 - 3.0);
        over_trials
            .max(per(over_groups, groups.len() as f64 - 1.0))
            .max(LEAST_DISPERSION)
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
        let (most, off) = saturated(rungs, frame);
        let mut model = Model {
            rungs: rungs.iter().map(|rung| (*rung, 1.0)).collect(),
            allowed: frame.allowed,
            saturated: most,
        };
        let low = frame.between.0.ln();
        let high = frame.between.1.ln().min(most + off);
        let step = (high - low) / STEPS as f64;
        let shapes: Vec<Shape> = FACTORS
            .iter()
            .flat_map(|factor| {
                FLOORS.map(|(floor, doubt)| Shape {
                    factor: *factor,
                    floor: floor * frame.allowed,
                    doubt: doubt + (factor.ln() / FACTOR_SD).powi(2) / 2.0,
                })
            })
            .collect();
        let place = |at: usize| low + step * at as f64;
        let mut dispersion = LIKELY;
        let mut best = (STEPS / 2, 0);
        let mut table = Vec::new();
        let value = |table: &[Vec<f64>], at: usize, shape: usize, dispersion: f64| {
            table[at][shape] / dispersion - shapes[shape].doubt
        };
        for round in 0..3 {
            let variability = match round {
                0 => OF_MM1,
                _ => frame.variability(place(best.0), most),
            };
            model.count(variability);
            let of_place = |at| {
                shapes
                    .iter()
                    .map(|shape| model.likelihood(place(at), *shape))
                    .collect()
            };
            table = (0..=STEPS).map(of_place).collect();
            let all = (0..=STEPS).flat_map(|at| (0..shapes.len()).map(move |shape| (at, shape)));
            let value = |one: &(usize, usize)| value(&table, one.0, one.1, dispersion);
            best = all.max_by(|a, b| value(a).total_cmp(&value(b)))?;
            let margin = (most - place(best.0)).max(MARGIN);
            let wander = 2.0 * frame.closed.wander / margin;
            let believed = LIKELY * (1.0 + wander * wander).min(WANDERING);
            dispersion = model.dispersion(place(best.0), shapes[best.1], believed);
        }
        let peak = value(&table, best.0, best.1, dispersion);
        let freedom = (rungs.len() as u32).saturating_sub(3).max(1);
        let t = student_quantile(1.0 - frame.confidence, freedom);
        let is_likely = |at: &usize| {
            let profile = (0..shapes.len()).map(|shape| value(&table, *at, shape, dispersion));
            2.0 * (peak - profile.fold(f64::NEG_INFINITY, f64::max)) <= t * t
        };
        let likely: Vec<usize> = (0..=STEPS).filter(is_likely).collect();
        let first = place(*likely.first()?) - step / 2.0;
        let last = place(*likely.last()?) + step / 2.0;
        let edge = place(best.0).min(most);
        Some(Edge {
            rate: edge.exp(),
            low: first.min(most - off).min(edge - NARROWEST).exp(),
            high: last.min(most + off).max(edge + NARROWEST).exp(),
            saturated: most.exp(),
            floor: shapes[best.1].floor,
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
