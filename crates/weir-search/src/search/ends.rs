//! How a search ends: its answers, and the burst after them.

use super::{NEAR, Search, State};
use crate::burst::Bursts;
use crate::goal::{Answer, Burst, Why};
use crate::known::{First, half_width};
use crate::long::Long;

impl Search {
    pub(super) fn look_long(&mut self, long: Long) {
        self.state = State::Lasting(long);
        if !long.is_over(self.lowest()) && self.long_s < self.goal.long_s + self.goal.verify_s {
            return;
        }
        let why = match long.is_known() {
            true => Why::Found,
            false => Why::Budget,
        };
        match (long.bracket.held, long.bracket.broke) {
            (Some(held), Some(broke)) => self.finish((held, broke), held, why),
            _ => self.end(Answer {
                fresh: self.fresh,
                ..self.nothing(Why::Never)
            }),
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

    pub(super) fn found(&mut self, first: &First, held: f64) {
        let interval = self.interval(with(first, held));
        let why = match half_width(interval) <= self.goal.half_width {
            true => Why::Found,
            false => Why::Budget,
        };
        self.finish(interval, held, why);
    }

    /// Answers with an interval, and goes on to the burst where that is asked for.
    pub(super) fn finish(&mut self, interval: (f64, f64), verified: f64, why: Why) {
        // What a slight failure was made good for is no memory.
        let lasts = matches!(self.state, State::Lasting(_));
        let answer = Answer {
            interval,
            verified,
            fresh: self.fresh.filter(|_| lasts),
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
