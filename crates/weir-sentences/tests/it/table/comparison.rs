//! Reasons for verdicts on comparisons.

use weir_analysis::findings::{
    Basis, Caveat, Comparison, EqualArms, IdleLoad, Needed, Reason, Verdict,
};
use weir_analysis::samples_needed;
use weir_model::fixture::study;
use weir_model::study::Metric;
use weir_sentences::explain_verdict;

use super::Row;

/// Compares two arms by a metric, with an interval of 2 % around a ratio.
pub(super) fn compared(
    metric: Metric,
    [arm, against]: [&str; 2],
    ratio: f64,
    verdict: Verdict,
) -> Comparison {
    Comparison {
        metric,
        arm: arm.to_owned(),
        against: against.to_owned(),
        n: 24,
        merged: 1,
        requests: None,
        family: 1,
        autocorrelation: 0.0,
        ratio,
        interval: (ratio * 0.98, ratio * 1.02),
        pooled: ratio,
        confidence: 0.95,
        look: None,
        p: 0.0004,
        p_holm: 0.0004,
        minimum_detectable: 0.02,
        verdict,
        because: Basis::ExcludesOne.into(),
    }
}

/// Compares keepalive with stock by the p99, of which a replicate has this many requests.
fn of_requests(requests: u64, reason: impl Into<Reason>) -> Comparison {
    let arms = ["keepalive", "stock"];
    Comparison {
        requests: Some(requests),
        pooled: 1.234,
        because: reason.into(),
        ..compared(Metric::ResponseP99, arms, 1.31, Verdict::Inconclusive)
    }
}

fn of(reason: impl Into<Reason>) -> Comparison {
    of_requests(1_000, reason)
}

fn with_caveat(caveat: Caveat) -> Comparison {
    of(Reason { basis: Basis::ExcludesOne, needed: None, caveats: vec![caveat] })
}

fn needing(basis: Basis, needed: Needed) -> Comparison {
    let reason = Reason { basis, needed: Some(needed), caveats: Vec::new() };
    Comparison { n: 5, ..of_requests(80, reason) }
}

fn needing_replicates(comparisons: u32, seconds: f64) -> Comparison {
    let replicates = if comparisons == 1 { 6 } else { 9 };
    needing(Basis::FewReplicates, Needed::Replicates { replicates, comparisons, seconds })
}

fn equal_arms(was_equivalent: bool) -> Comparison {
    let arms = ["stock-again", "stock"].map(str::to_owned);
    of(Basis::EqualArms(EqualArms { arms, difference: 0.0312, was_equivalent }))
}

fn idle(response_s: (f64, f64), others: Option<f64>) -> Option<IdleLoad> {
    Some(IdleLoad { connections: 50, response_s, busiest: 0.12, others })
}

type Case = (&'static str, Comparison);

fn cases_of_bases() -> Vec<Case> {
    let below = of(Basis::ExcludesOne).mirrored();
    let (tiny, corrected) = (1e-5, 0.0032);
    let few = samples_needed(Metric::ResponseP99) - 20;
    vec![
        ("Nothing was measured", of(Basis::NothingMeasured)),
        ("No block was valid", of(Basis::NoValidBlock { blocks: 24 })),
        ("A proxy that weir did not start", of(Basis::CpuTimeUnseen { arm: "mine".to_owned() })),
        ("Arms that hardly answer", of(Basis::FewAnswers)),
        ("A metric without figures", of(Basis::NotRecorded)),
        ("An interval above 1", of(Basis::ExcludesOne)),
        ("An interval below 1", below),
        ("A very small p", Comparison { p: tiny, p_holm: tiny, ..of(Basis::ExcludesOne) }),
        ("A p that was corrected", Comparison { p_holm: corrected, ..of(Basis::ExcludesOne) }),
        (
            "A very small p that was corrected",
            Comparison { p: 1e-6, p_holm: tiny, ..of(Basis::ExcludesOne) },
        ),
        ("An interval within the band", of(Basis::WithinBand)),
        ("Too few requests for the quantile", of_requests(few, Basis::FewRequests)),
        (
            "Too few requests, with what would be enough",
            needing(Basis::FewRequests, Needed::Requests { seconds: 1.8, times_rate: 1.25 }),
        ),
        ("An arm that stalls now and then", of(Basis::Stalls)),
        ("Too few replicates", Comparison { n: 5, ..of(Basis::FewReplicates) }),
        ("Too few replicates for one comparison, a second more", needing_replicates(1, 0.3)),
        ("Too few replicates for many comparisons, seconds more", needing_replicates(9, 6.6)),
        ("Too few replicates for many comparisons, minutes more", needing_replicates(9, 61.0)),
        (
            "An interval of low confidence",
            Comparison { confidence: 0.9375, ..of(Basis::LowConfidence) },
        ),
        ("An interval around 1", of(Basis::ContainsOne)),
        ("A large p", Comparison { p: 0.0312, p_holm: 0.28, ..of(Basis::LargeP) }),
        (
            "Arms that are alike, as the connections of all arms were the limit",
            of(Basis::ConnectionsLimit(None)),
        ),
        (
            "Arms that are alike, as their connections were the limit",
            of(Basis::ConnectionsLimit(idle((0.002, 0.002), None))),
        ),
        ("An effect that two equal arms show too", equal_arms(false)),
        ("An equivalence that two equal arms do not have", equal_arms(true)),
        ("A run that was cut short", of(Basis::CutShort)),
    ]
}

fn cases_of_caveats() -> Vec<Case> {
    let given_up =
        Reason { basis: Basis::ContainsOne, needed: None, caveats: vec![Caveat::GivenUp] };
    let all = Reason {
        basis: Basis::LargeP,
        needed: Some(Needed::Replicates { replicates: 9, comparisons: 9, seconds: 6.6 }),
        caveats: vec![Caveat::TypicalP99, Caveat::Median, Caveat::GivenUp],
    };
    vec![
        ("The p99 of typical blocks", with_caveat(Caveat::TypicalP99)),
        (
            "Fewer requests than wanted",
            Comparison { requests: Some(800), ..with_caveat(Caveat::FewRequests) },
        ),
        ("Replicates that are far out", with_caveat(Caveat::Median)),
        ("Few instances of the proxies", with_caveat(Caveat::FewInstances)),
        ("Correlated replicates", with_caveat(Caveat::Correlated)),
        (
            "An effect where the connections of all arms were the limit",
            with_caveat(Caveat::ConnectionsLimit(None)),
        ),
        (
            "An effect where the connections of these arms were the limit",
            with_caveat(Caveat::ConnectionsLimit(idle((0.002, 0.0025), None))),
        ),
        (
            "An effect where connections and other processes were the limit",
            with_caveat(Caveat::ConnectionsLimit(idle((0.002, 0.0025), Some(0.31)))),
        ),
        ("A comparison that a look gave up", of(given_up)),
        ("All parts of a reason", Comparison { p: 0.03125, p_holm: 0.28125, ..of(all) }),
    ]
}

pub(super) fn rows() -> Vec<Row> {
    let objective = study(Vec::new()).objective;
    cases_of_bases()
        .into_iter()
        .chain(cases_of_caveats())
        .map(|(case, comparison)| (case, explain_verdict(&comparison, &objective)))
        .collect()
}
