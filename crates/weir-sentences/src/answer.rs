//! The answer to the study's question in one sentence, for readers who read nothing else.

mod matrix;
mod proxies;
mod tail;

use weir_analysis::findings::{
    Comparison, Findings, Holding, Ineffective, InertArm, LimitFindings, LoadFindings, MisreadArm,
    UNANSWERED, Verdict,
};
use weir_analysis::{are_different_proxies, are_steps};
use weir_model::study::{ArmRole, Metric, Study};

use crate::limits::explain_limit;
use crate::names::{capitalize, find_arm, join_names, metric_words};
use crate::numbers::{self, ms};

/// Maximum number of names that are listed; more are counted instead.
const NAMES_LISTED: usize = 3;
/// Sentence about a closed loop in which nobody was busy.
const CONNECTIONS_LIMIT: &str = "The connections were the limit, so this does not show how much the proxy carries; more \
                                 connections would.";

/// Returns the answer, with a line for each load that gives the objective's metric, or for each capacity.
pub fn answer(study: &Study, findings: &Findings) -> String {
    if let Some(capacity) = &findings.capacity {
        return weir_analysis::capacity::summary(capacity);
    }
    let of_loads = of_loads(study, findings);
    let between = if of_loads.contains('\n') { "\n" } else { " " };
    let misread = findings.misread.iter().map(MisreadArm::sentence);
    let alone = findings.alone.iter().map(|found| found.words.clone());
    let sentences = std::iter::once(of_loads).chain(misread).chain(alone);
    sentences.collect::<Vec<_>>().join(between)
}

/// Answers from the findings under each load. A second sentence warns if two equal arms came out as different.
fn of_loads(study: &Study, findings: &Findings) -> String {
    let Findings { inert, complete, .. } = findings;
    let (metric, complete) = (study.objective.metric, *complete);
    let answering = findings.loads.iter().filter(|load| load.metrics.contains(&metric));
    let answering: Vec<&LoadFindings> = answering.filter(|load| load.blocks > 0).collect();
    if let Some(text) = one_arm_under_many(study, &answering) {
        return with_end(text, complete);
    }
    let mut text: Vec<String> = Vec::new();
    let groups = matrix::groups(study, &answering);
    for loads in &groups {
        match loads[..] {
            [load] => text.push(of_load(study, load, inert, groups.len() > 1)),
            _ => text.push(matrix::sentence(study, (loads, &findings.pooled), inert)),
        }
    }
    if text.is_empty() {
        return "Nothing was measured that answers the question.".to_owned();
    }
    with_end(text.join("\n"), complete)
}

/// Returns the sentences about one load.
fn of_load(study: &Study, load: &LoadFindings, inert: &[InertArm], one_of_many: bool) -> String {
    let under = if one_of_many { format!("Under the load {}: ", load.load) } else { String::new() };
    let limits = within(study, load);
    // An arm that is alone is compared with nothing.
    let compared = if load.comparisons.is_empty() && !limits.is_empty() {
        String::new()
    } else {
        proxies::ranked(study, load).unwrap_or_else(|| sentence(study, load, inert))
    };
    let both: Vec<String> =
        [limits, compared].into_iter().filter(|sentence| !sentence.is_empty()).collect();
    let text = format!("{under}{}", both.join(" "));
    let idle = if load.idle.is_empty() { "" } else { CONNECTIONS_LIMIT };
    let noted = [load.fresh.clone(), idle.to_owned()].into_iter();
    std::iter::once(text)
        .chain(tail::hidden(study, load))
        .chain(unanswered(load))
        .chain(changed(load))
        .chain(noted.filter(|note| !note.is_empty()))
        .chain(early(load))
        .chain(load.ineffective.iter().map(Ineffective::sentence))
        .chain(load.rests.iter().cloned())
        .chain(warning(study, load))
        .collect::<Vec<String>>()
        .join(" ")
}

/// Returns a sentence about the block after which the answer was known; `None` if that was the planned end.
fn early(load: &LoadFindings) -> Option<String> {
    let last = load.looks.last()?;
    let most = *last.planned.last()?;
    let is_early = last.open.is_empty() && last.blocks < most && !last.is_last;
    is_early.then(|| {
        format!(
            "This was decided after {} of at most {} blocks; the intervals allow for such an early end.",
            numbers::count(last.blocks.into()),
            numbers::count(most.into())
        )
    })
}

/// Returns a sentence about arms that changed during the run; their figures are a mixture of two states.
fn changed(load: &LoadFindings) -> Option<String> {
    let (first, others) = load.phases.split_first()?;
    let figures = match first.metric {
        Metric::CpuPerRequest => format!(
            "{:.0} µs of CPU time per request before, {:.0} µs after",
            first.before / 1e3,
            first.after / 1e3
        ),
        _ => format!(
            "{} requests/s before, {} after",
            numbers::rate(first.before),
            numbers::rate(first.after)
        ),
    };
    let why = match &*first.evidence {
        "" => String::new(),
        evidence => format!("; {evidence}"),
    };
    let more = match others.len() {
        0 => String::new(),
        1 => " One more such change is in the report.".to_owned(),
        count => format!(" {count} more such changes are in the report."),
    };
    Some(format!(
        "{} changed at second {:.0} ({figures}{why}), so its figures over all blocks mix the two.{more}",
        first.arm, first.at_s
    ))
}

/// Returns a sentence about the arms that left more than [`UNANSWERED`] of their requests without a right answer.
fn unanswered(load: &LoadFindings) -> Option<String> {
    let arms = load.arms.iter().filter(|arm| arm.unanswered > UNANSWERED);
    let arms: Vec<String> =
        arms.map(|arm| format!("{} {:.1} %", arm.arm, arm.unanswered * 100.0)).collect();
    let (first, more) = (arms.first()?, arms.len().saturating_sub(NAMES_LISTED));
    let named = match more {
        0 => join_names(&arms),
        _ => format!("{first} (and {} other arms)", arms.len() - 1),
    };
    Some(format!("Requests without a correct answer: {named}."))
}

/// Returns "backlog-alone is inert (net.core.somaxconn is 128)" for an arm that changes nothing else.
fn inert_clause(inert: &[InertArm], arm: &str) -> Option<String> {
    let inert_arm = inert.iter().find(|inert| inert.arm == arm && inert.whole)?;
    Some(format!("{arm} is inert ({})", inert_arm.why()))
}

/// Appends a last sentence if the run was cut short.
fn with_end(text: String, complete: bool) -> String {
    let between = if text.contains('\n') { "\n" } else { " " };
    if complete {
        text
    } else {
        format!("{text}{between}The run did not end as planned: this covers what was measured.")
    }
}

/// Returns the answer for a study of one arm with a limit under several loads; `None` in any other study. Loads with
/// the same verdict share a clause, because a sentence for each would hide at which load the verdict changes.
fn one_arm_under_many(study: &Study, loads: &[&LoadFindings]) -> Option<String> {
    let ([arm], [_, _, ..]) = (&study.arms[..], loads) else {
        return None;
    };
    let limits: Vec<(&str, &LimitFindings)> = loads
        .iter()
        .map(|load| Some((&*load.load, load.limits.first()?)))
        .collect::<Option<_>>()?;
    let mut parts = Vec::new();
    for verdict in [Holding::Holds, Holding::DoesNotHold, Holding::NotShown, Holding::Invalid] {
        let alike: Vec<(&str, &LimitFindings)> =
            limits.iter().filter(|(_, limit)| limit.verdict == verdict).copied().collect();
        if let Some((_, first)) = alike.first() {
            parts.push(format!("{} under {}", stays(&arm.name, first), list_loads(&alike)));
        }
    }
    Some(format!("{}.", capitalize(study, &parts.join("; "))))
}

/// Returns `held-0 (2.1 ms), held-10k (3.4 ms) and held-25k (5 ms)`, with the estimate of each load that has one.
fn list_loads(loads: &[(&str, &LimitFindings)]) -> String {
    let names = loads.iter().map(|(load, limit)| match limit.value_ns {
        value if value.is_finite() => format!("{load} ({} ms)", ms(value)),
        _ => (*load).to_owned(),
    });
    join_names(&names.collect::<Vec<_>>())
}

/// Returns a sentence about the arms that stay within the study's limit; empty without a limit. Leaves out the A/A arm,
/// which is the baseline.
fn within(study: &Study, load: &LoadFindings) -> String {
    let parts: Vec<String> = load
        .limits
        .iter()
        .filter(|limit| role(study, &limit.arm) != ArmRole::SameAsBaseline)
        .map(|limit| limit_of(study, limit))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("{}.", capitalize(study, &parts.join("; ")))
    }
}

/// Returns "nginx stays within 30 ms", or another clause for the limit's verdict.
fn stays(arm: &str, findings: &LimitFindings) -> String {
    let limit = ms(findings.limit_ns as f64);
    match findings.verdict {
        Holding::Holds => format!("{arm} stays within {limit} ms"),
        Holding::DoesNotHold => format!("{arm} does not stay within {limit} ms"),
        Holding::NotShown => {
            format!("whether {arm} stays within {limit} ms could not be shown")
        }
        Holding::Invalid => format!("{arm} has no valid figures"),
    }
}

/// Returns "nginx stays within 30 ms (0.99 quantile 2.10 ms, 95 % interval 1.90 to 2.40)".
fn limit_of(study: &Study, limit: &LimitFindings) -> String {
    let clause = stays(&limit.arm, limit);
    if !limit.value_ns.is_finite() {
        return format!("{clause} ({})", explain_limit(limit));
    }
    let (low, high) = limit.interval_ns;
    let quantile = limit.metric.response_quantile().unwrap_or_default();
    let confidence = (study.objective.confidence * 1e4).round() / 1e2;
    format!(
        "{clause} (the {quantile} quantile of the response time is {} ms, {confidence} % interval {} to {})",
        ms(limit.value_ns),
        ms(low),
        ms(high)
    )
}

fn sentence(study: &Study, load: &LoadFindings, inert: &[InertArm]) -> String {
    let metric = study.objective.metric;
    let mut shown =
        [changes(study, load, Verdict::Better), changes(study, load, Verdict::Worse)].concat();
    // By size, whichever the direction that is better: the largest change of the ratio first.
    shown.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let (others_shown, shown) = split_proxies(study, shown);
    let mut parts: Vec<String> = Vec::new();
    let idle = !load.idle.is_empty();
    for (index, comparison) in shown.iter().enumerate() {
        parts.push(effect(study, comparison, index == 0, idle));
    }
    for (index, comparison) in others_shown.iter().enumerate() {
        parts.push(proxies::effect(study, comparison, index == 0, idle));
    }
    let qualifier = if shown.is_empty() { "" } else { "other " };
    let all_equivalent = changes(study, load, Verdict::Equivalent);
    let all_open = changes(study, load, Verdict::Inconclusive);
    let without_difference = [&all_equivalent[..], &all_open].concat();
    let (others_equivalent, equivalent) = split_proxies(study, drop_inert(inert, all_equivalent));
    let (others_open, open) = split_proxies(study, drop_inert(inert, all_open));
    parts.extend(proxies::no_difference(study, &others_equivalent));
    parts.extend(proxies::no_difference(study, &others_open));
    if !equivalent.is_empty() {
        let band = (study.objective.band * 1e4).round() / 1e2;
        let (who, verb) = subject(&equivalent, qualifier, "makes", "make");
        parts.push(format!("{who} {verb} no difference beyond {band} %"));
    }
    if !open.is_empty() {
        let (who, verb) = subject(&open, qualifier, "makes", "make");
        parts.push(format!("{who} {verb} no difference that could be shown"));
    }
    parts.extend(without_difference.iter().filter_map(|c| inert_clause(inert, &c.arm)));
    let invalid = changes(study, load, Verdict::Invalid);
    if !invalid.is_empty() {
        let (who, verb) = subject(&invalid, "", "has", "have");
        let metric = metric_words(metric);
        parts.push(format!("{who} {verb} no valid figures of the {metric}"));
    }
    if parts.is_empty() {
        return resolution(study, load);
    }
    let text = capitalize(study, &parts.join("; "));
    format!("{text}{}.", compared_with(study))
}

/// Returns the changes with the given verdict by the objective's metric.
fn changes<'a>(study: &Study, load: &'a LoadFindings, verdict: Verdict) -> Vec<&'a Comparison> {
    let metric = study.objective.metric;
    load.comparisons
        .iter()
        .filter(|c| c.metric == metric && c.verdict == verdict)
        .filter(|c| role(study, &c.arm) == ArmRole::Change)
        .collect()
}

/// Splits off the comparisons of different proxies, which come first.
fn split_proxies<'a>(
    study: &Study,
    comparisons: Vec<&'a Comparison>,
) -> (Vec<&'a Comparison>, Vec<&'a Comparison>) {
    comparisons.into_iter().partition(|c| are_different_proxies(study, &c.arm, &c.against))
}

/// Drops inert arms: no difference is no effect of a level that is not in force.
fn drop_inert<'a>(inert: &[InertArm], mut comparisons: Vec<&'a Comparison>) -> Vec<&'a Comparison> {
    comparisons.retain(|c| inert_clause(inert, &c.arm).is_none());
    comparisons
}

/// Returns a clause that says which arm each arm is compared with; empty if that is the baseline for all.
fn compared_with(study: &Study) -> &'static str {
    if study.arms.iter().all(|arm| arm.against == 0) {
        ""
    } else if are_steps(study) {
        " (each step against the one before it)"
    } else {
        " (each against the arm that differs from it in nothing else)"
    }
}

/// Returns "keepalive makes nginx carry 2.61 times as much (95 % interval 2.55 to 2.66)"; after the first comparison
/// only "access_log off 1.08 times (1.03 to 1.12)". If nobody was busy, the text says "answer" instead of "carry".
fn effect(study: &Study, comparison: &Comparison, first: bool, idle: bool) -> String {
    let Comparison { arm, ratio, .. } = comparison;
    if let Some(text) = without_bound(comparison) {
        return text;
    }
    let interval = numbers::interval(comparison.interval);
    if !first {
        return format!("{arm} {ratio:.2} times ({interval})");
    }
    let proxy = find_arm(study, arm).map_or(&study.proxy, |arm| study.proxy_of(arm)).kind.title();
    let clause = match comparison.metric {
        Metric::Rate if idle => format!("{proxy} answer {ratio:.2} times as many requests"),
        Metric::Rate => format!("{proxy} carry {ratio:.2} times as much"),
        Metric::ReceivedBytes => format!("{proxy} pass on {ratio:.2} times as many bytes"),
        Metric::CpuPerRequest => {
            format!("{proxy} spend {ratio:.2} times the CPU time on a request")
        }
        Metric::ResponseP50 => format!("the median response time {ratio:.2} times as long"),
        Metric::ResponseP99 => {
            format!("the 0.99 quantile of the response time {ratio:.2} times as long")
        }
    };
    let confidence = (study.objective.confidence * 1e4).round() / 1e2;
    format!("{arm} makes {clause} ({confidence} % interval {interval})")
}

/// Returns a clause for two arms of which one typically has no figure, so that the ratio is unbounded; `None` for other
/// arms.
fn without_bound(comparison: &Comparison) -> Option<String> {
    let is_time = comparison.metric.response_quantile().is_some();
    let (silent, other) = match (comparison.ratio, is_time) {
        (f64::INFINITY, true) | (0.0, false) => (&comparison.arm, &comparison.against),
        (0.0, true) | (f64::INFINITY, false) => (&comparison.against, &comparison.arm),
        _ => return None,
    };
    Some(if is_time {
        format!(
            "{silent} typically leaves too many requests unanswered, where {other} answers them"
        )
    } else {
        format!("{silent} typically answers nothing, where {other} does")
    })
}

/// Returns the subject, by names or by number, and the verb that agrees with it.
fn subject<'a>(who: &[&Comparison], other: &str, one: &'a str, many: &'a str) -> (String, &'a str) {
    let verb = if who.len() == 1 { one } else { many };
    if who.len() > NAMES_LISTED {
        return (format!("{} {other}changes", who.len()), verb);
    }
    let names: Vec<String> = who.iter().map(|c| c.arm.clone()).collect();
    let text = join_names(&names);
    (text, verb)
}

/// Returns the answer of a study that compares only the baseline with itself: the smallest difference that the lab can
/// detect here.
fn resolution(study: &Study, load: &LoadFindings) -> String {
    let metric = study.objective.metric;
    let same = load.comparisons.iter().find(|c| {
        c.metric == metric
            && role(study, &c.arm) == ArmRole::SameAsBaseline
            && c.verdict != Verdict::Invalid
    });
    let Some(same) = same else {
        return "There is no change to compare.".to_owned();
    };
    let (low, high) = same.interval;
    let confidence = (study.objective.confidence * 1e4).round() / 1e2;
    format!(
        "Two equal arms came out at {:.3} times each other ({confidence} % interval {low:.3} to \
         {high:.3}); a change is seen here from {:.1} % on.",
        same.ratio,
        same.minimum_detectable * 100.0
    )
}

/// Returns a warning if the A/A arm came out as better or worse than the baseline, of which it is a copy.
fn warning(study: &Study, load: &LoadFindings) -> Option<String> {
    let metric = study.objective.metric;
    let comparison = load.comparisons.iter().find(|c| {
        c.metric == metric
            && role(study, &c.arm) == ArmRole::SameAsBaseline
            && matches!(c.verdict, Verdict::Better | Verdict::Worse)
    })?;
    let (low, high) = comparison.interval;
    Some(format!(
        "The lab saw a difference between two equal arms ({} against {}: {low:.3} to {high:.3} times): \
         treat the figures as suspect.",
        comparison.arm, comparison.against
    ))
}

fn role(study: &Study, arm: &str) -> ArmRole {
    find_arm(study, arm).map_or(ArmRole::Change, |arm| arm.role)
}
