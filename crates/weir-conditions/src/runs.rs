//! Conditions on a run that is held against earlier ones: `worse`, `inconclusive`.

use weir_history::{RunVerdict, RunsFindings};
use weir_sentences::runs::describe_runs;

use crate::{Condition, ConditionError, Held, Judged, Says, Vocabulary};

const VOCABULARY: Vocabulary =
    Vocabulary { words: &["worse", "inconclusive"], example: "worse' or 'inconclusive" };

/// Conditions on the comparison of two runs.
#[derive(Debug, Clone)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// Reads the conditions.
    ///
    /// # Errors
    /// A condition is no such word.
    pub fn read(texts: &[String]) -> Result<Conditions, ConditionError> {
        let read = VOCABULARY.read(texts)?;
        let unfit = read
            .iter()
            .find(|condition| condition.arm.is_some() || !matches!(condition.says, Says::Word(_)));
        match unfit {
            Some(condition) => Err(ConditionError {
                text: condition.text.clone(),
                what: "two runs are judged as a whole".to_owned(),
                hint: Some("write --fail-if worse".to_owned()),
            }),
            None => Ok(Conditions(read)),
        }
    }

    /// Judges all conditions. A run of which nothing can be said is not known to be worse, nor not to be.
    pub fn judge(&self, found: &RunsFindings) -> Vec<Judged> {
        self.0.iter().map(|condition| judge(condition, found)).collect()
    }
}

fn judge(condition: &Condition, found: &RunsFindings) -> Judged {
    let held = match (&condition.says, found.verdict) {
        (Says::Word("worse"), RunVerdict::Worse)
        | (Says::Word("inconclusive"), RunVerdict::Open) => Held::True,
        (Says::Word("worse"), RunVerdict::Open) => Held::Unknown,
        _ => return Judged::combine(&condition.text, Vec::new()),
    };
    let why = describe_runs(found).trim_end_matches('.').to_owned();
    Judged::combine(&condition.text, vec![(held, why)])
}
