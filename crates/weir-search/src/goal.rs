//! What is asked of a search, what it asks to be tried, and what it answers.

use crate::edge::Closed;

/// One thing that responses must keep to, as the share of them that may break it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Share of the responses that may break it, 0..1: 0.01 for a p99.
    pub allowed: f64,
    /// The limit of the response time, seconds; 0 where there is none.
    pub limit_s: f64,
}

impl Bound {
    /// This quantile (0..1) of the response time is below that.
    pub fn quantile(quantile: f64, limit_s: f64) -> Bound {
        Bound {
            allowed: 1.0 - quantile,
            limit_s,
        }
    }

    /// The mean response time is below that: see [`Bound::bad_of_mean`].
    pub fn mean(limit_s: f64) -> Bound {
        Bound {
            allowed: (-1.0_f64).exp(),
            limit_s,
        }
    }

    /// Less than this share of the requests fails.
    pub fn errors(share: f64) -> Bound {
        Bound {
            allowed: share,
            limit_s: 0.0,
        }
    }

    /// The share that stands for a mean: what would be beyond the limit if response times were exponentially
    /// distributed, exp(-limit / mean). It is 1/e where the mean is at its limit, grows with it, and is 1 where the mean
    /// has no end. Of M/M/1, whose mean is 1 / (μ - λ), its logarithm is linear in the rate, as that of a quantile is.
    pub fn bad_of_mean(mean_s: f64, limit_s: f64) -> f64 {
        match mean_s > 0.0 {
            true => (-limit_s / mean_s).exp(),
            false => 0.0,
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// Each of these must hold; at least one.
    pub bounds: Vec<Bound>,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// Half of the interval as a share of the rate at which the search ends.
    pub half_width: f64,
    /// Seconds of trials before the long ones; the ladder that goes beyond is the last.
    pub budget_s: f64,
    /// Length of a verification, seconds: longer than the slowest memory of the system.
    pub verify_s: f64,
    /// Seconds of further long trials, where a verification fails what short trials held: no more is begun then.
    pub long_s: f64,
    /// Whether to ask too how much is carried for so many seconds after a rest.
    pub burst_s: Option<f64>,
    /// Requests per second that something other than the target carries at most: the generator, the network, the
    /// origin.
    pub ceiling: Option<f64>,
    /// What a closed loop has completed.
    pub closed: Closed,
    /// Seed of the order of the trials.
    pub seed: u64,
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Rates far apart, until one holds and one does not that is near it; and looks whether the target has come back.
    Ramp,
    /// Short trials around the edge.
    Ladder,
    /// A trial that is longer than the slowest memory of the system.
    Hold,
    /// A short one after a rest, looked at from its first request on.
    Burst,
}

/// A trial that is to be made. The target has nothing to do before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// What it is for.
    pub stage: Stage,
    /// Requests per second.
    pub rate: f64,
    /// Seconds without any load before it.
    pub rest_s: f64,
    /// Seconds that are not looked at, in which queues become what they are.
    pub settle_s: f64,
    /// Seconds that are, at most: [`crate::Search::go_on`] may end it after any window.
    pub measure_s: f64,
    /// Windows of equal length that are told apart in what is seen.
    pub windows: usize,
    /// Whether the target should be a new instance: it is the first trial of a ladder, or a long one.
    pub is_fresh: bool,
}

impl Trial {
    /// Length of a window, seconds.
    pub fn window_s(&self) -> f64 {
        self.measure_s / self.windows as f64
    }
}

/// What a window of a trial showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Share of the responses that broke each bound, 0..1, in the order of [`Goal::bounds`]; those that never came did.
    pub bad: Vec<f64>,
    /// What each bound is about, as it was: the quantile or the mean in seconds, the share of errors; not a number
    /// where it is not known.
    pub value: Vec<f64>,
    /// Requests that were due per second, as they came.
    pub due: f64,
    /// Share of these that the generator sent in time, 0..1.
    pub sent: f64,
    /// Responses per second while the load lasted.
    pub completed: f64,
    /// Whether the machine stood still in it, by what knows nothing of the target: such a window says nothing about that.
    pub is_held_up: bool,
}

/// Why the search has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// The interval is as narrow as was asked for, and a trial near its lower end has held.
    Found,
    /// The time was over; a trial near the lower end has held.
    Budget,
    /// The time was over before anything could be claimed; seconds of trials, those that were made included, that would suffice.
    TooShort(f64),
    /// No rate has held that was tried: [`Answer::floor`] and [`Answer::least`] say what is so at any rate.
    Never,
    /// Above this rate it broke, and did not recover. The interval is what was known before, not verified.
    Broken(f64),
    /// The target changed so often that trials from before say nothing about it now.
    Unsteady,
    /// The generator could not send so many requests per second in time before anything was known of the target.
    NotSent(f64),
}

/// What is carried for a short time after a rest: the rate of which half of the bursts hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// The highest rate of which each trial held, requests per second; 0: none.
    pub low: f64,
    /// The lowest of which each broke; infinite: none.
    pub high: f64,
    /// Confidence of the interval, 0..1: that of signs, by how many trials held at the lower end and broke at the upper.
    pub confidence: f64,
}

/// The answer. Rates are requests per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Lower and upper end of the interval; both 0 where no rate has held. Where only a ceiling kept the search from higher
    /// rates, the lower end is a bound and the upper one is the ceiling.
    pub interval: (f64, f64),
    /// Place in [`Goal::bounds`] of the one that breaks first.
    pub decides: usize,
    /// The rate that a fresh, long trial has held; 0: none has.
    pub verified: f64,
    /// The interval of what short trials held, where long ones did not hold it.
    pub fresh: Option<(f64, f64)>,
    /// What is carried in a burst, if that was asked for.
    pub burst: Option<Burst>,
    /// Responses per second of the target when it has more to do than it can.
    pub saturated: f64,
    /// Share of the responses that break each bound at any rate, in their order: that of the lowest rates, of a third of
    /// the time.
    pub floor: Vec<f64>,
    /// The least that [`Seen::value`] has been of each bound in a trial; not a number where it never was known.
    pub least: Vec<f64>,
    /// Whether the interval reaches to within a tenth of the ceiling, or to what the generator could not send: the
    /// target may carry more.
    pub is_ceiling: bool,
    /// Whether the time was over before any rate above the interval broke: its upper end is the highest rate that held for
    /// some seconds.
    pub is_open: bool,
    /// Ladders that were left out because the target changed after them.
    pub left_out: usize,
    /// Seconds of trials, without and with the long ones.
    pub seconds: (f64, f64),
    /// Why it ended.
    pub why: Why,
}

/// What is known while the search goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// What the next trial is for; `None` at the end.
    pub stage: Option<Stage>,
    /// Rates between which the capacity is thought to be, if anything is known yet.
    pub between: Option<(f64, f64)>,
    /// Seconds of trials so far.
    pub seconds: f64,
    /// Seconds of trials that are left, about.
    pub left_s: f64,
}
