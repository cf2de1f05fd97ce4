//! Questions, proposals and answers of a search.

/// A limit that responses must keep to, as the share of them that may break it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Share of the responses that may break it, 0..1: 0.01 for a p99.
    pub allowed: f64,
    /// Limit of the response time, seconds; 0 for a limit on errors.
    pub limit_s: f64,
}

impl Bound {
    /// Returns the bound "this quantile (0..1) of the response time is below `limit_s`".
    pub fn quantile(quantile: f64, limit_s: f64) -> Bound {
        Bound {
            allowed: 1.0 - quantile,
            limit_s,
        }
    }

    /// Returns the bound "the mean response time is below `limit_s`"; see [`Bound::bad_of_mean`].
    pub fn mean(limit_s: f64) -> Bound {
        Bound {
            allowed: (-1.0_f64).exp(),
            limit_s,
        }
    }

    /// Returns the bound "less than this share of the requests fails".
    pub fn errors(share: f64) -> Bound {
        Bound {
            allowed: share,
            limit_s: 0.0,
        }
    }

    /// Returns the share that stands for a mean: what would be beyond the limit if response times were exponentially
    /// distributed, exp(-limit / mean). It is 1/e where the mean is at its limit, grows with it, and is 1 where the mean
    /// has no end.
    pub fn bad_of_mean(mean_s: f64, limit_s: f64) -> f64 {
        if mean_s > 0.0 {
            (-limit_s / mean_s).exp()
        } else {
            0.0
        }
    }
}

/// The question.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// Limits that must all hold; at least one.
    pub bounds: Vec<Bound>,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// Half of the interval, as a share of the rate, at which the search ends.
    pub precision: f64,
    /// Length of a hold, seconds: longer than the slowest memory of the system.
    pub hold_s: f64,
    /// Seconds of trials altogether, rests included, before the burst.
    pub time_s: f64,
    /// Further seconds, if holds were tried in that time and none has held: for another one at a lower rate.
    /// A target whose holds stalled has [`Goal::MOST_FURTHER`] times as many.
    pub until_held_s: f64,
    /// Length of the bursts to search for too, seconds.
    pub burst_s: Option<f64>,
    /// Upper bound that something other than the target sets (generator, network, origin), requests/s.
    pub ceiling: Option<f64>,
    /// Responses per second that a closed loop has completed.
    pub closed_rate: f64,
    /// Whether [`Trial::is_fresh`] is granted: the target can be started anew, with nothing left of earlier trials.
    pub renews: bool,
}

impl Goal {
    /// How many times [`Goal::until_held_s`] a search may go on, at most.
    pub const MOST_FURTHER: f64 = 2.0;

    /// The least share of responses that a bound allows to break it, 0..1.
    pub(crate) fn least_allowed(&self) -> f64 {
        let allowed = self.bounds.iter().map(|bound| bound.allowed);
        allowed.fold(1.0, f64::min)
    }

    /// The longest limit of a response time, seconds; 0 if no bound has one.
    pub(crate) fn longest_limit_s(&self) -> f64 {
        let limits = self.bounds.iter().map(|bound| bound.limit_s);
        limits.fold(0.0, f64::max)
    }
}

/// Purpose of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A dwell far from others, until one rate holds and one near it breaks.
    Ramp,
    /// A dwell near the limit.
    Dwell,
    /// A trial that is longer than the slowest memory of the system.
    Hold,
    /// A look whether a target that stopped answering has come back.
    Look,
    /// A short trial after a rest, measured from its first request on.
    Burst,
}

/// A trial to be made. Nothing is in flight before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Its purpose.
    pub stage: Stage,
    /// Requests per second.
    pub rate: f64,
    /// Seconds without any load before it.
    pub rest_s: f64,
    /// Seconds under load that are not measured, in which queues settle.
    pub settle_s: f64,
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Windows that must be judged for the trial to have held.
    pub needed: usize,
    /// Windows at most: more than needed, because some may be spoilt.
    pub windows: usize,
    /// Bad windows at the beginning that do not count: the target may still recover from the trial before.
    pub lead: usize,
    /// Whether the target should be started anew before it.
    pub is_fresh: bool,
}

impl Trial {
    /// Seconds of a trial that holds, without anything spoilt.
    pub fn seconds(&self) -> f64 {
        self.rest_s + self.settle_s + self.window_s * self.needed as f64
    }
}

/// Result of a window of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Share of the responses that broke each bound, 0..1, in the order of [`Goal::bounds`]; missing responses did.
    pub bad: Vec<f64>,
    /// Value of each bound's quantity: the quantile or mean in seconds, or the share of errors; NaN if unknown.
    pub value: Vec<f64>,
    /// Requests that were due per second, as they came.
    pub due: f64,
    /// Share of these that the generator sent in time, 0..1.
    pub sent: f64,
    /// Responses per second.
    pub completed: f64,
    /// Whether the machine stood still in it, by meters that know nothing of the target.
    pub is_held_up: bool,
}

/// Reason for which a search has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    /// The interval is as narrow as was asked for.
    Found,
    /// More trials of the same kind would not narrow the interval: the limit itself scatters.
    Settled,
    /// The time is over.
    Time,
    /// The time is over, and no hold fitted into it or held; seconds of trials that would be enough.
    TooShort(f64),
    /// No rate has held that was tried.
    Never,
    /// Above this rate the target stopped answering, and did not recover.
    Broken(f64),
    /// The generator could not send so many requests per second in time before anything was known of the target.
    NotSent(f64),
    /// The machine spoilt most of the trials.
    Spoilt,
}

/// Capacity for a short time after a rest: the rate at which half of the bursts hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// The highest rate of which each trial held, requests/s; 0: none.
    pub low: f64,
    /// The lowest of which each broke; infinite: none.
    pub high: f64,
    /// Confidence of the interval, 0..1: that of signs, by how many trials held at the lower end and broke at the upper.
    pub confidence: f64,
}

/// A rate and the time for which it was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// Requests per second.
    pub rate: f64,
    /// Seconds for which it held, or after which it broke.
    pub seconds: f64,
}

/// The answer. Rates are requests per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Ends of the interval, or of the bracket; both 0 if no hold has held. If nothing broke below a ceiling, the upper
    /// end is the ceiling.
    pub interval: (f64, f64),
    /// Whether the ends are a rate that held and one that broke, without any probability.
    pub is_bracket: bool,
    /// Standard deviation of the limit from trial to trial, as a share; None if too little was seen.
    pub scatter: Option<f64>,
    /// Trials that broke only because the target stalled: stood still for a moment, and recovered.
    pub stalls: usize,
    /// The highest rate that a hold has held.
    pub held: Option<Observed>,
    /// The lowest rate above [`Answer::held`] that broke.
    pub broke: Option<Observed>,
    /// The highest rate that a dwell has carried, below each that broke.
    pub carried: Option<Observed>,
    /// Interval for dwells, if a hold has shown that less is carried for longer.
    pub fresh: Option<(f64, f64)>,
    /// Capacity in a burst, if that was asked for.
    pub burst: Option<Burst>,
    /// Index into [`Goal::bounds`] of the bound that breaks first.
    pub decides: usize,
    /// Responses per second of the target when it has more to do than it can.
    pub saturated: f64,
    /// Share of the responses that broke each bound in the lowest trials (a third of the time), in the order of the bounds.
    pub floor: Vec<f64>,
    /// Least [`Window::value`] of each bound; NaN if unknown.
    pub least: Vec<f64>,
    /// Whether the interval reaches to within a tenth of the ceiling: the target may carry more.
    pub is_ceiling: bool,
    /// Seconds of trials: dwells, and all.
    pub seconds: (f64, f64),
    /// Reason for the end.
    pub ending: Ending,
}

/// State of a search that goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Purpose of the next trial; None at the end.
    pub stage: Option<Stage>,
    /// Rates between which the capacity is believed to be, requests/s.
    pub between: Option<(f64, f64)>,
    /// The highest rate that a hold has held so far: the claim if the search ended now.
    pub held: Option<Observed>,
    /// Seconds of trials so far.
    pub seconds: f64,
    /// Seconds of trials that are left, about.
    pub left_s: f64,
}
