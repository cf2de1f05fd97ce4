//! Measures how often the form of a growth is named, rightly or wrongly, and how often intervals cover: the table of
//! docs/scale.md.
//!
//! ```text
//! scaling [SETS] [SEED]
//! ```
//!
//! A set is a study with 5 to 8 levels, each with 8 to 12 responses. Their noise is 1 to 5 %; beside it, each level has
//! an error of its own that all of its responses share.

use std::io::{self, Write as _};

use weir_stats::SplitMix64;
use weir_stats::scaling::{Answer, Factor, Form, Level, Parameter, scale};

/// A true form with its parameters drawn.
struct Truth {
    form: Form,
    factor: Factor,
    x: Vec<f64>,
    /// Parameters beside `a`.
    theta: [f64; 2],
}

const FORMS: [Form; 5] =
    [Form::Linear, Form::SharedCap, Form::Amdahl, Form::Universal, Form::Amortised];

fn normal(rng: &mut SplitMix64) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// Draws a value evenly on the log scale.
fn log_even(low: f64, high: f64, rng: &mut SplitMix64) -> f64 {
    low * (high / low).powf(rng.unit())
}

/// Draws 5 to 8 levels: 1, 2, 3, … or 1, 2, 4, ….
fn draw_levels(rng: &mut SplitMix64) -> Vec<f64> {
    let count = 5 + (rng.unit() * 4.0) as u32;
    let is_doubling = rng.unit() < 0.5;
    (0..count)
        .map(|index| if is_doubling { 2f64.powi(index as i32) } else { f64::from(index + 1) })
        .collect()
}

impl Truth {
    /// Draws parameters as proxies have them, so that the highest level is far enough on the curve to show them.
    fn draw(form: Form, rng: &mut SplitMix64) -> Truth {
        let mut x = draw_levels(rng);
        let highest = x[x.len() - 1];
        let mut factor = Factor::Servers;
        let theta = match form {
            Form::Linear => [0.0; 2],
            // At least one level on the ceiling, at least two below it.
            Form::SharedCap => [log_even(x[1] * 1.2, highest * 0.9, rng), 0.0],
            // At the highest level, 30 to 85 % of the proportional response are left.
            Form::Amdahl => [(1.0 / (0.3 + 0.55 * rng.unit()) - 1.0) / (highest - 1.0), 0.0],
            // The peak is between half the highest level and 1.5 times it.
            Form::Universal => {
                let contention = 0.1 * rng.unit();
                let peak = highest * (0.5 + rng.unit());
                [contention, (1.0 - contention) / (peak * peak)]
            }
            // The cost that depends on x overtakes the fixed one within the levels.
            Form::Amortised => {
                factor = Factor::Work;
                x = x.into_iter().map(|x| x * 1024.0).collect();
                [1.0 / log_even(x[0], x[x.len() - 1], rng), 0.0]
            }
        };
        Truth { form, factor, x, theta }
    }

    fn response(&self, x: f64) -> f64 {
        let [first, second] = self.theta;
        match self.form {
            Form::Linear => x,
            Form::SharedCap => x.min(first),
            Form::Amdahl | Form::Universal => {
                x / (1.0 + first * (x - 1.0) + second * x * (x - 1.0))
            }
            Form::Amortised => 1.0 / (1.0 + first * x),
        }
    }

    /// Returns the parameter that the interval is counted of.
    fn telling(&self) -> Option<(Parameter, f64)> {
        let [first, second] = self.theta;
        match self.form {
            Form::Linear | Form::Amortised => None,
            Form::SharedCap => Some((Parameter::Knee, first)),
            Form::Amdahl => Some((Parameter::Contention, first)),
            Form::Universal => Some((Parameter::Coherence, second)),
        }
    }

    fn measured(&self, shared: f64, rng: &mut SplitMix64) -> Vec<Level> {
        let noise = 0.01 * log_even(1.0, 5.0, rng);
        let count = 8 + (rng.unit() * 5.0) as usize;
        let measured = self.x.iter().map(|x| {
            let level = self.response(*x) * (1.0 + shared * noise * normal(rng));
            let responses = (0..count).map(|_| 1000.0 * level * (1.0 + noise * normal(rng)));
            Level { x: *x, responses: responses.collect(), error: None }
        });
        measured.collect()
    }
}

/// Counts over all sets of one true form.
#[derive(Default)]
struct Counts {
    named: u32,
    right: u32,
    /// Sets in which the true form is among those that cannot be told apart.
    among: u32,
    refused: u32,
    predicted: u32,
    covered: u32,
    width: f64,
    parameters: (u32, u32),
    wrong: std::collections::BTreeMap<Form, u32>,
}

impl Counts {
    fn add(&mut self, truth: &Truth, levels: &[Level]) {
        let Ok(scaling) = scale(levels, truth.factor, 0.95) else {
            self.refused += 1;
            return;
        };
        match &scaling.answer {
            Answer::Named(form) => {
                self.named += 1;
                self.right += u32::from(*form == truth.form);
                if *form != truth.form {
                    *self.wrong.entry(*form).or_default() += 1;
                }
            }
            Answer::Undecided { forms, .. } => self.among += u32::from(forms.contains(&truth.form)),
        }
        let farthest = scaling.farthest();
        if let Ok(prediction) = scaling.predict(farthest) {
            let (value, response) = (1000.0 * truth.response(farthest), prediction.response);
            self.predicted += 1;
            self.covered += u32::from(response.low <= value && value <= response.high);
            self.width += 0.5 * (response.high / response.low - 1.0);
        }
        let fit = scaling.fit(truth.form);
        if let Some((parameter, value)) = truth.telling()
            && let Some(found) = fit.and_then(|fit| fit.parameter(parameter))
        {
            self.parameters.0 += 1;
            self.parameters.1 += u32::from(found.low <= value && value <= found.high);
        }
    }
}

fn percent(part: u32, of: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(of.max(1))
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (sets, seed) = (arguments.next().unwrap_or(1000), arguments.next().unwrap_or(1));
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "shared form       named right/named right/all not-told(true among) refused covered ±width parameter wrong"
    )?;
    for (number, shared) in [0.0, 0.3, 0.6].into_iter().enumerate() {
        for (index, form) in FORMS.into_iter().enumerate() {
            let mut rng = SplitMix64::new(seed * 1000 + (number * FORMS.len() + index) as u64);
            let mut counts = Counts::default();
            for _ in 0..sets {
                let truth = Truth::draw(form, &mut rng);
                counts.add(&truth, &truth.measured(shared, &mut rng));
            }
            let all = sets as u32;
            writeln!(
                out,
                "{shared:6} {:10} {:5.1} {:11.1} {:9.1} {:8.1} {:12.1} {:7.1} {:7.1} {:6.1} {:9.1} {:?}",
                format!("{form:?}"),
                percent(counts.named, all),
                percent(counts.right, counts.named),
                percent(counts.right, all),
                percent(all - counts.named - counts.refused, all),
                percent(counts.among, all - counts.named - counts.refused),
                percent(counts.refused, all),
                percent(counts.covered, counts.predicted),
                100.0 * counts.width / f64::from(counts.predicted.max(1)),
                percent(counts.parameters.1, counts.parameters.0),
                counts.wrong,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short version of the table, with the seed that the thresholds were not chosen with.
    #[test]
    fn the_true_form_is_named_or_among_those_that_cannot_be_told_apart() {
        for (index, form) in FORMS.into_iter().enumerate() {
            let mut rng = SplitMix64::new(77_000 + index as u64);
            let mut counts = Counts::default();
            for _ in 0..30 {
                let truth = Truth::draw(form, &mut rng);
                counts.add(&truth, &truth.measured(0.3, &mut rng));
            }
            assert!(counts.right * 10 >= counts.named * 9, "{form:?}: {:?}", counts.wrong);
            assert!(counts.right + counts.among >= 27, "{form:?}");
            assert!(counts.covered >= 26 && counts.refused == 0, "{form:?} {}", counts.covered);
        }
    }
}
