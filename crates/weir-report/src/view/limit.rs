//! Whether arms stay within the study's absolute limit.

use weir_analysis::findings::{LimitFindings, Verdict};
use weir_model::study::Study;

use super::{number, words};

/// One arm and the limit, formatted.
#[derive(Debug, Clone)]
pub struct LimitView {
    /// The arm.
    pub arm: String,
    /// The limit: `p99 within 30.0 ms`.
    pub limit: String,
    /// What it comes to: `holds`.
    pub word: &'static str,
    /// The verdict on a comparison whose sign and style it has.
    pub like: Verdict,
    /// The estimate of the quantile.
    pub value: String,
    /// Its interval; empty where there is none.
    pub interval: String,
    /// Why.
    pub because: String,
}

impl LimitView {
    pub(super) fn new(found: &LimitFindings) -> LimitView {
        LimitView {
            arm: found.arm.clone(),
            limit: format!(
                "{} within {}",
                words::metric_head(found.metric),
                number::short_time(found.limit_ns as f64)
            ),
            word: words::limit(found.verdict),
            like: words::limit_as_verdict(found.verdict),
            value: number::time(found.value_ns),
            interval: number::time_interval(found.interval_ns),
            because: found.because.clone(),
        }
    }

    /// Sign and word.
    pub fn verdict(&self) -> String {
        format!("{} {}", words::verdict_sign(self.like), self.word)
    }

    /// The estimate, with its interval where there is one.
    pub fn estimate(&self) -> String {
        match self.interval.is_empty() {
            true => self.value.clone(),
            false => format!("{} ({})", self.value, self.interval),
        }
    }
}

/// The limit of a study's objective, to follow the name of its metric; empty without one.
pub(super) fn words(study: &Study) -> String {
    match study.objective.within {
        Some(limit) => format!(", within {}", number::short_time(limit.as_nanos() as f64)),
        None => String::new(),
    }
}
