//! Reasons for the verdicts of comparisons.

use weir_analysis::findings::{Basis, Caveat, Comparison, EqualArms, IdleLoad, Needed};
use weir_analysis::{samples_needed, samples_wanted};
use weir_model::study::Objective;
use weir_stats::clusters::INSTANCE_SD;
use weir_stats::verdict::LEAST_REPLICATES;

use crate::idle::explain_idle_load;
use crate::numbers;

/// Returns the reason for a verdict: "the whole interval is above 1 and p is 0.0012 after correction".
pub fn explain_verdict(comparison: &Comparison, objective: &Objective) -> String {
    let because = &comparison.because;
    let mut clauses = vec![describe_basis(comparison, objective)];
    clauses.extend(because.needed.as_ref().map(describe_needed));
    clauses.extend(because.caveats.iter().map(|caveat| describe_caveat(comparison, caveat)));
    clauses.join("; ")
}

fn describe_basis(comparison: &Comparison, objective: &Objective) -> String {
    let Comparison { metric, n, ratio, pooled, interval, .. } = comparison;
    match &comparison.because.basis {
        Basis::NothingMeasured => "nothing was measured".to_owned(),
        Basis::NoValidBlock { blocks } => {
            format!("none of {blocks} blocks was valid for both arms")
        }
        Basis::CpuTimeUnseen { arm } => {
            format!("weir did not start the proxy of {arm} and does not see its CPU time")
        }
        Basis::FewAnswers => "in no block did either arm answer enough requests for it".to_owned(),
        Basis::NotRecorded => "the metric was not recorded".to_owned(),
        Basis::ExcludesOne => {
            let side = if interval.0 > 1.0 { "above" } else { "below" };
            format!("the whole interval is {side} 1 and {}", describe_p(comparison))
        }
        Basis::WithinBand => format!("the whole interval is within {}", format_band(objective)),
        Basis::FewRequests => format!(
            "a replicate has about {} requests, fewer than the {} that the quantile needs",
            numbers::count(comparison.requests.unwrap_or_default()),
            numbers::count(samples_needed(*metric))
        ),
        Basis::Stalls => format!(
            "typical blocks have a ratio of {ratio:.3}, but all blocks together one of {pooled:.3}: one of the arms \
             stalls now and then"
        ),
        Basis::FewReplicates => format!(
            "too few replicates ({n}); nothing is claimed from fewer than {LEAST_REPLICATES}"
        ),
        Basis::LowConfidence => format!(
            "{n} replicates reach a confidence of {:.1} % only",
            comparison.confidence * 100.0
        ),
        Basis::ContainsOne => {
            format!("the interval contains 1 and extends beyond {}", format_band(objective))
        }
        Basis::LargeP => format!("the interval excludes 1, but {}", describe_p(comparison)),
        Basis::ConnectionsLimit(figures) => describe_limit(figures.as_ref()),
        Basis::EqualArms(equal) => describe_equal_arms(equal),
        Basis::CutShort => "the run was cut short before its first look".to_owned(),
    }
}

/// Returns "p is 0.0012 after correction". For the A/A arm, or a single change, there was nothing to correct for.
fn describe_p(comparison: &Comparison) -> String {
    let corrected = if comparison.p_holm > comparison.p { " after correction" } else { "" };
    match comparison.p_holm {
        p if p < 1e-4 => format!("p is below 0.0001{corrected}"),
        p => format!("p is {p:.4}{corrected}"),
    }
}

/// Formats the equivalence band: `±2 %`.
fn format_band(objective: &Objective) -> String {
    format!("±{}", numbers::level(objective.band))
}

/// Returns a clause about two equal arms whose difference withdraws a claim.
pub(crate) fn describe_equal_arms(equal: &EqualArms) -> String {
    let (claim, by) = if equal.was_equivalent {
        ("the whole interval is within the band", "more")
    } else {
        ("the interval excludes 1", "as much")
    };
    let ([same, against], percent) = (&equal.arms, equal.difference * 100.0);
    format!("{claim}, but two equal arms ({same} and {against}) differed by {by}: {percent:.1} %")
}

/// Returns "a difference could not have been shown: this needs 9 replicates, about 3 more minutes would do".
fn describe_needed(needed: &Needed) -> String {
    match *needed {
        Needed::Requests { seconds, times_rate } => {
            format!("about {} or {times_rate:.1} times the rate would do", format_longer(seconds))
        }
        Needed::Replicates { replicates, comparisons, seconds } => {
            let among = match comparisons {
                1 => String::new(),
                _ => format!(" among {comparisons} comparisons"),
            };
            format!(
                "a difference could not have been shown: this needs {replicates} replicates{among}, about {} would do",
                format_longer(seconds)
            )
        }
    }
}

/// Formats an additional time: `3 more minutes`, rounded up; in seconds up to one minute.
fn format_longer(seconds: f64) -> String {
    let (count, unit) = if seconds > 60.0 {
        ((seconds / 60.0).ceil(), "more minute")
    } else {
        (seconds.ceil().max(1.0), "more second")
    };
    numbers::counted(count as u64, unit)
}

fn describe_caveat(comparison: &Comparison, caveat: &Caveat) -> String {
    match caveat {
        Caveat::TypicalP99 => format!(
            "this compares the typical p99, of short times; the ratio of the pooled ones is {:.3}",
            comparison.pooled
        ),
        Caveat::FewRequests => format!(
            "each replicate has about {} requests, fewer than the {} that are wanted",
            numbers::count(comparison.requests.unwrap_or_default()),
            numbers::count(samples_wanted(comparison.metric))
        ),
        Caveat::Median => {
            "this uses the median of the replicates, because some are far out on both sides"
                .to_owned()
        }
        Caveat::FewInstances => format!(
            "with so few instances of the proxies the interval takes them to differ as those of other proxies do \
             (standard deviation {} %)",
            INSTANCE_SD * 100.0
        ),
        Caveat::Correlated => {
            "neighbouring replicates are correlated, so the interval may be too narrow".to_owned()
        }
        Caveat::ConnectionsLimit(figures) => describe_limit(figures.as_ref()),
        Caveat::GivenUp => {
            "given up, because the remaining looks would probably not have decided it".to_owned()
        }
    }
}

/// Returns a clause about arms whose connections were the limit, with figures unless the load has them.
fn describe_limit(figures: Option<&IdleLoad>) -> String {
    figures.map_or_else(|| "the connections were the limit".to_owned(), explain_idle_load)
}
