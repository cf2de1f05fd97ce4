//! Sentences about the limiter of an arm.

mod confirmation;
mod quantity;
mod unjudged;

use weir_analysis::findings::LimiterFindings;
use weir_analysis::limiter::is_of_pods;
use weir_limits::{
    Absent, Answer, Certainty, Evidence, Finding, NextLimit, Quantities, Reliability, TurnDirection,
};
use weir_model::study::Arm;

use crate::numbers::with_unit;
use confirmation::name_reduced_resource;

pub(crate) use quantity::describe_input;
pub use quantity::{
    describe_bound, describe_condition, describe_measure, describe_missing, describe_outcome,
    describe_quantity, format_value, is_flag,
};

/// Use of a resource, as a share, below which it is not mentioned as the next limit.
const LEAST_USE: f64 = 0.5;

/// Returns the answer in a sentence or two, and the next limit behind it.
pub fn describe(found: &LimiterFindings) -> String {
    let arm = &found.arm;
    match (&found.judgement.findings[..], found.judgement.answer) {
        ([first, ..], _) => {
            let named = format!(
                "What limits {arm}: {} ({}).",
                fill(&first.says, &found.evidence),
                certainty(first)
            );
            let confirmations: Vec<String> =
                found.confirmations.iter().map(confirmation::describe).collect();
            let advice = if confirmations.is_empty() {
                format_advice(first, found.pods.as_deref())
            } else {
                Some(confirmations.join(" "))
            };
            let partly =
                partly(found).map(|partly| format!("Only {partly}, and this speaks for these."));
            let rate = found.stretch.rate.unwrap_or_default();
            let behind = first.behind.as_ref().and_then(|limit| describe_next(limit, rate));
            let parts = [Some(named), partly, advice, behind];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        ([], Answer::DoNotKnow) => {
            let why = unread(found).unwrap_or_else(|| why_not(found));
            let part = partly(found).map(|partly| format!(" Only {partly}."));
            format!("What limits {arm} is not known: {why}.{}", part.unwrap_or_default())
        }
        ([], _) => {
            let rate = found.stretch.rate;
            let at = rate.map_or(String::new(), |rate| format!(" at {}", with_unit(rate, "/s")));
            let doubt = unread(found).or_else(|| Some(format!("only {}", partly(found)?)));
            let but = doubt.map(|doubt| format!(", as far as is known: {doubt}"));
            format!("Nothing was used up by {arm}{at}{}.", but.unwrap_or_default())
        }
    }
}

/// Returns the certainty of a finding, and the limits that could not be judged before it.
fn certainty(finding: &Finding) -> String {
    let word = match finding.certainty {
        Certainty::Strong => return "strong evidence".to_owned(),
        Certainty::Likely => "likely",
        Certainty::Weak => "weak evidence",
    };
    let doubts = Reliability::builtin().doubts(finding);
    let names: Vec<String> = doubts.into_iter().map(limiter_name).collect();
    match &names[..] {
        [] => word.to_owned(),
        [one] => format!("{word}: {one} could not be judged"),
        [one, other] => format!("{word}: {one} and {other} could not be judged"),
        [one, other, ..] => {
            format!("{word}: {one}, {other} and {} more could not be judged", names.len() - 2)
        }
    }
}

/// Returns the reason why pods that were to be sampled could not be read; `None` if they were read, or there are none.
fn unread(found: &LimiterFindings) -> Option<String> {
    let pods = found.pods.as_ref()?;
    match found.evidence.absent.get("throttled")? {
        Absent::Missing { why, .. } => Some(format!("the {pods} could not be read ({why})")),
        _ => None,
    }
}

/// Returns how many of the pods could be read; `None` if all could.
fn partly(found: &LimiterFindings) -> Option<String> {
    let (read, all) = found.evidence.read_of()?;
    let which = found.pods.as_deref().unwrap_or("hosts of the proxy");
    Some(format!("{read} of {all} {which} could be read"))
}

/// Returns advice on which parameters to change, and how. Parameters of pods are attributed to `pods`.
fn format_advice(finding: &Finding, pods: Option<&str>) -> Option<String> {
    let advice = finding.turn.iter().zip(&finding.ways).take(3).map(|(parameter, way)| {
        let owner = pods
            .filter(|_| is_of_pods(parameter))
            .map_or_else(String::new, |pods| format!(" of the {pods}"));
        match way {
            TurnDirection::Up => format!("raise {parameter}{owner}"),
            TurnDirection::Down => format!("lower {parameter}{owner}"),
            TurnDirection::To(level) => format!("set {parameter}{owner} to {level}"),
            TurnDirection::Either => format!("change {parameter}{owner}"),
        }
    });
    let advice: Vec<String> = advice.collect();
    (!advice.is_empty()).then(|| format!("Try: {}.", advice.join(", or ")))
}

/// Returns a sentence about what the rules advise against the limit that was found; `None` if none was.
pub fn what_to_do(found: &LimiterFindings) -> Option<String> {
    let first = found.judgement.findings.first()?;
    Some(format!("What to do: {}.", fill(&first.advice, &found.evidence)))
}

/// Replaces the names in braces of a rule's sentence by values.
fn fill(sentence: &str, evidence: &Evidence) -> String {
    let parts = sentence.split(['{', '}']).enumerate().map(|(index, part)| {
        if index.is_multiple_of(2) {
            return part.to_owned();
        }
        let fact = evidence.quantities.get(part);
        fact.map_or_else(|| "?".to_owned(), |fact| with_unit(fact.value, &fact.unit))
    });
    parts.collect()
}

/// Returns a sentence about the next limit. Its rate is given only if it is above the requested rate: an overloaded arm
/// completed less than that, and a rate in proportion to its completed rate says nothing.
fn describe_next(limit: &NextLimit, requested: f64) -> Option<String> {
    match limit {
        NextLimit::Limiter(limiter) => Some(format!("The next limit: {}.", limiter_name(limiter))),
        NextLimit::Resource { quantity, used, at_rate } if *used >= LEAST_USE => {
            let means = &Quantities::builtin().get(quantity)?.means;
            let at = at_rate
                .filter(|rate| *rate > requested)
                .map(|rate| format!(", reached at about {}", with_unit(rate, "/s")));
            Some(format!(
                "The next limit: {means}, at {:.0} %{}.",
                100.0 * used.min(1.0),
                at.unwrap_or_default()
            ))
        }
        NextLimit::Resource { .. } => None,
    }
}

/// Returns the reason why no limiter is named although the load was not carried.
fn why_not(found: &LimiterFindings) -> String {
    let judgement = &found.judgement;
    if !judgement.unknown.is_empty() {
        unjudged::clause(found)
    } else if judgement.seen.is_empty() {
        "the load was not carried, but no known resource was used up".to_owned()
    } else {
        "the observations contradict each other".to_owned()
    }
}

/// Describes the change that an arm of a confirming trial tries; `None` if it has none.
pub fn describe_change(arm: &Arm) -> Option<String> {
    match arm.taken {
        Some(taken) => {
            Some(format!("{} % less of {}", taken.percent, name_reduced_resource(taken.from)))
        }
        None => arm.changes.iter().next().map(|(id, level)| format!("{id} at {level}")),
    }
}

/// Returns the display name of a limiter: `accept queue`.
pub fn limiter_name(limiter: &str) -> String {
    limiter
        .split('_')
        .map(|word| match word {
            "cpu" | "syn" | "tls" => word.to_uppercase(),
            "syns" => "SYNs".to_owned(),
            "crowded" => "crowded CPUs".to_owned(),
            word => word.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}
