//! Reasons for verdicts on the study's absolute limit.

use weir_analysis::findings::{Holding, LimitFindings, LimitReason};
use weir_model::study::Metric;
use weir_sentences::explain_limit;

use super::Row;

pub(super) fn rows() -> Vec<Row> {
    let cases = [
        ("Nothing was measured", LimitReason::NothingMeasured),
        ("No block was valid", LimitReason::NoValidBlock { blocks: 24 }),
        ("A metric without figures", LimitReason::NotRecorded),
        ("Too few blocks", LimitReason::FewBlocks),
        ("Too few requests for the quantile", LimitReason::FewRequests { requests: 850 }),
        ("Too many requests without an answer", LimitReason::Unanswered { share: 0.029 }),
        ("A share of requests that decides", LimitReason::TookLonger { share: (0.0052, 0.0061) }),
    ];
    let rows = cases.into_iter().map(|(case, because)| {
        let limit = LimitFindings {
            arm: "nginx".to_owned(),
            metric: Metric::ResponseP99,
            limit_ns: 30_000_000,
            value_ns: 2.1e6,
            interval_ns: (1.9e6, 2.4e6),
            confidence: 0.95,
            n: 4,
            verdict: Holding::NotShown,
            because,
        };
        (case, explain_limit(&limit))
    });
    rows.collect()
}
