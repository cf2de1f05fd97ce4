//! How long the trials of a search are.

use super::{COUNTED, FORGETS_S, NARROW, REST_S, Search, WANDERS_S};
use crate::edge::WANDERS;
use crate::goal::{Stage, Trial};
use crate::long;

impl Search {
    /// A trial that is as long as the margin is narrow: the queue of M/M/1 forgets within 4 / margin² requests.
    pub(super) fn trial(&self, stage: Stage, rate: f64) -> Trial {
        let saturated = self.known.saturated();
        let forgets = match stage {
            Stage::Ladder => {
                let margin = (saturated / rate).ln().max(NARROW);
                4.0 / (margin * margin) / saturated
            }
            _ => 0.0,
        };
        let bounds = &self.goal.bounds;
        let limit_s = bounds.iter().map(|bound| bound.limit_s).fold(0.0, f64::max);
        let allowed = bounds.iter().map(|bound| bound.allowed).fold(1.0, f64::min);
        let most = match self.goal.closed.wander > WANDERS {
            true => WANDERS_S,
            false => FORGETS_S.1,
        };
        let forgets = forgets.max(2.0 * limit_s).clamp(FORGETS_S.0, most);
        let counted = (COUNTED.0 / (allowed * rate)).min(COUNTED.1);
        Trial {
            stage,
            rate,
            rest_s: 0.0,
            settle_s: forgets,
            measure_s: (4.0 * forgets).max(counted).max(1.0),
            windows: 1,
            is_fresh: false,
        }
    }

    pub(super) fn long_trial(&self, rate: f64) -> Trial {
        Trial {
            stage: Stage::Hold,
            rate,
            rest_s: 0.0,
            settle_s: FORGETS_S.1,
            measure_s: self.goal.verify_s * long::MOST as f64 / long::HOLDS as f64,
            windows: long::MOST,
            is_fresh: true,
        }
    }

    pub(super) fn burst_trial(&self, rate: f64) -> Trial {
        Trial {
            stage: Stage::Burst,
            rate,
            rest_s: self.burst_rest_s(),
            settle_s: 0.0,
            measure_s: self.goal.burst_s.unwrap_or(1.0),
            windows: 1,
            is_fresh: true,
        }
    }

    /// A target that has shown a memory is given its time to forget.
    pub(super) fn burst_rest_s(&self) -> f64 {
        match self
            .answer
            .as_ref()
            .is_some_and(|answer| answer.fresh.is_some())
        {
            true => self.goal.verify_s,
            false => 2.0 * REST_S,
        }
    }
}
