//! The share of bad responses as a function of the rate, and how likely it makes what trials showed.

use crate::edge::{MARGIN, Rung};

/// How much steeper the share may be than the law of a simple queue has it, and how well that is known beforehand
/// (standard deviation of its logarithm).
const FACTORS: [f64; 10] = [0.25, 0.4, 0.63, 1.0, 1.6, 2.5, 4.0, 8.0, 16.0, 40.0];
pub(crate) const FACTOR_SD: f64 = 0.3;
/// Floors that are tried, as shares of what is allowed, and how much each is doubted beforehand.
const FLOORS: [(f64, f64); 4] = [(0.0, 0.0), (0.2, 1.5), (0.5, 2.5), (0.8, 3.5)];
/// Shares below and above these, in units of what is allowed, are not told from these.
const LEAST: f64 = 0.02;
const MOST: f64 = 15.0;
/// Trials of which the curve expects less than this, in units of what is allowed, tell whether the target stops now and
/// then, by so many stops at least: one or two may be what a queue does.
const LOW: f64 = 0.7;
const STOPS: f64 = 2.5;
/// How much is believed beforehand of the dispersion, in trials.
const KNOWN: f64 = 4.0;
/// What regular trials may make of it at least.
const LEAST_DISPERSION: f64 = 0.8;

/// How steep, and the floor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) factor: f64,
    pub(crate) floor: f64,
    pub(crate) doubt: f64,
}

/// A trial as the model counts it.
pub(crate) struct Counted {
    pub(crate) rung: Rung,
    /// Logarithm of its rate.
    ln_rate: f64,
    /// Place of its group.
    group: usize,
    /// How many responses it counts for: those of a queue go together for 2 / margin² requests.
    counts: f64,
}

/// Trials, and what is known of them before any model.
pub(crate) struct Model {
    pub(crate) rungs: Vec<Counted>,
    /// How many groups there are.
    pub(crate) groups: usize,
    pub(crate) allowed: f64,
    /// Logarithm of the responses per second of a saturated target.
    pub(crate) saturated: f64,
}

/// The share that is expected to be bad, of one edge and shape.
struct Curve {
    edge: f64,
    floor: f64,
    /// Logarithm of the share at the edge beyond the floor, and how it grows with that of the rate.
    own: f64,
    slope: f64,
    /// Shares are between these, which have these logarithms, and these of what is left of one.
    ends: [(f64, f64, f64); 2],
}

impl Curve {
    fn of(model: &Model, edge: f64, shape: Shape) -> Curve {
        let margin = (model.saturated - edge).max(MARGIN);
        let own = ((model.allowed - shape.floor) / (1.0 - shape.floor)).ln();
        let end = |share: f64| (share, share.ln(), (-share).ln_1p());
        Curve {
            edge,
            floor: shape.floor,
            own,
            slope: shape.factor * -own / margin,
            ends: [end(model.allowed * LEAST), end(model.most())],
        }
    }

    /// The share at a rate, its logarithm, and that of what is left of one.
    fn at(&self, ln_rate: f64) -> (f64, f64, f64) {
        let [least, most] = self.ends;
        let own = (self.own + self.slope * (ln_rate - self.edge)).min(0.0);
        if self.floor == 0.0 && own <= least.1 {
            return least;
        }
        let share = self.floor + (1.0 - self.floor) * own.exp();
        match () {
            () if share <= least.0 => least,
            () if share >= most.0 => most,
            () if self.floor == 0.0 => (share, own, (-share).ln_1p()),
            () => (share, share.ln(), (-share).ln_1p()),
        }
    }
}

impl Model {
    pub(crate) fn new(rungs: &[Rung], allowed: f64, saturated: f64) -> Model {
        let mut groups: Vec<usize> = rungs.iter().map(|rung| rung.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let counted = |rung: &Rung| Counted {
            rung: *rung,
            ln_rate: rung.rate.ln(),
            group: groups.binary_search(&rung.group).unwrap_or(0),
            counts: 1.0,
        };
        Model {
            rungs: rungs.iter().map(counted).collect(),
            groups: groups.len(),
            allowed,
            saturated,
        }
    }

    /// Counts the responses of each trial that are independent: a queue forgets within variability / margin² requests.
    pub(crate) fn count(&mut self, variability: f64) {
        for one in &mut self.rungs {
            let margin = (self.saturated - one.ln_rate).max(MARGIN);
            let requests = one.rung.rate * one.rung.seconds;
            one.counts = (requests * margin * margin / variability).max(1.0);
        }
    }

    /// Shares above this are not told from it.
    pub(crate) fn most(&self) -> f64 {
        (self.allowed * MOST).min(1.0 - self.allowed * LEAST)
    }

    /// Logarithm of the quasi-likelihood, of each group.
    pub(crate) fn likelihood(&self, edge: f64, shape: Shape) -> Vec<f64> {
        let mut sums = vec![0.0; self.groups];
        let curve = Curve::of(self, edge, shape);
        for one in &self.rungs {
            let (_, bad, good) = curve.at(one.ln_rate);
            sums[one.group] += one.counts * (one.rung.bad * bad + (1.0 - one.rung.bad) * good);
        }
        sums
    }

    /// Of a target that stops now and then: between which factors of the seen one the share of the time may be in which it does,
    /// at so many standard deviations. `None` where no more is bad at low rates than the curve has there, or in a stop or
    /// two. A stop makes responses bad for a time of 1 / margin, until its backlog is done, so bad · margin · seconds of a
    /// trial are a sum over its stops. How many there were follows from how these sums vary.
    pub(crate) fn stops(&self, edge: f64, shape: Shape, deviations: f64) -> Option<(f64, f64)> {
        let curve = Curve::of(self, edge, shape);
        let (mut all, mut low, mut more) = (Vec::new(), Vec::new(), 0.0);
        for Counted { rung, ln_rate, .. } in &self.rungs {
            let (share, ..) = curve.at(*ln_rate);
            let margin = (self.saturated - ln_rate).max(MARGIN);
            if share < self.most() {
                all.push((rung.bad * margin * rung.seconds, rung.seconds));
            }
            if share < LOW * self.allowed {
                low.push((rung.bad * rung.seconds, rung.seconds));
                more += (rung.bad - share) * rung.seconds;
            }
        }
        let is_so = more > 0.0 && counted(&low) >= STOPS;
        is_so.then(|| times_counted(counted(&all), deviations))
    }

    /// Whether a trial that was to have next to none had far more than are allowed.
    pub(crate) fn has_lumps(&self, edge: f64, shape: Shape) -> bool {
        let curve = Curve::of(self, edge, shape);
        self.rungs.iter().any(|one| {
            one.rung.bad > 2.0 * self.allowed && curve.at(one.ln_rate).0 < 0.5 * self.allowed
        })
    }

    /// How much more than expected goes together: Pearson's statistic per degree of freedom, over trials, or over
    /// groups where these differ more from one another than their trials do.
    pub(crate) fn dispersion(&self, edge: f64, shape: Shape, believed: f64) -> f64 {
        let mut groups = vec![(0.0, 0.0); self.groups];
        let mut sum = 0.0;
        let curve = Curve::of(self, edge, shape);
        for one in &self.rungs {
            let (share, ..) = curve.at(one.ln_rate);
            let variance = one.counts * share * (1.0 - share);
            // At that share more are as good as expected.
            let off = match share < self.most() {
                true => one.counts * (one.rung.bad - share),
                false => one.counts * (one.rung.bad - share).min(0.0),
            };
            sum += off * off / variance;
            groups[one.group].0 += off;
            groups[one.group].1 += variance;
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

/// How many events sums over some seconds each are of, all as large and as likely at any time: by how the sums vary.
fn counted(sums: &[(f64, f64)]) -> f64 {
    let total: f64 = sums.iter().map(|(sum, _)| sum).sum();
    let rate = total / sums.iter().map(|(_, seconds)| seconds).sum::<f64>();
    let off = sums.iter().map(|(sum, seconds)| sum - rate * seconds);
    let variance: f64 = off.map(|off| off * off).sum();
    match variance > 0.0 {
        true => total * total / variance,
        false => 0.0,
    }
}

/// Between which factors of a count the mean of its Poisson distribution may be: Byar's approximation (Breslow & Day
/// 1987, Statistical Methods in Cancer Research II, chapter 2).
fn times_counted(count: f64, deviations: f64) -> (f64, f64) {
    let at = |count: f64, off: f64| {
        let root = 1.0 - 1.0 / (9.0 * count) + off / (3.0 * count.sqrt());
        count * root.max(0.0).powi(3)
    };
    match count > 0.0 {
        true => (
            at(count, -deviations) / count,
            at(count + 1.0, deviations) / count,
        ),
        false => (0.0, f64::INFINITY),
    }
}

/// Quasi-likelihoods over places of the edge and shapes, of each group.
pub(crate) struct Table<'a> {
    pub(crate) shapes: &'a [Shape],
    pub(crate) low: f64,
    pub(crate) step: f64,
    /// Of a place: of a shape: of a group.
    pub(crate) cells: Vec<Vec<Vec<f64>>>,
}

impl Table<'_> {
    pub(crate) fn of<'a>(
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

    pub(crate) fn place(&self, at: f64) -> f64 {
        self.low + self.step * at
    }

    /// The best shape and its value at each place, without one of the groups or with all.
    pub(crate) fn profile(&self, dispersion: f64, without: Option<usize>) -> Vec<(usize, f64)> {
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
    pub(crate) fn peak(profile: &[(usize, f64)]) -> (f64, f64) {
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

/// The shapes that are tried; the steepness is known beforehand to such a standard deviation of its logarithm.
pub(crate) fn shapes(allowed: f64, sd: f64) -> Vec<Shape> {
    let of_factor = |factor: &f64| {
        // Student's t of three degrees of freedom: a cliff far from saturation is rare, not impossible.
        let steep = 2.0 * ((factor.ln() / sd).powi(2) / 3.0).ln_1p();
        let factor = *factor;
        FLOORS.map(move |(floor, doubt)| Shape {
            factor,
            floor: floor * allowed,
            doubt: doubt + steep,
        })
    };
    FACTORS.iter().flat_map(of_factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_counted_and_what_a_queue_does_is_no_stop() {
        let (edge, saturated) = (1810.0_f64.ln(), 2000.0_f64.ln());
        let queue = shapes(0.01, FACTOR_SD)[12];
        assert_eq!((queue.factor, queue.floor), (1.0, 0.0));
        let model = |bad: &dyn Fn(usize, f64) -> f64| {
            let rung = |at: usize| {
                let rate = [1500.0, 1700.0, 1810.0][at % 3];
                Rung {
                    rate,
                    bad: bad(at, saturated - rate.ln()),
                    due: rate,
                    completed: rate,
                    seconds: 5.0,
                    group: at / 6,
                }
            };
            Model::new(&(0..60).map(rung).collect::<Vec<Rung>>(), 0.01, saturated)
        };
        // One in six trials has a stop of 10 ms beyond the limit.
        let stops = model(&|at, margin| match at % 6 == at / 6 % 6 {
            true => 0.01 / 5.0 / margin,
            false => 0.0,
        });
        let (few, many) = stops.stops(edge, queue, 1.96).unwrap();
        assert!(
            (0.45..0.6).contains(&few) && (1.6..1.9).contains(&many),
            "{few} {many}"
        );
        let curve = Curve::of(&stops, edge, queue);
        let as_expected = model(&|_, margin| 0.99 * curve.at(saturated - margin).0);
        assert_eq!(as_expected.stops(edge, queue, 1.96), None);
    }
}
