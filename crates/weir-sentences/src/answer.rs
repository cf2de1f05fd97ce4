//! The answer to the study's question in one sentence, for readers who read nothing else.

mod matrix;
mod overall;
mod proxies;
mod tail;

use weir_analysis::findings::{
    ArmFindings, Comparison, Findings, Holding, InertArm, LimitFindings, LoadFindings, UNANSWERED,
    Verdict,
};
use weir_analysis::{are_different_proxies, are_steps};
use weir_model::study::{ArmRole, Metric, Study};

use crate::alone::describe_alone;
use crate::capacity;
use crate::effects::{describe_ineffective, describe_misread, explain_inert};
use crate::limits::explain_limit;
use crate::names::{capitalize, find_arm, join_names, metric_words};
use crate::numbers::{self, ms};
use crate::phases::{describe_changes, describe_fresh_arms};
use crate::rests::describe_resting_arm;
use crate::scaling;

/// Maximum number of names that are listed; more are counted instead.
const NAMES_LISTED: usize = 3;
/// Sentence about a closed loop in which nobody was busy.
const CONNECTIONS_LIMIT: &str = "The connections were the limit, so this does not show how much the proxy carries; more \
                                 connections would.";

/// Returns the answer, with a line for each growth with a factor, and one for each load that gives the objective's
/// metric, or for each capacity.
pub fn answer(study: &Study, findings: &Findings) -> String {
    let growth = scaling::lead(findings);
    let answer = match &findings.capacity {
        Some(capacity) => capacity::summary(capacity, &findings.limiters),
        None => compare(study, findings),
    };
    growth.into_iter().chain([answer]).collect::<Vec<_>>().join("\n")
}

/// Answers from the comparisons of arms.
fn compare(study: &Study, findings: &Findings) -> String {
    let of_loads = describe_loads(study, findings);
    let between = if of_loads.contains('\n') { "\n" } else { " " };
    let misread = findings.misread.iter().map(describe_misread);
    let alone = findings.alone.iter().map(|found| describe_alone(study, found));
    let sentences = std::iter::once(of_loads).chain(misread).chain(alone);
    sentences.collect::<Vec<_>>().join(between)
}

/// Answers from the findings under each load. A second sentence warns if two equal arms came out as different.
fn describe_loads(study: &Study, findings: &Findings) -> String {
    let Findings { inert, complete, .. } = findings;
    if let Some(arms) = study.overall_pair() {
        return append_end(overall::describe(study, findings, arms), *complete);
    }
    let (metric, complete) = (study.objective.metric, *complete);
    let answering = findings.loads.iter().filter(|load| load.metrics.contains(&metric));
    let answering: Vec<&LoadFindings> = answering.filter(|load| load.blocks > 0).collect();
    if let Some(text) = describe_one_arm(study, &answering) {
        return append_end(text, complete);
    }
    let mut text: Vec<String> = Vec::new();
    let groups = matrix::group_loads(study, &answering);
    for loads in &groups {
        match loads[..] {
            [load] => text.push(describe_load(study, load, inert, groups.len() > 1)),
            _ => text.push(matrix::describe_matrix(study, (loads, &findings.pooled), inert)),
        }
    }
    if text.is_empty() {
        return "Nothing was measured that answers the question.".to_owned();
    }
    append_end(text.join("\n"), complete)
}

/// Returns the sentences about one load.
fn describe_load(
    study: &Study,
    load: &LoadFindings,
    inert: &[InertArm],
    is_one_of_many: bool,
) -> String {
    let under =
        if is_one_of_many { format!("Under the load {}: ", load.load) } else { String::new() };
    let limits = describe_limits(study, load);
    // An arm that is alone is compared with nothing.
    let comparisons = if load.comparisons.is_empty() && limits.is_some() {
        None
    } else {
        let ranking = proxies::describe_ranking(study, load);
        Some(ranking.unwrap_or_else(|| describe_comparisons(study, load, inert)))
    };
    let sentences: Vec<String> = limits
        .into_iter()
        .chain(comparisons)
        .chain(tail::describe_hidden_tail(study, load))
        .collect();
    format!("{under}{}", append_notes(study, load, sentences.join(" ")))
}

/// Appends what qualifies the figures of a load.
fn append_notes(study: &Study, load: &LoadFindings, text: String) -> String {
    let sentences: Vec<String> = std::iter::once(text)
        .chain(describe_unanswered(load))
        .chain(describe_changes(&load.phases))
        .chain(load.fresh.as_ref().map(describe_fresh_arms))
        .chain(load.idle.as_ref().map(|_| CONNECTIONS_LIMIT.to_owned()))
        .chain(describe_early_end(load))
        .chain(load.ineffective.iter().map(describe_ineffective))
        .chain(load.rests.iter().map(describe_resting_arm))
        .chain(warn_about_equal_arms(study, load))
        .collect();
    sentences.join(" ")
}

/// Returns a sentence about the block after which the answer was known; `None` if that was the planned end.
fn describe_early_end(load: &LoadFindings) -> Option<String> {
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

/// Returns sentences about the arms of which more than [`UNANSWERED`] of the requests failed, and about those of which
/// as many had no answer in time.
fn describe_unanswered(load: &LoadFindings) -> impl Iterator<Item = String> {
    let failed = name_shares(load, ArmFindings::failed_share);
    let cut_off = name_shares(load, ArmFindings::censored_share);
    let failed = failed.map(|shares| format!("Requests that failed: {shares}."));
    let cut_off = cut_off.map(|shares| {
        format!("Requests without an answer when their slice or the timeout ended: {shares}.")
    });
    failed.into_iter().chain(cut_off)
}

/// Returns "a 3.1 % and b 12.0 %" for the arms with more than [`UNANSWERED`] of a share; `None` if there are none.
fn name_shares(load: &LoadFindings, share: fn(&ArmFindings) -> f64) -> Option<String> {
    let arms = load.arms.iter().filter(|arm| share(arm) > UNANSWERED);
    let arms: Vec<String> =
        arms.map(|arm| format!("{} {:.1} %", arm.arm, share(arm) * 100.0)).collect();
    let (first, more) = (arms.first()?, arms.len().saturating_sub(NAMES_LISTED));
    Some(match more {
        0 => join_names(&arms),
        _ => format!("{first} (and {} other arms)", arms.len() - 1),
    })
}

/// Returns "backlog-alone is inert (net.core.somaxconn is 128)" for an arm that changes nothing else.
fn describe_inert_arm(inert: &[InertArm], arm: &str) -> Option<String> {
    let inert_arm = inert.iter().find(|inert| inert.arm == arm && inert.whole)?;
    Some(format!("{arm} is inert ({})", explain_inert(inert_arm)))
}

/// Appends a last sentence if the run was cut short.
fn append_end(text: String, complete: bool) -> String {
    let between = if text.contains('\n') { "\n" } else { " " };
    if complete {
        text
    } else {
        format!("{text}{between}The run did not end as planned: this covers what was measured.")
    }
}

/// Returns the answer for a study of one arm with a limit under several loads; `None` in any other study. Loads with
/// the same verdict share a clause, because a sentence for each would hide at which load the verdict changes.
fn describe_one_arm(study: &Study, loads: &[&LoadFindings]) -> Option<String> {
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
            parts.push(format!(
                "{} under {}",
                describe_holding(&arm.name, first),
                list_loads(&alike)
            ));
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

/// Returns a sentence about the arms that stay within the study's limit; `None` without a limit. Leaves out the A/A arm,
/// which is the baseline.
fn describe_limits(study: &Study, load: &LoadFindings) -> Option<String> {
    let parts: Vec<String> = load
        .limits
        .iter()
        .filter(|limit| find_role(study, &limit.arm) != ArmRole::SameAsBaseline)
        .map(|limit| describe_limit(study, limit))
        .collect();
    (!parts.is_empty()).then(|| format!("{}.", capitalize(study, &parts.join("; "))))
}

/// Returns "nginx stays within 30 ms", or another clause for the limit's verdict.
fn describe_holding(arm: &str, findings: &LimitFindings) -> String {
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
fn describe_limit(study: &Study, limit: &LimitFindings) -> String {
    let clause = describe_holding(&limit.arm, limit);
    if !limit.value_ns.is_finite() {
        return format!("{clause} ({})", explain_limit(limit));
    }
    let (low, high) = limit.interval_ns;
    let quantile = limit.metric.response_quantile().unwrap_or_default();
    let confidence = numbers::level(study.objective.confidence);
    format!(
        "{clause} (the {quantile} quantile of the response time is {} ms, {confidence} interval {} to {})",
        ms(limit.value_ns),
        ms(low),
        ms(high)
    )
}

/// Returns a sentence about the comparisons of changes by the objective's metric.
fn describe_comparisons(study: &Study, load: &LoadFindings, inert: &[InertArm]) -> String {
    let metric = study.objective.metric;
    let mut shown =
        [select_changes(study, load, Verdict::Better), select_changes(study, load, Verdict::Worse)]
            .concat();
    // By size, whichever the direction that is better: the largest change of the ratio first.
    shown.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let (others_shown, shown) = split_proxies(study, shown);
    let mut parts: Vec<String> = Vec::new();
    let is_idle = load.idle.is_some();
    for (index, comparison) in shown.iter().enumerate() {
        let is_first = shown[..index].iter().all(|c| is_unbounded(c));
        parts.push(describe_effect(study, comparison, is_first, is_idle));
    }
    for (index, comparison) in others_shown.iter().enumerate() {
        let is_first = others_shown[..index].iter().all(|c| is_unbounded(c));
        parts.push(proxies::describe_effect(study, comparison, is_first, is_idle));
    }
    let qualifier = if shown.is_empty() { "" } else { "other " };
    let all_equivalent = select_changes(study, load, Verdict::Equivalent);
    let all_open = select_changes(study, load, Verdict::Inconclusive);
    let without_difference = [&all_equivalent[..], &all_open].concat();
    let (others_equivalent, equivalent) = split_proxies(study, drop_inert(inert, all_equivalent));
    let (others_open, open) = split_proxies(study, drop_inert(inert, all_open));
    parts.extend(proxies::describe_no_difference(study, &others_equivalent));
    parts.extend(proxies::describe_no_difference(study, &others_open));
    if !equivalent.is_empty() {
        let band = numbers::level(study.objective.band);
        let (who, verb) = name_subject(&equivalent, qualifier, "makes", "make");
        parts.push(format!("{who} {verb} no difference beyond {band}"));
    }
    if !open.is_empty() {
        let (who, verb) = name_subject(&open, qualifier, "makes", "make");
        parts.push(format!("{who} {verb} no difference that could be shown"));
    }
    parts.extend(without_difference.iter().filter_map(|c| describe_inert_arm(inert, &c.arm)));
    let invalid = select_changes(study, load, Verdict::Invalid);
    if !invalid.is_empty() {
        let (who, verb) = name_subject(&invalid, "", "has", "have");
        let metric = metric_words(metric);
        parts.push(format!("{who} {verb} no valid figures of the {metric}"));
    }
    if parts.is_empty() {
        return describe_resolution(study, load);
    }
    let text = capitalize(study, &parts.join("; "));
    format!("{text}{}.", describe_compared_arms(study))
}

/// Returns the changes with the given verdict by the objective's metric.
fn select_changes<'a>(
    study: &Study,
    load: &'a LoadFindings,
    verdict: Verdict,
) -> Vec<&'a Comparison> {
    let metric = study.objective.metric;
    load.comparisons
        .iter()
        .filter(|c| c.metric == metric && c.verdict == verdict)
        .filter(|c| find_role(study, &c.arm) == ArmRole::Change)
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
    comparisons.retain(|c| describe_inert_arm(inert, &c.arm).is_none());
    comparisons
}

/// Returns a clause that says which arm each arm is compared with; empty if that is the baseline for all.
fn describe_compared_arms(study: &Study) -> &'static str {
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
fn describe_effect(
    study: &Study,
    comparison: &Comparison,
    is_first: bool,
    is_idle: bool,
) -> String {
    let Comparison { arm, against, ratio, .. } = comparison;
    if let Some(text) = describe_unbounded(comparison, (arm, against)) {
        return text;
    }
    let interval = numbers::interval(comparison.interval);
    if !is_first {
        return format!("{arm} {ratio:.2} times ({interval})");
    }
    let proxy = find_arm(study, arm).map_or(&study.proxy, |arm| study.proxy_of(arm)).kind.title();
    let clause = match comparison.metric {
        Metric::Rate if is_idle => format!("{proxy} answer {ratio:.2} times as many requests"),
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
    let confidence = numbers::level(study.objective.confidence);
    format!("{arm} makes {clause} ({confidence} interval {interval})")
}

/// Returns a clause for two arms of which one typically has no figure, so that the ratio is unbounded; `None` for other
/// arms. `names` are those of the arm and of the one that it is compared with.
fn describe_unbounded(comparison: &Comparison, names: (&str, &str)) -> Option<String> {
    if !is_unbounded(comparison) {
        return None;
    }
    let is_time = comparison.metric.response_quantile().is_some();
    let (arm, against) = names;
    let (silent, other) =
        if (comparison.ratio == 0.0) == is_time { (against, arm) } else { (arm, against) };
    Some(if is_time {
        format!(
            "{silent} typically leaves too many requests unanswered, where {other} answers them"
        )
    } else {
        format!("{silent} typically answers nothing, where {other} does")
    })
}

/// Returns true if one of two arms typically has no figure.
fn is_unbounded(comparison: &Comparison) -> bool {
    comparison.ratio == 0.0 || comparison.ratio.is_infinite()
}

/// Returns the subject, by names or by number, and the verb that agrees with it.
fn name_subject<'a>(
    who: &[&Comparison],
    other: &str,
    one: &'a str,
    many: &'a str,
) -> (String, &'a str) {
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
fn describe_resolution(study: &Study, load: &LoadFindings) -> String {
    let metric = study.objective.metric;
    let same = load.comparisons.iter().find(|c| {
        c.metric == metric
            && find_role(study, &c.arm) == ArmRole::SameAsBaseline
            && c.verdict != Verdict::Invalid
    });
    let Some(same) = same else {
        return "There is no change to compare.".to_owned();
    };
    let (low, high) = same.interval;
    let confidence = numbers::level(study.objective.confidence);
    format!(
        "Two equal arms came out at {:.3} times each other ({confidence} interval {low:.3} to \
         {high:.3}); a change is seen here from {:.1} % on.",
        same.ratio,
        same.minimum_detectable * 100.0
    )
}

/// Returns a warning if the A/A arm came out as better or worse than the baseline, of which it is a copy.
fn warn_about_equal_arms(study: &Study, load: &LoadFindings) -> Option<String> {
    let metric = study.objective.metric;
    let comparison = load.comparisons.iter().find(|c| {
        c.metric == metric
            && find_role(study, &c.arm) == ArmRole::SameAsBaseline
            && matches!(c.verdict, Verdict::Better | Verdict::Worse)
    })?;
    let (low, high) = comparison.interval;
    Some(format!(
        "The lab saw a difference between two equal arms ({} against {}: {low:.3} to {high:.3} times): \
         treat the figures as suspect.",
        comparison.arm, comparison.against
    ))
}

fn find_role(study: &Study, arm: &str) -> ArmRole {
    find_arm(study, arm).map_or(ArmRole::Change, |arm| arm.role)
}
