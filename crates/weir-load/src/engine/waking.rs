//! Early wake-ups, so that a thread is awake when a request is due.
//!
//! A sleep ends late, by some tens of microseconds: the timer, the interrupt, the scheduler and, on a virtual machine,
//! the hypervisor take their time. So the thread sets its wake-up a *lead* before the arrival, and spins for the
//! remaining time: it makes turns without sleeping, and handles events as usual.
//!
//! The lead follows from the recent lateness of this thread's own wake-ups. It is long enough for all but one in four
//! hundred of them, unless that would spin for more than the budget: then it is the longest lead whose expected
//! spinning is within the budget. Lateness that all wake-ups have in common costs no spinning; the spinning comes from
//! its variation, since a punctual wake-up spins for the rest of the lead. With a higher rate the lead shrinks, since
//! each arrival has less of the budget. Errors of the expectation are bounded by an allowance, which fills with time
//! and from which all spinning is taken.
//!
//! A sleep takes CPU time itself, on a virtual machine as much as sending a request does. A thread woken by a response
//! shortly before the next arrival therefore does not sleep again: up to the CPU time of one more sleep, staying awake
//! is free.

use weir_model::spin::Spin;

use crate::plan::{Flow, Plan};

/// Inverse of the spinning budget: a thread may spin for one twentieth of its time.
const BUDGET: u64 = 20;

/// Maximum of the allowance, nanoseconds: as much as accrues in a fifth of a second.
const ALLOWANCE_NS: u64 = 200_000_000 / BUDGET;

/// Width of a step of lateness, nanoseconds.
const STEP_NS: u64 = 1_000;

/// Number of steps of lateness, and the longest lead in steps.
const STEPS: usize = 256;

/// Number of wake-ups after which the weight of all remembered ones is halved.
const MEMORY: u32 = 1024;

/// Number of wake-ups between two choices of the lead.
const CHOOSE_AFTER: u32 = 16;

/// Inverse of the share of wake-ups that may be late.
const LATE_ONE_IN: u32 = 400;

/// Time until which a thread waits if nothing happens before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wake {
    pub(super) until: u64,
    /// True if the thread does not sleep because an arrival is near.
    pub(super) spins: bool,
}

impl Wake {
    pub(super) fn at(until: u64) -> Wake {
        Wake { until, spins: false }
    }
}

/// State of the thread's wake-ups: their lateness, the lead and the allowance.
#[derive(Debug)]
pub(super) struct Waking {
    learns: bool,
    lead: u64,
    /// Wake-ups by step of lateness; the last step also counts all later ones.
    late: Box<[u32; STEPS]>,
    remembered: u32,
    /// Wake-ups since the lead was chosen, followed by arrivals awaited awake since then, and by the time of that
    /// choice.
    fresh: u32,
    awaited: u32,
    chosen_at: u64,
    /// Mean time between two arrivals that need a wake-up or are awaited awake, nanoseconds.
    gap: u64,
    /// CPU time of a sleep, followed by the part of it saved by not sleeping again since the last one; nanoseconds.
    nap: u64,
    saved: u64,
    /// Time that may be spun now, nanoseconds, followed by the time up to which it has been filled.
    allowance: u64,
    filled_at: u64,
    /// True if the last wait was spinning.
    spins: bool,
    /// Total time spun, nanoseconds.
    pub(super) spun: u64,
}

impl Waking {
    /// Creates the state for a thread of a plan; without an open loop nothing has a due time, so the thread never
    /// spins.
    pub(super) fn of(plan: &Plan) -> Waking {
        if plan.flows.iter().any(Flow::is_open_loop) {
            Waking::new(plan.spin, plan.gap())
        } else {
            Waking::new(Spin::OFF, 0)
        }
    }

    /// Creates the state for a thread whose arrivals are about `gap` nanoseconds apart.
    fn new(spin: Spin, gap: u64) -> Waking {
        let lead = match spin {
            Spin::Auto => 0,
            Spin::For(lead) => lead.as_nanos() as u64,
        };
        Waking {
            learns: spin == Spin::Auto,
            lead,
            late: Box::new([0; STEPS]),
            remembered: 0,
            fresh: 0,
            awaited: 0,
            spins: false,
            chosen_at: 0,
            gap,
            nap: 0,
            saved: 0,
            allowance: ALLOWANCE_NS,
            filled_at: 0,
            spun: 0,
        }
    }

    /// Returns the length of practice sleeps before the start, nanoseconds; `None` if the lead is fixed.
    pub(super) fn practice(&self) -> Option<u64> {
        const LONGEST: u64 = 1_000_000;
        self.learns.then_some(self.gap.clamp(STEP_NS, LONGEST))
    }

    /// Sets the CPU time that a sleep costs, at most 50 µs.
    pub(super) fn nap_takes(&mut self, cpu_ns: u64) {
        const MOST: u64 = 50_000;
        self.nap = cpu_ns.min(MOST);
    }

    /// Returns the time at which to wake for an arrival: `now` if sleeping until then is not worthwhile.
    #[inline]
    pub(super) fn wake_for(&self, arrival: u64, now: u64) -> u64 {
        let lead = if self.learns && self.allowance < self.lead { 0 } else { self.lead };
        let awake = lead.max(self.saved);
        if arrival.saturating_sub(now) <= awake { now } else { arrival - lead }
    }

    /// Records a wait that began at `from` and ended at `stamp`; `quiet`: it ended by time alone, without an event.
    #[inline]
    pub(super) fn waited(&mut self, from: u64, wake: Wake, stamp: u64, quiet: bool) {
        self.awaited += u32::from(wake.spins && !self.spins);
        self.spins = wake.spins;
        if wake.spins {
            // More than was meant was not spinning: somebody else had the CPU.
            let spun = (stamp - from).min(self.lead.max(self.nap));
            self.spun += spun;
            self.fill(stamp);
            let free = spun.min(self.saved);
            self.saved -= free;
            self.allowance = self.allowance.saturating_sub(spun - free);
        } else if wake.until > from {
            self.saved = if quiet { 0 } else { self.nap };
            if quiet && stamp >= wake.until {
                self.learn(stamp - wake.until, stamp);
            }
        }
    }

    /// Adds to the allowance the share of the time since the last call.
    fn fill(&mut self, now: u64) {
        let filled = (now - self.filled_at.min(now)) / BUDGET;
        if filled > 0 {
            self.allowance = ALLOWANCE_NS.min(self.allowance.saturating_add(filled));
            self.filled_at = now;
        }
    }

    /// Records the lateness of a wake-up, and chooses the lead anew when it is time.
    fn learn(&mut self, late: u64, now: u64) {
        self.fill(now);
        self.late[STEPS.min((late / STEP_NS) as usize + 1) - 1] += 1;
        self.remembered += 1;
        self.fresh += 1;
        if self.fresh < CHOOSE_AFTER {
            return;
        }
        if self.chosen_at > 0 {
            self.gap = (now - self.chosen_at) / u64::from(self.fresh.max(self.awaited));
        }
        (self.fresh, self.awaited, self.chosen_at) = (0, 0, now);
        if self.learns {
            self.lead = self.choose(self.gap / BUDGET);
        }
        if self.remembered >= MEMORY {
            self.late.iter_mut().for_each(|count| *count /= 2);
            self.remembered = self.late.iter().sum();
        }
    }

    /// Returns the recent lateness of wake-ups, nanoseconds: median and p99.
    pub(super) fn lateness(&self) -> [u64; 2] {
        if self.remembered == 0 {
            return [0; 2];
        }
        [2, 100].map(|one_in| {
            let mut remaining = self.remembered;
            let mut steps = self.late.iter();
            let step = steps.position(|count| {
                remaining -= count;
                remaining <= self.remembered / one_in
            });
            step.map_or(0, |step| (step as u64 + 1) * STEP_NS)
        })
    }

    /// Returns the shortest lead that covers enough wake-ups, or the longest one with which at most `affordable`
    /// nanoseconds are spun on average.
    fn choose(&self, affordable: u64) -> u64 {
        let mut covered = 0;
        // Summed over all wake-ups that are remembered.
        let (mut spun, affordable) = (0, affordable * u64::from(self.remembered));
        for (step, count) in self.late.iter().enumerate() {
            // One step more: those that are covered so far spin for as much longer.
            spun += u64::from(covered) * STEP_NS + u64::from(*count) * STEP_NS / 2;
            covered += count;
            if spun > affordable {
                return step as u64 * STEP_NS;
            }
            if self.remembered - covered <= self.remembered / LATE_ONE_IN {
                return (step as u64 + 1) * STEP_NS;
            }
        }
        STEPS as u64 * STEP_NS
    }
}
