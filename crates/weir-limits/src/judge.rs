//! Rules held against evidence: what is the limiter, what is not, and what cannot be told.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use weir_model::study::ProxyKind;

use crate::certainty::{Certainty, Reliability};
use crate::evidence::Evidence;
use crate::rules::{Condition, Rule, Rules, Way};
use crate::text::filled;
use crate::window::Role;

/// A quantity as a condition saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    /// Its name.
    pub quantity: String,
    /// Its value; of a share of another quantity, the share.
    pub value: f64,
    /// The same at a low load, where it is known.
    pub at_low_load: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// What was asked of it: `above 93 %`.
    pub condition: String,
    /// Whether it is so.
    pub holds: bool,
    /// What it is derived from.
    pub from: Vec<String>,
}

/// What will be the limit when the first finding is none any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Behind {
    /// A finding of the same judgement.
    Limiter(String),
    /// The resource with the highest use.
    Resource {
        /// Its quantity.
        quantity: String,
        /// Its use now, 0..1.
        used: f64,
        /// The rate at which it is used up, requests per second, if it goes on growing linearly; unknown where the
        /// finding before it makes requests dearer.
        at_rate: Option<f64>,
    },
}

/// A limiter that shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Its name.
    pub limiter: String,
    /// Whose resource it is.
    pub role: Role,
    /// What is said of it, in a sentence without its end.
    pub says: String,
    /// What to do.
    #[serde(rename = "do")]
    pub advice: String,
    /// How often a finding like it was right on simulated hosts, in a word.
    #[serde(default)]
    pub certainty: Certainty,
    /// Limiters that would be named before it if they showed, and that could not be judged.
    #[serde(default)]
    pub unjudged: Vec<String>,
    /// Always null: a number that the weights of rules made up, and no frequency. Read `certainty`.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Sum of the weights of what shows it; orders findings, and means nothing by itself.
    #[serde(skip)]
    pub score: f64,
    /// What it rests on.
    pub evidence: Vec<Shown>,
    /// Parameters of the catalog to turn, the first first.
    pub turn: Vec<String>,
    /// Which way each of them is turned.
    pub ways: Vec<Way>,
    /// Findings of the same judgement of which it is a consequence, or which are named before it.
    pub after: Vec<String>,
    /// What comes next; of the first finding alone.
    pub behind: Option<Behind>,
    /// Where the mechanism is documented.
    pub source: String,
    /// Findings of `weir doctor` that foresee it.
    pub doctor: Vec<String>,
}

/// A limiter that does not show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ruled {
    /// Its name.
    pub limiter: String,
    /// What says so.
    pub why: Vec<Shown>,
}

/// A limiter that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// Its name.
    pub limiter: String,
    /// Quantities that it needs and that are unknown, or known of some of the proxy's pods alone.
    pub missing: Vec<String>,
}

/// What the judgement comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The first finding is the limiter.
    Named,
    /// Nothing was used up.
    NoLimitReached,
    /// Something limits it, or what was read contradicts itself, or too little was read.
    DoNotKnow,
}

/// What limits a proxy, by what is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// What it comes to.
    pub answer: Answer,
    /// What shows; the first is named first.
    pub findings: Vec<Finding>,
    /// What does not show, and why.
    pub ruled_out: Vec<Ruled>,
    /// What could not be judged.
    pub unknown: Vec<Unknown>,
    /// What was seen and is no finding: symptoms that something contradicts, or that are too weak.
    pub seen: Vec<Shown>,
}

/// What comes of a row.
enum Row<'a> {
    Shows(&'a Rule, f64, Vec<Shown>),
    /// All symptoms are there, and it is too weak, or something contradicts it.
    Doubted {
        seen: Vec<Shown>,
        why: Vec<Shown>,
    },
    Refuted(Vec<Shown>),
    Unknown(Vec<String>),
}

/// Judges what limits a proxy of this kind (`None`: of an unknown one).
pub fn judge(evidence: &Evidence, rules: &Rules, proxy: Option<ProxyKind>) -> Judgement {
    let (mut shows, mut ruled_out, mut unknown, mut seen) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for limiter in rules.limiters() {
        let mut best: Option<(&Rule, f64, Vec<Shown>)> = None;
        let (mut why, mut missing) = (Vec::new(), Vec::new());
        let mut is_settled = false;
        let mut rows = rules.rows(limiter, proxy).peekable();
        if rows.peek().is_none() {
            continue;
        }
        for rule in rows {
            match row(rule, rules, evidence) {
                Row::Shows(rule, score, evidence) => {
                    if best.as_ref().is_none_or(|(_, other, _)| score > *other) {
                        best = Some((rule, score, evidence));
                    }
                }
                Row::Doubted {
                    seen: more,
                    why: reasons,
                } => {
                    add(&mut seen, more);
                    add(&mut why, reasons);
                }
                Row::Refuted(reasons) => {
                    add(&mut why, reasons);
                    is_settled |= rule.settles;
                }
                Row::Unknown(names) => missing.extend(names),
            }
        }
        if is_settled {
            missing.clear();
        }
        let limiter = limiter.to_owned();
        missing.sort();
        missing.dedup();
        match best {
            Some(best) => shows.push(best),
            None if !missing.is_empty() => unknown.push(Unknown { limiter, missing }),
            None => ruled_out.push(Ruled { limiter, why }),
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
    Judgement {
        answer,
        findings,
        ruled_out,
        unknown,
        seen,
    }
}

/// Limiters among the unknown ones that would be named before this one.
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

fn add(all: &mut Vec<Shown>, more: Vec<Shown>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// Holds one row against the evidence. A symptom that is known not to be there says more than one that is unknown. What does
/// not show in those of the proxy's pods that could be read may be so in the others, so it is unknown.
fn row<'a>(rule: &'a Rule, rules: &Rules, evidence: &Evidence) -> Row<'a> {
    let look = |conditions: &'a [Condition], holds: bool| -> Vec<&'a Condition> {
        let is_so = |one: &&Condition| {
            one.holds(evidence) == Some(holds) && (holds || one.partly(evidence).is_empty())
        };
        conditions.iter().filter(is_so).collect()
    };
    let shown = |conditions: &[&Condition]| -> Vec<Shown> {
        conditions
            .iter()
            .filter_map(|one| show(one, evidence))
            .collect()
    };
    let failed = look(&rule.symptoms, false);
    if !failed.is_empty() {
        return Row::Refuted(shown(&failed));
    }
    let there = look(&rule.symptoms, true);
    if there.len() < rule.symptoms.len() {
        let mut missing: Vec<String> = rule
            .symptoms
            .iter()
            .filter(|one| one.holds(evidence) != Some(true))
            .flat_map(|one| [one.missing(evidence), one.partly(evidence)].concat())
            .collect();
        // A share of nothing has nothing missing, and cannot be known all the same.
        if missing.is_empty() {
            let unknown = rule
                .symptoms
                .iter()
                .filter(|one| one.holds(evidence).is_none());
            missing.extend(unknown.flat_map(Condition::quantities).cloned());
        }
        return Row::Unknown(missing);
    }
    let contradicting = look(&rule.contradicts, true);
    let partly = contradicting.iter().map(|one| one.partly(evidence));
    let partly: Vec<Vec<String>> = partly.filter(|names| !names.is_empty()).collect();
    if !partly.is_empty() && partly.len() == contradicting.len() {
        return Row::Unknown(partly.concat());
    }
    if !contradicting.is_empty() {
        return Row::Doubted {
            seen: shown(&there),
            why: shown(&contradicting),
        };
    }
    let (supporting, missed) = (look(&rule.supports, true), look(&rule.supports, false));
    let mut weight: f64 = there.iter().chain(&supporting).map(|one| one.weight).sum();
    weight -= missed.iter().map(|one| one.against).sum::<f64>();
    let score = rule.prior + rules.shrink * weight;
    let mut all = shown(&there);
    add(&mut all, shown(&supporting));
    add(&mut all, shown(&missed));
    if score >= rules.shown_from {
        Row::Shows(rule, score, all)
    } else {
        Row::Doubted {
            why: shown(&missed),
            seen: all,
        }
    }
}

/// A condition with what it saw; `None` where its quantity is unknown.
fn show(condition: &Condition, evidence: &Evidence) -> Option<Shown> {
    let name = &condition.quantity.value;
    let fact = evidence.quantities.get(name)?;
    let (mut quantity, mut unit) = (name.clone(), fact.unit.clone());
    let (mut now, mut low, mut from) = (fact.value, fact.at_low_load, fact.from.clone());
    if let Some(of) = &condition.of {
        let whole = evidence.quantities.get(of)?;
        quantity = format!("{name} of {of}");
        unit = "share".to_owned();
        now /= whole.value;
        low = low.zip(whole.at_low_load).map(|(part, whole)| part / whole);
        from.extend(whole.from.iter().cloned());
    }
    Some(Shown {
        quantity,
        value: now,
        at_low_load: low,
        condition: condition.bound_in(&unit),
        unit,
        holds: condition.holds(evidence)?,
        from,
    })
}

type Shows<'a> = (&'a Rule, f64, Vec<Shown>);

/// First what nothing else explains, by score; then what is explained, each after what explains it.
fn in_order(
    shows: Vec<Shows<'_>>,
    rules: &Rules,
    evidence: &Evidence,
    proxy: Option<ProxyKind>,
) -> Vec<Finding> {
    let all: Vec<&Rule> = shows.iter().map(|(rule, _, _)| *rule).collect();
    let mut open: Vec<(Vec<String>, Shows<'_>)> = shows
        .into_iter()
        .map(|shows| (before(shows.0, &all, evidence), shows))
        .collect();
    open.sort_by(|(_, a), (_, b)| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal));
    let mut ordered: Vec<(Vec<String>, Shows<'_>)> = Vec::new();
    while !open.is_empty() {
        let is_told = |name: &String| {
            ordered
                .iter()
                .any(|(_, (rule, _, _))| rule.limiter.value == *name)
        };
        let free = open.iter().position(|(after, _)| after.is_empty());
        let next = free.or_else(|| open.iter().position(|(after, _)| after.iter().all(is_told)));
        ordered.push(open.remove(next.unwrap_or(0)));
    }
    let behind = behind(&ordered, rules, evidence);
    let mut findings: Vec<Finding> = ordered
        .into_iter()
        .map(|(after, shows)| finding(after, shows, evidence, proxy))
        .collect();
    if let Some(first) = findings.first_mut() {
        first.behind = behind;
    }
    findings
}

/// Limiters that are named before a rule's.
fn before(rule: &Rule, all: &[&Rule], evidence: &Evidence) -> Vec<String> {
    let own = &rule.limiter.value;
    let stands = rule
        .stands_when
        .iter()
        .any(|one| one.holds(evidence) == Some(true));
    let is_before = |other: &&&Rule| {
        let explains = other.explains.iter().any(|name| name.value == *own);
        let goes_first = rule
            .yields_to
            .iter()
            .any(|name| name.value == other.limiter.value);
        explains || (goes_first && !stands)
    };
    all.iter()
        .filter(is_before)
        .map(|other| other.limiter.value.clone())
        .collect()
}

fn finding(
    after: Vec<String>,
    shows: Shows<'_>,
    evidence: &Evidence,
    proxy: Option<ProxyKind>,
) -> Finding {
    let (rule, score, shown) = shows;
    let turns = rule.turns(proxy);
    Finding {
        limiter: rule.limiter.value.clone(),
        role: rule.role,
        says: filled(&rule.says, evidence),
        advice: filled(&rule.advice, evidence),
        certainty: Certainty::default(),
        unjudged: Vec::new(),
        confidence: None,
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

/// What comes after the first: the next finding that nothing explains, else the resource with the highest use that is
/// no symptom of the first.
fn behind(
    ordered: &[(Vec<String>, Shows<'_>)],
    rules: &Rules,
    evidence: &Evidence,
) -> Option<Behind> {
    let (_, (first, _, _)) = ordered.first()?;
    if let Some((_, (next, _, _))) = ordered.iter().skip(1).find(|(after, _)| after.is_empty()) {
        return Some(Behind::Limiter(next.limiter.value.clone()));
    }
    let is_symptom = |rule: &Rule, name: &str| {
        let mut own = rule.symptoms.iter().flat_map(Condition::quantities);
        own.any(|quantity| quantity == name)
    };
    let used = rules
        .full
        .iter()
        .filter(|(name, _)| !is_symptom(first, name));
    let used = used.filter_map(|(name, full)| {
        let fact = evidence.quantities.get(name)?;
        let is_consequence = ordered
            .iter()
            .skip(1)
            .any(|(_, (rule, _, _))| is_symptom(rule, name));
        let at_rate = (!is_consequence)
            .then(|| used_up(name, *full, evidence))
            .flatten();
        Some((name, fact.value / full, at_rate))
    });
    let (quantity, used, at_rate) =
        used.reduce(|most, one| if one.1 > most.1 { one } else { most })?;
    Some(Behind::Resource {
        quantity: quantity.clone(),
        used,
        at_rate,
    })
}

/// The rate at which a resource is used up, if it goes on as it grew from the low load to now; in proportion to the
/// rate where there is no low load.
fn used_up(name: &str, full: f64, evidence: &Evidence) -> Option<f64> {
    let (fact, rate) = (
        evidence.quantities.get(name)?,
        evidence.quantities.get("rate")?,
    );
    let (used, at) = match fact.at_low_load.zip(rate.at_low_load) {
        Some((used, at)) if at < rate.value => (used, at),
        _ => (0.0, 0.0),
    };
    let slope = (fact.value - used) / (rate.value - at);
    (slope > 0.0 && slope.is_finite()).then(|| rate.value + (full - fact.value) / slope)
}
