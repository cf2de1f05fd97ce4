//! The upper end of an interval is tried as the lower one is: a rate above it must break.
//!
//! All trials are made around the edge as it was thought to be. Of a target that has become faster they all hold, which
//! says little about how much faster it is: the answer would be that of before.

use super::ends::with;
use super::{Search, State};
use crate::goal::{Stage, Trial, Why};
use crate::known::{First, half_width};

/// How far above the interval, and above saturation, it is tried; and for how many seconds, in which a backlog of that
/// much is seen.
const ABOVE: f64 = 1.05;
const ABOVE_S: f64 = 8.0;
/// It holds by chance, but not so many times.
const TIMES: usize = 2;
/// Of a queue whose edge is known every other ladder or so has a trial that breaks.
const CLEAN: usize = 4;

/// A short trial above the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Above {
    /// Requests per second, and what a long trial has held if there was one.
    rate: f64,
    held: Option<f64>,
    /// How many of them are left.
    left: usize,
}

impl Above {
    /// What a long trial has held, requests per second, if there was one.
    pub(super) fn held(&self) -> Option<f64> {
        self.held
    }
}

impl Search {
    /// What is to be answered is known, if a rate above it breaks.
    pub(super) fn found(&mut self, first: &First, held: f64) {
        self.look_above(first, Some(held));
    }

    /// After so many ladders of which all has held it is asked in between too.
    pub(super) fn after_clean(&mut self) {
        if let Some(first) = self.known.first
            && self.known.is_clean(&self.goal, CLEAN)
        {
            self.look_above(&first, None);
        }
    }

    fn look_above(&mut self, first: &First, held: Option<f64>) {
        let high = self.interval(first.interval).1.max(held.unwrap_or(0.0));
        let rate = ABOVE * high.max(first.edge.saturated);
        let left = TIMES;
        self.try_above(Above { rate, held, left });
    }

    /// Where the generator reaches so far.
    pub(super) fn try_above(&mut self, above: Above) {
        match (above.rate > self.ceiling, above.held) {
            (false, _) => self.state = State::Above(above),
            (true, Some(held)) => self.claim(held),
            (true, None) => self.state = State::Ladder,
        }
    }

    pub(super) fn above_trial(&self, above: &Above) -> Trial {
        Trial {
            measure_s: ABOVE_S,
            ..self.trial(Stage::Ramp, above.rate)
        }
    }

    pub(super) fn after_above(&mut self, above: Above, holds: bool) {
        let left = above.left - usize::from(holds);
        match (holds, left, above.held) {
            (true, 0, held) => {
                if let Some(held) = held {
                    let first = self.known.first;
                    self.keep(first.as_ref(), held, above.rate);
                }
                self.start_over(above.rate, true);
                self.changed(false);
            }
            (true, left, _) => self.try_above(Above { left, ..above }),
            (false, _, None) => self.state = State::Ladder,
            (false, _, Some(held)) => {
                self.known.estimate(&self.goal);
                self.claim(held);
            }
        }
    }

    /// Answers, or goes on where what came after the long trial has made the interval wider.
    fn claim(&mut self, held: f64) {
        let interval = match &self.known.first {
            Some(first) => self.interval(with(first, held)),
            None => (held, self.ceiling.max(held)),
        };
        let is_narrow = half_width(interval) <= self.goal.half_width;
        match is_narrow || self.spent_s >= self.until_s {
            true if is_narrow => self.finish(interval, held, Why::Found),
            true => self.finish(interval, held, Why::Budget),
            false => self.state = State::Ladder,
        }
    }
}
