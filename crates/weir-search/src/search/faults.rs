//! Targets that stop answering, and generators that are too weak.

use super::{Search, Step, Tried};
use crate::goal::{Ending, Window};

/// Rate at which a target that stopped answering is tried again, as a share of the highest rate that it has held.
pub(super) const GENTLY: f64 = 0.25;
/// Rest before the first such check, and minimum rest before the second, seconds.
const REST_S: f64 = 5.0;
const LAST_REST_S: f64 = 20.0;
/// Share of due requests above which a target has recovered.
const ANSWERS: f64 = 0.5;
/// Factor for a rate that was not sent in time, to become the ceiling.
const LESS: f64 = 0.95;

impl Search {
    /// Plans a check if the target stopped answering at a rate below one that held, or at its lowest rates, and returns
    /// true in this case. A target that is restarted is checked only if a restart did not help.
    pub(super) fn is_silent(&mut self) -> bool {
        let mut latest = self.tried.iter().rev();
        let Some(last) = latest.next() else {
            return false;
        };
        let is_dead =
            last.is_dead() && (!self.goal.renews || latest.next().is_some_and(Tried::is_dead));
        let held = self.highest_held();
        let is_low = match held {
            Some(held) => last.rate < held,
            None => self.ramp_rate().is_some_and(|rate| rate < self.lowest()),
        };
        if !(is_dead && is_low) {
            return false;
        }
        let rate = last.rate.min(GENTLY * held.unwrap_or(last.rate));
        self.step = Step::Look { rate, rest_s: REST_S };
        true
    }

    /// Evaluates a check: the target has recovered, gets one more and longer rest, or has failed for good.
    pub(super) fn after_look(&mut self, rest_s: f64, windows: &[Window], holds: bool) {
        let last_rest_s = self.goal.hold_s.max(LAST_REST_S);
        if holds || windows.iter().all(|window| window.completed > ANSWERS * window.due) {
            // One that is started anew had nothing left of what it had used up: it stood still.
            self.builds_up |= rest_s >= last_rest_s && !self.goal.renews;
            self.plan();
        } else if rest_s < last_rest_s {
            let rate = match self.step {
                Step::Look { rate, .. } => rate,
                _ => self.lowest(),
            };
            self.step = Step::Look { rate, rest_s: last_rest_s };
        } else {
            let above = self.highest_held().unwrap_or(self.goal.closed_rate);
            self.stop_with(Ending::Broken(above));
        }
    }

    /// Records that the generator sent only this share of a rate in time. It may have been held up once; the second
    /// time the rate becomes the ceiling.
    pub(super) fn not_sent(&mut self, rate: f64, share: f64) {
        if self.unsent.replace(rate).is_none_or(|before| rate > before) {
            return;
        }
        self.ceiling = rate * share.min(LESS);
        self.unsent = None;
        if self.ceiling < self.lowest() {
            self.stop_with(Ending::NotSent(rate));
        }
    }
}
