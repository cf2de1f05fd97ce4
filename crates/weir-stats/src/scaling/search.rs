//! Minima of functions of one or two variables between 0 and 1, without derivatives.

/// Number of positions at which a function is looked at before the best is refined.
const GRID: usize = 32;
/// Number of steps of a refinement or a bisection; each leaves 0.62 or 0.5 of the range.
const STEPS: usize = 26;

/// Returns the position between `low` and `high` with the smallest value, and that value: the best of a grid, refined
/// by golden sections. Functions may have several minima, and may be infinite.
pub(super) fn minimum(low: f64, high: f64, of: &mut dyn FnMut(f64) -> f64) -> (f64, f64) {
    minimum_on(GRID, low, high, of)
}

/// [`minimum`] with a coarser grid, for functions that have one minimum.
pub(super) fn minimum_of_one(low: f64, high: f64, of: &mut dyn FnMut(f64) -> f64) -> (f64, f64) {
    minimum_on(GRID / 4, low, high, of)
}

fn minimum_on(grid: usize, low: f64, high: f64, of: &mut dyn FnMut(f64) -> f64) -> (f64, f64) {
    let step = (high - low) / grid as f64;
    let mut best = (low, of(low));
    for index in 1..=grid {
        let at = low + step * index as f64;
        let value = of(at);
        if value < best.1 {
            best = (at, value);
        }
    }
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut from, mut until) = ((best.0 - step).max(low), (best.0 + step).min(high));
    let mut inner_left = until - ratio * (until - from);
    let mut inner_right = from + ratio * (until - from);
    let (mut at_left, mut at_right) = (of(inner_left), of(inner_right));
    for _ in 0..STEPS {
        if at_left <= at_right {
            (until, inner_right, at_right) = (inner_right, inner_left, at_left);
            inner_left = until - ratio * (until - from);
            at_left = of(inner_left);
        } else {
            (from, inner_left, at_left) = (inner_left, inner_right, at_right);
            inner_right = from + ratio * (until - from);
            at_right = of(inner_right);
        }
    }
    let refined = if at_left <= at_right { (inner_left, at_left) } else { (inner_right, at_right) };
    if refined.1 < best.1 { refined } else { best }
}

/// Returns the range around `at` in which a condition holds, within 0 to 1. It holds at `at`.
pub(super) fn range_around(at: f64, mut holds: impl FnMut(f64) -> bool) -> (f64, f64) {
    (edge(at, 0.0, &mut holds), edge(at, 1.0, &mut holds))
}

/// Returns the last position between `inside` and `end` at which a condition holds.
fn edge(mut inside: f64, end: f64, holds: &mut impl FnMut(f64) -> bool) -> f64 {
    if holds(end) {
        return end;
    }
    let mut outside = end;
    for _ in 0..STEPS {
        let middle = 0.5 * (inside + outside);
        if holds(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    inside
}
