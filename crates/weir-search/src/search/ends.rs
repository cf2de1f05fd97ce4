//! How a search ends: its answers, and the burst after them.

use super::{ALIVE, CLAIM, Doubt, GENTLY, NEAR, REST_S, Search, State};
use crate::burst::Bursts;
use crate::goal::{Answer, Bound, Burst, Seen, Why};
use crate::known::First;
use crate::long::{self, Long};
/// An interval is no answer whose ends are apart by more than this factor.
const WIDEST: f64 = 10.0;

impl Search {
    pub(super) fn broke_s(&self, windows: &[Seen]) -> Option<f64> {
        let window_s = self.goal.verify_s / long::HOLDS as f64;
        long::broke_after(windows, &self.goal.bounds, window_s)
    }

    /// Whether a long trial has held, and not only because it was a lucky one of several.
    pub(super) fn holds(&self, windows: &[Seen]) -> bool {
        let is_lucky = self.is_slight && self.known.is_lucky(&self.goal);
        !is_lucky && long::holds(windows, &self.goal.bounds)
    }

    pub(super) fn after_long(&mut self, mut long: Long, windows: &[Seen]) {
        let holds = self.holds(windows);
        let is_dead = windows.iter().all(|seen| seen.completed < ALIVE * seen.due);
        if is_dead {
            let above = self.fresh.map_or(long.rate, |fresh| fresh.0);
            self.doubt = Some(Doubt {
                rate: long.rate * GENTLY,
                rest_s: REST_S,
                above,
            });
        }
        let is_slight = !holds && long::is_slight(windows, &self.goal.bounds);
        self.is_slight |= is_slight && !self.has_collapsed;
        self.is_wide &= holds || is_slight;
        long.put(holds, self.broke_s(windows), self.goal.verify_s);
        self.look_long(long);
    }

    pub(super) fn look_long(&mut self, long: Long) {
        if self.is_slight && long.bracket.held.is_some() {
            return self.after_slight(long);
        }
        self.state = State::Lasting(long);
        if !long.is_over(self.lowest()) && self.long_s <= self.goal.long_s {
            return;
        }
        // A minute in which little broke is no bound of what all trials together tell.
        if self.is_wide && long.bracket.held.is_some() {
            return self.after_slight(long);
        }
        let why = match long.is_known() {
            true => Why::Found,
            false => Why::Budget,
        };
        match (long.bracket.held, long.bracket.broke) {
            (Some(held), broke) => self.finish((held, broke.unwrap_or(long.above)), held, why),
            _ if long.rate >= self.lowest() => self.give_up(self.too_long()),
            _ => self.end(Answer {
                fresh: self.fresh,
                ..self.nothing(Why::Never)
            }),
        }
    }

    /// What has broken now and then, and nowhere for good, has no memory: how often is what all trials tell together.
    fn after_slight(&mut self, long: Long) {
        self.verified = long.bracket.held;
        self.known.estimate(&self.goal);
        if let (Some(first), Some(held)) = (self.known.first, self.verified) {
            self.found(&first, held);
        }
    }

    pub(super) fn after_burst(&mut self, mut bursts: Bursts, holds: bool) {
        bursts.put(holds);
        let highest = self.ceiling.min(20.0 * self.goal.closed.rate);
        match bursts.answer(self.lowest(), highest) {
            Some(burst) => self.end_burst(burst),
            None => self.state = State::Burst(bursts),
        }
    }

    pub(super) fn end_burst(&mut self, burst: Burst) {
        self.state = State::Done;
        if let Some(answer) = &mut self.answer {
            answer.burst = Some(burst);
            answer.seconds = (self.spent_s, self.spent_s + self.long_s);
        }
    }

    /// Answers with an interval, and goes on to the burst where that is asked for. One that says next to nothing is no
    /// answer.
    pub(super) fn finish(&mut self, interval: (f64, f64), verified: f64, why: Why) {
        if interval.1 > WIDEST * interval.0 {
            let shares = self.known.floor(&self.goal).0;
            let breaks = |(share, bound): (&f64, &Bound)| *share > bound.allowed;
            let answer = match shares.iter().zip(&self.goal.bounds).any(breaks) {
                true => self.nothing(Why::Never),
                false => self.too_long(),
            };
            return self.end(answer);
        }
        // What a slight failure was made good for is no memory.
        let lasts = matches!(self.state, State::Lasting(_));
        let answer = Answer {
            interval,
            verified,
            fresh: self.fresh.filter(|fresh| lasts && fresh.0 >= interval.1),
            is_ceiling: interval.1 >= self.ceiling * NEAR,
            ..self.nothing(why)
        };
        self.end(answer);
        if self.goal.burst_s.is_some() {
            self.state = State::Burst(Bursts::new(interval.1.min(self.ceiling)));
        }
    }

    pub(super) fn broken(&mut self, above: f64) {
        let interval = self.known.first.map_or((0.0, 0.0), |first| first.interval);
        self.end(Answer {
            interval,
            ..self.nothing(Why::Broken(above))
        });
    }

    /// An interval as far as it can be known: nothing is beyond the ceiling.
    pub(super) fn interval(&self, (low, high): (f64, f64)) -> (f64, f64) {
        (low, high.min(self.ceiling).max(low))
    }

    /// Nothing can be claimed in the time that there was: what a first claim takes is missing, or as many long trials more as
    /// there were.
    pub(super) fn too_long(&self) -> Answer {
        let more_s = match self.known.ladders() < CLAIM {
            true => self.claim_s() + self.goal.verify_s,
            false => self.long_most_s(),
        };
        let suffices_s = self.spent_s + self.long_s + more_s;
        Answer {
            fresh: self.fresh,
            ..self.nothing(Why::TooShort(suffices_s))
        }
    }

    /// An answer that claims nothing.
    pub(super) fn nothing(&self, why: Why) -> Answer {
        let first = self.known.first;
        Answer {
            interval: (0.0, 0.0),
            decides: first.map_or_else(|| self.known.least_held(&self.goal), |first| first.decides),
            verified: 0.0,
            fresh: None,
            burst: None,
            saturated: self.known.saturated(),
            floor: self.known.floor(&self.goal).0,
            least: self.known.least.clone(),
            is_ceiling: false,
            is_open: false,
            left_out: self.known.left_out,
            seconds: (self.spent_s, self.spent_s + self.long_s),
            why,
        }
    }

    pub(super) fn end(&mut self, answer: Answer) {
        self.state = State::Done;
        self.answer = Some(answer);
    }
}

/// The edge's interval and what has held.
pub(super) fn with(first: &First, held: f64) -> (f64, f64) {
    (first.interval.0.min(held), first.interval.1.max(held))
}
