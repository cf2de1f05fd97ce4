//! Results of a trial, and reasons to doubt them.

use serde::{Deserialize, Serialize};

use super::Observation;
use super::generators::GeneratorShare;
use crate::limit::Limit;
use crate::load::{Censored, ErrorCount};

/// Purpose of a trial. Reports and verdicts rest on [`Phase::Measurement`] and [`Phase::Confirmation`] alone.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Pilot, which finds out how to measure: the slice, a first rate.
    Pilot,
    /// Warm-up, which fills caches and gets processes scheduled.
    WarmUp,
    /// Screening, which finds out which arms are worth measuring.
    Screening,
    /// Measurement, which answers the question of the study.
    #[default]
    Measurement,
    /// Confirmation of an answer on fresh blocks.
    Confirmation,
    /// Check that a ratio holds if the arm is the only one that runs.
    Alone,
    /// Observation of the limits of an arm, which has the load alone while the others wait.
    Observation,
}

impl Phase {
    /// Returns true for the default phase, which records leave out.
    pub(super) fn is_usual(&self) -> bool {
        *self == Phase::default()
    }

    /// Returns true if figures and verdicts rest on this phase.
    pub fn counts(self) -> bool {
        matches!(self, Phase::Measurement | Phase::Confirmation)
    }

    /// Returns true if the phase's blocks continue the numbering of [`Phase::Measurement`].
    pub fn is_numbered(self) -> bool {
        self.counts() || matches!(self, Phase::Alone | Phase::Observation)
    }

    /// Returns true if the arm is the only one that runs.
    pub fn is_alone(self) -> bool {
        self == Phase::Alone
    }
}

/// One measured run of one cell: one arm, under one load, in one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialRecord {
    /// Session in which the trial was measured. Blocks never span sessions.
    pub session: u32,
    /// Name of the load.
    pub load: String,
    /// Name of the arm.
    pub arm: String,
    /// Number of the block within the load, continued from session to session.
    pub block: u32,
    /// Purpose of the trial.
    #[serde(default, skip_serializing_if = "Phase::is_usual")]
    pub phase: Phase,
    /// Rate of the open loop in requests per second, the mean of its slices; absent in a closed loop, in which the
    /// pilot's record has the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_intended: Option<f64>,
    /// The arm's slices in this block, in chronological order.
    pub slices: Vec<SliceRecord>,
    /// Errors by kind, over whole slices.
    pub errors: Vec<ErrorCount>,
    /// Responses by status class, 1xx at index 1 to 5xx at index 5, over whole slices; index 0 counts codes outside
    /// 100..=599.
    pub status_classes: [u64; 6],
    /// Requests that had not ended when the trial did.
    pub censored: Censored,
    /// Response times of requests whose intended start was in a measured part of a slice.
    pub response_time: QuantileSummary,
    /// Service times of the same requests, from the send to the last byte.
    pub service_time: QuantileSummary,
    /// Times from the send to the first byte, of the same requests.
    #[serde(default, skip_serializing_if = "QuantileSummary::is_empty")]
    pub first_byte: QuantileSummary,
    /// Dispatch lag of the same requests: the delay from the moment when a request is due and a connection is idle, to
    /// the send.
    pub dispatch_lag: QuantileSummary,
    /// Share (0..1) of the requests due in measured parts that exceeded each limit of the study's capacity objective,
    /// in the order of the limits; empty if there is no such objective. For a limit on the mean, the share that would
    /// exceed it if response times were exponentially distributed, exp(-limit / mean), of which 1/e is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<f64>,
    /// Share of each generator in the trial; empty if there was only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorShare>,
    /// Reasons not to use this trial, or to use it with care; if empty, the trial is VALID.
    pub validity: Vec<ValidityReason>,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Tolerated share of the time in which CPUs are stalled. On shared machines a few per cent are always lost in small
/// pieces, without harm.
const TRICKLE: f64 = 0.03;

impl TrialRecord {
    /// Returns true if the machine was stalled in this trial, as seen by meters that do not depend on the arm, for
    /// longer than the shortest of these limits plus the tolerated share. A stall makes requests wait for its length
    /// and in the queue that it leaves behind, which is not the arm's fault. Returns false if there is no limit on a
    /// response time, since stalls do not matter then.
    pub fn stood_still(&self, limits: &[Limit]) -> bool {
        let Some(limit) = limits.iter().filter_map(Limit::time).min() else {
            return false;
        };
        let sum = |value: fn(&SliceRecord) -> u64| self.slices.iter().map(value).sum::<u64>();
        let trickle_ns = TRICKLE * sum(|slice| slice.whole_ns) as f64;
        sum(SliceRecord::held_up_ns) as f64 > limit.as_nanos() as f64 + trickle_ns
    }
}

impl SliceRecord {
    /// Time that CPUs were stalled, nanoseconds: the maximum over the roles. Of the time that the hypervisor took, a
    /// timer only sees the part that remained when the timer was due.
    fn held_up_ns(&self) -> u64 {
        let by_hypervisor = self.proxy_steal_ns.max(self.generator_steal_ns);
        self.held_up.worst_ns().max(by_hypervisor)
    }
}

/// Results of one slice, in which the load stayed on one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceRecord {
    /// Position in the trial's sequence of slices, over all arms.
    pub index: u64,
    /// Start of the slice, nanoseconds since the start of the trial.
    pub start_ns: u64,
    /// Length of the measured part, nanoseconds.
    pub measured_ns: u64,
    /// Length of the whole slice, nanoseconds; 0 if it is the study's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub whole_ns: u64,
    /// Requests sent in the measured part.
    pub offered: u64,
    /// Requests of an open loop that were due in the measured part. Each was sent, at any time, or counts as `queued`
    /// or `dropped`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub due: u64,
    /// Due requests that were sent, at any time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent: u64,
    /// Due requests that waited for an idle connection and were given up when the load moved on to another arm.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queued: u64,
    /// Due requests that were dropped because no connection was idle.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Responses completed in the measured part.
    pub completed: u64,
    /// Answered requests of a closed loop in thousandths. Each request counts by the share of its service time that
    /// lies in the first `served_ns` of the measured part. Absent in open loops.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub served_thousandths: u64,
    /// Length of the period for [`SliceRecord::served_thousandths`], nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub served_ns: u64,
    /// Responses completed in the whole slice, including its drain.
    pub completed_whole: u64,
    /// Bytes received in the whole slice.
    pub received_bytes: u64,
    /// Connections that were opened again in the whole slice.
    pub reconnects: u64,
    /// Delay from the slice's start until the generator's latest thread turned to the arm, nanoseconds; no request of
    /// that thread was sent before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub switch_late_ns: u64,
    /// CPU time of the arm's proxy processes from the start of this slice to the start of the arm's next one,
    /// nanoseconds. The proxy rests in between, so both readings are exact.
    pub proxy_cpu_ns: u64,
    /// Time that the arm rested after this slice, from its last responses to its next slice, nanoseconds; 0 if it was
    /// not read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rest_ns: u64,
    /// Part of `proxy_cpu_ns` that was used during `rest_ns`, while another arm had the load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rest_cpu_ns: u64,
    /// CPU time of the generator's threads in the slice, nanoseconds.
    pub generator_cpu_ns: u64,
    /// CPU time of the origin server in the slice, nanoseconds.
    pub origin_cpu_ns: u64,
    /// Requests that the arm's origin listener received, in the same period as `proxy_cpu_ns`.
    pub origin_requests: u64,
    /// Connections that the arm's origin listener accepted, in the same period as `proxy_cpu_ns`.
    pub origin_connects: u64,
    /// Time that the hypervisor took from the proxy's CPUs in the whole slice, nanoseconds.
    pub proxy_steal_ns: u64,
    /// Time that the hypervisor took from the generator's CPUs in the whole slice, nanoseconds.
    pub generator_steal_ns: u64,
    /// Time that the proxy's CPUs were idle (idle + iowait) in the whole slice, nanoseconds.
    pub proxy_cpus_idle_ns: u64,
    /// Time that the proxy's CPUs spent on interrupts in the whole slice, nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxy_irq_ns: u64,
    /// Time that CPU quotas throttled the control groups of weir's own processes in the whole slice, summed over CPUs,
    /// nanoseconds; 0 if there are no quotas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttled_ns: u64,
    /// Time that CPU quotas throttled the proxy's other control groups, in the same period as `proxy_cpu_ns`,
    /// nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxy_throttled_ns: u64,
    /// Maximum delay in reading the counters at the slice's start and end, nanoseconds.
    pub late_ns: u64,
    /// Sockets of the arm's network namespace (of the host, if the arm has no namespace of its own) when the slice
    /// began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketCounts>,
    /// Sockets of the same namespace when the slice ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets_after: Option<SocketCounts>,
    /// Stalls of CPUs in the slice, by role.
    #[serde(default, skip_serializing_if = "HoldUps::is_unknown")]
    pub held_up: HoldUps,
    /// True if the stalls were too long for the slice to show the arm's high quantiles; decided when the slice was
    /// recorded, from `held_up` alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stood_still: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Stalls of CPUs by role. `None` if there was no meter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldUps {
    /// Stalls of the CPUs of the arm's proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<HeldUp>,
    /// Stalls of the generator's CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<HeldUp>,
    /// Stalls of the origin server's CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<HeldUp>,
}

impl HoldUps {
    /// Returns true if there was no meter for any role.
    pub fn is_unknown(&self) -> bool {
        *self == HoldUps::default()
    }

    fn roles(&self) -> [Option<HeldUp>; 3] {
        [self.proxy, self.generator, self.origin]
    }

    /// Longest total stall of any role, nanoseconds.
    pub fn worst_ns(&self) -> u64 {
        self.roles()
            .into_iter()
            .flatten()
            .map(|held_up| held_up.late_ns + held_up.others_ns)
            .max()
            .unwrap_or(0)
    }

    /// Adds the stalls that another host measured.
    pub fn add(&mut self, other: &HoldUps) {
        for (own, other) in [
            (&mut self.proxy, other.proxy),
            (&mut self.generator, other.generator),
            (&mut self.origin, other.origin),
        ] {
            *own = match (*own, other) {
                (Some(own), Some(other)) => Some(own.and(other)),
                (own, other) => own.or(other),
            };
        }
    }
}

/// Stalls that meters saw on some CPUs. A late timer interrupt shows the part of a stall that remained when the
/// interrupt was due. Time that other processes had the CPUs also counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldUp {
    /// Number of late timer interrupts.
    pub times: u64,
    /// Total delay of the late interrupts, nanoseconds.
    pub late_ns: u64,
    /// Total time that processes outside the run had the CPUs, in stretches of more than 0.2 ms, nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others_ns: u64,
}

impl HeldUp {
    /// Returns the sum of these stalls and those of other CPUs.
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
    /// Sockets in any state except TIME_WAIT, including listeners.
    pub in_use: u64,
    /// Sockets among those in use that no longer belong to a process.
    pub orphans: u64,
    /// Closed connections whose ports are kept for a minute (RFC 9293 §3.10.7.8).
    pub time_wait: u64,
}

/// Summary of a histogram; the lossless one is in `histograms.hlog` under `tag`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantileSummary {
    /// Tag of the line in `histograms.hlog`; empty if the histogram was not kept.
    pub tag: String,
    /// Number of values recorded.
    pub count: u64,
    /// Number of values above the histogram's range, counted at its end.
    pub overflow: u64,
    /// Mean, nanoseconds.
    pub mean: f64,
    /// 0.5 quantile, nanoseconds.
    pub p50: u64,
    /// 0.9 quantile, nanoseconds.
    pub p90: u64,
    /// 0.99 quantile, nanoseconds.
    pub p99: u64,
    /// 0.999 quantile, nanoseconds.
    pub p999: u64,
    /// Largest value, nanoseconds.
    pub max: u64,
}

impl QuantileSummary {
    /// Returns true if no value was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Degree to which a figure can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Validity {
    /// Usable: there is no reason for doubt.
    Valid,
    /// Usable with care; the reasons are given with the figure.
    Suspect,
    /// Not usable; the reasons are given with the figure.
    Invalid,
}

/// A reason to doubt a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValidityReason {
    /// Severity: [`Validity::Suspect`] or [`Validity::Invalid`].
    pub validity: Validity,
    /// Name of the flow or generator that the observation is about; `None` for the measurement as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Observation behind the reason, with the name of the rule.
    #[serde(flatten)]
    pub observation: Observation,
}

impl ValidityReason {
    /// Returns the name of the rule: `generator-busy`.
    pub fn rule(&self) -> &'static str {
        self.observation.rule()
    }
}
