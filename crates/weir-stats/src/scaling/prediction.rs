//! The response at another level, with the doubt about the parameters and about the form.

use super::fit::Region;
use super::levels::Levels;
use super::{Fit, Form};
use crate::growth::Within;

/// Response at a level.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The level.
    pub x: f64,
    /// Response with its interval, which includes the doubt about the form.
    pub response: Within,
    /// Response with its interval by each form that is possible, the best first.
    pub by_form: Vec<(Form, Within)>,
}

impl Prediction {
    pub(super) fn of(levels: &Levels, best: &Fit, forms: &[&Fit], x: f64) -> Prediction {
        let by_form: Vec<(Form, Within)> =
            forms.iter().map(|fit| (fit.form, within(levels, fit, x))).collect();
        let value = best.inner.log(levels, x).exp();
        let (low, high) = by_form
            .iter()
            .fold((value, value), |(low, high), (_, one)| (one.low.min(low), one.high.max(high)));
        Prediction { x, response: Within { value, low, high }, by_form }
    }
}

/// Returns the response of a form at a level with its profile interval.
pub(super) fn within(levels: &Levels, fit: &Fit, x: f64) -> Within {
    let scope = levels.scope();
    let region = Region::new(levels, fit.form, fit.inner);
    let (low, high) = region.extremes(|theta| (1.0, scope.shape(fit.form, theta, x)));
    let [value, low, high] = [fit.inner.log(levels, x), low, high].map(f64::exp);
    Within { value, low, high }
}
