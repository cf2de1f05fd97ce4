//! Arrivals in closed form: the due time of the k-th request of a trial.
//!
//! The schedule is one for the whole trial: arrival `k` is due at `t_k = Λ⁻¹(s_k)`, where `Λ(t)` is the number of
//! arrivals expected until `t` and `s_k` describes how arrivals are spread at a rate of 1: `s_k = k` for equal gaps,
//! otherwise the k-th arrival of a Poisson process of rate 1. (A change of time turns one Poisson process into any
//! other: Kingman, *Poisson Processes*, §2.3 and §4.5.) Threads divide the arrivals among themselves by number, each
//! with a clone of the schedule, so pacing stays global and nothing is shared.

use std::sync::Arc;

use weir_model::load::{Arrivals, Segment, Spacing};

mod poisson;
mod rate;
mod share;

use poisson::Poisson;
use rate::CumulativeRate;
pub use share::Share;

/// Schedule of a trial's requests. Arrivals have numbers from 0; times are nanoseconds since the trial's start and
/// never decrease with the number.
///
/// Queries keep a position from which to continue, hence `&mut`; it never changes a result.
#[derive(Debug, Clone)]
pub struct Schedule {
    law: Law,
}

#[derive(Debug, Clone)]
enum Law {
    Constant(Constant),
    Varied { rate: CumulativeRate, spread: Spread },
    Recorded(Recorded),
}

/// Arrivals at the times in a list.
#[derive(Debug, Clone)]
struct Recorded {
    times: Arc<[u64]>,
    offset_ns: u64,
    /// Time after which the list begins again, nanoseconds; all times in it are smaller. `None` if it does not repeat.
    every_ns: Option<u64>,
}

/// The sequence s_k, in arrivals.
#[derive(Debug, Clone)]
enum Spread {
    Even,
    Burst(u64),
    Poisson(Poisson),
}

/// A constant rate after a linear ramp (RFC 9411 §4.3.4 names the phases), evenly spaced: the most common law, and the
/// fastest.
#[derive(Debug, Clone, Copy)]
struct Constant {
    /// Requests per nanosecond after the ramp.
    rate_per_ns: f64,
    /// Length of the ramp in nanoseconds.
    ramp_ns: f64,
    /// Number of arrivals within the ramp.
    in_ramp: f64,
}

impl Schedule {
    /// Creates the schedule of an open loop whose rate first grows from zero to its first value over `ramp_up_ns`;
    /// segments begin after that. `None` for a closed loop and for held connections; use [`Schedule::trace`] for a
    /// recorded trace.
    pub fn new(arrivals: &Arrivals, ramp_up_ns: u64) -> Option<Schedule> {
        let law = match arrivals {
            Arrivals::Constant { rate } if *rate > 0.0 => {
                Law::Constant(Constant::new(*rate, ramp_up_ns))
            }
            Arrivals::Constant { .. } => Law::varied(&[], Spacing::Even, ramp_up_ns),
            Arrivals::Varied { segments, spacing } => Law::varied(segments, *spacing, ramp_up_ns),
            Arrivals::Closed | Arrivals::Held | Arrivals::Trace { .. } => return None,
        };
        Some(Schedule { law })
    }

    /// Creates a schedule of recorded times: ascending, nanoseconds since the first of them, which is due `offset_ns`
    /// after the trial's start.
    ///
    /// With `every_ns` the list repeats each time that many nanoseconds have passed; all times must be smaller.
    pub fn trace(times: Arc<[u64]>, offset_ns: u64, every_ns: Option<u64>) -> Schedule {
        debug_assert!(times.is_sorted());
        let last = times.last().copied().unwrap_or(0);
        debug_assert!(every_ns.is_none_or(|every| last < every));
        Schedule { law: Law::Recorded(Recorded { times, offset_ns, every_ns }) }
    }

    /// Does all work that takes time or memory before the trial, up to `until_ns` after its start, so that the other
    /// calls allocate nothing. Clones share the result. Needed only for Poisson arrivals; beyond `until_ns`, or 4 × 10⁹
    /// arrivals, their table grows during the trial.
    pub fn prepare(&mut self, until_ns: u64) {
        if let Law::Varied { rate, spread: Spread::Poisson(poisson) } = &mut self.law {
            poisson.prepare(rate.value_at(until_ns as f64));
        }
    }

    /// Returns the due time of arrival `k`; `u64::MAX` if there is no such arrival, because the trace has ended or the
    /// rate is zero from some time on.
    ///
    /// A step to a number near the last one is fast; a jump among Poisson arrivals takes about a microsecond.
    #[inline]
    pub fn time_of(&mut self, k: u64) -> u64 {
        match &mut self.law {
            Law::Constant(constant) => constant.time_of(k),
            Law::Varied { rate, spread } => nanoseconds(rate.time_of(match spread {
                Spread::Even => k as f64,
                Spread::Burst(size) => (k - k % *size) as f64,
                Spread::Poisson(poisson) => poisson.time_of(k, rate.total()),
            })),
            Law::Recorded(recorded) => recorded.time_of(k),
        }
    }

    /// Returns the number of arrivals due before `t_ns`: the smallest `k` with `time_of(k) >= t_ns`.
    pub fn count_before(&mut self, t_ns: u64) -> u64 {
        let t = t_ns as f64;
        let (near, step) = match &mut self.law {
            Law::Constant(constant) => (constant.expected(t) as u64, 1),
            Law::Varied { rate, spread } => {
                let value = rate.value_at(t);
                match spread {
                    Spread::Even => (value as u64, 1),
                    Spread::Burst(size) => (value as u64 / *size, *size),
                    Spread::Poisson(poisson) => (poisson.count_before(value), 1),
                }
            }
            Law::Recorded(recorded) => return recorded.count_before(t_ns),
        };
        // Λ and its inverse round differently; `time_of` is the one that decides.
        first_from(near, |n| self.time_of(n.saturating_mul(step)) >= t_ns).saturating_mul(step)
    }

    /// Returns the number of arrivals expected from `from_ns` until `to_ns`: the integral of the rate, or for a trace
    /// the number of its arrivals.
    pub fn expected(&self, from_ns: u64, to_ns: u64) -> f64 {
        self.expected_until(to_ns.max(from_ns)) - self.expected_until(from_ns)
    }

    fn expected_until(&self, t_ns: u64) -> f64 {
        match &self.law {
            Law::Constant(constant) => constant.expected(t_ns as f64),
            Law::Varied { rate, .. } => rate.value_at(t_ns as f64),
            Law::Recorded(recorded) => recorded.count_before(t_ns) as f64,
        }
    }
}

impl Law {
    fn varied(segments: &[Segment], spacing: Spacing, ramp_up_ns: u64) -> Law {
        Law::Varied {
            rate: CumulativeRate::new(segments, ramp_up_ns),
            spread: match spacing {
                Spacing::Even => Spread::Even,
                Spacing::Burst { size } => Spread::Burst(size.max(1).into()),
                Spacing::Poisson { seed } => Spread::Poisson(Poisson::new(seed)),
            },
        }
    }
}

impl Recorded {
    fn time_of(&self, k: u64) -> u64 {
        let count = self.times.len() as u64;
        let (round, place) = match self.every_ns {
            Some(_) if count > 0 => (k / count, k % count),
            _ => (0, k),
        };
        let begin = round.saturating_mul(self.every_ns.unwrap_or(0));
        self.times
            .get(place as usize)
            .map_or(u64::MAX, |time| time.saturating_add(self.offset_ns).saturating_add(begin))
    }

    fn count_before(&self, t_ns: u64) -> u64 {
        let Some(t_ns) = t_ns.checked_sub(self.offset_ns) else {
            return 0;
        };
        let (round, rest) = match self.every_ns {
            Some(every) => (t_ns / every, t_ns % every),
            None => (0, t_ns),
        };
        let before = self.times.partition_point(|time| *time < rest) as u64;
        round * self.times.len() as u64 + before
    }
}

impl Constant {
    fn new(rate: f64, ramp_ns: u64) -> Constant {
        let (rate_per_ns, ramp_ns) = (rate / 1e9, ramp_ns as f64);
        Constant { rate_per_ns, ramp_ns, in_ramp: rate_per_ns * ramp_ns / 2.0 }
    }

    /// Returns the due time of arrival `k`. During the ramp Λ(t) = R·t²/(2T), afterwards Λ(t) = R·(t − T/2).
    #[inline]
    fn time_of(&self, k: u64) -> u64 {
        let k = k as f64;
        nanoseconds(if k < self.in_ramp {
            (2.0 * k * self.ramp_ns / self.rate_per_ns).sqrt()
        } else {
            self.ramp_ns / 2.0 + k / self.rate_per_ns
        })
    }

    fn expected(&self, t: f64) -> f64 {
        if t < self.ramp_ns {
            self.rate_per_ns * t * t / (2.0 * self.ramp_ns)
        } else {
            self.rate_per_ns * (t - self.ramp_ns / 2.0)
        }
    }
}

/// Rounds to whole nanoseconds; infinity becomes `u64::MAX`.
#[inline]
fn nanoseconds(t: f64) -> u64 {
    (t + 0.5) as u64
}

/// Returns the smallest number for which `holds` returns true, searching from `near` outwards. `holds` must be true for
/// all larger numbers too.
fn first_from(near: u64, mut holds: impl FnMut(u64) -> bool) -> u64 {
    let (mut low, mut high, mut step) = (near, near, 1_u64);
    if holds(near) {
        while high > 0 {
            low = high.saturating_sub(step);
            if !holds(low) {
                break;
            }
            (high, step) = (low, step * 2);
        }
        if high == 0 {
            return 0;
        }
    } else {
        loop {
            high = low.saturating_add(step);
            if high == u64::MAX || holds(high) {
                break;
            }
            (low, step) = (high, step * 2);
        }
    }
    // `low` does not hold, `high` does.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests;
