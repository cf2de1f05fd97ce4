//! Conditions on the findings of a study: `worse`, `inconclusive`, `invalid`, `ARM worse`, `ARM p99 > 30ms`,
//! `ARM p99 > +3%`.

use weir_analysis::findings::{
    ArmFindings, Comparison, Findings, LoadFindings, NEVER_NS, OverallFindings, Verdict,
};
use weir_model::nearest::nearest;
use weir_model::record::Validity;
use weir_model::study::{ArmRole, Metric, Study};
use weir_report::{number, words};
use weir_sentences::explain_verdict;
use weir_sentences::validity::describe;

use crate::{Condition, ConditionError, Figure, Held, Judged, Says, Vocabulary, beyond, capacity};

const VOCABULARY: Vocabulary = Vocabulary {
    words: &["worse", "inconclusive", "invalid", "suspect"],
    example: "worse' or 'inconclusive' or 'invalid' or 'ARM p99 > 30ms' or 'p99 > +3%",
};

/// Quantiles of each arm's response time in the findings, in the order of `response_ns`.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Conditions on a study's comparisons or, if it asks for capacities, on these.
#[derive(Debug, Clone)]
pub enum Conditions {
    Compared(Vec<Condition>),
    Searched(Vec<capacity::Condition>),
}

impl Conditions {
    /// Reads the conditions, and checks that the study has the arms that they name.
    ///
    /// # Errors
    /// A condition has a subject that the findings of this study lack.
    pub fn read(texts: &[String], study: &Study) -> Result<Conditions, ConditionError> {
        if !study.capacity.is_empty() {
            return capacity::read(texts).map(Conditions::Searched);
        }
        let read = VOCABULARY.read(texts)?;
        for condition in &read {
            condition.fits(study).map_err(|(what, hint)| ConditionError {
                text: condition.text.clone(),
                what,
                hint,
            })?;
        }
        Ok(Conditions::Compared(read))
    }

    /// Judges all conditions by the study's findings.
    pub fn judge(&self, study: &Study, findings: &Findings) -> Vec<Judged> {
        match self {
            Conditions::Compared(conditions) => {
                conditions.iter().map(|condition| condition.judge_loads(study, findings)).collect()
            }
            Conditions::Searched(conditions) => capacity::judge(conditions, findings),
        }
    }
}

impl Condition {
    fn fits(&self, study: &Study) -> Result<(), (String, Option<String>)> {
        if let Some(arm) = &self.arm {
            let names: Vec<&str> = study.arms.iter().map(|arm| &*arm.name).collect();
            if !names.contains(&&**arm) {
                let hint = nearest(arm, &names).map(|name| format!("did you mean `{name}`?"));
                return Err((format!("the study has no arm `{arm}`"), hint));
            }
        }
        let message = match self.says {
            Says::Figure { window: Some(_), .. } => "a study has no windows: leave ` in …` out",
            Says::Figure { figure: Figure::Mean, .. } => "a study's findings have no mean",
            Says::Figure { figure: Figure::Quantile(quantile), .. }
                if !QUANTILES.contains(&quantile) =>
            {
                "a study's findings have p50, p90, p99 and p99.9"
            }
            Says::Word("worse" | "inconclusive") | Says::Change { .. }
                if study.questions().is_empty() =>
            {
                "the study compares no change with anything"
            }
            Says::Change { figure, .. } if compared_metric(figure).is_none() => {
                "only the rate, p50 and p99 have an interval of their change"
            }
            _ => return Ok(()),
        };
        Err((message.to_owned(), None))
    }

    fn is_about(&self, arm: &str) -> bool {
        self.arm.as_ref().is_none_or(|name| name == arm)
    }

    /// Judges the condition under one load, for each arm.
    fn judge_loads(&self, study: &Study, findings: &Findings) -> Judged {
        if let (Some(overall), Says::Word(word @ ("worse" | "inconclusive"))) =
            (&findings.overall, &self.says)
        {
            let result = judge_overall(word, overall, &weir_sentences::answer(study, findings));
            return Judged::combine(&self.text, result.into_iter().collect());
        }
        let mut results: Vec<_> =
            findings.loads.iter().flat_map(|load| self.judge_load(study, load)).collect();
        let mut arms = findings.loads.iter().flat_map(|load| &load.arms);
        if !arms.any(|arm| self.is_about(&arm.arm)) {
            results.push((Held::Unknown, "nothing of it was measured".to_owned()));
        }
        Judged::combine(&self.text, results)
    }

    fn judge_load(&self, study: &Study, load: &LoadFindings) -> Vec<(Held, String)> {
        let name = &load.load;
        let validity = if load.is_usable() { load.validity } else { Validity::Invalid };
        let reason = load.reasons.first().map_or(String::new(), |counted| {
            format!(" ({}: {})", counted.reason.rule(), describe(&counted.reason))
        });
        let why = format!("load {name} is {}{reason}", words::validity(validity));
        match self.says {
            Says::Word(word @ ("invalid" | "suspect")) => {
                let least = if word == "invalid" { Validity::Invalid } else { Validity::Suspect };
                if validity >= least { vec![(Held::True, why)] } else { Vec::new() }
            }
            _ if validity == Validity::Invalid => vec![(Held::Unknown, why)],
            Says::Word(word) => {
                let metric = study.objective.metric;
                let compared = load
                    .arms
                    .iter()
                    .filter(|arm| arm.role == ArmRole::Change && self.is_about(&arm.arm))
                    .filter_map(|arm| load.comparison(&arm.arm, metric));
                compared
                    .filter_map(|comparison| judge_comparison(study, word, comparison, name))
                    .collect()
            }
            Says::Change { figure, above, by } => load
                .comparisons
                .iter()
                .filter(|found| Some(found.metric) == compared_metric(figure))
                .filter(|found| self.is_about(&found.arm) && is_change(load, &found.arm))
                .filter_map(|found| judge_change((figure, above, by), found, name))
                .collect(),
            Says::Figure { figure, above, bound, .. } => load
                .arms
                .iter()
                .filter(|arm| self.is_about(&arm.arm))
                .filter_map(|arm| judge_arm((figure, above, bound), arm, name))
                .collect(),
        }
    }
}

/// Judges `worse` or `inconclusive` by a comparison; `None` if the comparison has another verdict.
fn judge_comparison(
    study: &Study,
    word: &str,
    found: &Comparison,
    load: &str,
) -> Option<(Held, String)> {
    let Comparison { arm, against, .. } = found;
    let held = match found.verdict {
        Verdict::Invalid => Held::Unknown,
        verdict if verdict.word() == word => Held::True,
        _ => return None,
    };
    let ratio = match held {
        Held::True => format!(
            ", ratio {:.3} ({:.3} to {:.3})",
            found.ratio, found.interval.0, found.interval.1
        ),
        _ => String::new(),
    };
    let verdict = found.verdict.word();
    let metric = weir_sentences::metric_words(found.metric);
    let because = explain_verdict(found, &study.objective);
    Some((
        held,
        format!(
            "{arm} against {against} is {verdict} in {metric} under load {load}{ratio}: {because}"
        ),
    ))
}

/// Judges `worse` or `inconclusive` by the verdict on all figures; `None` if it is another.
fn judge_overall(word: &str, overall: &OverallFindings, answer: &str) -> Option<(Held, String)> {
    let sentence = answer.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
    match overall.verdict {
        Verdict::Invalid => Some((Held::Unknown, sentence)),
        verdict if verdict.word() == word => Some((Held::True, sentence)),
        _ => None,
    }
}

/// Returns the metric whose ratio says how much a figure has changed.
fn compared_metric(figure: Figure) -> Option<Metric> {
    match figure {
        Figure::Rate => Some(Metric::Rate),
        Figure::Quantile(0.5) => Some(Metric::ResponseP50),
        Figure::Quantile(0.99) => Some(Metric::ResponseP99),
        _ => None,
    }
}

fn is_change(load: &LoadFindings, arm: &str) -> bool {
    load.arms.iter().any(|found| found.arm == arm && found.role == ArmRole::Change)
}

/// Judges a bound of a change by the interval of its ratio: it is true if the whole interval is beyond the bound. Where
/// the bound is within the interval, the reason says what cannot be excluded; `None` if the interval is on its good
/// side.
fn judge_change(
    (figure, above, by): (Figure, bool, f64),
    found: &Comparison,
    load: &str,
) -> Option<(Held, String)> {
    let (low, high) = found.interval;
    let name = figure.name();
    let changes = format!(
        "{name} of {} is {} to {} of that of {} under load {load}",
        found.arm,
        number::change(low),
        number::change(high),
        found.against
    );
    if found.verdict == Verdict::Invalid {
        let why = format!("{name} of {} has no valid figures under load {load}", found.arm);
        return Some((Held::Unknown, why));
    }
    let (surely, perhaps) =
        if above { (low > 1.0 + by, high > 1.0 + by) } else { (high < 1.0 + by, low < 1.0 + by) };
    match (surely, perhaps) {
        (true, _) => Some((Held::True, changes)),
        (false, true) => Some((Held::False, format!("not shown, and not excluded: {changes}"))),
        (false, false) => None,
    }
}

/// Judges a bound by an arm's figures; `None` if the figure is within the bound.
fn judge_arm(
    (figure, above, bound): (Figure, bool, f64),
    arm: &ArmFindings,
    load: &str,
) -> Option<(Held, String)> {
    let value = match figure {
        Figure::Quantile(quantile) => {
            let index = QUANTILES.iter().position(|reported| *reported == quantile)?;
            match arm.response_ns[index] {
                NEVER_NS => f64::INFINITY,
                ns => ns as f64,
            }
        }
        Figure::Errors => arm.unanswered,
        Figure::Rate => arm.rate_completed,
        Figure::Mean => return None,
    };
    let subject = format!("{} under load {load}", arm.arm);
    if arm.samples == 0 && matches!(figure, Figure::Quantile(_)) {
        return Some((Held::Unknown, format!("{subject} was asked nothing")));
    }
    let excess = beyond(figure, above, bound, value)?;
    Some((Held::True, format!("{subject}: {excess}")))
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;

    use super::*;

    #[test]
    fn a_condition_that_findings_cannot_have_is_refused() {
        let arms = vec![
            fixture::arm("stock", ArmRole::Baseline, &[]),
            fixture::arm("with cache", ArmRole::Change, &[]),
        ];
        let study = fixture::study(arms);
        for (text, said) in [
            ("wors", "`wors` is none of worse, inconclusive, invalid, suspect"),
            ("cache worse", "the study has no arm `cache`; did you mean `with cache`?"),
            ("p95 > 3ms", "p50, p90, p99 and p99.9"),
            ("mean > 3ms", "no mean"),
            ("p99 > 3ms in 10s", "no windows"),
            ("p90 > +3%", "only the rate, p50 and p99"),
        ] {
            let refused = Conditions::read(&[text.to_owned()], &study).expect_err(text);
            let refused = format!("{}; {}", refused.what, refused.hint.unwrap_or_default());
            assert!(refused.contains(said), "{refused}");
        }
        for text in
            ["worse", "with cache worse", "with cache p99 > 3ms", "errors > 0", "rate < -2.5%"]
        {
            assert!(Conditions::read(&[text.to_owned()], &study).is_ok(), "{text}");
        }
    }
}
