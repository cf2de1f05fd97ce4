//! Sentences about the limiter of an arm.

use weir_limits::{
    Absent, Answer, Behind, Certainty, Finding, Quantities, Reliability, TurnDirection, shown,
};

use weir_model::record::ConfirmationRecord;
use weir_model::study::{Reduction, TakenFrom};

use super::unjudged;
use crate::findings::LimiterFindings;

/// Use of a resource, as a share, below which it is not mentioned as the next limit.
const LEAST_USE: f64 = 0.5;

/// Returns the answer in a sentence or two, and the next limit behind it.
pub fn sentence(found: &LimiterFindings) -> String {
    let arm = &found.arm;
    match (&found.judgement.findings[..], found.judgement.answer) {
        ([first, ..], _) => {
            let named = format!("What limits {arm}: {} ({}).", first.says, certainty(first));
            let tried: Vec<String> = found.confirmations.iter().map(tried).collect();
            let advice = if tried.is_empty() {
                turn(first, found.pods.as_deref())
            } else {
                Some(tried.join(" "))
            };
            let partly =
                partly(found).map(|partly| format!("Only {partly}, and this speaks for these."));
            let rate = found.stretch.rate.unwrap_or_default();
            let behind = first.behind.as_ref().and_then(|next| behind(next, rate));
            let parts = [Some(named), partly, advice, behind];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        ([], Answer::DoNotKnow) => {
            let why = unread(found).unwrap_or_else(|| why_not(found));
            let part = partly(found).map(|partly| format!(", as only {partly}"));
            format!("What limits {arm} is not known: {why}{}.", part.unwrap_or_default())
        }
        ([], _) => {
            let at = found.stretch.rate.map(|rate| format!(" at {}", shown(rate, "/s")));
            let but = unread(found)
                .map(|why| format!(", as far as is known: {why}"))
                .or_else(|| Some(format!(", as far as is known: only {}", partly(found)?)));
            let (at, but) = (at.unwrap_or_default(), but.unwrap_or_default());
            format!("Nothing was used up by {arm}{at}{but}.")
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
    Some(format!("{read} of {all} of the {which} could be read"))
}

/// Returns advice on which parameters to change, and how. Parameters of pods are attributed to `pods`.
pub fn turn(finding: &Finding, pods: Option<&str>) -> Option<String> {
    let advice = finding.turn.iter().zip(&finding.ways).take(3).map(|(parameter, way)| {
        let owner = pods
            .filter(|_| super::is_of_pods(parameter))
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

/// Returns the name of the resource that is taken away, with its owner.
pub fn taken_name(from: TakenFrom) -> &'static str {
    match from {
        TakenFrom::Generator => "the generator's CPU time",
        TakenFrom::Proxy => "the proxy's CPU time",
        TakenFrom::Origin => "the origin server's CPU time and speed",
    }
}

/// Returns the result of taking something away: `with 25 % less of the proxy's CPU time it carries 24 % less (20 to 27
/// %)`.
fn lacking(taken: Reduction, confirmation: &ConfirmationRecord) -> String {
    let named = if confirmation.confirmed { "Confirmed" } else { "Not confirmed" };
    let whose = taken_name(taken.from);
    let carries = match confirmation.ratio {
        Some((ratio, (low, high))) => {
            let [less, least, most] = [ratio, high, low].map(|ratio| 100.0 * (1.0 - ratio));
            format!("it carries {less:.0} % less ({least:.0} to {most:.0} %)")
        }
        None => "nothing is answered".to_owned(),
    };
    format!("{named}: with {} % less of {whose} {carries}.", taken.percent)
}

/// Returns the result of turning a parameter.
fn tried(confirmation: &ConfirmationRecord) -> String {
    if let (Some(taken), "") = (confirmation.taken, &*confirmation.why_not) {
        return lacking(taken, confirmation);
    }
    let levels: Vec<String> =
        confirmation.turned.iter().map(|(id, level)| format!("{id} at {level}")).collect();
    let turned = levels.join(" and ");
    if !confirmation.why_not.is_empty() {
        return if turned.is_empty() {
            format!("Not confirmed: {}.", confirmation.why_not)
        } else {
            format!("Not confirmed by {turned}: {}.", confirmation.why_not)
        };
    }
    let carries = match confirmation.ratio {
        Some((ratio, (low, high))) => {
            let (what, as_much) = match confirmation.metric.response_quantile() {
                Some(q) => (format!("the p{:.0} of its response time is", 100.0 * q), "long"),
                None => ("it carries".to_owned(), "much"),
            };
            format!("{what} {ratio:.2} times as {as_much} ({low:.2} to {high:.2})")
        }
        None => "it answers requests that fail without it".to_owned(),
    };
    if confirmation.confirmed {
        format!("Confirmed: with {turned} {carries}.")
    } else {
        format!("Not confirmed: with {turned} {carries}.")
    }
}

/// Returns a sentence about the next limit. Its rate is given only if it is above the requested rate: an overloaded arm
/// completed less than that, and a rate in proportion to its completed rate says nothing.
fn behind(behind: &Behind, asked: f64) -> Option<String> {
    match behind {
        Behind::Limiter(limiter) => Some(format!("The next limit: {}.", limiter_name(limiter))),
        Behind::Resource { quantity, used, at_rate } if *used >= LEAST_USE => {
            let means = &Quantities::builtin().get(quantity)?.means;
            let at = at_rate
                .filter(|rate| *rate > asked)
                .map(|rate| format!(", reached at about {}", shown(rate, "/s")));
            Some(format!(
                "The next limit: {means}, at {:.0} %{}.",
                100.0 * used.min(1.0),
                at.unwrap_or_default()
            ))
        }
        Behind::Resource { .. } => None,
    }
}

fn why_not(found: &LimiterFindings) -> String {
    let judgement = &found.judgement;
    match (judgement.unknown.is_empty(), judgement.seen.is_empty()) {
        (true, true) => "the load was not carried, but no known resource was used up".to_owned(),
        (true, false) => "the observations contradict each other".to_owned(),
        (false, _) => unjudged::clause(found),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_the_next_limit_is_told_if_it_is_above_what_was_asked_for() {
        let next =
            Behind::Resource { quantity: "cpu_all".to_owned(), used: 0.8, at_rate: Some(4000.0) };
        let [below, above] = [3000.0, 5000.0].map(|rate| behind(&next, rate).expect("a sentence"));
        assert!(below.ends_with("at 80 %, reached at about 4,000/s."));
        assert!(above.ends_with("at 80 %."), "{above}");
    }
}
