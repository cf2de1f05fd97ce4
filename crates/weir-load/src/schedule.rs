//! Arrivals in closed form: when the k-th request of a trial is due.
//!
//! The schedule is one for the whole trial and has no state: arrival `k` is due at `t_k = Λ⁻¹(k)`,
//! where `Λ(t)` is the number of arrivals expected until `t`. Threads deal the arrivals among
//! themselves by number, so pacing stays global and nothing is shared.

/// A constant rate after a linear ramp (RFC 9411 §4.3.4 names the phases).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Requests per nanosecond at full height.
    rate_per_ns: f64,
    /// Length of the ramp in nanoseconds.
    ramp_ns: f64,
}

impl Schedule {
    /// `rate` in requests per second, above zero; the ramp takes `ramp_ns` from the trial's start.
    pub fn new(rate: f64, ramp_ns: u64) -> Schedule {
        Schedule {
            rate_per_ns: rate / 1e9,
            ramp_ns: ramp_ns as f64,
        }
    }

    /// When arrival `k` is due, in nanoseconds since the start of the trial.
    ///
    /// During the ramp Λ(t) = R·t²/(2T), afterwards Λ(t) = R·(t − T/2).
    pub fn time_of(&self, k: u64) -> u64 {
        let k = k as f64;
        let in_ramp = self.rate_per_ns * self.ramp_ns / 2.0;
        if k < in_ramp {
            (2.0 * k * self.ramp_ns / self.rate_per_ns).sqrt().round() as u64
        } else {
            (self.ramp_ns / 2.0 + k / self.rate_per_ns).round() as u64
        }
    }

    /// How many arrivals are due before `t_ns`: the smallest `k` with `time_of(k) >= t_ns`.
    pub fn count_before(&self, t_ns: u64) -> u64 {
        let t = t_ns as f64;
        let expected = if t < self.ramp_ns {
            self.rate_per_ns * t * t / (2.0 * self.ramp_ns)
        } else {
            self.rate_per_ns * (t - self.ramp_ns / 2.0)
        };
        // The two closed forms round differently; `time_of` is the one that decides.
        let mut k = expected.max(0.0) as u64;
        while k > 0 && self.time_of(k - 1) >= t_ns {
            k -= 1;
        }
        while self.time_of(k) < t_ns {
            k += 1;
        }
        k
    }
}

/// One thread's share of a contiguous range of arrivals: every `step`-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The next arrival of this thread.
    pub next: u64,
    /// First arrival behind the range.
    pub end: u64,
}

impl Share {
    /// The arrivals in `from..end` that fall to `thread` of `threads`.
    pub fn new(from: u64, end: u64, thread: u64, threads: u64) -> Share {
        let behind = (thread + threads - from % threads) % threads;
        Share {
            next: from + behind,
            end,
        }
    }

    /// How many are left.
    pub fn left(&self, threads: u64) -> u64 {
        self.end.saturating_sub(self.next).div_ceil(threads)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_constant_rate_is_evenly_spaced() {
        let schedule = Schedule::new(1000.0, 0);
        assert_eq!(schedule.time_of(0), 0);
        assert_eq!(schedule.time_of(1), 1_000_000);
        assert_eq!(schedule.time_of(5000), 5_000_000_000);
        assert_eq!(schedule.count_before(5_000_000_000), 5000);
        // 1/5000 of a second has no exact form in binary: the sum must not fall short of 4 s.
        assert_eq!(Schedule::new(5000.0, 0).count_before(4_000_000_000), 20_000);
    }

    #[test]
    fn a_ramp_sends_half_of_what_the_full_rate_would() {
        let schedule = Schedule::new(1000.0, 2_000_000_000);
        assert_eq!(schedule.count_before(2_000_000_000), 1000);
        assert_eq!(schedule.count_before(3_000_000_000), 2000);
        // Half way up, a quarter of the ramp's arrivals have been due.
        assert_eq!(schedule.count_before(1_000_000_000), 250);
    }

    proptest! {
        #[test]
        fn counting_and_timing_are_inverse(
            rate in 0.1_f64..2e6, ramp in 0_u64..5_000_000_000, t in 0_u64..600_000_000_000,
        ) {
            let schedule = Schedule::new(rate, ramp);
            let k = schedule.count_before(t);
            prop_assert!(schedule.time_of(k) >= t);
            prop_assert!(k == 0 || schedule.time_of(k - 1) < t);
        }

        #[test]
        fn threads_deal_every_arrival_exactly_once(
            from in 0_u64..1000, length in 0_u64..200, threads in 1_u64..9,
        ) {
            let mut dealt = Vec::new();
            for thread in 0..threads {
                let mut share = Share::new(from, from + length, thread, threads);
                prop_assert_eq!(share.next % threads, thread);
                let left = share.left(threads);
                let before = dealt.len() as u64;
                while share.next < share.end {
                    dealt.push(share.next);
                    share.next += threads;
                }
                prop_assert_eq!(dealt.len() as u64 - before, left);
            }
            dealt.sort_unstable();
            prop_assert_eq!(dealt, (from..from + length).collect::<Vec<_>>());
        }
    }
}
