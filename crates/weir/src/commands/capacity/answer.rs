//! The answer for programs: docs/schemas/weir-capacity-2.json.

use serde::Serialize;
use weir_analysis::capacity::{CapacityFindings, UNIT};
use weir_analysis::findings::{Findings, GrowthFindings, LimiterFindings};
use weir_conditions::Judged;
use weir_model::record::Outcome;
use weir_record::Run;

/// Name and version of the format. The version changes if an old reader would be misled.
pub(crate) const FORMAT: &str = "weir-capacity/2";

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Answer<'a> {
    format: &'static str,
    weir_version: &'a str,
    /// The run's folder.
    run: String,
    started_at: &'a str,
    outcome: Option<Outcome>,
    question: &'a str,
    /// Server of the first arm, the only one if a URL was given.
    target: Option<Target<'a>>,
    /// Capacity of the first arm; `None` if nothing can be claimed.
    capacity: Option<Interval>,
    fail_if: Vec<Condition<'a>>,
    #[serde(flatten)]
    found: Option<&'a CapacityFindings>,
    /// Limiter of each arm. An arm of which no time was sampled has no entry.
    limiters: Vec<Limiter<'a>>,
    /// Growth of resource use with the rate, by arm: linear or not.
    growth: &'a [GrowthFindings],
    remarks: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Limiter<'a> {
    arm: &'a str,
    answer: weir_limits::Answer,
    /// Limiter that the first finding names; `None` if there is no finding.
    limiter: Option<&'a str>,
    /// Certainty of the limiter.
    certainty: Option<weir_limits::Certainty>,
    /// Parameters to change, in the order in which to try them.
    turn: &'a [String],
    words: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Target<'a> {
    url: Option<&'a str>,
    addresses: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Interval {
    low: f64,
    high: f64,
    unit: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Condition<'a> {
    condition: &'a str,
    is_true: Option<bool>,
}

/// Returns the whole answer as JSON.
pub(super) fn json(run: &Run, findings: &Findings, judged: &[Judged]) -> Result<String, String> {
    let study = &run.header.study;
    let capacity = findings.capacity.as_ref();
    let first = capacity.and_then(|capacity| capacity.arms.first());
    let external = study.arms.first().and_then(|arm| study.proxy_of(arm).external.as_ref());
    let answer = Answer {
        format: FORMAT,
        weir_version: &run.header.weir_version,
        run: run.dir.display().to_string(),
        started_at: &run.header.started_at,
        outcome: run.outcome(),
        question: &study.question,
        target: external.map(|external| Target {
            url: external.named.as_deref(),
            addresses: external.addresses().map(|address| address.to_string()).collect(),
        }),
        capacity: first.filter(|first| first.claimed).map(|first| Interval {
            low: first.answer.low,
            high: first.answer.high,
            unit: UNIT,
        }),
        fail_if: judged
            .iter()
            .map(|judged| Condition { condition: &judged.text, is_true: judged.is_true })
            .collect(),
        found: capacity,
        limiters: findings.limiters.iter().map(limiter).collect(),
        growth: &findings.growth,
        remarks: run.header.remarks.iter().map(ToString::to_string).collect(),
    };
    serde_json::to_string_pretty(&answer)
        .map_err(|error| format!("cannot write the answer: {error}"))
}

fn limiter(found: &LimiterFindings) -> Limiter<'_> {
    let first = found.judgement.findings.first();
    Limiter {
        arm: &found.arm,
        answer: found.judgement.answer,
        limiter: first.map(|first| &*first.limiter),
        certainty: first.map(|first| first.certainty),
        turn: first.map_or(&[], |first| &first.turn),
        words: weir_sentences::limiter::describe(found),
    }
}
