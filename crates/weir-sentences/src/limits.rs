//! Reasons for verdicts on the study's absolute limit.

use weir_analysis::findings::{LimitFindings, LimitReason};
use weir_analysis::samples_wanted;
use weir_stats::verdict::LEAST_REPLICATES;

use crate::numbers;

/// Returns the reason for a verdict: "0.52 to 0.61 % of the requests took longer, and 1.000 % may".
pub fn explain_limit(found: &LimitFindings) -> String {
    match found.because {
        LimitReason::NothingMeasured => "nothing was measured".to_owned(),
        LimitReason::NoValidBlock { blocks } => format!("none of {blocks} blocks was valid"),
        LimitReason::NotRecorded => "the metric was not recorded".to_owned(),
        LimitReason::FewBlocks => format!(
            "{} blocks are too few: nothing is claimed from fewer than {LEAST_REPLICATES}",
            found.n
        ),
        LimitReason::FewRequests { requests } => format!(
            "only {} requests, fewer than the {} that the quantile needs",
            numbers::count(requests),
            numbers::count(samples_wanted(found.metric))
        ),
        LimitReason::Unanswered { share } => {
            format!("{:.1} % of the requests were not answered", share * 100.0)
        }
        LimitReason::TookLonger { share: (low, high) } => format!(
            "{:.2} to {:.2} % of the requests took longer, and {:.3} % may",
            low * 100.0,
            high * 100.0,
            (1.0 - found.metric.response_quantile().unwrap_or_default()) * 100.0
        ),
    }
}
