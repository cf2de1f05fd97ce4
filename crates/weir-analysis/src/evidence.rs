//! Evidence about a measurement that is known before its outcome is looked at. The rules of `validity` judge nothing
//! else.

use weir_model::load::{Censored, ErrorCount, LeftOut};
use weir_model::record::{
    ConnectionCounts, HeldBack, LostNode, Peer, Phase, RunHeader, TrialRecord,
};

use crate::outcomes::sum;

/// Tick in which the kernel counts steal and idle time, nanoseconds (10 ms). A difference of one tick is no evidence.
pub(crate) const TICK_NS: f64 = 1e7;

/// Evidence about a study's trial, the continuous trial that it was part of, a load test, or one of its flows. `None`
/// means unknown or irrelevant; rules that need such a value say nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence<'a> {
    /// Name that precedes the observation if several are judged together.
    pub(crate) name: Option<&'a str>,
    /// True if requests come by a schedule, independent of the responses.
    pub(crate) is_open: bool,
    /// Number of responses that the figures are made of.
    pub(crate) answered: Option<u64>,
    /// Number of response times that the quantiles of a load test are made of.
    pub(crate) timed: Option<u64>,
    /// Number of complete responses, unmeasured time included.
    pub(crate) completed: Option<u64>,
    /// Number of complete responses with an unexpected status.
    pub(crate) unexpected: u64,
    /// Errors by kind.
    pub(crate) errors: &'a [ErrorCount],
    /// Requests that never ended.
    pub(crate) censored: Option<Censored>,
    /// Fate of the requests that were due, in an open loop.
    pub(crate) schedule: Option<Due>,
    /// Number of arrivals of a recorded trace, and the lines of its file that are left out.
    pub(crate) recorded: Option<(u64, &'a [LeftOut])>,
    /// Quantiles (0..1), each with dispatch lag and response time in nanoseconds.
    pub(crate) lag: Vec<(f64, u64, u64)>,
    /// Lateness below which a response time's claimed resolution hides it, nanoseconds; 0 in a study, which compares.
    pub(crate) resolution_ns: u64,
    /// Number of threads of the generator, and of the CPUs that they share.
    pub(crate) threads: Option<(u64, u64)>,
    /// CPU time of the generator as a share of the time it had, without the time it spun for an arrival.
    pub(crate) generator_busy: Option<f64>,
    /// Longest time in which a thread of the generator neither returned to its loop nor had asked to wait, and the
    /// measured time, nanoseconds.
    pub(crate) gap: Option<(u64, f64)>,
    /// Requests per second that were sent, and that the generator has proven able to send.
    pub(crate) capacity: Option<(f64, f64)>,
    /// Share of the time of the generator's CPUs that the hypervisor took; in a study's trial, less one tick.
    pub(crate) steal: Option<f64>,
    /// Receives that waited for a buffer of the generator, and the approximate number of all receives.
    pub(crate) starved: Option<(u64, u64)>,
    /// Overflows of a host's listen queues.
    pub(crate) overflows: Option<Overflows>,
    /// Connections that send requests, if they are to be open from the start.
    pub(crate) asking: Option<ConnectionCounts>,
    /// Connections that are only held open.
    pub(crate) held: Option<ConnectionCounts>,
    /// Share of CPU time that other processes used on a server that weir did not start, by samples.
    pub(crate) crowd: Option<f64>,
    /// Sums over the slices of a study's trial.
    pub(crate) slices: Option<Slices>,
    /// A hop on which an arm's bytes are to bypass TCP.
    pub(crate) hop: Option<Hop>,
    /// Time between the first and the last start of several generators, and the uncertainty of that time, nanoseconds.
    pub(crate) start_spread: Option<(u64, u64)>,
    /// Nodes that were lost, with pods of the proxies.
    pub(crate) lost_nodes: Vec<LostNode>,
}

/// Fate of the requests that were due in measured time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    /// Number of requests that were due.
    pub(crate) due: u64,
    /// Requests that were sent, on time or later.
    pub(crate) sent: u64,
    /// Requests that were given up after waiting for an idle connection: the server's doing.
    pub(crate) queued: u64,
    /// Requests that were left out because no connection was idle: the server's doing, and intended by the load.
    pub(crate) dropped: u64,
}

/// Connections that found a listen queue full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overflows {
    /// Overflows on the whole host, whichever process listened.
    pub(crate) seen: u64,
    /// Upper bound of the connections that the measurement opened.
    pub(crate) opened: u64,
    /// Responses in the same time, for comparison.
    pub(crate) responses: u64,
}

/// Sums over a trial's slices, in nanoseconds where a name says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slices {
    pub(crate) count: f64,
    pub(crate) whole_ns: f64,
    pub(crate) measured_ns: f64,
    /// Sum of the lateness of counter readings.
    pub(crate) late_ns: f64,
    /// Number of CPUs of the proxy.
    pub(crate) proxy_cpus: f64,
    pub(crate) proxy_steal_ns: f64,
    pub(crate) proxy_idle_ns: f64,
    /// Time for which CPU quotas held back weir's control groups; `proxy_throttled_ns` is that of the proxy's.
    pub(crate) throttled_ns: f64,
    pub(crate) proxy_throttled_ns: f64,
    /// Time of the proxy's CPUs that was neither idle, nor stolen, nor used by the proxy; `None` if the CPUs are shared
    /// with weir itself, or weir does not see the proxy's own time.
    pub(crate) others_ns: Option<f64>,
    /// The busier one of generator and origin, and the share of its CPUs that it used; in a closed loop only.
    pub(crate) peer: Option<(Peer, f64)>,
    /// Median response time; in a closed loop only.
    pub(crate) median_ns: Option<f64>,
}

impl Slices {
    /// Returns `ns` as a share of the time of the proxy's CPUs.
    pub(crate) fn of_proxy(&self, ns: f64) -> f64 {
        ns / (self.whole_ns * self.proxy_cpus)
    }

    /// Returns for how long a CPU quota held a control group's tasks back.
    pub(crate) fn held_back(&self, held_back_ns: f64) -> HeldBack {
        HeldBack { held_back_ns, slices_ns: self.whole_ns }
    }
}

/// Counts of a bypass on one hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hop {
    pub(crate) name: &'static str,
    pub(crate) redirected_bytes: u64,
    pub(crate) tcp_bytes: u64,
    /// Messages that were redirected past TCP.
    pub(crate) redirected: u64,
    pub(crate) tcp: u64,
    /// Sockets that the bypass had no room for; `sockets` is the number of those that it took.
    pub(crate) refused: u64,
    pub(crate) sockets: u64,
}

impl From<Hop> for Evidence<'_> {
    fn from(hop: Hop) -> Self {
        Evidence { hop: Some(hop), ..Evidence::default() }
    }
}

/// Collects the evidence about `trial` by itself. The arm's behaviour is no part of it: failed, late and missing
/// answers are outcomes, which are compared.
pub(crate) fn evidence<'a>(trial: &'a TrialRecord, header: &RunHeader) -> Evidence<'a> {
    let study = &header.study;
    let load = study.loads.iter().find(|load| load.name == trial.load);
    let discard = match trial.phase {
        // An arm that is alone leaves no other one's work behind.
        Phase::Observation => 0.0,
        _ => load.map_or(study.blocks.discard, |load| load.discard(&study.blocks)),
    };
    let mut slices = Slices::of(trial, header, discard);
    let generator_time_ns = slices.whole_ns * header.generator_cpus() as f64;
    let stolen_ns = sum([trial], |slice| slice.generator_steal_ns) - TICK_NS;
    let mut evidence = Evidence {
        steal: Some(stolen_ns / generator_time_ns),
        completed: Some(sum([trial], |slice| slice.completed_whole) as u64),
        errors: &trial.errors,
        ..Evidence::default()
    };
    // A search asks for rates under a load that has none of its own.
    if trial.rate_intended.is_none() && load.is_some_and(|load| !load.is_open()) {
        slices.peer = Some(peer(trial, header, slices.whole_ns));
        slices.median_ns = Some(trial.response_time.p50 as f64);
    } else {
        let generator_ns = sum([trial], |slice| slice.generator_cpu_ns);
        evidence.is_open = true;
        evidence.schedule = due(trial);
        evidence.generator_busy = Some(generator_ns / generator_time_ns);
    }
    evidence.slices = Some(slices);
    evidence
}

/// Collects the evidence about each generator if several shared the load of `trial`. `of_all` is the evidence about the
/// whole trial.
pub(crate) fn of_generators<'a>(
    trial: &'a TrialRecord,
    of_all: &Evidence<'_>,
    header: &RunHeader,
) -> Vec<Evidence<'a>> {
    let whole_ns = of_all.slices.map_or(0.0, |slices| slices.whole_ns);
    let cpus = header.cpus.generator.cpus().len() as f64;
    trial
        .generators
        .iter()
        .map(|share| Evidence {
            name: Some(&share.host),
            is_open: of_all.is_open,
            schedule: of_all.schedule.map(|_| Due {
                due: share.due,
                sent: share.sent,
                queued: share.queued,
                dropped: share.dropped,
            }),
            generator_busy: of_all.generator_busy.map(|_| share.cpu_ns as f64 / (whole_ns * cpus)),
            ..Evidence::default()
        })
        .collect()
}

/// Returns the fate of the requests that were due; `None` in a closed loop.
fn due(trial: &TrialRecord) -> Option<Due> {
    let due = Due {
        due: sum([trial], |slice| slice.due) as u64,
        sent: sum([trial], |slice| slice.sent) as u64,
        queued: sum([trial], |slice| slice.queued) as u64,
        dropped: sum([trial], |slice| slice.dropped) as u64,
    };
    (due.due > 0).then_some(due)
}

impl Slices {
    fn of(trial: &TrialRecord, header: &RunHeader, discard: f64) -> Slices {
        let (study, cpus) = (&header.study, &header.cpus);
        let measured_ns = sum([trial], |slice| slice.measured_ns);
        // The record has the measured parts, the study the share that they leave out, as a rule.
        let whole_ns = match sum([trial], |slice| slice.whole_ns) {
            0.0 => measured_ns / (1.0 - discard.clamp(0.0, 0.99)),
            whole_ns => whole_ns,
        };
        let arm = study.arms.iter().find(|known| known.name == trial.arm);
        let proxy_cpus = arm.map_or(&cpus.proxy, |arm| arm.cpus(cpus)).cpus().len() as f64;
        let proxy_steal_ns = sum([trial], |slice| slice.proxy_steal_ns);
        let proxy_idle_ns = sum([trial], |slice| slice.proxy_cpus_idle_ns);
        let own_ns = sum([trial], |slice| slice.proxy_cpu_ns);
        let is_seen = arm.is_none_or(|arm| study.proxy_of(arm).is_started());
        let is_alone = header.shared_cpus().0 == 0;
        let others_ns = whole_ns * proxy_cpus - proxy_idle_ns - proxy_steal_ns - own_ns;
        Slices {
            count: trial.slices.len() as f64,
            whole_ns,
            measured_ns,
            late_ns: sum([trial], |slice| slice.late_ns),
            proxy_cpus,
            proxy_steal_ns,
            proxy_idle_ns,
            throttled_ns: sum([trial], |slice| slice.throttled_ns),
            proxy_throttled_ns: sum([trial], |slice| slice.proxy_throttled_ns),
            others_ns: (is_seen && is_alone).then_some(others_ns),
            peer: None,
            median_ns: None,
        }
    }
}

/// Returns the busier one of generator and origin, and the share of its CPUs that it used. If they share CPUs, both
/// count together.
fn peer(trial: &TrialRecord, header: &RunHeader, whole_ns: f64) -> (Peer, f64) {
    let cpus = &header.cpus;
    let generator_ns = sum([trial], |slice| slice.generator_cpu_ns);
    let origin_ns = sum([trial], |slice| slice.origin_cpu_ns);
    let (_, shared) = header.shared_cpus();
    let (generators, origins) = (header.generator_cpus(), cpus.origin.cpus().len());
    let [generator, origin, both] = [
        (generator_ns, generators),
        (origin_ns, origins),
        (generator_ns + origin_ns, generators + origins - shared),
    ]
    .map(|(ns, cpus)| ns / (whole_ns * cpus as f64));
    match shared {
        0 if generator >= origin => (Peer::Generator, generator),
        0 => (Peer::Origin, origin),
        _ => (Peer::GeneratorAndOrigin, both),
    }
}
