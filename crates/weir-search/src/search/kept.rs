//! What a long trial has held before the search started over from a higher rate: the answer where no time is left for a
//! better one.

use super::Search;
use super::ends::with;
use crate::goal::{Answer, Why};
use crate::known::First;

/// A claim that waits. Rates are requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kept {
    /// The rate that the long trial held, and the lower end of the interval then.
    held: f64,
    low: f64,
    /// The highest rate above it that has held for some seconds since.
    above: f64,
    /// The lowest rate above it that has broken since, and that no rate beyond has contradicted.
    broke: Option<f64>,
}

impl Search {
    /// A rate above the interval has held after the long trial.
    pub(super) fn keep(&mut self, first: Option<&First>, held: f64, above: f64) {
        self.kept = Some(Kept {
            held,
            low: first.map_or(held, |first| with(first, held).0),
            above,
            broke: None,
        });
    }

    /// Takes in that a trial of this rate has held, or has clearly not. What breaks where it held before is claimed no more.
    pub(super) fn look_at_kept(&mut self, rate: f64, holds: bool) {
        let Some(kept) = &mut self.kept else { return };
        match holds {
            true => {
                kept.above = kept.above.max(rate);
                kept.broke = kept.broke.filter(|broke| *broke > rate);
            }
            false if rate > kept.held => {
                kept.broke = Some(kept.broke.map_or(rate, |broke| broke.min(rate)));
            }
            false => self.kept = None,
        }
    }

    /// The time is over: answers with what was kept, if there is something.
    pub(super) fn give_up(&mut self, nothing: Answer) {
        let Some(kept) = self.kept.take() else {
            return self.end(nothing);
        };
        let high = kept.broke.map(|broke| {
            let known = self.known.first.map_or(0.0, |first| first.interval.1);
            broke.max(known)
        });
        let interval = self.interval((kept.low, high.unwrap_or(kept.above)));
        self.finish(interval, kept.held, Why::Budget);
        if let Some(answer) = &mut self.answer {
            answer.is_open = high.is_none() && answer.verified > 0.0;
        }
    }
}
