//! Questions, proposals and answers of a search.

/// A limit for responses, expressed as the share of them that may exceed it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Share of the responses that may exceed the limit, 0..1: 0.01 for a p99.
    pub allowed: f64,
    /// Limit of the response time, seconds; 0 for a limit on errors.
    pub limit_s: f64,
}

impl Bound {
    /// Returns the bound "this quantile (0..1) of the response time is below `limit_s`".
    pub fn quantile(quantile: f64, limit_s: f64) -> Bound {
        Bound { allowed: 1.0 - quantile, limit_s }
    }

    /// Returns the bound "the mean response time is below `limit_s`"; see [`Bound::bad_of_mean`].
    pub fn mean(limit_s: f64) -> Bound {
        Bound { allowed: (-1.0_f64).exp(), limit_s }
    }

    /// Returns the bound "less than this share of the requests fails".
    pub fn errors(share: f64) -> Bound {
        Bound { allowed: share, limit_s: 0.0 }
    }

    /// Returns the share that represents a mean: the responses that would exceed the limit if response times were
    /// exponentially distributed, exp(-limit / mean). It is 1/e if the mean is at its limit, grows with the mean, and
    /// is 1 if the mean is infinite.
    pub fn bad_of_mean(mean_s: f64, limit_s: f64) -> f64 {
        if mean_s > 0.0 { (-limit_s / mean_s).exp() } else { 0.0 }
    }
}

/// Input of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// Limits that must all be kept; at least one.
    pub bounds: Vec<Bound>,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// Half-width of the interval, as a share of the rate, at which the search ends.
    pub precision: f64,
    /// Length of a hold, seconds: longer than the slowest memory of the system.
    pub hold_s: f64,
    /// Total duration of trials in seconds, rests included, before the burst.
    pub time_s: f64,
    /// Additional seconds, if holds were tried in that time and none has held: for another one at a lower rate. A
    /// target whose holds stalled has [`Goal::MOST_FURTHER`] times as many.
    pub until_held_s: f64,
    /// Length of bursts in seconds, if they are to be searched for, too.
    pub burst_s: Option<f64>,
    /// Upper limit imposed by anything other than the target (generator, network, origin), requests/s.
    pub ceiling: Option<f64>,
    /// Responses per second that a closed loop completed.
    pub closed_rate: f64,
    /// True if [`Trial::is_fresh`] is honoured: the target can be restarted, with nothing left of earlier trials.
    pub renews: bool,
}

impl Goal {
    /// Maximum multiple of [`Goal::until_held_s`] by which a search may be prolonged.
    pub const MOST_FURTHER: f64 = 2.0;

    /// Returns the smallest share of responses that any bound allows to exceed it, 0..1.
    pub(crate) fn least_allowed(&self) -> f64 {
        self.bounds.iter().map(|bound| bound.allowed).fold(1.0, f64::min)
    }

    /// Returns the longest limit of a response time, seconds; 0 if no bound has one.
    pub(crate) fn longest_limit_s(&self) -> f64 {
        self.bounds.iter().map(|bound| bound.limit_s).fold(0.0, f64::max)
    }
}

/// Purpose of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A dwell with large steps between rates, until one rate holds and a nearby one breaks.
    Ramp,
    /// A dwell near the limit.
    Dwell,
    /// A trial that is longer than the slowest memory of the system.
    Hold,
    /// A check whether a target that stopped answering has recovered.
    Look,
    /// A short trial after a rest, measured from its first request on.
    Burst,
}

/// A trial to be made. Nothing is in flight before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Purpose of the trial.
    pub stage: Stage,
    /// Requests per second.
    pub rate: f64,
    /// Seconds without any load before it.
    pub rest_s: f64,
    /// Seconds under load that are not measured, in which queues settle.
    pub settle_s: f64,
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Number of windows that must be judged for the trial to have held.
    pub needed: usize,
    /// Maximum number of windows: more than needed, because some may be spoilt.
    pub windows: usize,
    /// Bad windows at the beginning that do not count: the target may still recover from the trial before.
    pub lead: usize,
    /// True if the target should be restarted before the trial.
    pub is_fresh: bool,
}

impl Trial {
    /// Returns the duration in seconds of a trial that holds, with no window spoilt.
    pub fn seconds(&self) -> f64 {
        self.rest_s + self.settle_s + self.window_s * self.needed as f64
    }
}

/// Result of a window of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Share of the responses that exceeded each bound, 0..1, in the order of [`Goal::bounds`]; missing responses count
    /// as exceeding it.
    pub bad: Vec<f64>,
    /// Value of the quantity that each bound limits: the quantile or mean in seconds, or the share of errors; NaN if
    /// unknown.
    pub value: Vec<f64>,
    /// Requests due per second, as actually scheduled.
    pub due: f64,
    /// Share of the due requests that the generator sent in time, 0..1.
    pub sent: f64,
    /// Responses per second.
    pub completed: f64,
    /// True if the machine was held up during the window, according to meters that are independent of the target.
    pub is_held_up: bool,
}

/// Reason for which a search has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    /// The interval is as narrow as requested.
    Found,
    /// More trials of the same kind would not narrow the interval: the limit itself scatters.
    Settled,
    /// The time has run out.
    Time,
    /// The time has run out, and no hold fitted into it or held. Contains the seconds of trials that would suffice.
    TooShort(f64),
    /// None of the rates tried has held.
    Never,
    /// Above this rate the target stopped answering, and did not recover.
    Broken(f64),
    /// The generator could not send this many requests per second in time before anything was known about the target.
    NotSent(f64),
    /// The machine spoilt most of the trials.
    Spoilt,
}

/// Capacity for a short time after a rest: the rate at which half of the bursts hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// The highest rate at which all trials held, requests/s; 0 if there is none.
    pub low: f64,
    /// The lowest rate at which all trials broke, requests/s; infinite if there is none.
    pub high: f64,
    /// Confidence of the interval, 0..1, from the numbers of trials that held at the lower end and broke at the upper
    /// (sign test).
    pub confidence: f64,
}

/// A rate and the time for which it was observed.
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
    /// True if the ends are a rate that held and one that broke, without a probability.
    pub is_bracket: bool,
    /// Standard deviation of the limit from trial to trial, as a share; None if there are too few trials.
    pub scatter: Option<f64>,
    /// Number of trials that broke only because the target stalled: stood still for a moment, and recovered.
    pub stalls: usize,
    /// The highest rate at which a hold succeeded.
    pub held: Option<Observed>,
    /// The lowest rate above [`Answer::held`] that broke.
    pub broke: Option<Observed>,
    /// The highest rate at which a dwell held, below every rate that broke.
    pub carried: Option<Observed>,
    /// Interval for dwells, if a hold has shown that the target carries less over a longer time.
    pub fresh: Option<(f64, f64)>,
    /// Capacity in a burst, if requested.
    pub burst: Option<Burst>,
    /// Index into [`Goal::bounds`] of the bound that breaks first.
    pub decides: usize,
    /// Responses per second of the target under overload.
    pub saturated: f64,
    /// Share of the responses that exceeded each bound in the trials at the lowest rates (a third of the time), in the
    /// order of the bounds.
    pub floor: Vec<f64>,
    /// Least [`Window::value`] of each bound; NaN if unknown.
    pub least: Vec<f64>,
    /// True if the interval reaches to within a tenth of the ceiling: the target may carry more.
    pub is_ceiling: bool,
    /// Duration in seconds: of dwells, and of all trials.
    pub seconds: (f64, f64),
    /// Reason why the search ended.
    pub ending: Ending,
}

/// State of a running search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Purpose of the next trial; None at the end.
    pub stage: Option<Stage>,
    /// Rates between which the capacity is estimated to be, requests/s.
    pub between: Option<(f64, f64)>,
    /// The highest rate at which a hold has succeeded so far: the claim if the search ended now.
    pub held: Option<Observed>,
    /// Seconds of trials so far.
    pub seconds: f64,
    /// Approximate remaining seconds of trials.
    pub left_s: f64,
}
