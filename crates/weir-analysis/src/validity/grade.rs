//! What a rule is, and how its limits make a reason of what was seen.

use weir_model::record::{Validity, ValidityReason};

use crate::evidence::Evidence;

/// No limit.
pub(super) const NEVER: f64 = f64::INFINITY;

/// Where figures are used that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A trial of a study.
    Study,
    /// The result of `weir load`.
    Load,
}

/// From which size on something is suspect or invalid; exclusive, infinite where it never is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// SUSPECT beyond.
    pub suspect: f64,
    /// INVALID beyond.
    pub invalid: f64,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// The name that stands in reasons.
    pub name: &'static str,
    /// What is compared with the limits.
    pub compares: &'static str,
    /// The limits by [`Use`]; infinite ones where the rule does not apply.
    pub limits: [Limits; 2],
    /// Why the limits are what they are, and why those of the two uses differ where they do.
    pub why: &'static str,
    pub(super) judge: fn(&Evidence<'_>, Grade) -> Option<Reason>,
}

/// A reason with the size of what was seen, so that the gravest of many can be shown.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    pub(crate) reason: ValidityReason,
    /// What was compared with the limit; larger is graver.
    pub(crate) size: f64,
}

/// A rule's name and limits, for it to be judged by.
pub(crate) struct Grade(pub(super) &'static str, pub(super) Limits);

impl Grade {
    /// A reason when `size` is beyond a limit.
    pub(super) fn of(self, size: f64, seen: impl FnOnce() -> String) -> Option<Reason> {
        let Grade(rule, limits) = self;
        let validity = match size {
            size if size > limits.invalid => Validity::Invalid,
            size if size > limits.suspect => Validity::Suspect,
            _ => return None,
        };
        let reason = ValidityReason {
            validity,
            rule: rule.to_owned(),
            seen: seen(),
        };
        Some(Reason { reason, size })
    }

    /// The same for so many of so many.
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
