//! What is known of a measurement before its outcome is looked at: the rules of `validity` judge nothing else.

use weir_model::load::{Censored, ErrorCount, LeftOut};
use weir_model::record::{
    ConnectionCounts, GeneratorShare, LostNode, Phase, RunHeader, SliceRecord, TrialRecord,
};

use crate::names;
use crate::outcomes::sum;

/// The kernel shows steal and idle time in ticks of 10 ms: one tick more or less is no evidence.
pub(crate) const TICK_NS: f64 = 1e7;

/// What is known of a measurement: of a study's trial, of the continuous trial that it was part of, of a
/// load test, or of one of its flows. What is `None` is not known or does not matter there, and rules
/// that ask for it say nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence<'a> {
    /// Said before what was seen, where several are judged together.
    pub(crate) name: Option<&'a str>,
    /// Requests come by a schedule, whatever the responses do.
    pub(crate) is_open: bool,
    /// Responses that the figures are made of.
    pub(crate) answered: Option<u64>,
    /// Of a load test, response times that its quantiles are made of.
    pub(crate) timed: Option<u64>,
    /// Responses that were complete, those of unmeasured time included.
    pub(crate) completed: Option<u64>,
    /// Of these, those with a status that nobody asked for.
    pub(crate) unexpected: u64,
    /// Errors by kind.
    pub(crate) errors: &'a [ErrorCount],
    /// Requests that never ended.
    pub(crate) censored: Option<Censored>,
    /// Of an open loop.
    pub(crate) schedule: Option<Due>,
    /// Arrivals of a recorded trace, and the lines of its file that are left out.
    pub(crate) recorded: Option<(u64, &'a [LeftOut])>,
    /// Name of a quantile, dispatch lag and response time there, in nanoseconds.
    pub(crate) lag: Vec<(&'static str, u64, u64)>,
    /// Lateness up to here is below what a response time is claimed to be known to; 0 in a study, which
    /// compares.
    pub(crate) resolution_ns: u64,
    /// Threads of the generator, and the CPUs that they share.
    pub(crate) threads: Option<(usize, usize)>,
    /// CPU time of the generator as a share of what it had, without what it was awake for an arrival.
    pub(crate) generator_busy: Option<f64>,
    /// The longest time for which a thread of the generator neither came round nor had asked to wait, and the measured
    /// time, nanoseconds.
    pub(crate) gap: Option<(u64, f64)>,
    /// Requests per second that were sent, and that the generator has shown to be able to send.
    pub(crate) capacity: Option<(f64, f64)>,
    /// Share of the time of the generator's CPUs that the hypervisor took; of a study's trial, less a tick.
    pub(crate) steal: Option<f64>,
    /// Receives that waited for a buffer of the generator, and all, about.
    pub(crate) starved: Option<(u64, u64)>,
    /// Of a host's listen queues.
    pub(crate) overflows: Option<Overflows>,
    /// Connections that ask, where they are to be open from the start.
    pub(crate) asking: Option<ConnectionCounts>,
    /// Connections that are held.
    pub(crate) held: Option<ConnectionCounts>,
    /// Share of the CPUs' time of a server that weir did not start that went to others, by samples.
    pub(crate) crowd: Option<f64>,
    /// Of a study's slices.
    pub(crate) slices: Option<Slices>,
    /// A hop that an arm is to go past TCP on.
    pub(crate) hop: Option<Hop>,
    /// Time between the first start and the last one of several generators, and by how much that may be wrong,
    /// nanoseconds.
    pub(crate) start_spread: Option<(u64, u64)>,
    /// Nodes with pods of the proxies that were lost.
    pub(crate) lost_nodes: Vec<LostNode>,
}

/// What became of the requests that were due in measured time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    /// All of them.
    pub(crate) due: u64,
    /// Sent, sooner or later.
    pub(crate) sent: u64,
    /// Given up, having waited for an idle connection: the server's doing.
    pub(crate) queued: u64,
    /// Left out, because no connection was idle: the server's doing, and asked for.
    pub(crate) dropped: u64,
}

/// Connections that found a listen queue full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overflows {
    /// On the whole host, whoever listened.
    pub(crate) seen: u64,
    /// At most so many were opened by the measurement.
    pub(crate) opened: u64,
    /// Responses that they are to be seen beside.
    pub(crate) responses: u64,
}

/// Sums over a trial's slices, in nanoseconds where a name says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slices {
    pub(crate) count: f64,
    pub(crate) whole_ns: f64,
    pub(crate) measured_ns: f64,
    /// Lateness of the counters' readings.
    pub(crate) late_ns: f64,
    /// CPUs of the proxy.
    pub(crate) proxy_cpus: f64,
    pub(crate) proxy_steal_ns: f64,
    pub(crate) proxy_idle_ns: f64,
    /// Time that CPU quotas held weir's control groups back, and those of the proxy beside them.
    pub(crate) throttled_ns: f64,
    pub(crate) proxy_throttled_ns: f64,
    /// What of the time of the proxy's CPUs was neither idle, nor stolen, nor the proxy's; `None` where
    /// they are shared with weir itself, and where weir does not see the proxy's own.
    pub(crate) others_ns: Option<f64>,
    /// Closed loop: who else is busy, and how much of its CPUs it used.
    pub(crate) peer: Option<(&'static str, f64)>,
    /// Closed loop: median response time.
    pub(crate) median_ns: Option<f64>,
}

impl Slices {
    /// `ns` as a share of the time of the proxy's CPUs.
    pub(crate) fn of_proxy(&self, ns: f64) -> f64 {
        ns / (self.whole_ns * self.proxy_cpus)
    }

    /// What is said of a CPU quota.
    pub(crate) fn held_back(&self, whose: &str, ns: f64) -> String {
        format!(
            "a CPU quota of {whose} control group held its tasks back for {}, summed over CPUs, in {}",
            names::time(ns),
            names::time(self.whole_ns)
        )
    }
}

/// What a bypass counted on a hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hop {
    pub(crate) name: &'static str,
    pub(crate) redirected_bytes: u64,
    pub(crate) tcp_bytes: u64,
    /// Messages.
    pub(crate) redirected: u64,
    pub(crate) tcp: u64,
    /// Sockets that the bypass had no place for, and those that it had one for.
    pub(crate) refused: u64,
    pub(crate) sockets: u64,
}

impl From<Hop> for Evidence<'_> {
    fn from(hop: Hop) -> Self {
        Evidence {
            hop: Some(hop),
            ..Evidence::default()
        }
    }
}

/// What is known of `trial` by itself. What the arm did is no part of it: failed, late and missing answers
/// are outcomes, which are compared.
pub(crate) fn evidence<'a>(trial: &'a TrialRecord, header: &RunHeader) -> Evidence<'a> {
    let study = &header.study;
    let load = study.loads.iter().find(|load| load.name == trial.load);
    let of_trial = |field: fn(&SliceRecord) -> u64| sum([trial], field);
    let discard = match trial.phase {
        // An arm that is alone leaves no other one's work behind.
        Phase::Observation => 0.0,
        _ => load.map_or(study.blocks.discard, |load| load.discard(&study.blocks)),
    };
    let mut slices = Slices::of(trial, header, discard);
    let generator_time_ns = slices.whole_ns * header.generator_cpus() as f64;
    let stolen_ns = of_trial(|slice| slice.generator_steal_ns) - TICK_NS;
    let mut known = Evidence {
        steal: Some(stolen_ns / generator_time_ns),
        completed: Some(of_trial(|slice| slice.completed_whole) as u64),
        errors: &trial.errors,
        ..Evidence::default()
    };
    // A search asks for rates under a load that has none of its own.
    if trial.rate_intended.is_none() && load.is_some_and(|load| !load.is_open()) {
        slices.peer = Some(peer(trial, header, slices.whole_ns));
        slices.median_ns = Some(trial.response_time.p50 as f64);
    } else {
        let generator_ns = of_trial(|slice| slice.generator_cpu_ns);
        known.is_open = true;
        known.schedule = due(trial);
        known.generator_busy = Some(generator_ns / generator_time_ns);
    }
    known.slices = Some(slices);
    known
}

/// What is known of each generator by itself, where several shared the load of `trial`, of which `of_all` is known.
pub(crate) fn of_generators<'a>(
    trial: &'a TrialRecord,
    of_all: &Evidence<'_>,
    header: &RunHeader,
) -> Vec<Evidence<'a>> {
    let whole_ns = of_all.slices.map_or(0.0, |slices| slices.whole_ns);
    let cpus = header.cpus.generator.cpus().len() as f64;
    let of_one = |share: &'a GeneratorShare| Evidence {
        name: Some(&share.host),
        is_open: of_all.is_open,
        schedule: of_all.schedule.map(|_| Due {
            due: share.due,
            sent: share.sent,
            queued: share.queued,
            dropped: share.dropped,
        }),
        generator_busy: of_all
            .generator_busy
            .map(|_| share.cpu_ns as f64 / (whole_ns * cpus)),
        ..Evidence::default()
    };
    trial.generators.iter().map(of_one).collect()
}

/// What became of what was due; `None` in records of before it was kept, and in a closed loop.
fn due(trial: &TrialRecord) -> Option<Due> {
    let of_trial = |field: fn(&SliceRecord) -> u64| sum([trial], field) as u64;
    let due = Due {
        due: of_trial(|slice| slice.due),
        sent: of_trial(|slice| slice.sent),
        queued: of_trial(|slice| slice.queued),
        dropped: of_trial(|slice| slice.dropped),
    };
    (due.due > 0).then_some(due)
}

impl Slices {
    fn of(trial: &TrialRecord, header: &RunHeader, discard: f64) -> Slices {
        let (study, cpus) = (&header.study, &header.cpus);
        let sum = |field: fn(&SliceRecord) -> u64| sum([trial], field);
        let measured_ns = sum(|slice| slice.measured_ns);
        // The record has the measured parts, the study the share that they leave out, as a rule.
        let whole_ns = match sum(|slice| slice.whole_ns) {
            0.0 => measured_ns / (1.0 - discard.clamp(0.0, 0.99)),
            whole_ns => whole_ns,
        };
        let proxy_cpus = cpus.proxy.cpus().len() as f64;
        let proxy_steal_ns = sum(|slice| slice.proxy_steal_ns);
        let proxy_idle_ns = sum(|slice| slice.proxy_cpus_idle_ns);
        let own_ns = sum(|slice| slice.proxy_cpu_ns);
        let arm = study.arms.iter().find(|known| known.name == trial.arm);
        let is_seen = arm.is_none_or(|arm| study.proxy_of(arm).is_started());
        let is_alone = header.shared_cpus().0 == 0;
        let others_ns = whole_ns * proxy_cpus - proxy_idle_ns - proxy_steal_ns - own_ns;
        Slices {
            count: trial.slices.len() as f64,
            whole_ns,
            measured_ns,
            late_ns: sum(|slice| slice.late_ns),
            proxy_cpus,
            proxy_steal_ns,
            proxy_idle_ns,
            throttled_ns: sum(|slice| slice.throttled_ns),
            proxy_throttled_ns: sum(|slice| slice.proxy_throttled_ns),
            others_ns: (is_seen && is_alone).then_some(others_ns),
            peer: None,
            median_ns: None,
        }
    }
}

/// Which of generator and origin used more of its CPUs, and how much. On the same CPUs they are busy
/// together.
fn peer(trial: &TrialRecord, header: &RunHeader, whole_ns: f64) -> (&'static str, f64) {
    let cpus = &header.cpus;
    let generator_ns = sum([trial], |slice| slice.generator_cpu_ns);
    let origin_ns = sum([trial], |slice| slice.origin_cpu_ns);
    let (_, shared) = header.shared_cpus();
    let (generators, origins) = (header.generator_cpus(), cpus.origin.cpus().len());
    let used = |ns: f64, count: usize| ns / (whole_ns * count as f64);
    let (generator, origin) = (used(generator_ns, generators), used(origin_ns, origins));
    let both = used(generator_ns + origin_ns, generators + origins - shared);
    match shared {
        0 if generator >= origin => ("the generator", generator),
        0 => ("the origin", origin),
        _ => ("generator and origin together", both),
    }
}
