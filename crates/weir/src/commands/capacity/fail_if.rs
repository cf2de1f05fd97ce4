//! `--fail-if`: conditions on the answer that decide the exit code.

use weir_analysis::capacity::Capacity;
use weir_analysis::findings::Findings;
use weir_model::quantity::parse_rate;
use weir_model::record::CapacityEnd;

use crate::failure::Failure;
use crate::terminal;

/// `capacity < 5000/s`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    /// As it was typed.
    pub(super) text: String,
    of: End,
    /// Requests per second.
    below: f64,
}

/// Which end of an interval must be below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Low,
    High,
}

/// A condition, held against the answer.
pub(super) struct Judged {
    pub(super) condition: Condition,
    /// Whether it is true of some arm; `None`: of none for sure, and of some it is not known.
    pub(super) is_true: Option<bool>,
    /// What was found of each arm that decided, in half a sentence.
    why: Vec<String>,
}

/// Reads all conditions.
pub(super) fn read(texts: &[String]) -> Result<Vec<Condition>, Failure> {
    texts.iter().map(|text| one(text)).collect()
}

fn one(text: &str) -> Result<Condition, Failure> {
    let wrong = |what: &str| {
        Failure::input(format!("--fail-if `{text}`: {what}")).hint(
            "write --fail-if 'capacity < 5000/s', or --fail-if 'capacity.low < 5000/s' to be strict",
        )
    };
    let Some((subject, bound)) = text.split_once('<') else {
        return Err(wrong(
            "a condition says below which rate a capacity is too low",
        ));
    };
    let of = match subject.trim() {
        "capacity" | "capacity.high" => End::High,
        "capacity.low" => End::Low,
        _ => {
            return Err(wrong(
                "only `capacity`, `capacity.low` and `capacity.high` can be judged",
            ));
        }
    };
    let bound = bound.trim();
    let units = ["requests/s", "req/s", "rps", "/s"];
    let number = units.iter().find_map(|unit| bound.strip_suffix(unit));
    let below = parse_rate(number.unwrap_or(bound).trim());
    let below = below.map_err(|_| wrong("the bound is not a rate such as 5000/s or 5k/s"))?;
    Ok(Condition {
        text: text.trim().to_owned(),
        of,
        below,
    })
}

/// Holds each condition against all arms.
pub(super) fn judge(conditions: &[Condition], findings: &Findings) -> Vec<Judged> {
    let arms = findings.capacity.as_ref();
    let arms = arms.map_or(&[][..], |found| &found.arms);
    let judged = conditions.iter().map(|condition| {
        let each: Vec<_> = arms.iter().map(|arm| (arm, condition.holds(arm))).collect();
        let of = |wanted: &dyn Fn(&Verdict) -> bool| -> Vec<String> {
            let decided = each.iter().filter(|(_, verdict)| wanted(verdict));
            decided.map(|(arm, verdict)| verdict.said_of(arm)).collect()
        };
        let is_true = of(&|verdict| matches!(verdict, Verdict::True));
        let unknown = of(&|verdict| matches!(verdict, Verdict::Unknown(_)));
        let (is_true, why) = match (&is_true[..], &unknown[..]) {
            ([], []) => (Some(false), of(&|verdict| matches!(verdict, Verdict::Open))),
            ([], _) => (None, unknown),
            (..) => (Some(true), is_true),
        };
        Judged {
            condition: condition.clone(),
            is_true,
            why,
        }
    });
    judged.collect()
}

/// What a condition comes to for an arm.
enum Verdict {
    True,
    False,
    /// Part of the interval is below the bound.
    Open,
    /// Nothing is claimed that it could be held against.
    Unknown(&'static str),
}

impl Verdict {
    fn said_of(&self, arm: &Capacity) -> String {
        match self {
            Verdict::Unknown(why) => format!("{}: {why}", arm.arm),
            _ => format!(
                "{} carries {:.0} to {:.0} requests/s",
                arm.arm, arm.low, arm.high
            ),
        }
    }
}

impl Condition {
    fn holds(&self, arm: &Capacity) -> Verdict {
        let (low, high) = match (arm.claimed, arm.end) {
            (true, _) => (arm.low, arm.high),
            // It carries nothing within the objective, which is known for sure.
            (false, Some(CapacityEnd::Never)) => (0.0, 0.0),
            (false, _) => return Verdict::Unknown("no capacity could be claimed"),
        };
        let end = match self.of {
            End::Low => low,
            End::High => high,
        };
        match end < self.below {
            true if self.of == End::High && arm.ceiling.is_some() => {
                Verdict::Unknown("the measurement reached its own limit before the server did")
            }
            true => Verdict::True,
            false if low < self.below => Verdict::Open,
            false => Verdict::False,
        }
    }
}

/// Fails where a condition is true, or cannot be judged, with a line on standard error about every condition that is not plainly false.
pub(super) fn conclude(judged: &[Judged]) -> Result<(), Failure> {
    for open in judged.iter().filter(|one| one.is_true == Some(false)) {
        if let Some(why) = open.why.first() {
            terminal::tell(&format!(
                "--fail-if {}: not shown, so it counts as false: {why}; capacity.low is stricter\n",
                open.condition.text
            ));
        }
    }
    let said = |one: &Judged| format!("--fail-if {}: {}", one.condition.text, one.why.join("; "));
    if let Some(one) = judged.iter().find(|one| one.is_true == Some(true)) {
        return Err(Failure::condition(said(one)));
    }
    match judged.iter().find(|one| one.is_true.is_none()) {
        Some(one) => Err(Failure::failed(format!(
            "{}, so it cannot be judged",
            said(one)
        ))),
        None => Ok(()),
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
            let read = one(text).unwrap();
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
            let refused = one(text).unwrap_err().rendered(false);
            assert!(refused.contains(what), "{text}: {refused}");
            assert!(refused.contains("hint: write --fail-if"), "{refused}");
        }
    }
}
