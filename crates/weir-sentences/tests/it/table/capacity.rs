//! Capacities of arms.

use std::time::Duration;

use weir_analysis::capacity::{
    Capacity, CapacityFindings, CurvePoint, RanOut, Ratio, RatioReason, ended,
};
use weir_analysis::findings::{EqualArms, Findings, LimiterFindings, Stretch, Verdict};
use weir_limits::{Answer, Evidence, Judgement};
use weir_model::fixture;
use weir_model::limit::Limit;
use weir_model::record::{
    BurstRecord, CapacityEnd, CeilingOf, CeilingRecord, ObservedRecord, Validity,
};
use weir_sentences::capacity::{because, carries, details};

use super::Row;
use crate::capacity::build_record;

type Change = fn(&mut Capacity);

/// Makes findings of a search that has found 4,750 to 4,880 requests/s, changed.
fn changed(change: Change) -> Capacity {
    let mut capacity = ended(&build_record("nginx", CapacityEnd::Found));
    capacity.answer.limits.truncate(1);
    capacity.answer.scatter = None;
    change(&mut capacity);
    capacity
}

/// Makes findings of a search that ended without a long trial that held.
fn unclaimed(change: Change) -> Capacity {
    let mut capacity = changed(|_| {});
    (capacity.claimed, capacity.answer.verified) = (false, 0.0);
    (capacity.answer.low, capacity.answer.high) = (0.0, 0.0);
    capacity.answer.carried = Some(ObservedRecord { rate: 4_600.0, seconds: 8.0 });
    change(&mut capacity);
    capacity
}

/// Makes findings of a search in which no rate held, with what was seen at 500/s.
fn never(limit: Limit, lowest: CurvePoint) -> Capacity {
    let mut capacity = unclaimed(|found| found.end = Some(CapacityEnd::Never));
    capacity.answer.limits = vec![limit];
    capacity.curve = vec![CurvePoint { rate: 500.0, ..lowest }];
    capacity
}

fn ceiling(of: CeilingOf) -> Option<CeilingRecord> {
    Some(CeilingRecord { of, rate: 5_000.0 })
}

pub(super) fn claimed_rows() -> Vec<Row> {
    let rows: [(&str, Change); 9] = [
        ("A capacity with both ends", |_| {}),
        ("A rate that broke after ten seconds or more", |found| {
            found.answer.broke = Some(ObservedRecord { rate: 4_900.0, seconds: 12.4 });
        }),
        ("No rate that broke, and a hold of unknown length", |found| {
            (found.answer.broke, found.answer.held_s) = (None, 0.0);
        }),
        ("An objective of two limits", |found| {
            found.answer.limits = Limit::parse_all("p99 < 30ms, errors < 1%").expect("limits");
        }),
        ("A bracket, which has no confidence", |found| found.answer.is_bracket = true),
        ("All connections were busy", |found| {
            found.answer.ceiling = ceiling(CeilingOf::Connections);
        }),
        ("The lowest rate that broke held later", |found| {
            found.answer.ceiling = ceiling(CeilingOf::Time);
        }),
        ("The load generator was at its limit", |found| {
            found.answer.ceiling = ceiling(CeilingOf::Generator);
        }),
        ("The origin was at its limit", |found| found.answer.ceiling = ceiling(CeilingOf::Origin)),
    ];
    rows.map(|(case, change)| (case, carries(&changed(change)))).into()
}

pub(super) fn unclaimed_rows() -> Vec<Row> {
    let rows: [(&str, Change); 9] = [
        ("A search that did not end, with a rate that held", |found| {
            (found.end, found.answer.low, found.answer.high) = (None, 4_500.0, 5_000.0);
            found.answer.verified = 4_500.0;
        }),
        ("A search that did not end, before any rate held", |found| found.end = None),
        ("No long trial held", |found| found.end = Some(CapacityEnd::Found)),
        ("No long trial held, and no short trial ended", |found| {
            (found.answer.carried, found.answer.broke) = (None, None);
        }),
        ("Too little time, and the budget that would be enough is known", |found| {
            found.end = Some(CapacityEnd::TooShort(240.0));
            found.answer.enough_s = Some(290.0);
        }),
        ("Too little time, and no budget would be enough", |found| {
            found.end = Some(CapacityEnd::TooShort(240.0));
        }),
        ("The server stopped answering", |found| found.end = Some(CapacityEnd::Broken(5_100.0))),
        ("The load generator was late", |found| found.end = Some(CapacityEnd::NotSent(5_100.0))),
        ("The machine was busy with other work", |found| found.end = Some(CapacityEnd::Spoilt)),
    ];
    rows.map(|(case, change)| (case, carries(&unclaimed(change)))).into()
}

pub(super) fn never_rows() -> Vec<Row> {
    let p99 = Limit::Quantile(0.99, Duration::from_millis(30));
    let answered = CurvePoint { p99: Some(47_000_000), bad: 0.02, ..CurvePoint::default() };
    let mut unseen = never(p99, CurvePoint::default());
    unseen.curve.clear();
    let mut floor = never(p99, answered.clone());
    floor.answer.floor = 0.02;
    let p9999 = Limit::Quantile(0.9999, Duration::from_millis(30));
    let mean = Limit::Mean(Duration::from_millis(1));
    let errors = Limit::Errors(0.01);
    let of_bad = |bad| CurvePoint { bad, ..CurvePoint::default() };
    [
        ("Nothing was seen", unseen),
        ("The quantile is too high at the lowest rate", never(p99, answered)),
        ("The quantile is too high at any rate", floor),
        ("The quantile falls on a request without an answer", never(p99, of_bad(0.02))),
        ("The value of the quantile was not kept", never(p9999, of_bad(0.000_35))),
        ("The mean is too high", never(mean, of_bad(0.5))),
        ("The mean is not known, as no request was fast enough", never(mean, of_bad(1.0))),
        ("Too many requests failed", never(errors, of_bad(0.035))),
        ("Nearly all requests failed", never(errors, of_bad(0.9))),
    ]
    .map(|(case, found)| (case, carries(&found)))
    .into()
}

pub(super) fn detail_rows() -> Vec<Row> {
    let rows: [(&str, Change); 12] = [
        ("The limit that breaks first, if there are several", |found| {
            found.answer.limits = Limit::parse_all("p99 < 30ms, errors < 1%").expect("limits");
        }),
        ("Only short trials held higher rates", |found| {
            found.answer.fresh = Some((4_950.0, 5_050.0));
        }),
        ("A burst", |found| found.answer.burst = Some(burst(0.96875))),
        ("A burst without a confidence", |found| found.answer.burst = Some(burst(0.0))),
        ("The limit moved in some minutes", |found| found.answer.scatter = Some(0.055)),
        ("The limit moved in less than a minute and a half", |found| {
            (found.answer.scatter, found.answer.seconds) = (Some(0.055), (20.0, 80.0));
        }),
        ("The time was up", |found| found.end = Some(CapacityEnd::Budget)),
        ("Further trials would not help", |found| found.end = Some(CapacityEnd::Settled)),
        ("The server broke above its capacity", |found| {
            found.end = Some(CapacityEnd::Broken(5_100.0));
        }),
        ("A trial met a standstill of the server", |found| found.answer.stalls = 1),
        ("Several trials met standstills of the server", |found| found.answer.stalls = 3),
        ("Its CPU time ran out", |found| found.ran_out = Some(RanOut::CpuTime { used: 1.03 })),
    ];
    let of_search = rows.map(|(case, change)| (case, details(&changed(change), &[]).join(" ")));
    let fresh = unclaimed(|found| found.answer.fresh = Some((4_950.0, 5_050.0)));
    let idle = changed(|found| found.ran_out = Some(RanOut::NotCpuTime { used: 0.314 }));
    let of_evidence = [
        ("Only short trials held, and nothing is claimed", details(&fresh, &[])),
        ("Something else ran out", details(&idle, &[])),
        ("What samples show, instead of what the CPU time shows", details(&idle, &[limiter()])),
    ]
    .map(|(case, sentences)| (case, sentences.join(" ")));
    of_search.into_iter().chain(of_evidence).collect()
}

fn burst(confidence: f64) -> BurstRecord {
    BurstRecord { seconds: 5.0, low: 6_000.0, high: 6_200.0, confidence }
}

/// Makes findings of a limiter that is not known.
fn limiter() -> LimiterFindings {
    LimiterFindings {
        load: "closed".to_owned(),
        arm: "nginx".to_owned(),
        pods: None,
        stretch: Stretch { from_s: 0.0, until_s: 5.0, rate: None, saturated: true, stage: None },
        low: None,
        judged: (1, 1),
        confirmations: Vec::new(),
        judgement: Judgement {
            answer: Answer::DoNotKnow,
            findings: Vec::new(),
            ruled_out: Vec::new(),
            unknown: Vec::new(),
            seen: Vec::new(),
        },
        evidence: Evidence::default(),
        series: Vec::new(),
        workers: Vec::new(),
    }
}

pub(super) fn answer_rows() -> Vec<Row> {
    let with_details = changed(|found| found.end = Some(CapacityEnd::Settled));
    let changes = [
        ("keepalive", 1.962, Verdict::Better),
        ("access_log off", 1.004, Verdict::Equivalent),
        ("gzip", 1.024, Verdict::Inconclusive),
        ("buffers", f64::NAN, Verdict::Invalid),
    ];
    let names = changes.iter().map(|(arm, ..)| *arm);
    let arms = std::iter::once("nginx").chain(names).map(|name| {
        let mut arm = if name == "buffers" {
            unclaimed(|_| {})
        } else {
            changed(|found| found.answer.stalls = 1)
        };
        name.clone_into(&mut arm.answer.arm);
        arm
    });
    let ratios = changes.map(|(arm, value, verdict)| Ratio {
        arm: arm.to_owned(),
        ratio: value,
        interval: (value * 0.97, value * 1.03),
        verdict,
        ..ratio(f64::NAN, RatioReason::AboveOne)
    });
    vec![
        ("One arm", answer(vec![with_details], Vec::new())),
        ("One arm, and nothing else to say", answer(vec![changed(|_| {})], Vec::new())),
        ("An arm for each verdict", answer(arms.collect(), ratios.into())),
    ]
}

fn answer(arms: Vec<Capacity>, ratios: Vec<Ratio>) -> String {
    let capacity = CapacityFindings {
        arms,
        ratios,
        validity: Validity::Valid,
        reasons: Vec::new(),
        left_out: Vec::new(),
    };
    let findings = Findings { capacity: Some(capacity), ..Findings::default() };
    weir_sentences::answer(&fixture::study(Vec::new()), &findings)
}

fn ratio(p_holm: f64, because: RatioReason) -> Ratio {
    Ratio {
        arm: "keepalive".to_owned(),
        against: "nginx".to_owned(),
        ratio: 1.0,
        interval: (1.0, 1.0),
        p: p_holm,
        p_holm,
        family: 1,
        verdict: Verdict::Inconclusive,
        because,
    }
}

pub(super) fn reason_rows() -> Vec<Row> {
    let keepalive = || "keepalive".to_owned();
    let equal_arms = |was_equivalent| {
        RatioReason::EqualArms(EqualArms {
            arms: ["nginx again", "nginx"].map(str::to_owned),
            difference: 0.0638,
            was_equivalent,
        })
    };
    let same = Some("nginx again".to_owned());
    [
        ("The arm carries more", 1e-6, RatioReason::AboveOne),
        ("The arm carries less", 0.0123, RatioReason::BelowOne),
        ("The arm carries more, by a bracket", f64::NAN, RatioReason::AboveOne),
        ("Both carry the same", 0.71, RatioReason::WithinBand { band: 0.02 }),
        ("Nothing can be shown", 0.34, RatioReason::Open { band: 0.025 }),
        ("No capacity is claimed", f64::NAN, RatioReason::Unclaimed { arm: keepalive() }),
        ("A capacity has no upper end", f64::NAN, RatioReason::NoUpperEnd { arm: keepalive() }),
        ("A difference that equal arms show too", 0.01, equal_arms(false)),
        ("An equivalence that equal arms do not show", 0.7, equal_arms(true)),
        ("Arms in turn without an A/A arm", 0.01, RatioReason::ChangeBetweenUnknown { same: None }),
        (
            "Arms in turn with an A/A arm without a capacity",
            0.01,
            RatioReason::ChangeBetweenUnknown { same },
        ),
    ]
    .map(|(case, p, reason)| (case, because(&ratio(p, reason))))
    .into()
}
