//! Prediction of a quantity that grows with one or two variables, such as memory with requests and connections.
//!
//! The quantity is fitted by weighted least squares along a plane. Its errors are relative, as those of CPU time and
//! memory are, so a point weighs less the higher it is. A plane that is slightly curved looks straight in few points,
//! and far from straight at twice their distance. Therefore the same model with the square of the first variable is
//! fitted too, and if Akaike's criterion (with the correction for few points: Hurvich & Tsai, Biometrika 76, 1989)
//! cannot reject it, the interval of a prediction covers what both say (Burnham & Anderson, Model Selection and
//! Multimodel Inference, 2002, chapter 4).

use crate::growth::Within;
use crate::student::quantile;

/// Minimum number of points beyond the coefficients of a plane.
pub const LEAST_FREEDOM: usize = 3;
/// Smallest range of a variable, as a share of its maximum, that counts as varied.
const LEAST_RANGE: f64 = 0.2;
/// Correlation of the two variables beyond which their effects cannot be told apart.
const ENTANGLED: f64 = 0.95;
/// Difference of the criterion up to which a model is not rejected.
const NOT_REJECTED: f64 = 7.0;
/// Share of the mean that is added to each value before it becomes a weight, so that values near 0 do not decide alone.
const SMALL: f64 = 0.1;

/// A measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanePoint {
    /// The two variables.
    pub x: [f64; 2],
    /// The quantity.
    pub y: f64,
}

impl PlanePoint {
    fn is_finite(&self) -> bool {
        self.x.iter().chain([&self.y]).all(|value| value.is_finite())
    }
}

/// Reason why there is no plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlane {
    /// Too few points, or values that are not finite.
    FewPoints,
    /// Both variables change together, so what each does is not known.
    Entangled,
}

/// A fitted plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Plane {
    /// True for each variable that varied.
    pub varied: [bool; 2],
    models: Vec<Model>,
}

/// A weighted least-squares fit.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    terms: Vec<Term>,
    coefficients: Vec<f64>,
    /// Inverse of the weighted normal matrix.
    inverse: Vec<Vec<f64>>,
    /// Weighted residual variance: squared relative error.
    variance: f64,
    freedom: usize,
    /// Mean of the fitted values, which scales [`SMALL`].
    mean: f64,
}

/// A column of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Term {
    Constant,
    /// A variable, divided by its maximum.
    Variable(usize, f64),
    /// Its square.
    Square(usize, f64),
}

impl Term {
    fn value(self, x: [f64; 2]) -> f64 {
        match self {
            Term::Constant => 1.0,
            Term::Variable(index, scale) => x[index] / scale,
            Term::Square(index, scale) => (x[index] / scale).powi(2),
        }
    }
}

/// Fits a plane through points whose errors are independent. A variable that hardly varied is left out.
pub fn fit_plane(points: &[PlanePoint]) -> Result<Plane, NoPlane> {
    if points.is_empty() || !points.iter().all(PlanePoint::is_finite) {
        return Err(NoPlane::FewPoints);
    }
    let varied = [0, 1].map(|index| varies(points, index));
    if varied == [true, true] && correlation(points).abs() > ENTANGLED {
        return Err(NoPlane::Entangled);
    }
    let mut terms = vec![Term::Constant];
    for index in [0, 1].into_iter().filter(|index| varied[*index]) {
        terms.push(Term::Variable(index, largest(points, index)));
    }
    let straight = Model::fit(points, &terms).ok_or(NoPlane::FewPoints)?;
    let straight_aicc = straight.aicc(points.len());
    let mut models = vec![straight];
    if let Some(&Term::Variable(index, scale)) = terms.get(1) {
        terms.push(Term::Square(index, scale));
        models.extend(
            Model::fit(points, &terms)
                .filter(|curved| curved.aicc(points.len()) < straight_aicc + NOT_REJECTED),
        );
    }
    Ok(Plane { varied, models })
}

impl Plane {
    /// Returns the quantity at `x`, with the interval in which a value lies with this confidence. `extra` is the
    /// relative standard deviation that the points share and therefore do not show, such as that of one process.
    pub fn predict(&self, x: [f64; 2], confidence: f64, extra: f64) -> Within {
        let mut all = self.models.iter().map(|model| model.predict(x, confidence, extra));
        // There is always a straight model, the first one.
        let first = all.next().expect("a plane has a model");
        let hull = all.fold(first, |hull, other| Within {
            value: hull.value,
            low: hull.low.min(other.low),
            high: hull.high.max(other.high),
        });
        Within { value: hull.value.max(0.0), low: hull.low.max(0.0), high: hull.high.max(0.0) }
    }
}

impl Model {
    fn fit(points: &[PlanePoint], terms: &[Term]) -> Option<Model> {
        let freedom = points.len().checked_sub(terms.len()).filter(|n| *n >= LEAST_FREEDOM)?;
        let mean = points.iter().map(|point| point.y.abs()).sum::<f64>() / points.len() as f64;
        let size = terms.len();
        let mut normal = vec![vec![0.0; size]; size];
        let mut right = vec![0.0; size];
        for point in points {
            let share = weight(point.y, mean);
            let row: Vec<f64> = terms.iter().map(|term| term.value(point.x)).collect();
            for i in 0..size {
                right[i] += share * row[i] * point.y;
                for j in 0..size {
                    normal[i][j] += share * row[i] * row[j];
                }
            }
        }
        let inverse = invert(normal)?;
        let coefficients: Vec<f64> = inverse
            .iter()
            .map(|row| row.iter().zip(&right).map(|(cell, right)| cell * right).sum())
            .collect();
        let mut model =
            Model { terms: terms.to_vec(), coefficients, inverse, variance: 0.0, freedom, mean };
        let squares: f64 = points
            .iter()
            .map(|point| weight(point.y, mean) * (point.y - model.value(point.x)).powi(2))
            .sum();
        model.variance = squares / freedom as f64;
        Some(model)
    }

    fn value(&self, x: [f64; 2]) -> f64 {
        self.terms.iter().zip(&self.coefficients).map(|(term, factor)| factor * term.value(x)).sum()
    }

    fn predict(&self, x: [f64; 2], confidence: f64, extra: f64) -> Within {
        let row: Vec<f64> = self.terms.iter().map(|term| term.value(x)).collect();
        let leverage: f64 = self
            .inverse
            .iter()
            .zip(&row)
            .map(|(cells, left)| {
                left * cells.iter().zip(&row).map(|(cell, right)| cell * right).sum::<f64>()
            })
            .sum();
        let value = self.value(x);
        let scatter = self.variance * (leverage + 1.0 / weight(value, self.mean));
        let error = (scatter + (extra * value).powi(2)).sqrt();
        let half_width = quantile(1.0 - confidence, self.freedom as u32) * error;
        Within { value, low: value - half_width, high: value + half_width }
    }

    /// Returns Akaike's criterion with the correction for few points; infinite if there are too few for it. An exact
    /// fit is bounded by the precision of the values.
    fn aicc(&self, points: usize) -> f64 {
        let n = points as f64;
        let parameters = self.coefficients.len() as f64 + 1.0;
        let spare = n - parameters - 1.0;
        if spare <= 0.0 {
            return f64::INFINITY;
        }
        let variance = (self.variance * self.freedom as f64 / n).max(1e-18);
        n * variance.ln() + 2.0 * parameters + 2.0 * parameters * (parameters + 1.0) / spare
    }
}

/// Returns the weight of a value: the reciprocal of its squared error, but for a common factor.
fn weight(y: f64, mean: f64) -> f64 {
    (y.abs() + SMALL * mean).max(f64::MIN_POSITIVE.sqrt()).powi(-2)
}

fn largest(points: &[PlanePoint], index: usize) -> f64 {
    points.iter().map(|point| point.x[index]).fold(0.0, f64::max)
}

fn varies(points: &[PlanePoint], index: usize) -> bool {
    let high = largest(points, index);
    let low = points.iter().map(|point| point.x[index]).fold(f64::INFINITY, f64::min);
    high > 0.0 && high - low > LEAST_RANGE * high
}

fn correlation(points: &[PlanePoint]) -> f64 {
    let n = points.len() as f64;
    let means = [0, 1].map(|index| points.iter().map(|point| point.x[index]).sum::<f64>() / n);
    let product_sum = |i: usize, j: usize| {
        points.iter().map(|point| (point.x[i] - means[i]) * (point.x[j] - means[j])).sum::<f64>()
    };
    product_sum(0, 1) / (product_sum(0, 0) * product_sum(1, 1)).sqrt()
}

/// Inverts a symmetric matrix by Gauss and Jordan's elimination; `None` if it is singular.
fn invert(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let largest = matrix.iter().flatten().fold(0.0, |most: f64, cell| most.max(cell.abs()));
    for (index, row) in matrix.iter_mut().enumerate() {
        row.extend((0..size).map(|column| f64::from(u8::from(column == index))));
    }
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() <= 1e-12 * largest {
            return None;
        }
        matrix.swap(column, pivot);
        let divisor = matrix[column][column];
        matrix[column].iter_mut().for_each(|cell| *cell /= divisor);
        let pivot_row = matrix[column].clone();
        for (index, row) in matrix.iter_mut().enumerate() {
            if index != column {
                let factor = row[column];
                row.iter_mut().zip(&pivot_row).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
    }
    Some(matrix.into_iter().map(|row| row[size..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    fn normal(rng: &mut SplitMix64) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    fn point(x: [f64; 2], y: f64) -> PlanePoint {
        PlanePoint { x, y }
    }

    #[test]
    fn a_plane_is_found_exactly_and_a_variable_that_does_not_vary_is_left_out() {
        let points: Vec<PlanePoint> = (0..9)
            .map(|i| {
                let x = [1000.0 * f64::from(1 + i % 3), 50.0 * f64::from(1 + i / 3)];
                point(x, 7.0 + 0.002 * x[0] + 0.1 * x[1])
            })
            .collect();
        let plane = fit_plane(&points).unwrap();
        assert_eq!(plane.varied, [true, true]);
        let at = plane.predict([6000.0, 300.0], 0.95, 0.0);
        assert!((at.value - 49.0).abs() < 1e-6 && at.high - at.low < 1e-3, "{at:?}");
        let flat: Vec<PlanePoint> =
            points.iter().map(|one| point([one.x[0], 50.0], 3.0 * one.x[0])).collect();
        let plane = fit_plane(&flat).unwrap();
        assert_eq!(plane.varied, [true, false]);
        assert!((plane.predict([500.0, 9.0], 0.95, 0.0).value - 1500.0).abs() < 1e-6);
    }

    #[test]
    fn no_plane_goes_through_too_little() {
        let at = |x: f64| point([x, 2.0 * x], x);
        let together: Vec<PlanePoint> = (1..9).map(|x| at(f64::from(x))).collect();
        assert_eq!(fit_plane(&together), Err(NoPlane::Entangled));
        assert_eq!(fit_plane(&[]), Err(NoPlane::FewPoints));
        let few: Vec<PlanePoint> = (1..5).map(|x| point([f64::from(x), 1.0], 1.0)).collect();
        assert_eq!(fit_plane(&few), Err(NoPlane::FewPoints));
        let mut broken = together.clone();
        broken[3].y = f64::NAN;
        assert_eq!(fit_plane(&broken), Err(NoPlane::FewPoints));
    }

    /// Returns the share of 2,000 simulated measurements whose interval at twice the highest rate covers the truth, and
    /// their median half-width as a share of it.
    fn coverage(truth: impl Fn([f64; 2]) -> f64, noise: f64, points: u32, seed: u64) -> (f64, f64) {
        let mut rng = SplitMix64::new(seed);
        let at = [2.0, 2.0];
        let wanted = truth(at);
        let mut widths = Vec::new();
        let covered = (0..2_000)
            .filter(|_| {
                let drawn: Vec<PlanePoint> = (0..points)
                    .map(|_| {
                        let x = [0.1 + 0.9 * rng.unit(), 0.1 + 0.9 * rng.unit()];
                        point(x, truth(x) * (1.0 + noise * normal(&mut rng)))
                    })
                    .collect();
                let prediction = fit_plane(&drawn).unwrap().predict(at, 0.95, 0.0);
                widths.push((prediction.high - prediction.low) / 2.0 / wanted);
                prediction.low <= wanted && wanted <= prediction.high
            })
            .count();
        widths.sort_by(f64::total_cmp);
        (covered as f64 / 2_000.0, widths[1_000])
    }

    #[test]
    fn intervals_at_twice_the_data_cover_the_truth() {
        for (power, noise, seed) in
            [(1.0, 0.02, 1), (1.0, 0.05, 2), (0.9, 0.02, 3), (1.1, 0.02, 4), (0.8, 0.01, 5)]
        {
            let truth = |x: [f64; 2]| 0.2 + x[0].powf(power) + 0.5 * x[1];
            let (covered, width) = coverage(truth, noise, 14, seed);
            assert!(covered >= 0.9, "x^{power}, noise {noise}: {covered}, ±{width}");
        }
    }
}
