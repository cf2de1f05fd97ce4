//! All possible forms, and which of them the levels show.

use super::fisher::upper_tail;
use super::fit::{Fitted, Region};
use super::levels::Levels;
use super::prediction::within;
use super::{Answer, FARTHEST, Factor, Fit, Form, Telling};

/// Difference of AICc below which two forms cannot be told apart.
const SAME: f64 = 3.0;
/// Relative difference at [`FARTHEST`] below which it does not matter which of two forms is true.
const AGREES: f64 = 0.3;
/// Number of levels among which the one is searched that tells forms apart.
const CANDIDATES: u32 = 48;

/// Fits all forms that are possible, the best first.
pub(super) fn all_fits(levels: &Levels, factor: Factor) -> Vec<Fit> {
    let forms = Form::possible(factor, levels.scope().falls);
    let mut fits: Vec<Fit> = forms.iter().map(|form| fit(levels, *form)).collect();
    fits.sort_by(|a, b| a.delta.total_cmp(&b.delta));
    let least = fits[0].delta;
    for fit in &mut fits {
        fit.delta = if fit.delta.is_finite() { fit.delta - least } else { f64::INFINITY };
    }
    fits
}

fn fit(levels: &Levels, form: Form) -> Fit {
    let inner = Fitted::of(levels, form);
    let region = Region::new(levels, form, inner);
    let fitted: Vec<f64> = levels.x.iter().map(|x| inner.log(levels, *x).exp()).collect();
    let squares = levels.mean.iter().zip(&fitted).map(|(mean, y)| (mean.exp() / y - 1.0).powi(2));
    let rmse = (squares.sum::<f64>() / levels.x.len() as f64).sqrt();
    let parameters = form.parameters().iter().map(|one| (*one, region.parameter(*one))).collect();
    let freedom = levels.x.len().saturating_sub(1 + form.dimensions());
    let lack_of_fit = (levels.freedom > 0 && freedom > 0)
        .then(|| upper_tail(inner.square / freedom as f64, freedom, levels.freedom));
    Fit { form, parameters, delta: inner.aicc(levels), rmse, lack_of_fit, fitted, inner }
}

/// Returns true if `simple` is a case of `form`. A straight line is also one of a ceiling above all levels, but that no
/// data can show.
pub(super) fn is_superset(form: Form, simple: Form) -> bool {
    match simple {
        Form::Linear => matches!(form, Form::Amdahl | Form::Universal | Form::Amortised),
        Form::Amdahl => form == Form::Universal,
        _ => false,
    }
}

/// Names the form, if only one is left.
///
/// Left are the forms within [`SAME`] of the best, and those that the best is a case of. A case stands for the form
/// that it is a case of, if it fits no worse and there is no place up to [`FARTHEST`] at which it matters.
pub(super) fn choose(levels: &Levels, fits: &[Fit]) -> Answer {
    let best = fits[0].form;
    let possible: Vec<&Fit> = fits
        .iter()
        .filter(|fit| fit.delta <= SAME || (is_superset(fit.form, best) && fit.delta.is_finite()))
        .collect();
    let forms: Vec<Form> = possible
        .iter()
        .filter(|fit| !possible.iter().any(|simple| stands_for(levels, simple, fit)))
        .map(|fit| fit.form)
        .collect();
    match forms[..] {
        [form] => Answer::Named(form),
        _ => Answer::Undecided { telling: telling(levels, fits, &forms), forms },
    }
}

fn stands_for(levels: &Levels, simple: &Fit, fit: &Fit) -> bool {
    if !is_superset(fit.form, simple.form) || simple.delta > fit.delta {
        return false;
    }
    let farthest = FARTHEST * levels.highest();
    let value = simple.inner.log(levels, farthest).exp();
    let possible = within(levels, fit, farthest);
    possible.low > value / (1.0 + AGREES) && possible.high < value * (1.0 + AGREES)
}

/// Returns the level up to [`FARTHEST`] at which the curves differ most.
fn telling(levels: &Levels, fits: &[Fit], forms: &[Form]) -> Telling {
    let (lowest, farthest) = (levels.x[0], FARTHEST * levels.highest());
    let is_whole = levels.x.iter().all(|x| x.fract() == 0.0);
    let candidates = (0..=CANDIDATES).map(|step| {
        let x = lowest * (farthest / lowest).powf(f64::from(step) / f64::from(CANDIDATES));
        if is_whole { x.round() } else { x }
    });
    let possible: Vec<&Fit> = fits.iter().filter(|fit| forms.contains(&fit.form)).collect();
    let x = candidates
        .max_by(|a, b| gap(levels, &possible, *a).total_cmp(&gap(levels, &possible, *b)))
        .unwrap_or(farthest);
    let responses = possible.iter().map(|fit| (fit.form, fit.inner.log(levels, x).exp()));
    Telling { x, responses: responses.collect() }
}

/// Returns the difference between the highest and the lowest curve at a level, on the log scale.
fn gap(levels: &Levels, fits: &[&Fit], x: f64) -> f64 {
    let (low, high) = fits
        .iter()
        .map(|fit| fit.inner.log(levels, x))
        .fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)));
    high - low
}
