//! A form fitted by least squares, and the profile intervals of what follows from it.

use super::Parameter;
use super::forms::{Form, Theta, is_logarithm};
use super::levels::{Levels, PRIOR};
use super::search::{minimum, minimum_of_one, range_around};
use crate::growth::Within;

/// The best parameters of a form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fitted {
    form: Option<Form>,
    theta: Theta,
    log_a: f64,
    /// Sum of the squared distances of the levels from the curve, in expected variances.
    pub(super) square: f64,
}

/// Least squares of one position in the space of a form's parameters, over the best `a` there.
#[derive(Clone, Copy)]
struct Here {
    log_a: f64,
    square: f64,
}

fn least_squares(levels: &Levels, shape: impl Fn(f64) -> f64) -> Here {
    let (mut weight, mut sum, mut square) = (0.0, 0.0, 0.0);
    for ((x, mean), variance) in levels.x.iter().zip(&levels.mean).zip(&levels.variance) {
        let distance = mean - shape(*x);
        weight += 1.0 / variance;
        sum += distance / variance;
        square += distance * distance / variance;
    }
    Here { log_a: sum / weight, square: (square - sum * sum / weight).max(0.0) }
}

impl Fitted {
    /// Fits a constant.
    pub(super) fn flat(levels: &Levels) -> Fitted {
        let Here { log_a, square } = least_squares(levels, |_| 0.0);
        Fitted { form: None, theta: [0.0; 2], log_a, square }
    }

    /// Fits a form.
    pub(super) fn of(levels: &Levels, form: Form) -> Fitted {
        let at = |theta| here(levels, form, theta).square;
        let theta = match form.dimensions() {
            0 => [0.0; 2],
            1 => [minimum(0.0, 1.0, |first| at([first, 0.0])).0, 0.0],
            _ => {
                let best = |second| minimum_of_one(0.0, 1.0, |first| at([first, second]));
                let second = minimum(0.0, 1.0, |second| best(second).1).0;
                [best(second).0, second]
            }
        };
        let Here { log_a, square } = here(levels, form, theta);
        Fitted { form: Some(form), theta, log_a, square }
    }

    /// Returns the number of parameters of the curve.
    fn parameters(&self) -> f64 {
        self.form.map_or(0, Form::dimensions) as f64 + 1.0
    }

    /// Returns the criterion of Akaike, corrected for the number of data. Infinite with too few.
    pub(super) fn aicc(&self, levels: &Levels) -> f64 {
        let n = levels.size();
        // One more than the curve has: the size of the errors.
        let k = self.parameters() + 1.0;
        let room = n - k - 1.0;
        if room <= 0.0 {
            return f64::INFINITY;
        }
        n * ((self.square + PRIOR) / n).ln() + 2.0 * k * n / room
    }

    /// Returns ln y at a level.
    pub(super) fn log(&self, levels: &Levels, x: f64) -> f64 {
        let shape = self.form.map_or(0.0, |form| levels.scope().shape(form, self.theta, x));
        self.log_a + shape
    }

    /// Returns the square up to which other parameters are as possible as these, at the confidence of the levels.
    fn limit(&self, levels: &Levels) -> f64 {
        let freedom = (levels.size() - self.parameters()).max(1.0);
        let t = levels.quantile(self.parameters());
        (self.square + PRIOR) * (1.0 + t * t / freedom) - PRIOR
    }
}

fn here(levels: &Levels, form: Form, theta: Theta) -> Here {
    let scope = levels.scope();
    least_squares(levels, |x| scope.shape(form, theta, x))
}

/// The parameters of a form that are as possible as the best ones.
pub(super) struct Region<'a> {
    levels: &'a Levels,
    form: Form,
    best: Fitted,
    limit: f64,
    weight: f64,
    /// Range of the last coordinate.
    range: (f64, f64),
}

impl<'a> Region<'a> {
    pub(super) fn new(levels: &'a Levels, form: Form, best: Fitted) -> Region<'a> {
        let weight = levels.variance.iter().map(|variance| 1.0 / variance).sum();
        let limit = best.limit(levels);
        let mut region = Region { levels, form, best, limit, weight, range: (0.0, 0.0) };
        region.range = match form.dimensions() {
            0 => (0.0, 0.0),
            1 => range_around(best.theta[0], |first| region.holds([first, 0.0])),
            _ => range_around(best.theta[1], |second| {
                minimum_of_one(0.0, 1.0, |first| region.at([first, second]).square).1 <= limit
            }),
        };
        region
    }

    fn at(&self, theta: Theta) -> Here {
        here(self.levels, self.form, theta)
    }

    fn holds(&self, theta: Theta) -> bool {
        self.at(theta).square <= self.limit
    }

    /// Returns the lowest and the highest value of s·ln a + f(θ).
    pub(super) fn extremes(&self, of: impl Fn(Theta) -> (f64, f64)) -> (f64, f64) {
        let low = self.lowest(|theta| of(theta));
        let high = -self.lowest(|theta| {
            let (s, f) = of(theta);
            (-s, -f)
        });
        (low, high)
    }

    fn lowest(&self, of: impl Fn(Theta) -> (f64, f64)) -> f64 {
        let value = |theta| {
            let Here { log_a, square } = self.at(theta);
            let (s, f) = of(theta);
            // What is left of the limit is room for `a`.
            let room = ((self.limit - square).max(0.0) / self.weight).sqrt();
            if square > self.limit * (1.0 + 1e-9) {
                f64::INFINITY
            } else if s == 0.0 {
                f
            } else {
                s * log_a + f - room * s.abs()
            }
        };
        let best = value(self.best.theta);
        let (low, high) = self.range;
        let searched = match self.form.dimensions() {
            0 => best,
            1 => minimum(low, high, |first| value([first, 0.0])).1,
            _ => {
                let inner = |second: f64| {
                    let square = |first: f64| self.at([first, second]).square;
                    let (middle, least) = minimum_of_one(0.0, 1.0, square);
                    if least > self.limit {
                        return f64::INFINITY;
                    }
                    let (low, high) = range_around(middle, |first| self.holds([first, second]));
                    minimum_of_one(low, high, |first| value([first, second])).1
                };
                minimum_of_one(low, high, inner).1
            }
        };
        searched.min(best)
    }

    /// Returns a parameter of the form with its profile interval.
    pub(super) fn parameter(&self, parameter: Parameter) -> Within {
        let scope = self.levels.scope();
        let of = |theta| scope.quantity(self.form, parameter, theta);
        let (s, f) = of(self.best.theta);
        let value = if s == 0.0 { f } else { s * self.best.log_a + f };
        let (mut low, mut high) = self.extremes(of);
        if self.form == Form::SharedCap {
            let is_bounded = (self.range.0 > 0.0, self.range.1 < 1.0);
            match parameter {
                Parameter::Knee => {
                    low = if is_bounded.0 { low } else { f64::NEG_INFINITY };
                    high = if is_bounded.1 { high } else { f64::INFINITY };
                }
                Parameter::Ceiling if !is_bounded.1 && !scope.falls => high = f64::INFINITY,
                _ => {}
            }
        }
        let [value, low, high] = if is_logarithm(parameter) {
            [value, low, high].map(f64::exp)
        } else {
            [value, low, high]
        };
        Within { value, low, high }
    }
}
