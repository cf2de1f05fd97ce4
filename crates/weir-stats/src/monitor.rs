//! Changes and drift in a series that is looked at after every new value.
//!
//! Neither mean nor spread of the figures of nightly runs is known, they have outliers, and somebody looks every
//! morning. So the claim is limited for all looks together: after each value the best position of a step is searched in
//! the values since the last change (Hawkins, Qiu & Kang, "The changepoint model for statistical process control",
//! J. Qual. Technol. 35, 2003), beside a straight line. Values are first limited to [`CLIP`] standard deviations around
//! their median (Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35, 1964), which makes two
//! outliers in a row too little for a claim. The p of the larger of both Student's t is multiplied by a number of
//! tests which is the result of a simulation ([`TESTS`]), such that a series of normal noise is called changed with the
//! same chance at each look that was not preceded by a call.
//!
//! Consecutive values are often alike. What exceeds the autocorrelation of independent residuals by one standard error
//! widens the errors by √((1 + r)/(1 − r)) (Zhang & Pollock's correction for the mean of an AR(1) series), which keeps
//! the error rate only nearly: docs/history.md has the figures.

use crate::spread::qn;
use crate::{student_quantile, student_two_sided};

/// Largest distance from the median that counts, in standard deviations.
const CLIP: f64 = 2.0;
/// Minimum number of values on each side of a change: an outlier is no change, nor are two.
pub const LEAST_SIDE: usize = 3;
/// Minimum number of values before anything is claimed.
pub const LEAST_LENGTH: usize = 8;
/// Looks that `level` is for.
const LOOKS: f64 = 100.0;
/// Number of tests that a look at a series of some length is worth, by `examples/monitor_tests.rs`; between them it is
/// linear.
const TESTS: [(usize, f64); 8] =
    [(8, 7.0), (10, 6.0), (14, 4.5), (20, 4.5), (30, 4.2), (50, 3.6), (75, 3.1), (100, 2.9)];
/// The same, if the spread is known from before an earlier change.
const TESTS_WITH_SPREAD: f64 = 2.9;

/// A step from one level to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Index of the first value after it.
    pub place: usize,
    /// Index of the value with which it was found.
    pub found: usize,
}

/// Changes of a series, and its drift since the last of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Monitored {
    /// All changes, in order.
    pub changes: Vec<Change>,
    /// Index of the value with which a drift since the last change was found; `None` if there is none.
    pub drift: Option<usize>,
}

/// Finds the changes and the drift of a series with a chance of at most `level` for any false claim in 100 values,
/// although each of them is looked at. What was found is not taken back by later values, but the place of a change may
/// become more exact, and a drift may turn out to be a change.
pub fn monitor(values: &[f64], level: f64) -> Monitored {
    let mut monitored = Monitored::default();
    let mut earlier = Residuals::default();
    let mut begin = 0;
    for end in 1..=values.len() {
        let Some(look) = Look::at(&values[begin..end], &earlier) else { continue };
        if look.p > level / LOOKS {
            continue;
        }
        match look.step {
            Some(place) => {
                earlier.add(&values[begin..begin + place]);
                begin += place;
                monitored.changes.push(Change { place: begin, found: end - 1 });
                monitored.drift = None;
            }
            None => monitored.drift = monitored.drift.or(Some(end - 1)),
        }
    }
    refine(values, &mut monitored.changes);
    monitored
}

/// Searches the place of each change once more among all values between its neighbours.
fn refine(values: &[f64], changes: &mut [Change]) {
    for index in 0..changes.len() {
        let begin = if index == 0 { 0 } else { changes[index - 1].place };
        let end = changes.get(index + 1).map_or(values.len(), |next| next.place);
        let Some(clipped) = Clipped::of(&values[begin..end], &Residuals::default()) else {
            continue;
        };
        let (place, _) = clipped.best_step();
        if place >= LEAST_SIDE && begin + place <= changes[index].found {
            changes[index].place = begin + place;
        }
    }
}

/// Returns the p of a look at a segment after earlier ones, as if one position were all that is searched; `None` if
/// nothing can be said. A simulation compares these to count the tests of a look (`examples/monitor_tests.rs`).
pub fn p_of_one_place(segment: &[f64], earlier: &[&[f64]]) -> Option<f64> {
    let mut residuals = Residuals::default();
    earlier.iter().for_each(|segment| residuals.add(segment));
    Some(Look::at(segment, &residuals)?.p_of_one)
}

/// Distances of values from the medians of their segments, before the last change.
#[derive(Debug, Clone, Default)]
struct Residuals {
    values: Vec<f64>,
    segments: usize,
}

impl Residuals {
    fn add(&mut self, segment: &[f64]) {
        let middle = median(segment);
        self.values.extend(segment.iter().map(|value| value - middle));
        self.segments += 1;
    }

    fn freedom(&self) -> usize {
        self.values.len() - self.segments.min(self.values.len())
    }

    /// True if the spread is known from these values alone.
    fn is_enough(&self) -> bool {
        self.freedom() + 1 >= LEAST_LENGTH
    }
}

/// A look at the values since the last change.
struct Look {
    /// p of the better explanation, as if it had not been searched.
    p_of_one: f64,
    /// p of there being neither a step nor a trend, for all that was searched.
    p: f64,
    /// First value after the step; `None` if a straight line explains the values better.
    step: Option<usize>,
}

impl Look {
    /// Looks at a segment. `None` if it is too short, or does not vary.
    fn at(segment: &[f64], earlier: &Residuals) -> Option<Look> {
        let has_spread = earlier.is_enough();
        let least = if has_spread { 2 * LEAST_SIDE } else { LEAST_LENGTH };
        if segment.len() < least {
            return None;
        }
        let clipped = Clipped::of(segment, earlier)?;
        let (place, step_squares) = clipped.best_step();
        let (slope, trend_squares) = clipped.trend();
        let step = clipped.t(step_squares, |index| clipped.step_at(place, index));
        let trend = clipped.t(trend_squares, |index| clipped.mean + slope * clipped.along(index));
        let p = student_two_sided(step.max(trend), clipped.freedom as u32);
        let tests = if has_spread { TESTS_WITH_SPREAD } else { tests_of(segment.len()) };
        // A step has a place as well as a size (Schwarz, Ann. Statist. 6, 1978).
        let [left_by_step, left_by_trend] =
            [step_squares, trend_squares].map(|squares| clipped.squares - squares);
        let n = segment.len() as f64;
        let is_step = n * (left_by_trend / left_by_step).ln() > n.ln();
        Some(Look { p_of_one: p, p: (p * tests).min(1.0), step: is_step.then_some(place) })
    }
}

/// Values that are limited to the vicinity of their median.
struct Clipped {
    values: Vec<f64>,
    mean: f64,
    /// Sum of squares around the mean.
    squares: f64,
    /// Sum of squares of earlier segments.
    earlier_squares: f64,
    /// Degrees of freedom of the residuals around a step or a line.
    freedom: usize,
}

impl Clipped {
    fn of(segment: &[f64], earlier: &Residuals) -> Option<Clipped> {
        let has_spread = earlier.is_enough();
        let scale = if has_spread { qn(&earlier.values)? } else { qn(segment)? };
        if !(scale > 0.0 && segment.iter().all(|value| value.is_finite())) {
            return None;
        }
        let (middle, limit) = (median(segment), CLIP * scale);
        let values: Vec<f64> =
            segment.iter().map(|value| (value - middle).clamp(-limit, limit)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum();
        let earlier_squares = if has_spread {
            earlier.values.iter().map(|value| value.clamp(-limit, limit).powi(2)).sum()
        } else {
            0.0
        };
        let freedom = segment.len() - 2 + if has_spread { earlier.freedom() } else { 0 };
        Some(Clipped { values, mean, squares, earlier_squares, freedom })
    }

    /// Returns the number of values before the best step, and the sum of squares that it explains.
    fn best_step(&self) -> (usize, f64) {
        let n = self.values.len();
        let mut best = (0, 0.0);
        let mut sum = 0.0;
        for before in 1..=n.saturating_sub(LEAST_SIDE) {
            sum += self.values[before - 1] - self.mean;
            let (before_n, after_n) = (before as f64, (n - before) as f64);
            let squares = sum * sum * n as f64 / (before_n * after_n);
            if before >= LEAST_SIDE && squares > best.1 {
                best = (before, squares);
            }
        }
        best
    }

    /// Returns the mean of the side of a step that a value is on.
    fn step_at(&self, place: usize, index: usize) -> f64 {
        let side = if index < place { &self.values[..place] } else { &self.values[place..] };
        side.iter().sum::<f64>() / side.len() as f64
    }

    /// Returns the distance of a value from the middle of the segment, in values.
    fn along(&self, index: usize) -> f64 {
        index as f64 - (self.values.len() as f64 - 1.0) / 2.0
    }

    /// Returns the slope of the straight line, and the sum of squares that it explains.
    fn trend(&self) -> (f64, f64) {
        let n = self.values.len() as f64;
        let products: f64 =
            self.values.iter().enumerate().map(|(index, value)| self.along(index) * value).sum();
        let spread = n * (n * n - 1.0) / 12.0;
        (products / spread, products * products / spread)
    }

    /// Returns Student's t of an explained sum of squares, corrected for the autocorrelation of what is left.
    fn t(&self, explained: f64, fitted: impl Fn(usize) -> f64) -> f64 {
        let unexplained =
            (self.squares - explained).max(1e-12 * self.squares) + self.earlier_squares;
        let residuals: Vec<f64> =
            self.values.iter().enumerate().map(|(index, value)| value - fitted(index)).collect();
        (explained / (unexplained / self.freedom as f64) / widening(&residuals)).sqrt()
    }
}

/// Returns the factor by which the variance of a mean grows because of autocorrelation.
pub(crate) fn widening(residuals: &[f64]) -> f64 {
    let n = residuals.len() as f64;
    let squares: f64 = residuals.iter().map(|value| value * value).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    // Residuals around two fitted values are correlated by −2/n; one standard error of chance is allowed.
    let r = (products / squares + 2.0 / n - 1.0 / n.sqrt()).clamp(0.0, 0.9);
    (1.0 + r) / (1.0 - r)
}

/// A level with the spread around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Mean of the values, of which distant ones are limited.
    pub mean: f64,
    /// Robust standard deviation; `None` of a single value.
    pub sd: Option<f64>,
}

/// Returns the level of a segment; `None` if it is empty or not finite.
pub fn level_of(segment: &[f64]) -> Option<Level> {
    if segment.is_empty() || !segment.iter().all(|value| value.is_finite()) {
        return None;
    }
    let sd = qn(segment);
    let (middle, limit) = (median(segment), CLIP * sd.filter(|sd| *sd > 0.0).unwrap_or(0.0));
    let limited = segment.iter().map(|value| value.clamp(middle - limit, middle + limit));
    Some(Level { mean: limited.sum::<f64>() / segment.len() as f64, sd })
}

/// Returns the difference between the levels of two segments, and the half-width of its interval: Student's, with the
/// spread of both segments around their medians. `None` if that is not known.
pub fn size_of(before: &[f64], after: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let difference = level_of(after)?.mean - level_of(before)?.mean;
    let mut residuals = Residuals::default();
    residuals.add(before);
    residuals.add(after);
    let sd = qn(&residuals.values)?;
    let variance =
        (1.0 / before.len() as f64 + 1.0 / after.len() as f64) * widening(&residuals.values);
    let t = student_quantile(1.0 - confidence, residuals.freedom() as u32);
    Some((difference, t * sd * variance.sqrt()))
}

/// Returns the number of tests that a look at a segment of this length is worth.
fn tests_of(length: usize) -> f64 {
    let after = TESTS.partition_point(|(known, _)| *known <= length);
    let Some(&(next, tests_next)) = TESTS.get(after) else { return TESTS[TESTS.len() - 1].1 };
    let Some(&(last, tests)) = after.checked_sub(1).and_then(|before| TESTS.get(before)) else {
        return tests_next;
    };
    tests + (tests_next - tests) * (length - last) as f64 / (next - last) as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    fn draw(seed: u64, length: usize) -> Vec<f64> {
        let mut rng = SplitMix64::new(seed);
        (0..length).map(|_| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is_and_outliers_are_none() {
        let mut false_claims = 0;
        for seed in 0..100 {
            let mut values = draw(seed, 40);
            values[10] = 100.0;
            values[20] = -100.0;
            values[21] = -100.0;
            values[30..].iter_mut().for_each(|value| *value += 8.0);
            let changes = monitor(&values, 0.05).changes;
            let is_step = |change: &&Change| change.place.abs_diff(30) <= 1 && change.found <= 36;
            assert_eq!(changes.iter().filter(is_step).count(), 1, "{seed}: {changes:?}");
            false_claims += changes.len() - 1;
        }
        // One in twenty series has a claim that is false, outliers or not.
        assert!(false_claims <= 10, "{false_claims} of 100");
    }

    #[test]
    fn what_was_found_is_not_taken_back() {
        let mut values = draw(9, 60);
        values[30..].iter_mut().for_each(|value| *value += 4.0);
        let at_once = (1..=60).map(|length| monitor(&values[..length], 0.05).changes.len());
        let counts: Vec<usize> = at_once.collect();
        assert!(counts.is_sorted() && counts[59] == 1, "{counts:?}");
    }

    #[test]
    fn nothing_is_claimed_of_what_cannot_be_judged() {
        assert_eq!(monitor(&[], 0.05), Monitored::default());
        assert_eq!(monitor(&[1.0; 50], 0.05), Monitored::default());
        assert_eq!(monitor(&[f64::NAN; 50], 0.05), Monitored::default());
        let mut few = draw(1, 4);
        few.extend([100.0, 101.0, 102.0]);
        assert_eq!(monitor(&few, 0.05), Monitored::default());
        assert_eq!(size_of(&[], &[1.0], 0.95), None);
    }
}
