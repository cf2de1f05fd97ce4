//! A rule of validity, and how its limits grade an observation.

use weir_model::record::{Observation, Validity, ValidityReason};

use crate::evidence::Evidence;

/// Limit that nothing exceeds.
pub(super) const NEVER: f64 = f64::INFINITY;

/// Kind of measurement that a rule judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A trial of a study.
    Study,
    /// The result of `weir load`.
    Load,
}

/// Sizes above which an observation is suspect or invalid; infinite if it never is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Size above which it is SUSPECT.
    pub suspect: f64,
    /// Size above which it is INVALID.
    pub invalid: f64,
}

impl Limits {
    /// Returns the validity of an observation of this size; `None` if it is within the limits.
    pub(super) fn grade(self, size: f64) -> Option<Validity> {
        if size > self.invalid {
            Some(Validity::Invalid)
        } else if size > self.suspect {
            Some(Validity::Suspect)
        } else {
            None
        }
    }
}

/// A rule of validity.
#[derive(Debug)]
pub struct Rule {
    /// Name of the rule, as in reasons.
    pub name: &'static str,
    /// Quantity that is compared with the limits.
    pub compares: &'static str,
    /// Limits by [`Use`]; infinite if the rule does not apply.
    pub limits: [Limits; 2],
    /// Explanation of the limits, and of the difference between those of the two uses.
    pub why: &'static str,
    /// Returns the size that is compared with the limits, and the observation; `None` if the evidence is missing.
    pub(super) observe: fn(&Evidence<'_>) -> Option<(f64, Observation)>,
}

/// A reason with the size of the observation, so that the gravest of many can be shown.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    pub(crate) reason: ValidityReason,
    /// Size that was compared with the limit; larger is graver.
    pub(crate) size: f64,
}

pub(super) const fn limits(suspect: f64, invalid: f64) -> Limits {
    Limits { suspect, invalid }
}

pub(super) const fn both(suspect: f64, invalid: f64) -> [Limits; 2] {
    [limits(suspect, invalid); 2]
}

pub(super) const fn study(suspect: f64, invalid: f64) -> [Limits; 2] {
    [limits(suspect, invalid), limits(NEVER, NEVER)]
}

pub(super) const fn load(suspect: f64, invalid: f64) -> [Limits; 2] {
    [limits(NEVER, NEVER), limits(suspect, invalid)]
}
