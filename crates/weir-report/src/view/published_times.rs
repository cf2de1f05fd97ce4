//! Published response times beside ours, quantile by quantile.

use std::time::Duration;

use weir_analysis::findings::{Findings, PublishedVerdict, TimeFindings};

use super::number;
use super::published::load_words;

/// One published quantile beside ours.
#[derive(Debug, Clone)]
pub struct TimesRow {
    /// The arm.
    pub arm: String,
    /// What it was published for: `900 to 1000 connections`; empty: anything.
    pub published_for: String,
    /// The load that ours is from, with its validity; a dash when there is none.
    pub load: String,
    /// `p99`.
    pub quantile: String,
    /// Published time, a range of them, or `unchanged`.
    pub figure: String,
    /// Ours.
    pub measured: String,
    /// Published ratio to the arm it is compared with.
    pub ratio: String,
    /// Ours, with its interval; empty for the baseline.
    pub measured_ratio: String,
    /// What that says; none where nothing is compared.
    pub verdict: Option<PublishedVerdict>,
    /// Why, where the verdict alone does not say it.
    pub because: String,
}

impl TimesRow {
    pub(super) fn new(found: &TimeFindings, findings: &Findings) -> TimesRow {
        let none = number::NONE.to_owned();
        TimesRow {
            arm: found.arm.clone(),
            published_for: published_for(found),
            load: load_words(found.load.as_deref(), findings),
            quantile: quantile_name(found.quantile),
            figure: found.published_ns.map_or("unchanged".to_owned(), times),
            measured: found.measured_ns.map_or(none.clone(), number::time),
            ratio: found.ratio.map_or(none.clone(), ratios),
            measured_ratio: found.measured.map_or(String::new(), |ours| {
                let interval = number::ratio_interval(ours.value, ours.interval);
                match number::ratio(ours.value) {
                    ratio if ratio == none => ratio,
                    ratio => format!("{ratio} ({interval})"),
                }
            }),
            verdict: found.verdict,
            because: found.because.clone(),
        }
    }
}

fn quantile_name(quantile: f64) -> String {
    match quantile {
        1.0 => "max".to_owned(),
        // Multiplication by 100 leaves digits behind: 99.9 is not 99.90000000000001.
        q => format!("p{}", (q * 1e5).round() / 1e3),
    }
}

fn published_for(found: &TimeFindings) -> String {
    let span = |low: f64, high: f64, noun: &str| match low == high {
        true => format!("{} {noun}", number::rate(low)),
        false => format!("{} to {} {noun}", number::rate(low), number::rate(high)),
    };
    let connections = found
        .connections
        .map(|(low, high)| span(f64::from(low), f64::from(high), "connections"));
    let rate = found.rate.map(|(low, high)| span(low, high, "requests/s"));
    let parts = [found.published_load.clone(), connections, rate];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// As it was published: rounding is for figures of ours.
fn times((low, high): (u64, u64)) -> String {
    let time = |ns| weir_model::quantity::format_duration(Duration::from_nanos(ns));
    match low == high {
        true => time(low),
        false => format!("{} to {}", time(low), time(high)),
    }
}

fn ratios((low, high): (f64, f64)) -> String {
    match low == high {
        true => number::ratio(low),
        false => format!("{} to {}", number::ratio(low), number::ratio(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_their_usual_names() {
        let names: Vec<String> = [0.5, 0.75, 0.95, 0.99, 0.999, 1.0]
            .map(quantile_name)
            .into();
        assert_eq!(names, ["p50", "p75", "p95", "p99", "p99.9", "max"]);
    }
}
