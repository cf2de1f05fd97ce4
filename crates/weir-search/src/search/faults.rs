//! What a search does about a target that breaks for good or changes, and about a generator that is too weak.

use super::{CHANGES, Doubt, LESS, REST_S, Search, State};
use crate::goal::{Seen, Why};
use crate::long::{self, Bracket};

/// By how many times what a claim takes at least a search is prolonged that starts over.
const ANEW: f64 = 1.5;
/// The second look comes after as many rests as the first at least, however short a memory is asked for.
const LAST_LOOK: f64 = 4.0;
/// One that answers this share of what is due has not broken.
const ANSWERS: f64 = 0.8;

impl Search {
    /// It is asked at once, and again when the slowest memory is over: one that has come back only then lasts at less
    /// than short trials show. One that answers what is due, but late, is slower now, and not broken.
    pub(super) fn after_doubt(&mut self, doubt: Doubt, windows: &[Seen]) {
        let is_swamped = long::is_swamped(windows, &self.goal.bounds);
        let errors = self.goal.bounds.iter().map(|bound| bound.limit_s <= 0.0);
        let fails = |seen: &Seen| {
            let mut shares = errors.clone().zip(&seen.bad);
            shares.any(|(is_error, bad)| is_error && *bad > 1.0 - ANSWERS)
        };
        let answers = |seen: &Seen| seen.completed > ANSWERS * seen.due && !fails(seen);
        let last_s = self.goal.verify_s.max(LAST_LOOK * REST_S);
        let has_rested = doubt.rest_s >= last_s;
        match (is_swamped, has_rested) {
            (true, true) if windows.iter().any(answers) => {
                self.start_over(doubt.rate, false);
                self.changed(true);
            }
            (true, true) => self.broken(doubt.above),
            (true, false) => {
                self.doubt = Some(Doubt {
                    rest_s: last_s,
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
            State::Above(above) => {
                let above = *above;
                self.try_above(above);
            }
            State::Lasting(long) => long.rate = long.rate.min(self.ceiling),
            _ => {}
        }
    }

    /// A whole ladder has broken where ladders before had found the edge, or what is above it holds: it is looked for anew,
    /// and has the time that a claim takes.
    pub(super) fn start_over(&mut self, rate: f64, holds: bool) {
        self.before = self
            .known
            .first
            .map(|first| first.interval.0)
            .or(self.before);
        self.known.leave_out_all();
        (self.held, self.verified) = (None, None);
        self.state = State::Ramp(Bracket::default().with(rate, holds));
        // The time for long trials is less by that.
        let wanted = self.spent_s + ANEW * self.claim_s() - self.until_s;
        let more = wanted.min(self.goal.long_s - self.long_s).max(0.0);
        self.until_s += more;
        self.goal.long_s -= more;
    }

    pub(super) fn changed(&mut self, is_less: bool) {
        self.changes.0 += 1;
        self.changes.1 += usize::from(is_less);
        self.held = None;
        if self.changes.0 < CHANGES {
            return;
        }
        // A target that the trials use up, and that recovers between them, changes too: a long one says what lasts.
        let is_used_up = self.changes.1 > 1 && self.failures == 0;
        let low = self.known.first.map(|first| first.interval.0);
        match low.or(self.before).filter(|_| is_used_up) {
            Some(low) => self.state = State::Hold(low.min(self.ceiling)),
            None => self.end(self.nothing(Why::Unsteady)),
        }
    }
}
