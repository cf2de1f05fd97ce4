//! What the command line says of how a capacity is searched for.

use std::time::Duration;

use weir_model::quantity::parse_duration;
use weir_model::study::Study;

use crate::args::CapacityArgs;
use crate::commands::flag;
use crate::failure::Failure;

/// Longest time that a part of a search can be given.
const LONGEST: Duration = Duration::from_secs(3600);

/// Changes to a study; what was not said stays as it is.
pub(super) struct Tuning {
    confidence: Option<f64>,
    hold: Option<Duration>,
    burst: Option<Duration>,
    budget: Option<Duration>,
    seed: Option<u64>,
}

impl Tuning {
    /// Reads what was typed.
    pub(super) fn read(args: &CapacityArgs) -> Result<Tuning, Failure> {
        Ok(Tuning {
            confidence: confidence(args.confidence.as_deref())?,
            hold: time("--hold", args.hold.as_deref(), 1)?,
            burst: time("--burst", args.burst.as_deref(), 1)?,
            budget: time("--budget", args.budget.as_deref(), 10)?,
            seed: args.seed,
        })
    }

    pub(super) fn apply(&self, study: &mut Study) {
        let (search, blocks) = (&mut study.search, &mut study.blocks);
        let objective = &mut study.objective;
        objective.confidence = self.confidence.unwrap_or(objective.confidence);
        search.hold = self.hold.unwrap_or(search.hold);
        search.burst = self.burst.or(search.burst);
        study.budget = self.budget.or(study.budget);
        blocks.seed = self.seed.unwrap_or(blocks.seed);
    }
}

fn confidence(text: Option<&str>) -> Result<Option<f64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.trim().parse(),
    };
    match share {
        Ok(share) if (0.5..1.0).contains(&share) => Ok(Some(share)),
        _ => {
            let message =
                format!("--confidence: `{text}` is not a share from 50% to less than 100%");
            Err(Failure::input(message).hint("for example --confidence 90%"))
        }
    }
}

/// A time of at least so many seconds.
fn time(name: &str, text: Option<&str>, least: u64) -> Result<Option<Duration>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let time = flag(name, parse_duration(text))?;
    match (Duration::from_secs(least)..=LONGEST).contains(&time) {
        true => Ok(Some(time)),
        false => Err(Failure::input(format!(
            "{name} {text}: give a time from {least}s to 1h"
        ))),
    }
}
