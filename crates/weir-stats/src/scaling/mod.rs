//! Growth of a response with a numeric factor: which of five forms describes it, and what it is at another level.
//!
//! A level is a value x of the factor (CPUs, workers, bytes) with its responses y. What is independent: the responses of
//! a level, for weir means over the blocks of one instance of the proxy, after what all levels share in a moment was
//! taken out. Responses of one level may still have an error in common that no replicate shows; it is estimated from
//! the distances of the levels from the curve, so levels and not responses are what the number of data counts
//! ([`Levels`]).
//!
//! All fits are least squares of ln y, so that errors are relative. The factor `a` of a form is linear there and drops
//! out; one or two parameters remain to be searched ([`search`]). Intervals are those of the profile likelihood. Forms
//! are compared by AICc (Hurvich & Tsai, Biometrika 76, 1989). The universal scalability law is that of Gunther
//! ("Guerrilla Capacity Planning", 2007), which Amdahl's law (1967) is a case of.

mod choice;
mod fisher;
mod fit;
mod forms;
mod levels;
mod prediction;
mod search;

use serde::{Deserialize, Serialize};

use crate::growth::Within;
use choice::{all_fits, choose, is_superset};
use fit::Fitted;
use levels::Levels;

pub use forms::Form;
pub use levels::Level;
pub use prediction::Prediction;

/// Minimum number of different levels.
pub const LEAST_LEVELS: usize = 3;
/// Multiple of the highest level beyond which nothing is predicted.
pub const FARTHEST: f64 = 2.0;
/// Typical relative distance of the levels from the best curve, beyond which no form describes them.
const ERRATIC: f64 = 0.15;

/// Kind of a factor, which decides what forms are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Factor {
    /// More of it does more work at the same time: CPUs, workers, connections.
    Servers,
    /// More of it is more work for each request: bytes of content or headers, routes, a share of TLS.
    Work,
}

/// Reason why nothing is said about the levels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// A level or a response is not a positive finite number.
    NotPositive {
        /// The level.
        x: f64,
        /// The value.
        value: f64,
    },
    /// There are fewer than [`LEAST_LEVELS`] different levels.
    TooFewLevels {
        /// Number of different levels.
        levels: usize,
    },
    /// The response is the same at all levels, as far as can be told.
    Flat {
        /// Highest mean relative to the lowest, minus 1.
        spread: f64,
    },
    /// The response falls from the first level on, although more of the factor should do more work.
    Falls {
        /// Response at the highest level relative to that at the lowest.
        ratio: f64,
    },
    /// No form describes the levels.
    Erratic {
        /// Typical relative distance from the best curve.
        rmse: f64,
    },
    /// The level of a prediction is beyond [`FARTHEST`] times the highest.
    TooFar {
        /// Highest level that may be predicted.
        farthest: f64,
    },
}

/// A parameter of a form, or a quantity that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// Response per unit of x where nothing is shared yet: the slope at the beginning (at x = 1 of Amdahl's law and the
    /// universal scalability law).
    PerUnit,
    /// Level from which on the ceiling is the limit.
    Knee,
    /// Response that is not exceeded.
    Ceiling,
    /// σ: share of the work that waits for something shared.
    Contention,
    /// κ: cost of keeping each other up to date, for each pair.
    Coherence,
    /// Level with the highest response; beyond it more is less.
    Peak,
    /// Cost that does not depend on x, in units of 1 / y.
    FixedCost,
    /// Cost per unit of x, in units of 1 / y.
    UnitCost,
}

/// One form fitted to the levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The form.
    pub form: Form,
    /// Its parameters with profile intervals. An end that the levels do not bound is 0 or infinite.
    pub parameters: Vec<(Parameter, Within)>,
    /// AICc minus that of the best form. Infinite with too few levels for as many parameters.
    pub delta: f64,
    /// Root of the mean squared relative distance of the levels from the curve.
    pub rmse: f64,
    /// p of the test for lack of fit: the levels' distances from the curve against the spread of the responses.
    /// `None` without replicates.
    pub lack_of_fit: Option<f64>,
    /// Fitted response at each level.
    pub fitted: Vec<f64>,
    inner: Fitted,
}

impl Fit {
    /// Returns a parameter of the form.
    pub fn parameter(&self, wanted: Parameter) -> Option<Within> {
        self.parameters.iter().find(|(parameter, _)| *parameter == wanted).map(|(_, value)| *value)
    }
}

/// Level that would tell undecided forms apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Telling {
    /// The level.
    pub x: f64,
    /// Response there by each form.
    pub responses: Vec<(Form, f64)>,
}

/// Form of the growth.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// One form.
    Named(Form),
    /// Forms that cannot be told apart, the best first.
    Undecided {
        /// The forms.
        forms: Vec<Form>,
        /// Additional level at which they differ most.
        telling: Telling,
    },
}

/// Response of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The level.
    pub x: f64,
    /// Number of responses.
    pub n: usize,
    /// Geometric mean of the responses, with the interval that follows from their spread and the error that the levels
    /// have beside it.
    pub response: Within,
}

/// Growth of a response with a factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// The levels, ascending.
    pub points: Vec<Point>,
    /// All possible forms, the best first.
    pub fits: Vec<Fit>,
    /// The form.
    pub answer: Answer,
    levels: Levels,
}

/// Determines how the responses grow with the factor.
pub fn scale(levels: &[Level], factor: Factor, confidence: f64) -> Result<Scaling, Refusal> {
    let levels = Levels::new(levels, confidence)?;
    let spread = levels.spread();
    let flat = Fitted::flat(&levels);
    if factor == Factor::Servers && levels.is_highest_first() && !levels.is_alike(&flat) {
        return Err(Refusal::Falls { ratio: levels.end_to_end() });
    }
    let fits = all_fits(&levels, factor);
    let best = &fits[0];
    if flat.aicc(&levels) <= best.inner.aicc(&levels) {
        return Err(Refusal::Flat { spread });
    }
    if best.rmse > ERRATIC {
        return Err(Refusal::Erratic { rmse: best.rmse });
    }
    let answer = choose(&levels, &fits);
    Ok(Scaling { points: levels.points(), fits, answer, levels })
}

impl Scaling {
    /// Returns the fit of the answer: that of the named form, or the best of those that cannot be told apart.
    pub fn best(&self) -> &Fit {
        let form = match &self.answer {
            Answer::Named(form) => *form,
            Answer::Undecided { forms, .. } => forms[0],
        };
        self.fit(form).unwrap_or(&self.fits[0])
    }

    /// Returns the fit of a form, if it is possible here.
    pub fn fit(&self, form: Form) -> Option<&Fit> {
        self.fits.iter().find(|fit| fit.form == form)
    }

    /// Returns the highest level that may be predicted.
    pub fn farthest(&self) -> f64 {
        FARTHEST * self.levels.highest()
    }

    /// Returns true if the answer is a straight line, which may meet a ceiling above the highest level that no data
    /// show.
    pub fn has_unseen_ceiling(&self) -> bool {
        self.best().form == Form::Linear
    }

    /// Predicts the response at a level. The interval is that of all forms which cannot be told apart, and of those
    /// that the named form is a case of.
    pub fn predict(&self, x: f64) -> Result<Prediction, Refusal> {
        if !(x.is_finite() && x > 0.0) {
            return Err(Refusal::NotPositive { x, value: f64::NAN });
        }
        if x > self.farthest() * (1.0 + 1e-9) {
            return Err(Refusal::TooFar { farthest: self.farthest() });
        }
        let forms: Vec<&Fit> = self
            .fits
            .iter()
            .filter(|fit| match &self.answer {
                Answer::Named(form) => fit.form == *form || is_superset(fit.form, *form),
                Answer::Undecided { forms, .. } => forms.contains(&fit.form),
            })
            .collect();
        Ok(Prediction::of(&self.levels, self.best(), &forms, x))
    }
}

#[cfg(test)]
mod tests;
