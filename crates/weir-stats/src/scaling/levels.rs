//! Levels with their weights.
//!
//! The variance of a level's mean of ln y is that of its responses over their number, and of an error that all of them
//! share: a process that lies luckily in memory, a CPU that is next to an interrupt. Responses do not show the latter.
//! Only the ratios of the variances are believed, and their common factor is estimated from the distances of the
//! levels from the curve, with an expectation of 1 that counts as much as [`PRIOR`] levels. Without it five levels could
//! not tell a curve of three parameters from one of two, however small their spread is.

use super::fit::Fitted;
use super::forms::Scope;
use super::{LEAST_LEVELS, Point, Refusal};
use crate::growth::Within;
use crate::student;

/// Number of levels that the expected size of their errors counts as.
pub(super) const PRIOR: f64 = 4.0;
/// Expected relative error that the responses of a level share.
const SHARED: f64 = 0.005;
/// Expected relative error of a level with a single response, of which nothing else is known.
const SINGLE: f64 = 0.02;
/// Number of responses that the spread of all levels counts as, beside that of a level's own.
const POOLED: f64 = 4.0;

/// A level of the factor with its responses.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The level.
    pub x: f64,
    /// Independent responses at it.
    pub responses: Vec<f64>,
    /// Relative standard error of a single response, if that is known; `None`: it follows from the responses.
    pub error: Option<f64>,
}

/// Levels on the log scale, ascending, each with the variance of its mean.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Levels {
    pub(super) x: Vec<f64>,
    /// Mean of ln y.
    pub(super) mean: Vec<f64>,
    /// Expected variance of that mean.
    pub(super) variance: Vec<f64>,
    count: Vec<usize>,
    /// Number of responses beyond the first of each level.
    pub(super) freedom: usize,
    pub(super) confidence: f64,
}

impl Levels {
    pub(super) fn new(given: &[Level], confidence: f64) -> Result<Levels, Refusal> {
        for level in given {
            let values = std::iter::once(&level.x).chain(&level.responses).chain(&level.error);
            if let Some(value) = values.into_iter().find(|value| !is_positive(**value)) {
                return Err(Refusal::NotPositive { x: level.x, value: *value });
            }
        }
        let levels = merged(given);
        if levels.len() < LEAST_LEVELS {
            return Err(Refusal::TooFewLevels { levels: levels.len() });
        }
        let squares: Vec<f64> =
            levels.iter().map(|level| sum_of_squares(&level.responses)).collect();
        let freedom: usize = levels.iter().map(|level| level.responses.len() - 1).sum();
        let pooled = squares.iter().sum::<f64>() / freedom.max(1) as f64;
        let variance = levels.iter().zip(&squares).map(|(level, square)| {
            let n = level.responses.len() as f64;
            match level.error {
                Some(error) => error * error / n + SHARED * SHARED,
                None if freedom == 0 => SINGLE * SINGLE,
                None => (square + POOLED * pooled) / (n - 1.0 + POOLED) / n + SHARED * SHARED,
            }
        });
        Ok(Levels {
            variance: variance.collect(),
            x: levels.iter().map(|level| level.x).collect(),
            mean: levels.iter().map(|level| mean_log(&level.responses)).collect(),
            count: levels.iter().map(|level| level.responses.len()).collect(),
            freedom,
            confidence,
        })
    }

    pub(super) fn highest(&self) -> f64 {
        self.x[self.x.len() - 1]
    }

    /// Returns the number of data: levels, and the expectation about their errors.
    pub(super) fn size(&self) -> f64 {
        self.x.len() as f64 + PRIOR
    }

    pub(super) fn scope(&self) -> Scope {
        Scope { lowest: self.x[0], highest: self.highest(), falls: self.falls() }
    }

    fn falls(&self) -> bool {
        self.mean[self.mean.len() - 1] < self.mean[0]
    }

    /// Returns the response of the last level relative to that of the first.
    pub(super) fn end_to_end(&self) -> f64 {
        (self.mean[self.mean.len() - 1] - self.mean[0]).exp()
    }

    /// Returns the highest mean relative to the lowest, minus 1.
    pub(super) fn spread(&self) -> f64 {
        let high = self.mean.iter().copied().fold(f64::MIN, f64::max);
        let low = self.mean.iter().copied().fold(f64::MAX, f64::min);
        (high - low).exp() - 1.0
    }

    pub(super) fn is_highest_first(&self) -> bool {
        self.mean.iter().all(|mean| *mean <= self.mean[0])
    }

    /// Returns true if the distances of the levels from a constant are those that are expected of chance.
    pub(super) fn is_alike(&self, flat: &Fitted) -> bool {
        flat.square / (self.x.len() - 1) as f64 <= self.quantile(1.0).powi(2)
    }

    /// Returns Student's quantile for the distances of the levels from a curve with some parameters.
    pub(super) fn quantile(&self, parameters: f64) -> f64 {
        student::quantile(1.0 - self.confidence, (self.size() - parameters).max(1.0) as u32)
    }

    pub(super) fn points(&self) -> Vec<Point> {
        let t = student::quantile(1.0 - self.confidence, (self.freedom as u32).max(PRIOR as u32));
        (0..self.x.len())
            .map(|index| {
                let (mean, half) = (self.mean[index], t * self.variance[index].sqrt());
                let [value, low, high] = [mean, mean - half, mean + half].map(f64::exp);
                let response = Within { value, low, high };
                Point { x: self.x[index], n: self.count[index], response }
            })
            .collect()
    }
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Joins the responses of equal levels, and puts the levels in ascending order. Levels without responses are left out.
fn merged(given: &[Level]) -> Vec<Level> {
    let mut sorted: Vec<&Level> =
        given.iter().filter(|level| !level.responses.is_empty()).collect();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut merged: Vec<Level> = Vec::new();
    for level in sorted {
        match merged.last_mut() {
            Some(last) if last.x == level.x => last.responses.extend(&level.responses),
            _ => merged.push(level.clone()),
        }
    }
    merged
}

fn mean_log(responses: &[f64]) -> f64 {
    responses.iter().map(|response| response.ln()).sum::<f64>() / responses.len() as f64
}

fn sum_of_squares(responses: &[f64]) -> f64 {
    let mean = mean_log(responses);
    responses.iter().map(|response| (response.ln() - mean).powi(2)).sum()
}
