//! Conditions on runs of one study over time: `worse`, `better`, `drift`, `inconclusive`.

use weir_history::{HistoryFindings, Series};
use weir_sentences::history::{describe_change, describe_drift, describe_history};

use crate::{Condition, ConditionError, Held, Judged, Says, Vocabulary};

const VOCABULARY: Vocabulary = Vocabulary {
    words: &["worse", "better", "drift", "inconclusive"],
    example: "worse' or 'drift",
};

/// Conditions on the newest runs of a history.
#[derive(Debug, Clone)]
pub struct Conditions {
    conditions: Vec<Condition>,
    /// Number of newest runs with one of which a change must have been found.
    last: usize,
}

impl Conditions {
    /// Reads the conditions.
    ///
    /// # Errors
    /// A condition is no such word.
    pub fn read(texts: &[String], last: usize) -> Result<Conditions, ConditionError> {
        let conditions = VOCABULARY.read(texts)?;
        let unfit = conditions
            .iter()
            .find(|condition| condition.arm.is_some() || !matches!(condition.says, Says::Word(_)));
        match unfit {
            Some(condition) => Err(ConditionError {
                text: condition.text.clone(),
                what: "a history is judged as a whole".to_owned(),
                hint: Some("write --fail-if worse".to_owned()),
            }),
            None => Ok(Conditions { conditions, last }),
        }
    }

    /// Judges all conditions. With too few runs it is not known if something changed.
    pub fn judge(&self, found: &HistoryFindings) -> Vec<Judged> {
        self.conditions.iter().map(|condition| self.judge_one(condition, found)).collect()
    }

    fn judge_one(&self, condition: &Condition, found: &HistoryFindings) -> Judged {
        let Says::Word(word) = condition.says else {
            return Judged::combine(&condition.text, Vec::new());
        };
        let is_judged = found.series.iter().any(|series| series.is_judged);
        if !is_judged {
            let held = if word == "inconclusive" { Held::True } else { Held::Unknown };
            return Judged::combine(&condition.text, vec![(held, clause(describe_history(found)))]);
        }
        let since = found.runs.len().saturating_sub(self.last);
        let changes = found.changes.iter().filter(|change| {
            change.figures.iter().any(|one| {
                let is_wanted = one.change.is_worse == (word == "worse");
                is_wanted && one.change.found >= since
            })
        });
        let reasons: Vec<(Held, String)> = match word {
            "worse" | "better" => {
                changes.map(|change| (Held::True, clause(describe_change(found, change)))).collect()
            }
            "drift" => {
                let worse = found.series.iter().filter(|series| drifts_down(series));
                worse.filter_map(describe_drift).map(|said| (Held::True, said)).collect()
            }
            _ => Vec::new(),
        };
        Judged::combine(&condition.text, reasons)
    }
}

/// Returns true if a figure becomes worse in its newest segment.
fn drifts_down(series: &Series) -> bool {
    series.segments.last().and_then(|segment| segment.drift).is_some_and(|drift| drift.is_worse)
}

fn clause(sentence: String) -> String {
    sentence.trim_end_matches('.').to_owned()
}
