//! Options that change how a capacity is searched for.

use std::ops::Range;
use std::time::Duration;

use weir_model::quantity::parse_duration;
use weir_model::study::Study;

use crate::args::CapacityArgs;
use crate::commands::flag;
use crate::failure::Failure;

/// Longest time that an option may give.
const LONGEST: Duration = Duration::from_secs(3600);

/// Changes to a study; `None` keeps the study's setting.
pub(super) struct Tuning {
    confidence: Option<f64>,
    precision: Option<f64>,
    hold: Option<Duration>,
    burst: Option<Duration>,
    budget: Option<Duration>,
    seed: Option<u64>,
}

impl Tuning {
    /// Reads the options.
    pub(super) fn read(args: &CapacityArgs) -> Result<Tuning, Failure> {
        Ok(Tuning {
            confidence: share("--confidence", args.confidence.as_deref(), 0.5..1.0)?,
            precision: share("--precision", args.precision.as_deref(), 0.01..0.5)?,
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
        search.precision = self.precision.unwrap_or(search.precision);
        search.hold = self.hold.unwrap_or(search.hold);
        search.burst = self.burst.or(search.burst);
        study.budget = self.budget.or(study.budget);
        blocks.seed = self.seed.unwrap_or(blocks.seed);
    }
}

/// Reads a share, as a percentage or a fraction, that must lie within `bounds`.
fn share(name: &str, text: Option<&str>, bounds: Range<f64>) -> Result<Option<f64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.trim().parse(),
    };
    match share {
        Ok(share) if bounds.contains(&share) => Ok(Some(share)),
        _ => {
            let (least, most) = (bounds.start * 100.0, bounds.end * 100.0);
            let message =
                format!("{name}: `{text}` is not a share from {least}% to less than {most}%");
            Err(Failure::input(message))
        }
    }
}

/// Reads a time of at least `least` seconds and at most [`LONGEST`].
fn time(name: &str, text: Option<&str>, least: u64) -> Result<Option<Duration>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let time = flag(name, parse_duration(text))?;
    if (Duration::from_secs(least)..=LONGEST).contains(&time) {
        Ok(Some(time))
    } else {
        Err(Failure::input(format!("{name} {text}: give a time from {least}s to 1h")))
    }
}
