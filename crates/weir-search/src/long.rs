//! What trials of a minute and more show: whether what a short one held lasts.

use crate::edge::CLEARLY;
use crate::goal::{Bound, Seen, Trial};

/// A window of which less was sent in time says nothing about the target.
pub(crate) const SENT: f64 = 0.99;

/// Windows of which all together must hold, of a second each in a minute and more, and how many there may be until they do.
pub(crate) const HOLDS: usize = 65;
pub(crate) const MOST: usize = 2 * HOLDS;
/// So many of these must say something about the target.
const TELLING: usize = HOLDS / 2;
/// So many windows are one trial of the model; the last so many of twice as many tell whether a target recovers.
const JOINED: usize = 5;
const RECOVERS: usize = 2 * JOINED;
/// Of a long trial that was sent in time such a share is at least.
const SENT_IN_TIME: f64 = 0.5;
/// Student's t of one side, at 95 %, of as many of these trials as there are in a long one.
const SURELY: f64 = 1.78;
/// A bracket of what lasts is narrow enough when its ends are apart by this factor, and is closed by so many trials.
const NARROW: f64 = 1.08;
const TRIALS: usize = 6;
/// What is thought to last is tried a little lower at first, and what is not known to by so much lower than what broke.
const CAREFULLY: f64 = 0.95;
const LOWER: f64 = 0.9;
/// Where nothing is known the next rate is the geometric middle of the last one and this share of it.
const FAR: f64 = 0.015;
/// A rate falls no faster with the requests until it breaks.
const STEEPEST: f64 = 20.0;
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

/// Whether a window says something about the target: its requests were sent in time, by a machine that did not stand still.
fn tells(seen: &Seen) -> bool {
    seen.sent >= SENT && !seen.is_held_up
}

/// The windows that do.
pub(crate) fn telling(windows: &[Seen]) -> Vec<Seen> {
    windows.iter().filter(|seen| tells(seen)).cloned().collect()
}

/// The windows as they are judged: where the machine stood still in most of them, that is how it is, and they count.
pub(crate) fn judged(windows: &[Seen]) -> Vec<Seen> {
    let still = windows.iter().filter(|seen| seen.is_held_up).count();
    let counts = 2 * still > windows.len() && windows.len() > 1;
    let one = |seen: &Seen| Seen {
        is_held_up: seen.is_held_up && !counts,
        ..seen.clone()
    };
    windows.iter().map(one).collect()
}

/// Whether most windows of a trial were not sent in time, which is nobody's fault but the generator's.
pub(crate) fn is_unsent(windows: &[Seen]) -> bool {
    let late = windows.iter().filter(|seen| seen.sent < SENT).count() as f64;
    let least = if windows.len() > 1 { RECOVERS } else { 1 };
    let of = windows.len().clamp(least, HOLDS) as f64;
    late > 0.0 && late >= SENT_IN_TIME * of
}

/// How long a trial of the model is, seconds.
pub(crate) fn joined_s(trial: &Trial) -> f64 {
    match trial.windows {
        1 => trial.window_s(),
        _ => trial.window_s() * JOINED as f64,
    }
}

/// Windows of a long trial as trials of the model.
pub(crate) fn joined(windows: &[Seen]) -> Vec<Seen> {
    let mean = |part: &[Seen], of: &dyn Fn(&Seen) -> f64| {
        part.iter().map(of).sum::<f64>() / part.len() as f64
    };
    let one = |part: &[Seen]| Seen {
        bad: (0..part[0].bad.len())
            .map(|place| mean(part, &|seen| seen.bad[place]))
            .collect(),
        value: (0..part[0].value.len())
            .map(|place| mean(part, &|seen| seen.value[place]))
            .collect(),
        due: mean(part, &|seen| seen.due),
        completed: mean(part, &|seen| seen.completed),
        ..part[0].clone()
    };
    windows.chunks(JOINED).map(one).collect()
}

/// Whether a long trial has held: its last windows surely, or all that there may be. What breaks comes in lumps, and of
/// a target that holds at no rate some minutes have few: the luckiest of several trials would be claimed.
pub(crate) fn holds(windows: &[Seen], bounds: &[Bound]) -> bool {
    let last = telling(&windows[windows.len().saturating_sub(HOLDS)..]);
    if windows.len() < HOLDS || last.len() < TELLING {
        return false;
    }
    let is_within = worst(&telling(windows), bounds) <= 1.0;
    let has_recovered = times_broken(&windows[..windows.len() - HOLDS], bounds) <= 1;
    let lasted = windows.len() >= MOST && worst(&last, bounds) <= 1.0;
    (lasted && is_within) || ((has_recovered || is_within) && is_sure(&joined(&last), bounds))
}

/// How often windows broke a bound clearly after some that did not. A target that forgets recovers once: one that breaks now
/// and then has stretches in which it does not, of which the luckiest says nothing.
fn times_broken(windows: &[Seen], bounds: &[Bound]) -> usize {
    let breaks = |seen: &Seen| worst(std::slice::from_ref(seen), bounds) > CLEARLY;
    let all: Vec<bool> = telling(windows).iter().map(breaks).collect();
    let begins = all.windows(2).filter(|two| !two[0] && two[1]).count();
    begins + usize::from(all.first() == Some(&true))
}

/// Whether the mean over windows is within every bound, at the upper end of its one-sided interval (Student).
fn is_sure(windows: &[Seen], bounds: &[Bound]) -> bool {
    let root = (windows.len() as f64).sqrt();
    bounds.iter().enumerate().all(|(place, bound)| {
        let bad: Vec<f64> = windows.iter().map(|seen| seen.bad[place]).collect();
        let mean = bad.iter().sum::<f64>() / root.powi(2);
        mean + SURELY * weir_stats::sd(&bad).unwrap_or(0.0) / root <= bound.allowed
    })
}

/// Whether a long trial goes on. It ends when its last windows hold; early, when they cannot any more or when the target
/// does not recover. After one that has failed (`is_after_failure`) a target that is bad from the first window on is given
/// its time to forget that.
pub(crate) fn goes_on(windows: &[Seen], bounds: &[Bound], is_after_failure: bool) -> bool {
    let count = windows.len();
    if count >= MOST || holds(windows, bounds) || is_unsent(windows) {
        return false;
    }
    // Of the last windows that there may be, these have been seen.
    let kept = (count + HOLDS).saturating_sub(MOST);
    if fails_after(&windows[count - kept..], bounds).is_some() {
        return false;
    }
    let has_to_forget = is_after_failure && worst(&windows[..1.min(count)], bounds) > 1.0;
    let Some(failed) = fails_after(windows, bounds).filter(|_| !has_to_forget || count >= HOLDS)
    else {
        return true;
    };
    // It has failed as it began. It recovers where the last windows are clean, once there have been some since.
    count < RECOVERS.max(failed + JOINED)
        || worst(&telling(&windows[count - JOINED..]), bounds) <= 1.0
}

/// After how many windows more was bad of one of the bounds than a whole trial that holds may have.
fn fails_after(windows: &[Seen], bounds: &[Bound]) -> Option<usize> {
    let mut sums = vec![0.0; bounds.len()];
    let mut more = |seen: &Seen| {
        let parts = sums.iter_mut().zip(&seen.bad).zip(bounds);
        parts.fold(false, |is_more, ((sum, bad), bound)| {
            *sum += bad / bound.allowed;
            is_more || *sum > HOLDS as f64
        })
    };
    let found = windows.iter().position(|seen| tells(seen) && more(seen));
    found.map(|place| place + 1)
}

/// Seconds until a failed trial broke for good: the begin of the last windows that all break a bound clearly. `None` where it
/// was bad from the first one on: what came before it had used the target up.
pub(crate) fn broke_after(windows: &[Seen], bounds: &[Bound], window_s: f64) -> Option<f64> {
    let clean = |seen: &Seen| worst(std::slice::from_ref(seen), bounds) <= CLEARLY;
    let last_clean = windows.iter().rposition(clean)?;
    windows
        .first()
        .is_some_and(clean)
        .then(|| window_s * (last_clean + 1) as f64)
}

/// Whether the target did much less in a failed trial than it was asked for: more than a rate that is a little too high
/// explains. A queue that has built up then stays, though the target completes as much as is due again. Or it broke for good
/// after it had held for longer than a queue that grows could.
pub(crate) fn has_collapsed(windows: &[Seen], bounds: &[Bound]) -> bool {
    let swamped = |seen: &Seen| is_swamped(std::slice::from_ref(seen), bounds);
    let held = windows
        .iter()
        .rposition(|seen| !swamped(seen))
        .map_or(0, |last| last + 1);
    let stays = windows.len() - held >= JOINED;
    if held >= RECOVERS && stays && worst(&telling(&windows[..held]), bounds) <= 1.0 {
        return true;
    }
    let windows = joined(windows);
    let does_less = |seen: &Seen, share: f64| seen.completed < share * seen.due;
    let is_so = |seen: &Seen| does_less(seen, COLLAPSED);
    let (two, one) = (
        windows.len().saturating_sub(2),
        windows.len().saturating_sub(1),
    );
    let stays = is_swamped(&windows[one..], bounds);
    let was_at_once = windows.iter().any(|seen| does_less(seen, AT_ONCE));
    (stays && was_at_once) || (windows.len() >= 2 && windows[two..].iter().all(is_so))
}

/// Whether a failed trial broke now and then, and neither for good nor by far.
pub(crate) fn is_slight(windows: &[Seen], bounds: &[Bound]) -> bool {
    !has_collapsed(windows, bounds) && !is_swamped(windows, bounds)
}

/// A rate that broke, requests per second, and after how many seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Broke {
    rate: f64,
    after_s: f64,
}

impl Broke {
    /// How many requests it was then.
    fn requests(self) -> f64 {
        self.rate * self.after_s
    }
}

/// The search for the rate that lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Long {
    pub(crate) bracket: Bracket,
    trials: usize,
    /// The last two that broke, the last one first.
    broke: [Option<Broke>; 2],
    /// A rate that does not last, by short trials.
    pub(crate) above: f64,
    /// What lasts if nothing of what a trial has used up came back in it.
    at_least: f64,
    /// What is tried next.
    pub(crate) rate: f64,
}

impl Long {
    /// From a rate that broke after so many seconds, of a trial that lasts so long, and one that has lasted, if there is any.
    pub(crate) fn new(held: Option<f64>, rate: f64, broke_s: Option<f64>, verify_s: f64) -> Long {
        let mut long = Long {
            bracket: Bracket { held, broke: None },
            trials: 0,
            broke: [None; 2],
            above: rate,
            at_least: 0.0,
            rate,
        };
        long.put(false, broke_s, verify_s);
        long
    }

    /// From a rate that has lasted, and one that does not by short trials.
    pub(crate) fn between(held: f64, above: f64) -> Long {
        Long {
            bracket: Bracket::default().with(held, true),
            trials: 1,
            broke: [None; 2],
            above,
            at_least: 0.0,
            rate: (held * above).sqrt(),
        }
    }

    /// Takes in whether the rate that was tried has lasted, or after how many seconds it broke.
    pub(crate) fn put(&mut self, holds: bool, broke_s: Option<f64>, verify_s: f64) {
        self.trials += 1;
        self.bracket = self.bracket.with(self.rate, holds);
        if let (false, Some(after_s)) = (holds, broke_s) {
            let now = Broke {
                rate: self.rate,
                after_s,
            };
            self.broke = [Some(now), self.broke[0]];
            self.at_least = self.at_least.max(now.requests() / verify_s);
        }
        let likely = self.lasts(verify_s);
        self.rate = match (self.bracket.held, self.bracket.broke, likely) {
            (Some(held), Some(broke), likely) => {
                let part = |share: f64| held * (broke / held).powf(share);
                likely.map_or(part(0.5), |rate| rate.clamp(part(0.25), part(0.75)))
            }
            (Some(held), None, _) => (held * self.above).sqrt(),
            (None, Some(broke), Some(rate)) => (CAREFULLY * rate).min(LOWER * broke),
            (None, _, _) => (self.at_least.max(FAR * self.rate) * self.rate)
                .sqrt()
                .min(LOWER * self.rate),
        };
    }

    /// The rate that lasts by what two rates have used up until they broke. A stock of a fixed size (local ports) breaks
    /// after the same number of requests at any rate; where what is left grows dearer the more is used, the number grows as
    /// the rate falls. Between two points its logarithm is taken to be linear in that of the rate; what lasts
    /// has used the requests of a whole memory. `None` before there are two.
    fn lasts(&self, verify_s: f64) -> Option<f64> {
        let [Some(now), Some(before)] = self.broke else {
            return None;
        };
        let requests = (now.requests() / before.requests()).ln();
        // Of a stock no more is used up at a lower rate.
        let slope = match requests > 0.0 {
            true => ((now.rate / before.rate).ln() / requests).clamp(-STEEPEST, 0.0),
            false => -STEEPEST,
        };
        let whole = (now.after_s / verify_s).min(1.0).ln();
        // ln r = ln r₂ + slope · (ln(T · r) - ln(r₂ · t₂)).
        Some(now.rate * (-slope * whole / (1.0 - slope)).exp())
    }

    /// Whether nothing more is tried.
    pub(crate) fn is_over(&self, lowest: f64) -> bool {
        let is_known = self.is_known();
        is_known || self.trials > TRIALS || self.rate < lowest
    }

    pub(crate) fn is_known(&self) -> bool {
        let broke = self.bracket.broke.unwrap_or(self.above);
        self.bracket.held.is_some_and(|held| broke <= held * NARROW)
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
