//! Judges evidence by rules: the limiter, those ruled out, and those that cannot be judged.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use weir_model::study::ProxyKind;

use crate::certainty::{Certainty, Reliability};
use crate::evidence::Evidence;
use crate::rules::{Bound, Condition, Rule, Rules, TurnDirection};
use crate::window::Role;

/// A quantity as evaluated by a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConditionEvidence {
    /// Name of the quantity.
    pub quantity: String,
    /// Quantity to divide by, if the condition is about a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Value, or the share.
    pub value: f64,
    /// Value at a low load; `None` if unknown.
    pub at_low_load: Option<f64>,
    /// Unit of the value.
    pub unit: String,
    /// Bound of the condition.
    pub bound: Bound,
    /// True if the condition holds.
    pub holds: bool,
    /// Sources of the value: `table.column`, `trial`.
    pub from: Vec<String>,
}

/// The next limit, once the first finding no longer applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NextLimit {
    /// Another finding of the same judgement.
    Limiter(String),
    /// The resource with the highest use.
    Resource {
        /// Name of the quantity.
        quantity: String,
        /// Present use, 0..1.
        used: f64,
        /// Rate at which it is exhausted, requests per second, if it goes on growing linearly; `None` if unknown, or if
        /// the preceding finding makes requests more expensive.
        at_rate: Option<f64>,
    },
}

/// A limiter that the evidence shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Name of the limiter.
    pub limiter: String,
    /// Role whose resource it is.
    pub role: Role,
    /// Description by the rule, a sentence without its full stop. Names of quantities in braces stand for their values
    /// in `evidence.quantities` of the limiter's findings.
    pub says: String,
    /// Advice by the rule on how to remove the limit.
    #[serde(rename = "do")]
    pub advice: String,
    /// Certainty, by how often similar findings were right on simulated hosts.
    #[serde(default)]
    pub certainty: Certainty,
    /// Limiters that could not be judged and that would be named before this one if they applied.
    #[serde(default)]
    pub unjudged: Vec<String>,
    /// Sum of the weights of the evidence; orders findings, and has no meaning by itself.
    #[serde(skip)]
    pub score: f64,
    /// Evidence for the finding.
    pub evidence: Vec<ConditionEvidence>,
    /// Parameters of the catalog to change, the most important first.
    pub turn: Vec<String>,
    /// Direction in which to change each of the parameters.
    pub ways: Vec<TurnDirection>,
    /// Findings of the same judgement that cause this one, or are named before it.
    pub after: Vec<String>,
    /// The next limit; only for the first finding.
    pub behind: Option<NextLimit>,
    /// Reference that documents the mechanism.
    pub source: String,
    /// Identifiers of `weir doctor` findings that predict it.
    pub doctor: Vec<String>,
}

/// A limiter that the evidence rules out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuledOut {
    /// Name of the limiter.
    pub limiter: String,
    /// Evidence against it.
    pub why: Vec<ConditionEvidence>,
}

/// A limiter that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// Name of the limiter.
    pub limiter: String,
    /// Quantities that it needs and that are unknown, or known for only some of the proxy's pods.
    pub missing: Vec<String>,
}

/// Result of a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The first finding is the limiter.
    Named,
    /// No resource was exhausted.
    NoLimitReached,
    /// A limit was reached but not identified, or the data contradict each other, or too little could be read.
    DoNotKnow,
}

/// Judgement of the limit of a proxy, by the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// Result of the judgement.
    pub answer: Answer,
    /// Limiters that the evidence shows, the most important first.
    pub findings: Vec<Finding>,
    /// Limiters that the evidence rules out, and why.
    pub ruled_out: Vec<RuledOut>,
    /// Limiters that could not be judged.
    pub unknown: Vec<Unknown>,
    /// Symptoms without a finding: they are contradicted, or too weak.
    pub seen: Vec<ConditionEvidence>,
}

/// Result of a single rule.
enum RuleOutcome<'a> {
    Shows(&'a Rule, f64, Vec<ConditionEvidence>),
    /// All symptoms are present, but too weak, or contradicted.
    Doubted {
        seen: Vec<ConditionEvidence>,
        why: Vec<ConditionEvidence>,
    },
    Refuted(Vec<ConditionEvidence>),
    Unknown(Vec<String>),
}

/// Judges the limit of a proxy of this kind (`None`: unknown).
pub fn judge(evidence: &Evidence, rules: &Rules, proxy: Option<ProxyKind>) -> Judgement {
    let (mut shows, mut ruled_out, mut unknown, mut seen) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for limiter in rules.limiters() {
        let mut best: Option<(&Rule, f64, Vec<ConditionEvidence>)> = None;
        let (mut why, mut missing) = (Vec::new(), Vec::new());
        let mut is_settled = false;
        let mut rows = rules.rows(limiter, proxy).peekable();
        if rows.peek().is_none() {
            continue;
        }
        for rule in rows {
            match evaluate(rule, rules, evidence) {
                RuleOutcome::Shows(rule, score, evidence) => {
                    if best.as_ref().is_none_or(|(_, other, _)| score > *other) {
                        best = Some((rule, score, evidence));
                    }
                }
                RuleOutcome::Doubted { seen: more, why: reasons } => {
                    add_new(&mut seen, more);
                    add_new(&mut why, reasons);
                }
                RuleOutcome::Refuted(reasons) => {
                    add_new(&mut why, reasons);
                    is_settled |= rule.settles;
                }
                RuleOutcome::Unknown(names) => missing.extend(names),
            }
        }
        if is_settled {
            missing.clear();
        }
        missing.sort();
        missing.dedup();
        match best {
            Some(best) => shows.push(best),
            None if !missing.is_empty() => {
                unknown.push(Unknown { limiter: limiter.to_owned(), missing });
            }
            None => ruled_out.push(RuledOut { limiter: limiter.to_owned(), why }),
        }
    }
    let mut findings = in_order(shows, rules, evidence, proxy);
    for finding in &mut findings {
        finding.unjudged = unjudged_before(&finding.limiter, &unknown, rules, proxy);
        finding.certainty = Reliability::builtin().certainty(finding);
    }
    let saturated = evidence.value("saturated").map(|saturated| saturated > 0.5);
    let answer = match saturated {
        _ if !findings.is_empty() => Answer::Named,
        Some(false) => Answer::NoLimitReached,
        None if unknown.is_empty() && seen.is_empty() => Answer::NoLimitReached,
        _ => Answer::DoNotKnow,
    };
    Judgement { answer, findings, ruled_out, unknown, seen }
}

/// Returns the limiters among the unknown ones that would be named before this one.
fn unjudged_before(
    limiter: &str,
    unknown: &[Unknown],
    rules: &Rules,
    proxy: Option<ProxyKind>,
) -> Vec<String> {
    unknown
        .iter()
        .filter(|other| {
            rules.rows(limiter, proxy).any(|rule| {
                let mut rows = rules.rows(&other.limiter, proxy);
                rows.any(|first| rule.comes_after(first))
            })
        })
        .map(|other| other.limiter.clone())
        .collect()
}

/// Adds evidence that is not in the list yet.
fn add_new(all: &mut Vec<ConditionEvidence>, more: Vec<ConditionEvidence>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// Evaluates one rule. A symptom known to be absent outweighs an unknown one. A symptom that is absent in the pods that
/// could be read may be present in the others, so it is unknown.
fn evaluate<'a>(rule: &'a Rule, rules: &Rules, evidence: &Evidence) -> RuleOutcome<'a> {
    let failed = select_conditions(&rule.symptoms, false, evidence);
    if !failed.is_empty() {
        return RuleOutcome::Refuted(show_all(&failed, evidence));
    }
    let there = select_conditions(&rule.symptoms, true, evidence);
    if there.len() < rule.symptoms.len() {
        let mut missing: Vec<String> = rule
            .symptoms
            .iter()
            .filter(|one| one.holds(evidence) != Some(true))
            .flat_map(|one| [one.missing(evidence), one.partly(evidence)].concat())
            .collect();
        // A share of nothing has nothing missing, and cannot be known all the same.
        if missing.is_empty() {
            let unknown = rule.symptoms.iter().filter(|one| one.holds(evidence).is_none());
            missing.extend(unknown.flat_map(Condition::quantities).cloned());
        }
        return RuleOutcome::Unknown(missing);
    }
    let contradicting = select_conditions(&rule.contradicts, true, evidence);
    let partly = contradicting.iter().map(|one| one.partly(evidence));
    let partly: Vec<Vec<String>> = partly.filter(|names| !names.is_empty()).collect();
    if !partly.is_empty() && partly.len() == contradicting.len() {
        return RuleOutcome::Unknown(partly.concat());
    }
    if !contradicting.is_empty() {
        return RuleOutcome::Doubted {
            seen: show_all(&there, evidence),
            why: show_all(&contradicting, evidence),
        };
    }
    let supporting = select_conditions(&rule.supports, true, evidence);
    let missed = select_conditions(&rule.supports, false, evidence);
    let mut weight: f64 = there.iter().chain(&supporting).map(|one| one.weight).sum();
    weight -= missed.iter().map(|one| one.against).sum::<f64>();
    let score = rule.prior + rules.shrink * weight;
    let mut all = show_all(&there, evidence);
    add_new(&mut all, show_all(&supporting, evidence));
    add_new(&mut all, show_all(&missed, evidence));
    if score >= rules.shown_from {
        RuleOutcome::Shows(rule, score, all)
    } else {
        RuleOutcome::Doubted { why: show_all(&missed, evidence), seen: all }
    }
}

/// Returns the conditions that are known to hold, or those that are known not to, for all pods of the proxy.
fn select_conditions<'a>(
    conditions: &'a [Condition],
    holds: bool,
    evidence: &Evidence,
) -> Vec<&'a Condition> {
    conditions
        .iter()
        .filter(|condition| {
            condition.holds(evidence) == Some(holds)
                && (holds || condition.partly(evidence).is_empty())
        })
        .collect()
}

fn show_all(conditions: &[&Condition], evidence: &Evidence) -> Vec<ConditionEvidence> {
    conditions.iter().filter_map(|condition| show(condition, evidence)).collect()
}

/// Evaluates a condition for display; `None` if its quantity is unknown.
fn show(condition: &Condition, evidence: &Evidence) -> Option<ConditionEvidence> {
    let name = &condition.quantity.value;
    let fact = evidence.quantities.get(name)?;
    let mut unit = fact.unit.clone();
    let (mut now, mut low, mut from) = (fact.value, fact.at_low_load, fact.from.clone());
    if let Some(of) = &condition.of {
        let total = evidence.quantities.get(of)?;
        unit = "share".to_owned();
        now /= total.value;
        low = low.zip(total.at_low_load).map(|(part, total)| part / total);
        from.extend(total.from.iter().cloned());
    }
    Some(ConditionEvidence {
        quantity: name.clone(),
        of: condition.of.clone(),
        value: now,
        at_low_load: low,
        unit,
        bound: condition.bound(),
        holds: condition.holds(evidence)?,
        from,
    })
}

type Shows<'a> = (&'a Rule, f64, Vec<ConditionEvidence>);

/// Orders findings: first those that no other explains, by score; then the explained ones, each after its explanation.
fn in_order(
    shows: Vec<Shows<'_>>,
    rules: &Rules,
    evidence: &Evidence,
    proxy: Option<ProxyKind>,
) -> Vec<Finding> {
    let all: Vec<&Rule> = shows.iter().map(|(rule, _, _)| *rule).collect();
    let mut open: Vec<(Vec<String>, Shows<'_>)> =
        shows.into_iter().map(|shows| (before(shows.0, &all, evidence), shows)).collect();
    open.sort_by(|(_, a), (_, b)| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal));
    let mut ordered: Vec<(Vec<String>, Shows<'_>)> = Vec::new();
    while !open.is_empty() {
        let is_told =
            |name: &String| ordered.iter().any(|(_, (rule, _, _))| rule.limiter.value == *name);
        let free = open.iter().position(|(after, _)| after.is_empty());
        let next = free.or_else(|| open.iter().position(|(after, _)| after.iter().all(is_told)));
        ordered.push(open.remove(next.unwrap_or(0)));
    }
    let behind = find_behind(&ordered, rules, evidence);
    let mut findings: Vec<Finding> =
        ordered.into_iter().map(|(after, shows)| finding(after, shows, proxy)).collect();
    if let Some(first) = findings.first_mut() {
        first.behind = behind;
    }
    findings
}

/// Returns the limiters that are named before that of a rule.
fn before(rule: &Rule, all: &[&Rule], evidence: &Evidence) -> Vec<String> {
    let limiter = &rule.limiter.value;
    let stands = rule.stands_when.iter().any(|one| one.holds(evidence) == Some(true));
    all.iter()
        .filter(|other| {
            let explains = other.explains.iter().any(|name| name.value == *limiter);
            let goes_first = rule.yields_to.iter().any(|name| name.value == other.limiter.value);
            explains || (goes_first && !stands)
        })
        .map(|other| other.limiter.value.clone())
        .collect()
}

fn finding(after: Vec<String>, shows: Shows<'_>, proxy: Option<ProxyKind>) -> Finding {
    let (rule, score, shown) = shows;
    let turns = rule.turns(proxy);
    Finding {
        limiter: rule.limiter.value.clone(),
        role: rule.role,
        says: rule.says.clone(),
        advice: rule.advice.clone(),
        certainty: Certainty::default(),
        unjudged: Vec::new(),
        score,
        evidence: shown,
        turn: turns.iter().map(|turn| turn.parameter.clone()).collect(),
        ways: turns.iter().map(|turn| turn.way.clone()).collect(),
        after,
        behind: None,
        source: rule.source.clone(),
        doctor: rule.doctor.clone(),
    }
}

/// Returns the next limit: the next finding that no other explains, or else the resource with the highest use that is
/// not a symptom of the first.
fn find_behind(
    ordered: &[(Vec<String>, Shows<'_>)],
    rules: &Rules,
    evidence: &Evidence,
) -> Option<NextLimit> {
    let (_, (first, _, _)) = ordered.first()?;
    if let Some((_, (next, _, _))) = ordered.iter().skip(1).find(|(after, _)| after.is_empty()) {
        return Some(NextLimit::Limiter(next.limiter.value.clone()));
    }
    let used = rules.full.iter().filter(|(name, _)| !has_symptom(first, name)).filter_map(
        |(name, full)| {
            let fact = evidence.quantities.get(name)?;
            let is_consequence =
                ordered.iter().skip(1).any(|(_, (rule, _, _))| has_symptom(rule, name));
            let at_rate = (!is_consequence).then(|| used_up(name, *full, evidence)).flatten();
            Some((name, fact.value / full, at_rate))
        },
    );
    let (quantity, used, at_rate) =
        used.reduce(|most, one| if one.1 > most.1 { one } else { most })?;
    Some(NextLimit::Resource { quantity: quantity.clone(), used, at_rate })
}

fn has_symptom(rule: &Rule, quantity: &str) -> bool {
    rule.symptoms.iter().flat_map(Condition::quantities).any(|name| name == quantity)
}

/// Returns the rate at which a resource is exhausted, extrapolated from the low load and now, or in proportion to the
/// rate without a low load.
fn used_up(name: &str, full: f64, evidence: &Evidence) -> Option<f64> {
    let (fact, rate) = (evidence.quantities.get(name)?, evidence.quantities.get("rate")?);
    let (used, at) = match fact.at_low_load.zip(rate.at_low_load) {
        Some((used, at)) if at < rate.value => (used, at),
        _ => (0.0, 0.0),
    };
    let slope = (fact.value - used) / (rate.value - at);
    (slope > 0.0 && slope.is_finite()).then(|| rate.value + (full - fact.value) / slope)
}
