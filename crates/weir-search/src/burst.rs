//! What is carried for some seconds after a rest.

use crate::goal::Burst;

/// The bracket is narrow enough when its ends are apart by this factor.
const NARROW: f64 = 1.1;
/// How far the next rate is away while only one end is known.
const STEP: f64 = 1.3;
/// How far an end is moved that a trial does not agree with.
const OUTWARDS: f64 = 1.05;
/// Trials of either end, of which all must agree: of a rate of which half hold, one end is wrong with a probability of
/// 2^-6 (Dixon & Mood 1946, J. Am. Stat. Assoc. 41).
const AGREE: u32 = 6;
/// Trials at most.
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
            Bracket {
                held: Some(self.held.map_or(rate, |held| held.max(rate))),
                ..self
            }
        } else {
            Bracket {
                broke: Some(self.broke.map_or(rate, |broke| broke.min(rate))),
                ..self
            }
        }
    }

    fn is_within(&self, factor: f64) -> bool {
        matches!((self.held, self.broke), (Some(held), Some(broke)) if broke <= held * factor)
    }
}

/// The search for it: a bracket by single trials, then several of either end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bursts {
    start: f64,
    bracket: Bracket,
    /// Whether the bracket has been narrow enough: an end that is moved then makes it wider, and it is not closed again.
    is_closed: bool,
    /// Trials of the lower and of the upper end that agree.
    agree: (u32, u32),
    trials: u32,
}

impl Bursts {
    /// From the rate that the target carries for ever.
    pub(crate) fn new(rate: f64) -> Bursts {
        Bursts {
            start: rate,
            bracket: Bracket::default(),
            is_closed: false,
            agree: (0, 0),
            trials: 0,
        }
    }

    /// What is tried next.
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

    /// Takes in what a trial of that rate has shown.
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

    /// What is known, once nothing more is to be tried: each end is as good as its trials.
    pub(crate) fn answer(&self, lowest: f64, highest: f64) -> Option<Burst> {
        let is_known = self.agree.0.min(self.agree.1) >= AGREE;
        let is_beyond = !(lowest..=highest).contains(&self.rate());
        (is_known || is_beyond || self.trials >= TRIALS).then(|| self.so_far())
    }

    /// What is known by now.
    pub(crate) fn so_far(&self) -> Burst {
        Burst {
            low: self.bracket.held.unwrap_or(0.0),
            high: self.bracket.broke.unwrap_or(f64::INFINITY),
            confidence: self.confidence(),
        }
    }

    fn confidence(&self) -> f64 {
        let wrong = |agree: u32| 0.5_f64.powi(agree as i32);
        (1.0 - wrong(self.agree.0) - wrong(self.agree.1)).max(0.0)
    }

    /// How many trials are left, about.
    pub(crate) fn left(&self) -> f64 {
        let agreed = self.agree.0.min(AGREE) + self.agree.1.min(AGREE);
        f64::from((2 * AGREE - agreed).min(TRIALS.saturating_sub(self.trials)))
    }
}
