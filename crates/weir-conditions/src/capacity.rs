//! Conditions on the capacity of arms: `capacity < 5000/s`.

use weir_analysis::capacity::Capacity;
use weir_analysis::findings::Findings;
use weir_model::quantity::parse_rate;
use weir_model::record::CapacityEnd;
use weir_report::number;

use crate::{ConditionError, Judged};

/// A condition on capacity, such as `capacity < 5000/s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The condition as it was typed.
    text: String,
    of: End,
    /// Bound, requests per second.
    below: f64,
}

/// End of the capacity's interval that must be below the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Low,
    High,
}

pub fn read(texts: &[String]) -> Result<Vec<Condition>, ConditionError> {
    texts.iter().map(|text| parse_condition(text)).collect()
}

fn parse_condition(text: &str) -> Result<Condition, ConditionError> {
    let Some((subject, bound)) = text.split_once('<') else {
        return Err(wrong(text, "a condition says below which rate a capacity is too low"));
    };
    let end = match subject.trim() {
        "capacity" | "capacity.high" => End::High,
        "capacity.low" => End::Low,
        _ => {
            return Err(wrong(
                text,
                "only `capacity`, `capacity.low` and `capacity.high` can be judged",
            ));
        }
    };
    let below = parse_rate(bound.trim())
        .map_err(|_| wrong(text, "the bound is not a rate such as 5000/s or 5k/s"))?;
    Ok(Condition { text: text.trim().to_owned(), of: end, below })
}

fn wrong(text: &str, what: &str) -> ConditionError {
    let hint =
        "write --fail-if 'capacity < 5000/s', or --fail-if 'capacity.low < 5000/s' to be strict";
    ConditionError { text: text.to_owned(), what: what.to_owned(), hint: Some(hint.to_owned()) }
}

/// Judges each condition against all arms.
pub fn judge(conditions: &[Condition], findings: &Findings) -> Vec<Judged> {
    let arms = findings.capacity.as_ref().map_or(&[][..], |capacity| &capacity.arms);
    let judged = conditions.iter().map(|condition| {
        let verdicts: Vec<_> = arms.iter().map(|arm| (arm, condition.holds(arm))).collect();
        let is_true = describe_arms(&verdicts, |verdict| matches!(verdict, Verdict::True));
        let unknown = describe_arms(&verdicts, |verdict| matches!(verdict, Verdict::Unknown(_)));
        let (is_true, why) =
            match (&is_true[..], &unknown[..]) {
                ([], []) => {
                    let open = describe_arms(&verdicts, |verdict| matches!(verdict, Verdict::Open));
                    (Some(false), open.into_iter().map(|why| {
                    format!("not shown, and taken for false: {why}; capacity.low is stricter")
                }).collect())
                }
                ([], _) => (None, unknown),
                (..) => (Some(true), is_true),
            };
        Judged { text: condition.text.clone(), is_true, why }
    });
    judged.collect()
}

fn describe_arms(
    verdicts: &[(&Capacity, Verdict)],
    is_wanted: impl Fn(&Verdict) -> bool,
) -> Vec<String> {
    verdicts
        .iter()
        .filter(|(_, verdict)| is_wanted(verdict))
        .map(|(arm, verdict)| verdict.said_of(arm))
        .collect()
}

/// Result of a condition for one arm.
enum Verdict {
    True,
    False,
    /// Only part of the interval is below the bound.
    Open,
    /// No capacity is claimed; the text says so.
    Unknown(&'static str),
}

impl Verdict {
    fn said_of(&self, arm: &Capacity) -> String {
        match self {
            Verdict::Unknown(why) => format!("{}: {why}", arm.answer.arm),
            _ => format!(
                "{} carries {} to {} requests/s",
                arm.answer.arm,
                number::rate(arm.answer.low),
                number::rate(arm.answer.high)
            ),
        }
    }
}

impl Condition {
    fn holds(&self, arm: &Capacity) -> Verdict {
        let (low, high) = match (arm.claimed, arm.end) {
            (true, _) => (arm.answer.low, arm.answer.high),
            // It carries nothing within the objective, which is known for sure.
            (false, Some(CapacityEnd::Never)) => (0.0, 0.0),
            (false, _) => return Verdict::Unknown("no capacity could be claimed"),
        };
        let end = match self.of {
            End::Low => low,
            End::High => high,
        };
        if end >= self.below {
            if low < self.below { Verdict::Open } else { Verdict::False }
        } else if self.of == End::High && arm.answer.ceiling.is_some() {
            Verdict::Unknown("the measurement reached its own limit before the server did")
        } else {
            Verdict::True
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_strictly() {
        for (text, of, below) in [
            ("capacity < 5000/s", End::High, 5000.0),
            ("capacity<5k/s", End::High, 5000.0),
            ("capacity.high < 5000 req/s", End::High, 5000.0),
            (" capacity.low < 12.5 ", End::Low, 12.5),
            ("capacity < 5000 requests/s", End::High, 5000.0),
        ] {
            let read = parse_condition(text).unwrap();
            assert_eq!((read.of, read.below), (of, below), "{text}");
        }
        for (text, what) in [
            ("", "below which rate"),
            ("capacity > 5000/s", "below which rate"),
            ("capacity <= 5000/s", "not a rate"),
            ("capacity < 5000/m", "not a rate"),
            ("capacity < -1/s", "not a rate"),
            ("capacity < ", "not a rate"),
            ("p99 < 30ms", "only `capacity`"),
        ] {
            let refused = parse_condition(text).unwrap_err();
            assert!(refused.what.contains(what), "{text}: {refused}");
            assert!(refused.hint.is_some_and(|hint| hint.starts_with("write --fail-if")), "{text}");
        }
    }
}
