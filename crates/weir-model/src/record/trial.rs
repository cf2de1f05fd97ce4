//! What a trial measured, and why to doubt it.

use serde::{Deserialize, Serialize};

use super::generators::GeneratorShare;
use crate::limit::Limit;
use crate::load::{Censored, ErrorCount};

/// What a trial is for. Reports and verdicts rest on [`Phase::Measurement`] and
/// [`Phase::Confirmation`] alone.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// To find out how to measure: the slice, a first rate.
    Pilot,
    /// So that caches are filled and processes scheduled.
    WarmUp,
    /// To find out what is worth measuring.
    Screening,
    /// To answer the question.
    #[default]
    Measurement,
    /// To see on fresh blocks whether an answer holds.
    Confirmation,
    /// To see whether a ratio holds when the arm is the only one that runs.
    Alone,
    /// To see what limits an arm: it alone has the load, while the others wait.
    Observation,
}

impl Phase {
    /// Whether it is the usual one, which records do not name.
    pub(super) fn is_usual(&self) -> bool {
        *self == Phase::default()
    }

    /// Whether figures and verdicts rest on it.
    pub fn counts(self) -> bool {
        matches!(self, Phase::Measurement | Phase::Confirmation)
    }

    /// Whether its blocks are numbered on with those of [`Phase::Measurement`].
    pub fn is_numbered(self) -> bool {
        self.counts() || matches!(self, Phase::Alone | Phase::Observation)
    }

    /// Whether its arm was the only one that ran.
    pub fn is_alone(self) -> bool {
        self == Phase::Alone
    }
}

/// One measured run of one cell: one arm, under one load, in one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialRecord {
    /// The session it was measured in. Blocks never span sessions.
    pub session: u32,
    /// The load.
    pub load: String,
    /// The arm.
    pub arm: String,
    /// Block number within the load, counted on over sessions.
    pub block: u32,
    /// What it was for.
    #[serde(default, skip_serializing_if = "Phase::is_usual")]
    pub phase: Phase,
    /// Rate of the open loop in requests per second, the mean of its slices; absent in a closed one and in
    /// records from before it was kept, where the pilot's record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_intended: Option<f64>,
    /// The arm's slices in this block, in order of time.
    pub slices: Vec<SliceRecord>,
    /// Errors by kind, over whole slices.
    pub errors: Vec<ErrorCount>,
    /// Responses by status class, 1xx at index 1 to 5xx at index 5, over whole slices; index 0
    /// counts what is outside 100..=599.
    pub status_classes: [u64; 6],
    /// Requests that never ended.
    pub censored: Censored,
    /// Response times of requests intended in measured parts of slices.
    pub response_time: QuantileSummary,
    /// Service times of the same requests.
    pub service_time: QuantileSummary,
    /// From the sent time to the first byte, of the same requests; empty in records of before it was kept.
    #[serde(default, skip_serializing_if = "QuantileSummary::is_empty")]
    pub first_byte: QuantileSummary,
    /// Dispatch lag of the same requests: from when a request was due and a connection idle to the
    /// moment it was sent.
    pub dispatch_lag: QuantileSummary,
    /// Of the requests that were due in measured parts the share (0..1) that broke each limit of the study's capacity
    /// objective, in its order; empty where there is none. Of a limit on the mean
    /// the share that would be beyond it if response times were exponentially distributed, exp(-limit / mean), of which 1/e
    /// is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<f64>,
    /// What each of several generators had of it; empty where one had all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorShare>,
    /// Reasons why this trial must not be used or must be used with care; empty: VALID.
    pub validity: Vec<ValidityReason>,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A few per cent of the time, in pieces, are always gone on shared machines, and harm nobody.
const TRICKLE: f64 = 0.03;

impl TrialRecord {
    /// Whether the machine stood still in it, by meters that know nothing of the arm: for longer than the shortest of these limits and
    /// a trickle. What comes at once makes requests wait for that long, and in the queue that it leaves behind, by no
    /// fault of the arm's. Without a limit of a response time nothing of it matters.
    pub fn stood_still(&self, limits: &[Limit]) -> bool {
        let Some(limit) = limits.iter().filter_map(Limit::time).min() else {
            return false;
        };
        let of_slices = |of: fn(&SliceRecord) -> u64| self.slices.iter().map(of).sum::<u64>();
        let trickle_ns = TRICKLE * of_slices(|slice| slice.whole_ns) as f64;
        of_slices(SliceRecord::held_up_ns) as f64 > limit.as_nanos() as f64 + trickle_ns
    }
}

impl SliceRecord {
    /// How long CPUs were held up, nanoseconds, the longest of what each of the roles saw: of what the hypervisor took, a
    /// timer sees the part that remained when it was due.
    fn held_up_ns(&self) -> u64 {
        let by_hypervisor = self.proxy_steal_ns.max(self.generator_steal_ns);
        self.held_up.worst_ns().max(by_hypervisor)
    }
}

/// One slice: the load stayed on one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceRecord {
    /// Place in the trial's sequence of slices, over all arms.
    pub index: u64,
    /// Begin of the slice, nanoseconds since the trial began.
    pub start_ns: u64,
    /// Length of the measured part.
    pub measured_ns: u64,
    /// Length of the whole slice, where it is not the study's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub whole_ns: u64,
    /// Requests sent in the measured part.
    pub offered: u64,
    /// Requests of an open loop that were due in the measured part; 0 in records of before it was kept.
    /// They were sent, sooner or later, or are among the next two.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub due: u64,
    /// Of these: sent, whenever.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent: u64,
    /// Of these: given up when the load moved on to another arm, having waited for an idle connection.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queued: u64,
    /// Of these: left out, because no connection was idle when they were due.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Responses completed in the measured part.
    pub completed: u64,
    /// Answered requests of a closed loop in thousandths, each by the share of its service time that lies in the
    /// first `served_ns` of the measured part; absent in records of before it was kept, and in open loops.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub served_thousandths: u64,
    /// See [`SliceRecord::served_thousandths`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub served_ns: u64,
    /// Responses completed in the whole slice, its drain included.
    pub completed_whole: u64,
    /// Bytes received in the whole slice.
    pub received_bytes: u64,
    /// Connections opened again in the whole slice.
    pub reconnects: u64,
    /// How long after the slice's begin the generator turned to the arm, its latest thread: no request of that
    /// thread was sent before; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub switch_late_ns: u64,
    /// CPU time of the arm's proxy processes from the begin of this slice to the begin of the
    /// arm's next one. The proxy rests in between, so both readings are exact.
    pub proxy_cpu_ns: u64,
    /// How long the arm rested after this slice, from when its last answers had been given to its next one; 0
    /// where that was not read, as in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rest_ns: u64,
    /// Of `proxy_cpu_ns`: used in that time, beside the arm that had the load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rest_cpu_ns: u64,
    /// CPU time of the generator's threads in the slice.
    pub generator_cpu_ns: u64,
    /// CPU time of the origin server in the slice.
    pub origin_cpu_ns: u64,
    /// Requests that the arm's origin listener received, same bounds as `proxy_cpu_ns`.
    pub origin_requests: u64,
    /// Connections that the arm's origin listener accepted, same bounds as `proxy_cpu_ns`.
    pub origin_connects: u64,
    /// Time that the hypervisor kept the proxy's CPUs for others, whole slice.
    pub proxy_steal_ns: u64,
    /// The same of the generator's CPUs.
    pub generator_steal_ns: u64,
    /// Time that the proxy's CPUs were idle (idle + iowait), whole slice.
    pub proxy_cpus_idle_ns: u64,
    /// Of the time of the proxy's CPUs: serving interrupts, whole slice; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxy_irq_ns: u64,
    /// Time that CPU quotas held the control groups of weir's own processes back, summed over CPUs, whole slice; 0
    /// where there are none, and in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttled_ns: u64,
    /// The same of the groups that the proxy is in beside weir's, same bounds as `proxy_cpu_ns`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxy_throttled_ns: u64,
    /// How late the counters at its bounds were read, the latest of them.
    #[serde(default)]
    pub late_ns: u64,
    /// Sockets of the arm's network namespace (of the host, where it has none of its own) when the slice
    /// began; absent in records of before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketCounts>,
    /// The same when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets_after: Option<SocketCounts>,
    /// How long CPUs stood still in the slice, by what they were for.
    #[serde(default, skip_serializing_if = "HoldUps::is_unknown")]
    pub held_up: HoldUps,
    /// Whether that was too long for the slice to tell of the arm's high quantiles: decided when it was recorded, by
    /// `held_up` alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stood_still: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// How long CPUs stood still. `None` where there was no meter, as in records of before it was kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldUps {
    /// Those of the arm's proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<HeldUp>,
    /// Those of the generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<HeldUp>,
    /// Those of the origin server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<HeldUp>,
}

impl HoldUps {
    /// Whether there was no meter on any of them.
    pub fn is_unknown(&self) -> bool {
        *self == HoldUps::default()
    }

    fn roles(&self) -> [Option<HeldUp>; 3] {
        [self.proxy, self.generator, self.origin]
    }

    /// The longest of them, nanoseconds.
    pub fn worst_ns(&self) -> u64 {
        let each = self.roles().into_iter().flatten();
        let each = each.map(|held_up| held_up.late_ns + held_up.others_ns);
        each.max().unwrap_or(0)
    }

    /// Puts what another host saw beside this.
    pub fn add(&mut self, other: &HoldUps) {
        let of_both = |own: Option<HeldUp>, other: Option<HeldUp>| match (own, other) {
            (Some(own), Some(other)) => Some(own.and(other)),
            _ => own.or(other),
        };
        self.proxy = of_both(self.proxy, other.proxy);
        self.generator = of_both(self.generator, other.generator);
        self.origin = of_both(self.origin, other.origin);
    }
}

/// What meters saw of some CPUs: timer interrupts that came late, which is the part of a hold-up that remained when an
/// interrupt was due; and other processes that had them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldUp {
    /// How many came late.
    pub times: u64,
    /// How late they were, all together, nanoseconds.
    pub late_ns: u64,
    /// How long processes that are no part of the run had the CPUs, stretches of more than 0.2 ms all together,
    /// nanoseconds; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others_ns: u64,
}

impl HeldUp {
    /// This and that of other CPUs.
    #[must_use]
    pub fn and(self, other: HeldUp) -> HeldUp {
        HeldUp {
            times: self.times + other.times,
            late_ns: self.late_ns + other.late_ns,
            others_ns: self.others_ns + other.others_ns,
        }
    }
}

/// TCP sockets of a network namespace, as /proc/net/sockstat counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketCounts {
    /// In any state but TIME_WAIT, listeners among them.
    pub in_use: u64,
    /// Of these: those that no process has any more.
    pub orphans: u64,
    /// Ended connections whose ports are kept for a minute (RFC 9293 §3.10.7.8).
    pub time_wait: u64,
}

/// A histogram in short; the lossless one is in `histograms.hlog` under `tag`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantileSummary {
    /// Tag of the line in `histograms.hlog`; empty when it was not kept.
    pub tag: String,
    /// Values recorded.
    pub count: u64,
    /// Values above the histogram's range, counted at its end.
    pub overflow: u64,
    /// Nanoseconds.
    pub mean: f64,
    /// Nanoseconds at quantile 0.5.
    pub p50: u64,
    /// Nanoseconds at quantile 0.9.
    pub p90: u64,
    /// Nanoseconds at quantile 0.99.
    pub p99: u64,
    /// Nanoseconds at quantile 0.999.
    pub p999: u64,
    /// Largest value in nanoseconds.
    pub max: u64,
}

impl QuantileSummary {
    /// Whether it tells of no value at all.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Whether a figure may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Validity {
    /// Nothing speaks against it.
    Valid,
    /// Usable with care; the reasons stand beside it.
    Suspect,
    /// Not to be used; the reasons say why.
    Invalid,
}

/// One reason to doubt a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValidityReason {
    /// How grave it is: [`Validity::Suspect`] or [`Validity::Invalid`].
    pub validity: Validity,
    /// Short name of the rule, for example `generator-busy`.
    pub rule: String,
    /// What was seen, with figures.
    pub seen: String,
}
