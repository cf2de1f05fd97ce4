//! Lengths of the trials of a search.

use super::{Search, Step};
use crate::burst::Bursts;
use crate::goal::{Stage, Trial};

/// Seconds of a dwell in the ramp, of the first ones after it, and of later ones: a rate that is 1 % too high needs
/// some ten seconds to show it.
const RAMP_S: f64 = 4.0;
const FIRST_DWELL_S: f64 = 8.0;
pub(super) const DWELL_S: f64 = 12.0;
const FIRST_DWELLS: usize = 4;
/// Maximum seconds of a dwell, if a low rate needs longer for its quantile.
pub(super) const LONGEST_DWELL_S: f64 = 15.0;
/// Minimum number of responses that may be bad in a dwell: fewer determine a quantile badly.
const COUNTED: f64 = 4.0;
/// Length of a dwell's windows, seconds.
const WINDOW_S: f64 = 0.5;
/// Minimum and maximum number of windows of a hold; about a second each.
const HOLD_WINDOWS: (f64, f64) = (10.0, 130.0);
/// Minimum and maximum seconds in which queues settle.
const SETTLE_S: (f64, f64) = (0.3, 1.0);
/// Seconds in which a target may recover from a previous trial that broke, without build-up.
const RECOVERS_S: f64 = 10.0;
/// Duration of a check of a target that stopped answering, seconds.
const LOOK_S: f64 = 3.0;
/// Rest before a burst, seconds.
const BURST_REST_S: f64 = 10.0;

impl Search {
    fn settle_s(&self) -> f64 {
        (2.0 * self.goal.longest_limit_s()).clamp(SETTLE_S.0, SETTLE_S.1)
    }

    fn has_just_broken(&self) -> bool {
        self.tried.last().is_some_and(|tried| !tried.held())
    }

    /// Creates a short trial at this rate.
    pub(super) fn dwell(&self, stage: Stage, rate: f64) -> Trial {
        let count = self.dwells().filter(|dwell| dwell.stage == Stage::Dwell);
        let usual_s = match stage {
            Stage::Ramp => RAMP_S,
            _ if count.count() < FIRST_DWELLS => FIRST_DWELL_S,
            _ => DWELL_S,
        };
        let allowed = self.goal.least_allowed();
        let telling_s = (COUNTED / (allowed * rate)).min(LONGEST_DWELL_S);
        let measure_s = usual_s.min(self.goal.hold_s / 2.0).max(telling_s).max(1.0);
        let needed = (measure_s / WINDOW_S).ceil();
        Trial {
            stage,
            rate,
            rest_s: 0.0,
            settle_s: self.settle_s(),
            window_s: WINDOW_S,
            needed: needed as usize,
            windows: (1.5 * needed) as usize,
            lead: 0,
            is_fresh: self.has_just_broken(),
        }
    }

    /// Creates a long trial at this rate.
    pub(super) fn hold(&self, rate: f64) -> Trial {
        let needed = self.goal.hold_s.round().clamp(HOLD_WINDOWS.0, HOLD_WINDOWS.1);
        let window_s = self.goal.hold_s / needed;
        let recovers_s = if self.goal.renews || !self.has_just_broken() {
            0.0
        } else if self.has_surprised || self.holds().any(|hold| !hold.held()) {
            self.goal.hold_s
        } else {
            RECOVERS_S.min(self.goal.hold_s / 2.0)
        };
        let lead = (recovers_s / window_s) as usize;
        Trial {
            stage: Stage::Hold,
            rate,
            rest_s: 0.0,
            settle_s: self.settle_s(),
            window_s,
            needed: needed as usize,
            windows: (1.5 * needed) as usize + lead,
            lead,
            is_fresh: true,
        }
    }

    pub(super) fn look(&self, rate: f64, rest_s: f64) -> Trial {
        let windows = (LOOK_S / WINDOW_S) as usize;
        Trial {
            stage: Stage::Look,
            rate,
            rest_s,
            settle_s: 0.0,
            window_s: WINDOW_S,
            needed: windows,
            windows,
            lead: 0,
            is_fresh: false,
        }
    }

    pub(super) fn burst(&self, rate: f64) -> Trial {
        Trial {
            stage: Stage::Burst,
            rate,
            rest_s: self.burst_rest_s(),
            settle_s: 0.0,
            window_s: self.goal.burst_s.unwrap_or(1.0),
            needed: 1,
            windows: 1,
            lead: 0,
            is_fresh: true,
        }
    }

    /// Returns the rest before a burst, seconds; the length of a hold if there is build-up, so that the target can
    /// recover.
    fn burst_rest_s(&self) -> f64 {
        let builds_up = self.answer.as_ref().is_some_and(|answer| answer.fresh.is_some());
        if builds_up { self.goal.hold_s } else { BURST_REST_S }
    }

    /// Returns the approximate remaining seconds of trials.
    pub(super) fn remaining_s(&self) -> f64 {
        let Ok(next) = self.propose() else { return 0.0 };
        let burst_s = match (self.goal.burst_s, &self.step) {
            (None, _) => 0.0,
            (Some(seconds), Step::Burst(bursts)) => {
                return bursts.left() * (seconds + self.burst_rest_s());
            }
            (Some(seconds), _) => Bursts::new(1.0).left() * (seconds + self.burst_rest_s()),
        };
        self.left_s().max(next.seconds()) + burst_s
    }
}
