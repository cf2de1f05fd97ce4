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
struct LeastSquares {
    log_a: f64,
    square: f64,
}

fn least_squares(levels: &Levels, shape: impl Fn(f64) -> f64) -> LeastSquares {
    let (mut weight, mut sum, mut square) = (0.0, 0.0, 0.0);
    for ((x, mean), variance) in levels.x.iter().zip(&levels.mean).zip(&levels.variance) {
        let distance = mean - shape(*x);
        weight += 1.0 / variance;
        sum += distance / variance;
        square += distance * distance / variance;
    }
    LeastSquares { log_a: sum / weight, square: (square - sum * sum / weight).max(0.0) }
}

impl Fitted {
    /// Fits a constant.
    pub(super) fn flat(levels: &Levels) -> Fitted {
        let LeastSquares { log_a, square } = least_squares(levels, |_| 0.0);
        Fitted { form: None, theta: [0.0; 2], log_a, square }
    }

    /// Fits a form.
    pub(super) fn of(levels: &Levels, form: Form) -> Fitted {
        let theta = match form.dimensions() {
            0 => [0.0; 2],
            1 => [best_first(levels, form, 0.0, minimum).0, 0.0],
            _ => {
                let (second, _) = minimum(0.0, 1.0, &mut |second| {
                    best_first(levels, form, second, minimum_of_one).1
                });
                [best_first(levels, form, second, minimum_of_one).0, second]
            }
        };
        let LeastSquares { log_a, square } = least_squares_at(levels, form, theta);
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

/// Function that finds a minimum in a range: [`minimum`] or [`minimum_of_one`].
type Minimum = fn(f64, f64, &mut dyn FnMut(f64) -> f64) -> (f64, f64);

/// Returns the best first coordinate beside a second one, and the square there.
fn best_first(levels: &Levels, form: Form, second: f64, minimum: Minimum) -> (f64, f64) {
    minimum(0.0, 1.0, &mut |first| least_squares_at(levels, form, [first, second]).square)
}

fn least_squares_at(levels: &Levels, form: Form, theta: Theta) -> LeastSquares {
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
                best_first(levels, form, second, minimum_of_one).1 <= limit
            }),
        };
        region
    }

    fn at(&self, theta: Theta) -> LeastSquares {
        least_squares_at(self.levels, self.form, theta)
    }

    fn holds(&self, theta: Theta) -> bool {
        self.at(theta).square <= self.limit
    }

    /// Returns the lowest and the highest value of s·ln a + f(θ).
    pub(super) fn extremes(&self, of: impl Fn(Theta) -> (f64, f64)) -> (f64, f64) {
        let low = self.lowest(&of);
        let high = -self.lowest(|theta| {
            let (s, f) = of(theta);
            (-s, -f)
        });
        (low, high)
    }

    fn lowest(&self, of: impl Fn(Theta) -> (f64, f64)) -> f64 {
        let best = self.lowest_at(self.best.theta, of(self.best.theta));
        let (low, high) = self.range;
        let searched = match self.form.dimensions() {
            0 => best,
            1 => {
                minimum(low, high, &mut |first| {
                    let theta = [first, 0.0];
                    self.lowest_at(theta, of(theta))
                })
                .1
            }
            _ => minimum_of_one(low, high, &mut |second| self.lowest_beside(second, &of)).1,
        };
        searched.min(best)
    }

    /// Returns the lowest value of s·ln a + f at a position, over all `a` that are possible there.
    fn lowest_at(&self, theta: Theta, (s, f): (f64, f64)) -> f64 {
        let LeastSquares { log_a, square } = self.at(theta);
        if square > self.limit * (1.0 + 1e-9) {
            return f64::INFINITY;
        }
        // What is left of the limit is room for `a`.
        let room = ((self.limit - square).max(0.0) / self.weight).sqrt();
        if s == 0.0 { f } else { s * log_a + f - room * s.abs() }
    }

    /// Returns the lowest value beside a second coordinate.
    fn lowest_beside(&self, second: f64, of: &impl Fn(Theta) -> (f64, f64)) -> f64 {
        let (middle, least) = best_first(self.levels, self.form, second, minimum_of_one);
        if least > self.limit {
            return f64::INFINITY;
        }
        let (low, high) = range_around(middle, |first| self.holds([first, second]));
        minimum_of_one(low, high, &mut |first| {
            let theta = [first, second];
            self.lowest_at(theta, of(theta))
        })
        .1
    }

    /// Returns a parameter of the form with its profile interval.
    pub(super) fn parameter(&self, parameter: Parameter) -> Within {
        let scope = self.levels.scope();
        let (s, f) = scope.quantity(self.form, parameter, self.best.theta);
        let value = if s == 0.0 { f } else { s * self.best.log_a + f };
        let (mut low, mut high) =
            self.extremes(|theta| scope.quantity(self.form, parameter, theta));
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
