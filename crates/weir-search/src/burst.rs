//! Search for the rate that is carried for some seconds after a rest.

use crate::goal::Burst;

/// Ratio of the ends below which the bracket is narrow enough.
const NARROW: f64 = 1.1;
/// Factor to the next rate while only one end is known.
const STEP: f64 = 1.3;
/// Factor by which an end is moved outwards if a trial contradicts it.
const OUTWARDS: f64 = 1.05;
/// Number of trials at either end that must all agree: if half of the holds at a rate succeed, one end is wrong with a
/// probability of 2^-6 (Dixon & Mood 1946, J. Am. Stat. Assoc. 41).
const AGREE: u32 = 6;
/// Maximum number of trials.
const TRIALS: u32 = 40;

/// A bracket between a rate that held and one that broke, requests/s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Bracket {
    held: Option<f64>,
    broke: Option<f64>,
}

impl Bracket {
    fn with(self, rate: f64, holds: bool) -> Bracket {
        if holds {
            Bracket { held: Some(self.held.map_or(rate, |held| held.max(rate))), ..self }
        } else {
            Bracket { broke: Some(self.broke.map_or(rate, |broke| broke.min(rate))), ..self }
        }
    }

    fn is_within(&self, factor: f64) -> bool {
        matches!((self.held, self.broke), (Some(held), Some(broke)) if broke <= held * factor)
    }
}

/// Search for the burst rate: a bracket by single trials, then several trials at either end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bursts {
    start: f64,
    bracket: Bracket,
    /// True once the bracket has been narrow enough. An end that is moved afterwards makes it wider, and it is not
    /// narrowed again.
    is_closed: bool,
    /// Numbers of trials that agree with the lower and with the upper end.
    agree: (u32, u32),
    trials: u32,
}

impl Bursts {
    /// Starts a search at the rate that the target carries permanently.
    pub(crate) fn new(rate: f64) -> Bursts {
        Bursts {
            start: rate,
            bracket: Bracket::default(),
            is_closed: false,
            agree: (0, 0),
            trials: 0,
        }
    }

    /// Returns the rate of the next trial.
    pub(crate) fn rate(&self) -> f64 {
        match (self.bracket.held, self.bracket.broke) {
            (None, None) => self.start,
            (Some(held), None) => held * STEP,
            (None, Some(broke)) => broke / STEP,
            (Some(held), Some(broke)) if !self.is_closed => (held * broke).sqrt(),
            (Some(held), Some(_)) if self.agree.0 < AGREE => held,
            (Some(_), Some(broke)) => broke,
        }
    }

    /// Records whether a trial at that rate held.
    pub(crate) fn put(&mut self, holds: bool) {
        let rate = self.rate();
        self.trials += 1;
        let is_low = self.bracket.held == Some(rate);
        let is_high = self.bracket.broke == Some(rate);
        match (is_low, is_high, holds) {
            (true, _, true) => self.agree.0 += 1,
            (_, true, false) => self.agree.1 += 1,
            (true, ..) => (self.bracket.held, self.agree.0) = (Some(rate / OUTWARDS), 0),
            (_, true, _) => (self.bracket.broke, self.agree.1) = (Some(rate * OUTWARDS), 0),
            _ => self.bracket = self.bracket.with(rate, holds),
        }
        self.is_closed |= self.bracket.is_within(NARROW);
    }

    /// Returns the result once nothing more is to be tried: each end is as good as its trials. `None` before.
    pub(crate) fn answer(&self, lowest: f64, highest: f64) -> Option<Burst> {
        let is_known = self.agree.0.min(self.agree.1) >= AGREE;
        let is_beyond = !(lowest..=highest).contains(&self.rate());
        (is_known || is_beyond || self.trials >= TRIALS).then(|| self.so_far())
    }

    /// Returns the result so far.
    pub(crate) fn so_far(&self) -> Burst {
        Burst {
            low: self.bracket.held.unwrap_or(0.0),
            high: self.bracket.broke.unwrap_or(f64::INFINITY),
            confidence: self.confidence(),
        }
    }

    fn confidence(&self) -> f64 {
        let (below, above) = self.agree;
        (1.0 - 0.5_f64.powi(below as i32) - 0.5_f64.powi(above as i32)).max(0.0)
    }

    /// Returns the approximate number of remaining trials.
    pub(crate) fn left(&self) -> f64 {
        let agreed = self.agree.0.min(AGREE) + self.agree.1.min(AGREE);
        f64::from((2 * AGREE - agreed).min(TRIALS.saturating_sub(self.trials)))
    }
}
