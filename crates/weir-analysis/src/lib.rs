//! Validity, contrasts and verdicts: pure functions of records.

pub mod findings;
