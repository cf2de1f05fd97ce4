//! Tests whether one quantity grows linearly with another, and finds the position of a bend.
//!
//! Points are independent; their spread may grow with the measured value, as that of CPU time does. Therefore nothing
//! here relies on the F distribution: the slope's interval has the errors of MacKinnon & White ("Some
//! heteroskedasticity-consistent covariance matrix estimators", J. Econometrics 29, 1985, HC3), and both tests compare
//! their F with those of the straight line whose residuals had their signs drawn anew (the wild bootstrap; Davidson &
//! Flachaire, J. Econometrics 146, 2008).
//!
//! A bend is the intersection of two straight lines (Hinkley, "Inference in two-phase regression", JASA 66, 1971;
//! Muggeo, "Estimating regression models with unknown break-points", Stat. Med. 22, 2003). Its F is the largest over
//! all positions, and so is each that it is compared with.

use crate::design::SplitMix64;
use crate::student;

/// Number of draws of both tests; the smallest p is 1 / (DRAWS + 1).
const DRAWS: usize = 499;
/// Number of steps between the positions at which a bend is searched for.
const PLACES: usize = 120;
/// Minimum number of points.
pub const LEAST_POINTS: usize = 8;
/// Minimum number of different x.
pub const LEAST_LEVELS: usize = 4;
/// Level of the two tests together, each having half of it.
const LEVEL: f64 = 0.05;
/// Relative difference of x below which values are the same level.
const SAME: f64 = 0.01;

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Within {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A change of the slope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bend {
    /// Position of the bend, in units of x.
    pub at: Within,
    /// Slope before it.
    pub before: f64,
    /// Slope after it.
    pub after: f64,
}

/// Growth of y with x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Number of points used.
    pub points: usize,
    /// Slope: y per unit of x.
    pub slope: Within,
    /// Value of y at x = 0.
    pub intercept: f64,
    /// p of the test for lack of fit (replicates at the same x against the straight line); `None` without enough
    /// replicates.
    pub lack_of_fit: Option<f64>,
    /// p of the test for a bend.
    pub bend_p: f64,
    /// The bend; `None` if there is none.
    pub bend: Option<Bend>,
}

impl Growth {
    /// Returns true if neither test rejects a straight line, at 5 % together.
    pub fn is_linear(&self) -> bool {
        let least = self.lack_of_fit.unwrap_or(1.0).min(self.bend_p);
        least >= LEVEL / 2.0
    }
}

/// Determines the growth of y with x, from points (x, y). `None` with fewer than 8 points or 4 different x, or if a
/// value is not finite. `seed` fixes the draws.
pub fn growth_of(points: &[(f64, f64)], seed: u64) -> Option<Growth> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (x, y): (Vec<f64>, Vec<f64>) = sorted.into_iter().unzip();
    let is_finite = x.iter().chain(&y).all(|value| value.is_finite());
    let levels = count_levels(&x);
    if !is_finite || x.len() < LEAST_POINTS || levels.len() < LEAST_LEVELS {
        return None;
    }
    let line = Line::new(&x);
    let (intercept, slope) = line.fit(&y);
    let residuals = line.residuals(&y);
    let bends = Bends::new(&line, &levels);
    let spread: f64 = y.iter().map(|y| (y - intercept).powi(2)).sum();
    let (mut lack_of_fit, mut bend_p) = (None, 1.0);
    if square(&residuals) > 1e-18 * spread {
        let (observed_lack, observed_bend) = (lack(&residuals, &levels), bends.f(&residuals));
        let mut rng = SplitMix64::new(seed);
        let (mut lacking, mut bending) = (0, 0);
        for _ in 0..DRAWS {
            let drawn = line.residuals(&line.redrawn(&residuals, &mut rng));
            lacking += usize::from(lack(&drawn, &levels) >= observed_lack);
            bending += usize::from(bends.f(&drawn) >= observed_bend);
        }
        // Without replicates there is nothing that the line could be held against.
        lack_of_fit = (x.len() >= levels.len() + 3).then(|| p_of_draws(lacking));
        bend_p = p_of_draws(bending);
    }
    let bend = (bend_p < LEVEL / 2.0).then(|| bends.bend(&residuals, slope));
    Some(Growth {
        points: x.len(),
        slope: line.interval(slope, &residuals),
        intercept,
        lack_of_fit,
        bend_p,
        bend,
    })
}

fn p_of_draws(count: usize) -> f64 {
    (count + 1) as f64 / (DRAWS + 1) as f64
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the lengths of the runs of ascending values that are the same level.
fn count_levels(x: &[f64]) -> Vec<usize> {
    let (mut lengths, mut first): (Vec<usize>, f64) = (Vec::new(), f64::NAN);
    for &value in x {
        match lengths.last_mut() {
            Some(length) if value - first <= SAME * first.abs() => *length += 1,
            _ => {
                first = value;
                lengths.push(1);
            }
        }
    }
    lengths
}

/// Returns the F of the lack of fit: deviations of the levels' means from the line, relative to deviations of points
/// from those means.
fn lack(residuals: &[f64], levels: &[usize]) -> f64 {
    let (mut within, mut from) = (0.0, 0);
    for &length in levels {
        let of_level = &residuals[from..from + length];
        let middle = mean(of_level);
        within += of_level.iter().map(|value| (value - middle).powi(2)).sum::<f64>();
        from += length;
    }
    let off = square(residuals) - within;
    let freedom =
        (levels.len() - 2) as f64 / residuals.len().saturating_sub(levels.len()).max(1) as f64;
    off / within.max(f64::MIN_POSITIVE) / freedom
}

/// Least-squares fit on a constant and x.
struct Line<'a> {
    x: &'a [f64],
    middle: f64,
    square: f64,
}

impl<'a> Line<'a> {
    fn new(x: &'a [f64]) -> Line<'a> {
        let middle = mean(x);
        let square = x.iter().map(|x| (x - middle).powi(2)).sum();
        Line { x, middle, square }
    }

    fn fit(&self, y: &[f64]) -> (f64, f64) {
        let slope =
            self.x.iter().zip(y).map(|(x, y)| (x - self.middle) * y).sum::<f64>() / self.square;
        (mean(y) - slope * self.middle, slope)
    }

    fn residuals(&self, y: &[f64]) -> Vec<f64> {
        let (intercept, slope) = self.fit(y);
        self.x.iter().zip(y).map(|(x, y)| y - intercept - slope * x).collect()
    }

    /// Returns the leverage of a point: how far it draws the line towards itself.
    fn leverage(&self, x: f64) -> f64 {
        1.0 / self.x.len() as f64 + (x - self.middle).powi(2) / self.square
    }

    /// Returns residuals that would be equally possible if the line were true.
    fn redrawn(&self, residuals: &[f64], rng: &mut SplitMix64) -> Vec<f64> {
        self.x
            .iter()
            .zip(residuals)
            .map(|(x, residual)| {
                let sign = if rng.next_u64() >> 63 == 0 { 1.0 } else { -1.0 };
                sign * residual / (1.0 - self.leverage(*x)).max(0.05).sqrt()
            })
            .collect()
    }

    fn interval(&self, slope: f64, residuals: &[f64]) -> Within {
        let variance: f64 = self
            .x
            .iter()
            .zip(residuals)
            .map(|(x, residual)| {
                let scaled = residual / (1.0 - self.leverage(*x)).max(0.05);
                ((x - self.middle) * scaled).powi(2)
            })
            .sum();
        let freedom = u32::try_from(self.x.len() - 2).unwrap_or(u32::MAX);
        let half = student::quantile(0.05, freedom) * variance.sqrt() / self.square;
        Within { value: slope, low: slope - half, high: slope + half }
    }
}

/// A possible position of a bend.
struct BendPosition {
    at: f64,
    /// Values of x beyond the position (0 before it), with the straight line removed (Frisch & Waugh 1933), so that a
    /// fit is a single product.
    residuals: Vec<f64>,
    weight: f64,
    /// Slope of the removed line.
    slope: f64,
}

/// All possible positions of a bend, with at least two levels on either side.
struct Bends {
    places: Vec<BendPosition>,
}

/// Effect of a bend at a position on the residuals.
#[derive(Clone, Copy)]
struct Fit<'a> {
    place: &'a BendPosition,
    /// Reduction of the sum of squares.
    taken: f64,
    /// Change of the slope.
    change: f64,
}

impl Bends {
    fn new(line: &Line<'_>, levels: &[usize]) -> Bends {
        let x = line.x;
        let (low, high) = (x[levels[0]], x[x.len() - levels[levels.len() - 1] - 1]);
        let places = (0..=PLACES).map(|place| {
            let at = low + (high - low) * place as f64 / PLACES as f64;
            let beyond: Vec<f64> = x.iter().map(|x| (x - at).max(0.0)).collect();
            let residuals = line.residuals(&beyond);
            let weight = square(&residuals);
            let (_, slope) = line.fit(&beyond);
            BendPosition { at, residuals, weight, slope }
        });
        Bends { places: places.collect() }
    }

    fn fits<'a>(&'a self, residuals: &'a [f64]) -> impl Iterator<Item = Fit<'a>> {
        self.places.iter().map(move |place| {
            let product: f64 = place.residuals.iter().zip(residuals).map(|(a, b)| a * b).sum();
            let change = product / place.weight;
            Fit { place, taken: product * change, change }
        })
    }

    fn best<'a>(&'a self, residuals: &'a [f64]) -> Fit<'a> {
        self.fits(residuals)
            .reduce(|a, b| if b.taken > a.taken { b } else { a })
            .expect("there are places")
    }

    /// Returns the largest F over all positions.
    fn f(&self, residuals: &[f64]) -> f64 {
        let explained = self.best(residuals).taken;
        let unexplained = (square(residuals) - explained).max(f64::MIN_POSITIVE);
        explained / 2.0 / (unexplained / (residuals.len() - 4) as f64)
    }

    /// Returns the best bend. Its interval contains the positions that fit hardly worse. `slope` is that of a single
    /// line.
    fn bend(&self, residuals: &[f64], slope: f64) -> Bend {
        let best = self.best(residuals);
        let (all, freedom) = (square(residuals), residuals.len() - 4);
        let t = student::quantile(0.05, u32::try_from(freedom).unwrap_or(u32::MAX));
        let most = (all - best.taken) * (1.0 + t * t / freedom as f64);
        let (low, high) = self
            .fits(residuals)
            .filter(|fit| all - fit.taken <= most)
            .fold((best.place.at, best.place.at), |(low, high), fit| {
                (fit.place.at.min(low), fit.place.at.max(high))
            });
        let before = slope - best.change * best.place.slope;
        Bend { at: Within { value: best.place.at, low, high }, before, after: before + best.change }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut rng = SplitMix64::new(5);
        let x = (0..24).map(|place| f64::from(place / 3 + 1));
        x.map(|x| (x, of(x) + 0.01 * (rng.unit() - 0.5))).collect()
    }

    #[test]
    fn a_line_is_linear_and_has_its_slope() {
        let growth = growth_of(&points(|x| 2.0 + 3.0 * x), 1).expect("enough points");
        assert!(growth.is_linear() && growth.bend.is_none(), "{growth:?}");
        assert!(growth.slope.low < 3.0 && 3.0 < growth.slope.high, "{growth:?}");
        assert!((growth.slope.value - 3.0).abs() < 1e-3 && (growth.intercept - 2.0).abs() < 0.01);
        let exact = growth_of(&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0].map(|x| (x, x)), 1);
        assert!(exact.is_some_and(|growth| growth.is_linear() && growth.slope.value == 1.0));
    }

    #[test]
    fn a_bend_is_found_with_both_slopes() {
        let growth =
            growth_of(&points(|x| x + 2.0 * (x - 5.5).max(0.0)), 1).expect("enough points");
        let bend = growth.bend.expect("a bend");
        assert!(bend.at.low <= 5.5 && 5.5 <= bend.at.high, "{bend:?}");
        assert!((bend.before - 1.0).abs() < 0.02 && (bend.after - 3.0).abs() < 0.02, "{bend:?}");
        assert!(growth.lack_of_fit.is_some_and(|p| p < 0.01), "{growth:?}");
    }

    #[test]
    fn too_little_says_nothing() {
        let few = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0].map(|x| (x, x));
        assert_eq!(growth_of(&few, 1), None);
        assert_eq!(growth_of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|x| (x, x)), 1), None);
        let mut holed = points(|x| x);
        holed[3].1 = f64::NAN;
        assert_eq!(growth_of(&holed, 1), None);
    }

    #[test]
    fn without_replicates_there_is_no_lack_of_fit() {
        let alone: Vec<(f64, f64)> = (1..=10).map(|x| (f64::from(x), f64::from(x * x))).collect();
        let growth = growth_of(&alone, 1).expect("enough points");
        assert_eq!(growth.lack_of_fit, None);
        assert!(!growth.is_linear());
    }
}
