//! Hints that do not fit an arm: `misfits` of `limits/rules.yaml`.

use serde::Deserialize;
use serde_saphyr::Spanned;
use weir_model::quantity::parse_duration;

use crate::evidence::Evidence;
use crate::rules::{Condition, TurnDirection};

/// Hints that have no effect in some arms.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Misfit {
    /// Parameters that must not be suggested.
    pub parameters: Vec<String>,
    /// Limiters whose findings are affected; empty for all.
    #[serde(default)]
    pub of: Vec<Spanned<String>>,
    /// Levels in the arm that impose no limit.
    #[serde(default)]
    pub levels: Vec<String>,
    /// Condition on the trial.
    #[serde(default)]
    pub when: Option<Condition>,
    /// Quantity by which the arm's level is multiplied.
    #[serde(default)]
    pub level_times: Option<Spanned<String>>,
    /// Quantity by which the arm's level is divided.
    #[serde(default)]
    pub level_over: Option<Spanned<String>>,
    /// Threshold that the product or the quotient has to exceed.
    #[serde(default)]
    pub above: Option<f64>,
}

impl Misfit {
    /// Returns the quantities that the level is compared with.
    pub(crate) fn measures(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.level_times.iter().chain(&self.level_over)
    }

    /// Returns true if the misfit concerns this parameter in findings of this limiter.
    fn is_of(&self, limiter: &str, parameter: &str) -> bool {
        let is_named = self.parameters.iter().any(|one| one == parameter);
        is_named && (self.of.is_empty() || self.of.iter().any(|one| one.value == limiter))
    }

    /// Returns true if turning one of its parameters changes nothing. `level` is the arm's own, if known.
    fn holds(&self, level: Option<&str>, evidence: &Evidence) -> bool {
        let by_word = level.is_some_and(|level| self.levels.iter().any(|word| word == level));
        let by_trial = self.when.as_ref().and_then(|one| one.holds(evidence));
        by_word || by_trial == Some(true) || self.is_enough(level, evidence) == Some(true)
    }

    /// Returns true if the level exceeds the use; `None` if unknown.
    fn is_enough(&self, level: Option<&str>, evidence: &Evidence) -> Option<bool> {
        let level = number(level?)?;
        let held_against = match (&self.level_times, &self.level_over) {
            (Some(times), _) => level * evidence.value(&times.value)?,
            (None, Some(over)) => level / evidence.value(&over.value)?,
            (None, None) => return None,
        };
        Some(held_against > self.above?)
    }
}

/// Returns true if a hint fits an arm whose parameter has this level, as far as is known.
pub(crate) fn fits(
    misfits: &[Misfit],
    limiter: &str,
    (parameter, way, level): (&str, &TurnDirection, Option<&str>),
    evidence: &Evidence,
) -> bool {
    // All of them are about more; less of the same parameter is another hint.
    *way == TurnDirection::Down
        || !misfits
            .iter()
            .any(|misfit| misfit.is_of(limiter, parameter) && misfit.holds(level, evidence))
}

/// Parses a level as a number, or as a duration in seconds.
fn number(level: &str) -> Option<f64> {
    match level.parse() {
        Ok(number) => Some(number),
        Err(_) => Some(parse_duration(level).ok()?.as_secs_f64()),
    }
}
