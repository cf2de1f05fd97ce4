//! What trials of a minute and more show: whether what a short one held lasts.

use crate::edge::CLEARLY;
use crate::goal::{Bound, Seen};

/// Windows of which all together must hold, and how many there may be until they do.
pub(crate) const HOLDS: usize = 13;
pub(crate) const MOST: usize = 2 * HOLDS;
/// A bracket of what lasts is narrow enough when its ends are apart by this factor, and is closed by so many trials.
const NARROW: f64 = 1.08;
const TRIALS: usize = 6;
const SWAMPED: f64 = 20.0;
/// A target that completes less than this share of what is due has collapsed: one that is only saturated a little
/// completes nearly all.
const COLLAPSED: f64 = 0.9;
/// One that completes less than that in a single window has too.
const AT_ONCE: f64 = 0.4;

/// A bracket between a rate that has held and one that has not.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Bracket {
    pub(crate) held: Option<f64>,
    pub(crate) broke: Option<f64>,
}

impl Bracket {
    /// With what a trial showed.
    pub(crate) fn with(self, rate: f64, holds: bool) -> Bracket {
        match holds {
            true => Bracket {
                held: Some(self.held.map_or(rate, |held| held.max(rate))),
                ..self
            },
            false => Bracket {
                broke: Some(self.broke.map_or(rate, |broke| broke.min(rate))),
                ..self
            },
        }
    }

    /// Whether both ends are known and apart by this factor at most.
    pub(crate) fn is_within(&self, factor: f64) -> bool {
        matches!((self.held, self.broke), (Some(held), Some(broke)) if broke <= held * factor)
    }
}

/// Mean of the share that breaks a bound over windows, in units of what is allowed: the worst of the bounds.
pub(crate) fn worst(windows: &[Seen], bounds: &[Bound]) -> f64 {
    let of = |(place, bound): (usize, &Bound)| {
        let bad: f64 = windows.iter().map(|seen| seen.bad[place]).sum();
        bad / windows.len().max(1) as f64 / bound.allowed
    };
    bounds.iter().enumerate().map(of).fold(0.0, f64::max)
}

/// Whether windows are nowhere near holding: of one of the bounds so many times what is allowed is bad, or half of what
/// is more than that.
pub(crate) fn is_swamped(windows: &[Seen], bounds: &[Bound]) -> bool {
    bounds.iter().enumerate().any(|(place, bound)| {
        let bad: f64 = windows.iter().map(|seen| seen.bad[place]).sum();
        let most = (SWAMPED * bound.allowed).min(f64::midpoint(1.0, bound.allowed));
        bad / windows.len().max(1) as f64 > most
    })
}

/// Whether a long trial has held: its last windows, all together.
pub(crate) fn holds(windows: &[Seen], bounds: &[Bound]) -> bool {
    windows.len() >= HOLDS && worst(&windows[windows.len() - HOLDS..], bounds) <= 1.0
}

/// Whether a long trial goes on. It ends when its last windows hold; early, when they cannot any more or when the target
/// does not recover. After one that has failed (`is_after_failure`) it is given its time to forget that.
pub(crate) fn goes_on(windows: &[Seen], bounds: &[Bound], is_after_failure: bool) -> bool {
    let count = windows.len();
    if count >= MOST || holds(windows, bounds) {
        return false;
    }
    let total = |windows: &[Seen]| worst(windows, bounds) * windows.len() as f64;
    // Of the last windows that there may be, these have been seen.
    let kept = (count + HOLDS).saturating_sub(MOST);
    if total(&windows[count - kept..]) > HOLDS as f64 {
        return false;
    }
    if total(windows) <= HOLDS as f64 || (is_after_failure && count < HOLDS) {
        return true;
    }
    // It has failed as it began. It recovers where the last two windows are clean.
    count < 2 || worst(&windows[count - 2..], bounds) <= 1.0
}

/// Seconds until a failed trial broke for good: the begin of the last windows that all break a bound clearly; that of a
/// window at least.
pub(crate) fn broke_after(windows: &[Seen], bounds: &[Bound], window_s: f64) -> f64 {
    let last_clean = windows
        .iter()
        .rposition(|seen| worst(std::slice::from_ref(seen), bounds) <= CLEARLY);
    window_s * last_clean.map_or(1.0, |place| (place + 1) as f64)
}

/// Whether the target did much less at the end of a failed trial than it was asked for: more than a rate that is a little
/// too high explains.
pub(crate) fn has_collapsed(windows: &[Seen]) -> bool {
    let does_less = |seen: &Seen, share: f64| seen.completed < share * seen.due;
    let is_so = |seen: &Seen| does_less(seen, COLLAPSED);
    // It may have come in the middle of the last but one.
    let is_at_once = windows.last().is_some_and(|last| does_less(last, AT_ONCE));
    is_at_once || (windows.len() >= 2 && windows[windows.len() - 2..].iter().all(is_so))
}

/// The search for the rate that lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Long {
    pub(crate) bracket: Bracket,
    trials: usize,
    /// What is tried next.
    pub(crate) rate: f64,
}

impl Long {
    /// From a rate that broke after so many seconds, of a trial that lasts so long, and one that has lasted, if there is any.
    pub(crate) fn new(held: Option<f64>, rate: f64, broke_s: f64, verify_s: f64) -> Long {
        let mut long = Long {
            bracket: Bracket { held, broke: None },
            trials: 0,
            rate,
        };
        long.put(false, broke_s, verify_s);
        long
    }

    /// Takes in whether the rate that was tried has lasted, or after how many seconds it broke.
    ///
    /// What broke after t seconds has used up a stock of rate · t, which refills within the memory of the system: a rate
    /// that lasts uses rate · t / memory. That is its pessimistic end, since part of the stock refills in the
    /// meantime; the next trial is in the (geometric) middle.
    pub(crate) fn put(&mut self, holds: bool, broke_s: f64, verify_s: f64) {
        self.trials += 1;
        self.bracket = self.bracket.with(self.rate, holds);
        self.rate = match (self.bracket.held, self.bracket.broke) {
            (Some(held), Some(broke)) => (held * broke).sqrt(),
            (Some(held), None) => held,
            (None, _) => self.rate * (broke_s / verify_s).min(0.8).sqrt(),
        };
    }

    /// Whether nothing more is tried.
    pub(crate) fn is_over(&self, lowest: f64) -> bool {
        let is_known = self.is_known();
        is_known || self.trials > TRIALS || self.rate < lowest
    }

    pub(crate) fn is_known(&self) -> bool {
        self.bracket.is_within(NARROW)
    }

    /// How many trials are left, about.
    pub(crate) fn left(&self) -> f64 {
        let most = (TRIALS + 1).saturating_sub(self.trials) as f64;
        match (self.bracket.held, self.bracket.broke) {
            (Some(held), Some(broke)) => {
                let halvings = ((broke / held).ln() / NARROW.ln()).log2().ceil();
                halvings.clamp(0.0, most)
            }
            _ => most,
        }
    }
}
