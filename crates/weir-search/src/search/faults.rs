//! What a search does about a target that breaks for good or changes, and about a generator that is too weak.

use super::{CHANGES, Doubt, LESS, Search, State};
use crate::goal::Why;
use crate::long::Bracket;

impl Search {
    /// It is asked at once, and again when the slowest memory is over: one that has come back only then lasts at less
    /// than short trials show.
    pub(super) fn after_doubt(&mut self, doubt: Doubt, is_swamped: bool) {
        let has_rested = doubt.rest_s >= self.goal.verify_s;
        match (is_swamped, has_rested) {
            (true, true) => self.broken(doubt.above),
            (true, false) => {
                self.doubt = Some(Doubt {
                    rest_s: self.goal.verify_s,
                    ..doubt
                });
            }
            (false, true) if !matches!(self.state, State::Lasting(_)) => {
                self.state = State::Hold(doubt.above);
            }
            (false, _) => {}
        }
    }

    /// The generator is what did not carry this. It may have been held up once.
    pub(super) fn not_sent(&mut self, rate: f64, sent: f64) {
        if self.unsent.replace(rate).is_none_or(|before| rate > before) {
            return;
        }
        self.ceiling = rate * sent.min(LESS);
        self.unsent = None;
        if self.ceiling < self.lowest() {
            return self.end(self.nothing(Why::NotSent(rate)));
        }
        match &mut self.state {
            State::Ladder => {
                self.left.retain(|left| *left < rate);
                if self.left.is_empty() {
                    self.state = State::Hold(self.ceiling);
                }
            }
            State::Hold(hold) => *hold = hold.min(self.ceiling),
            State::Lasting(long) => long.rate = long.rate.min(self.ceiling),
            _ => {}
        }
    }

    /// A whole ladder has broken where ladders before had found the edge: it is looked for anew.
    pub(super) fn lost(&mut self, rate: f64) {
        self.known.leave_out_all();
        self.held = None;
        self.state = State::Ramp(Bracket::default().with(rate, false));
        self.changed(true);
    }

    pub(super) fn changed(&mut self, is_less: bool) {
        self.changes.0 += 1;
        self.changes.1 += usize::from(is_less);
        self.held = None;
        if self.changes.0 >= CHANGES {
            self.end(self.nothing(Why::Unsteady));
        }
    }
}
