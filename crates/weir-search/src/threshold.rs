//! Estimate of the rate at which a target begins to break its objective, and of how much that rate scatters.
//!
//! A trial holds if its rate is below the threshold of that moment. Thresholds of dwells scatter around a central value
//! C with a standard deviation σ (of the logarithm); those of holds lie a further δ ≥ 0 below, because a hold meets the
//! worst moments of a minute, and because of possible build-up. The result of a trial is binary, so the chance to hold
//! is a psychometric function, as in the estimation of thresholds in psychophysics (Watson & Pelli 1983, QUEST;
//! Kontsevich & Tyler 1999), with lapses on both sides. The posterior of (C, σ, δ) is computed on a grid.
//!
//! The holds of a target that has stalled may scatter more than its dwells, and lie lower.
//!
//! σ replaces any detection of changes: a target that drifts has a larger σ, and its interval is wider.

use std::sync::OnceLock;

use weir_stats::normal_cdf;

/// Chance that a trial far below the threshold breaks, and that one far above it holds.
const LAPSE: f64 = 0.04;
const GUESS: f64 = 0.01;
/// Values of σ with their prior weights, about σ^0.3: twenty binary results say little about σ, and an underestimate
/// makes a claim too narrow. Servers whose limit scatters by more than 8 % are rare.
const SCATTER: [(f64, f64); 11] = [
    (0.002, 0.43),
    (0.0035, 0.73),
    (0.006, 0.86),
    (0.01, 1.0),
    (0.016, 1.15),
    (0.024, 1.3),
    (0.036, 1.3),
    (0.055, 1.15),
    (0.085, 0.76),
    (0.14, 0.33),
    (0.25, 0.13),
];
/// Values of δ due to the worst moments of a minute, in units of σ + 0.3 %, with a half-normal prior of this scale.
const DIPS: [f64; 8] = [0.0, 0.4, 0.8, 1.2, 1.6, 2.1, 2.7, 3.4];
const DIP_SCALE: f64 = 1.6;
const LEAST_DIP: f64 = 0.003;
/// Values of δ due to build-up: the smallest, the factor between neighbours, and their number. All are equally likely a
/// priori; the second constant is their total weight.
const BUILD_UPS: (f64, f64, i32) = (0.07, 1.12, 35);
const BUILD_UP_WEIGHT: f64 = 0.15;
/// Additional scatter of holds due to stalls, and reduction of their threshold, if most holds meet a stall: the number
/// of stalls in a hold is random.
const STALLING: [f64; 2] = [0.12, 0.3];
/// Number of grid points over ln C: for the first pass over all rates, and for the second, where the first has left
/// mass.
const COARSE: usize = 60;
const FINE: usize = 90;
const NEGLIGIBLE: f64 = 1e-5;
/// Logarithm of the likelihood by dwells, relative to the best, below which a hypothesis is dropped.
const HOPELESS_LOG: f64 = -16.0;
/// Possible distance of the threshold beyond the tried rates, as a logarithm.
const BEYOND: f64 = 0.35;
/// Number of bins of a marginal distribution.
const BINS: usize = 400;

/// Outcome of a trial, as the estimate uses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Datum {
    /// Requests per second.
    pub(crate) rate: f64,
    /// True if it was a hold, and longer than a dwell.
    pub(crate) is_hold: bool,
    /// True if the objective held.
    pub(crate) held: bool,
    /// True if only a stall broke the trial: that says nothing about a dwell's threshold, nor about a hold's if few
    /// holds meet one.
    pub(crate) has_stalled: bool,
    /// Factor on σ for this trial, at least 1: an old trial says less about a threshold that moves.
    pub(crate) spread: f64,
}

/// A hypothesis with its probability. Rates are logarithms.
#[derive(Debug, Clone, Copy)]
struct Cell {
    dwell: f64,
    scatter: f64,
    hold: f64,
    hold_scatter: f64,
    builds_up: bool,
    weight: f64,
}

/// Posterior of the threshold.
#[derive(Debug, Clone)]
pub(crate) struct Threshold {
    cells: Vec<Cell>,
    has_stalled: bool,
}

/// Stalls of the target: moments in which it stood still.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stalls {
    pub(crate) count: usize,
    /// Duration of all trials, in units of a hold.
    pub(crate) holds: f64,
}

impl Stalls {
    /// Returns the probability that most holds meet a stall, for a Poisson process with a flat prior on its frequency
    /// (Gelman and others, Bayesian Data Analysis, 3rd edition, section 2.6).
    pub(crate) fn chance_of_most(self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let most = std::f64::consts::LN_2 * self.holds;
        let (mut term, mut sum) = (1.0, 1.0);
        for count in 1..=self.count {
            term *= most / count as f64;
            sum += term;
        }
        (-most).exp() * sum
    }

    /// Returns the possible additional scatters of holds due to stalls, which also lower their threshold, with the
    /// probability of each.
    fn of_holds(self) -> Vec<(f64, f64)> {
        let most = self.chance_of_most();
        let share = most / STALLING.len() as f64;
        let steady = (0.0, 1.0 - most);
        let stalling = STALLING.map(|stall| (stall, share));
        std::iter::once(steady).chain(stalling).filter(|(_, chance)| *chance > 0.0).collect()
    }
}

/// Kind of trial whose threshold is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Dwell,
    Hold,
}

/// Chance to hold `z` standard deviations below the threshold without lapses, and the logarithms of the chances to hold
/// and to break with lapses.
#[derive(Clone, Copy)]
struct Chances {
    steady: f64,
    holds: f64,
    breaks: f64,
}

fn look_up_chances(z: f64) -> Chances {
    const REACH: f64 = 8.0;
    const STEPS_PER_UNIT: f64 = 64.0;
    static TABLE: OnceLock<Vec<Chances>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let steps = (2.0 * REACH * STEPS_PER_UNIT) as usize;
        (0..=steps)
            .map(|step| {
                let steady = normal_cdf(step as f64 / STEPS_PER_UNIT - REACH);
                let holds = GUESS + (1.0 - GUESS - LAPSE) * steady;
                Chances { steady, holds: holds.ln(), breaks: (1.0 - holds).ln() }
            })
            .collect()
    });
    let step = (z.clamp(-REACH, REACH) + REACH) * STEPS_PER_UNIT;
    table[step.round() as usize]
}

fn log_likelihood<'d>(data: impl Iterator<Item = &'d Datum>, threshold: f64, scatter: f64) -> f64 {
    data.map(|datum| {
        let deviation = scatter * datum.spread;
        let chances = look_up_chances((threshold - datum.rate.ln()) / deviation);
        if datum.held { chances.holds } else { chances.breaks }
    })
    .sum()
}

/// Returns the values of δ for a σ: the value, true if due to build-up, and the logarithmic prior weight.
fn drops(scatter: f64) -> impl Iterator<Item = (f64, bool, f64)> {
    let half_normal = DIPS.map(|dip| (-0.5 * (dip / DIP_SCALE).powi(2)).exp());
    let total: f64 = half_normal.iter().sum();
    let dips = DIPS.iter().zip(half_normal).map(move |(dip, weight)| {
        let prior = (1.0 - BUILD_UP_WEIGHT) * weight / total;
        (dip * (scatter + LEAST_DIP), false, prior.ln())
    });
    let (least, factor, count) = BUILD_UPS;
    let prior = (BUILD_UP_WEIGHT / f64::from(count)).ln();
    let build_ups = (0..count)
        .map(move |place| least * factor.powi(place))
        .filter(move |drop| *drop > 4.0 * scatter)
        .map(move |drop| (drop, true, prior));
    dips.chain(build_ups)
}

/// Computes the posterior on this many equally spaced values of ln C.
fn cells(
    data: &[Datum],
    stalls: &[(f64, f64)],
    (low, high): (f64, f64),
    points: usize,
) -> Vec<Cell> {
    let dwells = data.iter().filter(|datum| !datum.is_hold && !datum.has_stalled);
    let step = (high - low) / (points - 1) as f64;
    let mut without_holds = Vec::with_capacity(points * SCATTER.len());
    for (scatter, prior) in SCATTER {
        for point in 0..points {
            let dwell = low + step * point as f64;
            let weight = prior.ln() + log_likelihood(dwells.clone(), dwell, scatter);
            without_holds.push((dwell, scatter, weight));
        }
    }
    // Holds can make up for some of what dwells say, not for all of it.
    let best = without_holds.iter().fold(f64::NEG_INFINITY, |best, (.., weight)| best.max(*weight));
    let stalled_holds = data.iter().filter(|datum| datum.is_hold && datum.has_stalled).count();
    let mut cells = Vec::new();
    for (dwell, scatter, of_dwells) in without_holds {
        if of_dwells < best + HOPELESS_LOG {
            continue;
        }
        for (stall, weight) in stalls {
            let hold_scatter = scatter.hypot(*stall);
            // If few holds meet a stall, those that did have lapsed.
            let lapses = if *stall == 0.0 { stalled_holds } else { 0 };
            let log_weight = of_dwells + weight.ln() + lapses as f64 * LAPSE.ln();
            cells.extend(drops(scatter).map(|(drop, builds_up, prior)| {
                let hold = dwell - drop - stall;
                let holds = data
                    .iter()
                    .filter(|datum| datum.is_hold && !(datum.has_stalled && *stall == 0.0));
                Cell {
                    dwell,
                    scatter,
                    hold,
                    hold_scatter,
                    builds_up,
                    weight: log_weight + prior + log_likelihood(holds, hold, hold_scatter),
                }
            }));
        }
    }
    let most = cells.iter().map(|cell| cell.weight).fold(f64::NEG_INFINITY, f64::max);
    for cell in &mut cells {
        cell.weight = (cell.weight - most).exp();
    }
    cells.retain(|cell| cell.weight > NEGLIGIBLE);
    let total: f64 = cells.iter().map(|cell| cell.weight).sum();
    for cell in &mut cells {
        cell.weight /= total;
    }
    cells
}

impl Threshold {
    /// Estimates the threshold; None before any trial. Holds of a target that has stalled may scatter more than dwells.
    pub(crate) fn estimate(data: &[Datum], stalls: Stalls) -> Option<Threshold> {
        let of_holds = stalls.of_holds();
        let rates = data.iter().map(|datum| datum.rate.ln());
        let (low, high) = (
            rates.clone().fold(f64::INFINITY, f64::min) - BEYOND,
            rates.fold(f64::NEG_INFINITY, f64::max) + BEYOND,
        );
        if data.is_empty() {
            return None;
        }
        let coarse = cells(data, &of_holds, (low, high), COARSE);
        let step = (high - low) / (COARSE - 1) as f64;
        let likely = coarse.iter().filter(|cell| cell.weight > 1e-7).map(|cell| cell.dwell);
        let from = likely.clone().fold(high, f64::min);
        let to = likely.fold(low, f64::max);
        Some(Threshold {
            cells: cells(data, &of_holds, (from - step, to + step), FINE),
            has_stalled: stalls.count > 0,
        })
    }

    fn value(cell: &Cell, kind: Kind) -> f64 {
        match kind {
            Kind::Dwell => cell.dwell,
            Kind::Hold => cell.hold,
        }
    }

    /// Returns the rate below which the threshold lies with this probability (0..1), requests/s.
    pub(crate) fn quantile(&self, kind: Kind, probability: f64) -> f64 {
        let values = self.cells.iter().map(|cell| Threshold::value(cell, kind));
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        let width = ((high - low) / BINS as f64).max(1e-9);
        let mut bins = vec![0.0; BINS + 1];
        for cell in &self.cells {
            let bin = ((Threshold::value(cell, kind) - low) / width).round() as usize;
            bins[bin.min(BINS)] += cell.weight;
        }
        let mut below = 0.0;
        for (bin, weight) in bins.iter().enumerate() {
            if below + weight >= probability {
                let part = if *weight > 0.0 { (probability - below) / weight } else { 0.5 };
                return (low + width * (bin as f64 - 0.5 + part)).exp();
            }
            below += weight;
        }
        high.exp()
    }

    /// Returns the median of σ, as a share of the rate.
    pub(crate) fn scatter(&self) -> f64 {
        let mut below = 0.0;
        for (scatter, _) in SCATTER {
            below += self
                .cells
                .iter()
                .filter(|cell| cell.scatter == scatter)
                .map(|cell| cell.weight)
                .sum::<f64>();
            if below >= 0.5 {
                return scatter;
            }
        }
        SCATTER[SCATTER.len() - 1].0
    }

    /// Returns the mean of σ: larger than its median if larger values cannot be excluded.
    pub(crate) fn mean_scatter(&self) -> f64 {
        self.cells.iter().map(|cell| cell.weight * cell.scatter).sum()
    }

    /// Returns the standard deviation of ln C.
    pub(crate) fn uncertainty(&self) -> f64 {
        let mean = self.mean();
        let square: f64 =
            self.cells.iter().map(|cell| cell.weight * (cell.dwell - mean).powi(2)).sum();
        square.sqrt()
    }

    /// Returns the mean of ln C.
    pub(crate) fn mean(&self) -> f64 {
        self.cells.iter().map(|cell| cell.weight * cell.dwell).sum()
    }

    /// Returns the probability of build-up: that holds break at rates at which dwells hold, beyond the scatter.
    pub(crate) fn chance_of_build_up(&self) -> f64 {
        self.cells.iter().filter(|cell| cell.builds_up).map(|cell| cell.weight).sum()
    }

    /// Returns the chance that a trial at this rate holds, without lapses. Assumes no build-up unless the target has
    /// stalled, when either may cause holds to break.
    pub(crate) fn chance(&self, kind: Kind, rate: f64) -> f64 {
        let log_rate = rate.ln();
        let (mut holds, mut total) = (0.0, 0.0);
        for cell in self.cells.iter().filter(|cell| self.has_stalled || !cell.builds_up) {
            let scatter = match kind {
                Kind::Dwell => cell.scatter,
                Kind::Hold => cell.hold_scatter,
            };
            let z = (Threshold::value(cell, kind) - log_rate) / scatter;
            holds += cell.weight * look_up_chances(z).steady;
            total += cell.weight;
        }
        holds / total.max(f64::MIN_POSITIVE)
    }

    /// Returns the highest rate at which a hold succeeds with this chance without build-up, requests/s.
    pub(crate) fn rate_of_chance(&self, chance: f64) -> f64 {
        let (mut low, mut high) = (
            self.quantile(Kind::Hold, 0.001).ln() - 0.5,
            self.quantile(Kind::Dwell, 0.999).ln() + 0.5,
        );
        for _ in 0..14 {
            let middle = f64::midpoint(low, high);
            if self.chance(Kind::Hold, middle.exp()) >= chance {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.exp()
    }
}
