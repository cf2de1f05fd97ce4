//! When a thread asks to be woken, so that it is awake when a request is due.
//!
//! A sleep ends late, by some tens of microseconds: the timer, the interrupt, the scheduler and, on a
//! virtual machine, the hypervisor take their time. So the thread asks to be woken a *lead* before
//! the arrival, and spins through what is left of it: it turns without sleeping, and reaps what comes
//! as ever.
//!
//! The lead follows from how late this thread's own wake-ups have been lately. It is long enough for
//! all but one in four hundred of them, unless that would spin for more than the budget: then it is the
//! longest one whose expected spinning is within it. The part of the lateness that all wake-ups have
//! in common is saved for nothing; what varies costs what punctual wake-ups leave over. With the rate
//! the lead shrinks, since each arrival has less of the budget. What the expectation gets wrong is
//! bounded by an allowance, which fills with time and from which everything spun is taken.
//!
//! A sleep takes CPU time itself, on a virtual machine as much as sending a request does. Who was woken by a
//! response shortly before the next arrival therefore does not sleep again: as long as one more sleep would
//! take, to be awake is free.

use weir_model::spin::Spin;

use crate::plan::{Flow, Plan};

/// One part in so many of a thread's time may be spun.
const BUDGET: u64 = 20;

/// Most that the allowance can hold: what a fifth of a second fills.
const ALLOWANCE_NS: u64 = 200_000_000 / BUDGET;

/// Lateness is remembered by steps of so many nanoseconds.
const STEP_NS: u64 = 1_000;

/// Steps that are told apart, and the longest lead.
const STEPS: usize = 256;

/// Wake-ups remembered at most: beyond, all weigh half.
const MEMORY: u32 = 1024;

/// Wake-ups between two choices of the lead.
const CHOOSE_AFTER: u32 = 16;

/// Wake-ups that are not to be late: one part in so many may be.
const LATE_ONE_IN: u32 = 400;

/// Until when a thread waits if nothing happens before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wake {
    pub(super) until: u64,
    /// It does not sleep because of an arrival that is still to come.
    pub(super) spins: bool,
}

impl Wake {
    pub(super) fn at(until: u64) -> Wake {
        Wake {
            until,
            spins: false,
        }
    }
}

/// What a thread knows of its wake-ups.
#[derive(Debug)]
pub(super) struct Waking {
    learns: bool,
    lead: u64,
    /// Wake-ups by steps of lateness, the last one for all that are later.
    late: Box<[u32; STEPS]>,
    remembered: u32,
    /// Wake-ups since the lead was chosen, arrivals that were waited for awake, and when that was.
    fresh: u32,
    awaited: u32,
    chosen_at: u64,
    /// Mean time between two arrivals that cost a wake-up or are waited for awake.
    gap: u64,
    /// CPU time of a sleep, and what of it is saved by not sleeping again since the last one.
    nap: u64,
    saved: u64,
    /// What may be spun now, and until when it has been filled.
    allowance: u64,
    filled_at: u64,
    /// The last wait was spinning.
    spins: bool,
    /// All that was spun, nanoseconds.
    pub(super) spun: u64,
}

impl Waking {
    /// For a thread of a plan; where nothing has a time when it is due, nobody is awake for it.
    pub(super) fn of(plan: &Plan) -> Waking {
        match plan.flows.iter().any(Flow::is_open_loop) {
            true => Waking::new(plan.spin, plan.gap()),
            false => Waking::new(Spin::OFF, 0),
        }
    }

    /// For a thread whose arrivals are about `gap` nanoseconds apart.
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

    /// How long to sleep in order to learn before anything is due; `None` where nothing is learnt.
    pub(super) fn practice(&self) -> Option<u64> {
        const LONGEST: u64 = 1_000_000;
        self.learns.then_some(self.gap.clamp(STEP_NS, LONGEST))
    }

    /// A sleep takes so much CPU time.
    pub(super) fn nap_takes(&mut self, cpu_ns: u64) {
        const MOST: u64 = 50_000;
        self.nap = cpu_ns.min(MOST);
    }

    /// When to wake for an arrival: now, where it is not worth while to sleep until then.
    #[inline]
    pub(super) fn wake_for(&self, arrival: u64, now: u64) -> u64 {
        let lead = match self.learns && self.allowance < self.lead {
            true => 0,
            false => self.lead,
        };
        let awake = lead.max(self.saved);
        match arrival.saturating_sub(now) <= awake {
            true => now,
            false => arrival - lead,
        }
    }

    /// A wait that began at `from` has ended at `stamp`; quiet: because of the time alone.
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

    /// The budget of the time since the last call.
    fn fill(&mut self, now: u64) {
        let filled = (now - self.filled_at.min(now)) / BUDGET;
        if filled > 0 {
            self.allowance = ALLOWANCE_NS.min(self.allowance.saturating_add(filled));
            self.filled_at = now;
        }
    }

    /// A wake-up was so late.
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

    /// How late the thread was woken lately: at the median, and at the p99.
    pub(super) fn lateness(&self) -> [u64; 2] {
        let late = |one_in: u32| {
            let mut left = self.remembered;
            let mut steps = self.late.iter();
            let step = steps.position(|count| {
                left -= count;
                left <= self.remembered / one_in
            });
            step.map_or(0, |step| (step as u64 + 1) * STEP_NS)
        };
        match self.remembered {
            0 => [0; 2],
            _ => [late(2), late(100)],
        }
    }

    /// The lead for which so many nanoseconds are spun on average at most.
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
