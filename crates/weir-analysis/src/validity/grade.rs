//! A rule of validity, and how its limits turn an observation into a reason.

use weir_model::record::{Validity, ValidityReason};

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
    pub(super) judge: fn(&Evidence<'_>, Grade) -> Option<Reason>,
}

/// A reason with the size of the observation, so that the gravest of many can be shown.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    pub(crate) reason: ValidityReason,
    /// Size that was compared with the limit; larger is graver.
    pub(crate) size: f64,
}

/// Name and limits of a rule that judges.
pub(crate) struct Grade(pub(super) &'static str, pub(super) Limits);

impl Grade {
    /// Returns a reason if `size` is above a limit.
    pub(super) fn of(self, size: f64, seen: impl FnOnce() -> String) -> Option<Reason> {
        let Grade(rule, limits) = self;
        let validity = match size {
            size if size > limits.invalid => Validity::Invalid,
            size if size > limits.suspect => Validity::Suspect,
            _ => return None,
        };
        let reason = ValidityReason { validity, rule: rule.to_owned(), seen: seen() };
        Some(Reason { reason, size })
    }

    /// Returns a reason if the share `part / of` is above a limit.
    pub(super) fn share(
        self,
        part: u64,
        of: u64,
        seen: impl FnOnce(f64) -> String,
    ) -> Option<Reason> {
        let share = part as f64 / of.max(1) as f64;
        self.of(share, || seen(share))
    }
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
