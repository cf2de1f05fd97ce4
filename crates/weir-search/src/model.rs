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

/// Trials, and what is known of them before any model.
pub(crate) struct Model {
    /// Trial, the place of its group, and how many responses it counts for: those of a queue go together for
    /// 2 / margin² requests.
    pub(crate) rungs: Vec<(Rung, usize, f64)>,
    /// How many groups there are.
    pub(crate) groups: usize,
    pub(crate) allowed: f64,
    /// Logarithm of the responses per second of a saturated target.
    pub(crate) saturated: f64,
}

impl Model {
    pub(crate) fn new(rungs: &[Rung], allowed: f64, saturated: f64) -> Model {
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
    pub(crate) fn count(&mut self, variability: f64) {
        for (rung, _, counts) in &mut self.rungs {
            let margin = (self.saturated - rung.rate.ln()).max(MARGIN);
            *counts = (rung.rate * rung.seconds * margin * margin / variability).max(1.0);
        }
    }

    /// Share that is expected to be bad at a rate.
    pub(crate) fn share(&self, rate: f64, edge: f64, shape: Shape) -> f64 {
        let margin = (self.saturated - edge).max(MARGIN);
        let own = (self.allowed - shape.floor) / (1.0 - shape.floor);
        let slope = shape.factor * -own.ln() / margin;
        let share = shape.floor
            + (1.0 - shape.floor) * (own.ln() + slope * (rate.ln() - edge)).min(0.0).exp();
        share.clamp(self.allowed * LEAST, self.most())
    }

    /// Shares above this are not told from it.
    pub(crate) fn most(&self) -> f64 {
        (self.allowed * MOST).min(1.0 - self.allowed * LEAST)
    }

    /// Logarithm of the quasi-likelihood, of each group.
    pub(crate) fn likelihood(&self, edge: f64, shape: Shape) -> Vec<f64> {
        let mut sums = vec![0.0; self.groups];
        for (rung, group, counts) in &self.rungs {
            let share = self.share(rung.rate, edge, shape);
            let bad = rung.bad;
            sums[*group] += counts * (bad * share.ln() + (1.0 - bad) * (1.0 - share).ln());
        }
        sums
    }

    /// Whether a trial that was to have next to none had far more than are allowed.
    pub(crate) fn has_lumps(&self, edge: f64, shape: Shape) -> bool {
        self.rungs.iter().any(|(rung, ..)| {
            rung.bad > 2.0 * self.allowed && self.share(rung.rate, edge, shape) < 0.5 * self.allowed
        })
    }

    /// How much more than expected goes together: Pearson's statistic per degree of freedom, over trials, or over
    /// groups where these differ more from one another than their trials do.
    pub(crate) fn dispersion(&self, edge: f64, shape: Shape, believed: f64) -> f64 {
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
