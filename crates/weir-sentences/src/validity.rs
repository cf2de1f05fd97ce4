//! Reasons to doubt a measurement.

use weir_analysis::findings::CountedReason;
use weir_model::load::{ErrorCount, LeftOut};
use weir_model::record::{CrowdedCpus, HeldBack, LostNode, Observation, Peer, ValidityReason};

use crate::numbers::{self, count, percent, rate, time};

/// Describes what speaks against a measurement: `the generator used 97 % of its CPU time`. If the reason has a subject,
/// its name comes first.
pub fn describe(reason: &ValidityReason) -> String {
    let text = describe_observation(&reason.observation);
    match &reason.subject {
        Some(subject) => format!("{subject}: {text}"),
        None => text,
    }
}

/// Describes how many trials a reason concerns: `the worst of 3 of 960 trials`. The reason is about the worst of them.
pub fn describe_frequency(counted: &CountedReason) -> String {
    let worst = if counted.trials > 1 { "the worst of " } else { "" };
    let trials = count(counted.trials.into());
    format!("{worst}{trials} of {}", numbers::counted(counted.of.into(), "trial"))
}

/// Describes a reason, with the number of trials that it concerns.
pub fn describe_counted(counted: &CountedReason) -> String {
    format!("{} ({})", describe(&counted.reason), describe_frequency(counted))
}

fn describe_observation(observation: &Observation) -> String {
    use Observation::*;
    match observation {
        NothingAnswered { error } => format!("no response was complete{}", most_frequent(error)),
        FewResponses { responses } => few_responses(*responses),
        Failures { failed, requests, error } => failures(*failed, *requests, error),
        PortsExhausted { connections } => ports_exhausted(*connections),
        ProxySteal { share } => {
            format!("the hypervisor kept {} of the proxy's CPU time for others", percent(*share))
        }
        Steal { share } => {
            format!("the hypervisor took {} of the generator's CPU time", percent(*share))
        }
        Throttled(held_back) => throttled("weir's", held_back),
        ProxyThrottled(held_back) => throttled("the proxy's", held_back),
        ProxyCrowded { cpus, share } => proxy_crowded(*cpus, *share),
        ProxyNotLimit { idle_share, peer, peer_share } => {
            proxy_not_limit(*idle_share, *peer, *peer_share)
        }
        SliceTooShort { median_ns, unmeasured_ns } => slice_too_short(*median_ns, *unmeasured_ns),
        LateCounters { late_ns, share } => late_counters(*late_ns, *share),
        OfferedRate { offered, due } => {
            format!("{} requests were offered where {} were due", count(*offered), count(*due))
        }
        TraceLeftOut { lines, left_out } => trace_left_out(*lines, left_out),
        StartSpread { spread_ns, uncertainty_ns } => start_spread(*spread_ns, *uncertainty_ns),
        NodeLost { nodes } => node_lost(nodes),
        Dropped { dropped, due } => dropped_requests(*dropped, *due),
        DispatchLag { quantile, lag_ns, response_ns } => {
            dispatch_lag(*quantile, *lag_ns, *response_ns)
        }
        ThreadsCrowded { threads, cpus } => threads_crowded(*threads, *cpus),
        GeneratorBusy { share, is_open } => generator_busy(*share, *is_open),
        GeneratorStopped { gap_ns, measured_ns } => generator_stopped(*gap_ns, *measured_ns),
        NearSelfCapacity { rate, self_capacity } => near_self_capacity(*rate, *self_capacity),
        Censored { unended, requests, oldest_ns } => censored(*unended, *requests, *oldest_ns),
        GeneratorStarved { starved, receives } => generator_starved(*starved, *receives),
        ListenOverflows { on_host, of_trial } => listen_overflows(*on_host, *of_trial),
        ConnectionsMissing { wanted, open_at_start } => {
            connections_missing(*wanted, *open_at_start)
        }
        HeldConnections { wanted, open_at_start, open_at_end, lost } => {
            held_connections(*wanted, [*open_at_start, *open_at_end], *lost)
        }
        BypassIdle { hop, redirected_bytes, tcp_bytes, redirected, tcp } => {
            bypass_idle(hop, [*redirected_bytes, *tcp_bytes], [*redirected, *tcp])
        }
        BypassRefused { hop, refused, sockets } => bypass_refused(hop, *refused, *sockets),
    }
}

/// Names the most frequent error; empty without errors.
fn most_frequent(error: &Option<ErrorCount>) -> String {
    match error {
        Some(error) => format!(", {} times `{}`", count(error.count), error.words),
        None => String::new(),
    }
}

fn few_responses(responses: u64) -> String {
    let responses = match responses {
        0 => {
            return "no response is to a request of the measured time (-d, --ramp-up)".to_owned();
        }
        1 => "is 1 response, of which no quantile".to_owned(),
        2..=4 => format!("are {responses} responses, of which no quantile"),
        _ => format!("are {responses} responses, of which the median at best, and no p99"),
    };
    format!("there {responses} can be told (-n, -d)")
}

fn failures(failed: u64, requests: u64, error: &Option<ErrorCount>) -> String {
    format!(
        "{} of {} requests failed ({}){}",
        count(failed),
        count(requests),
        percent(share(failed, requests)),
        most_frequent(error)
    )
}

fn ports_exhausted(connections: u64) -> String {
    let times = count(connections);
    format!(
        "the generator had no local port left {times} times (net.ipv4.ip_local_port_range; closed connections keep theirs \
         for a minute, and each own address has as many: `--source`)"
    )
}

fn throttled(whose: &str, held_back: &HeldBack) -> String {
    let [held_back, slices] = [held_back.held_back_ns, held_back.slices_ns].map(time);
    format!(
        "a CPU quota of {whose} control group held its tasks back for {held_back}, summed over CPUs, in {slices}"
    )
}

fn proxy_crowded(cpus: CrowdedCpus, share: f64) -> String {
    let cpus = match cpus {
        CrowdedCpus::Proxy => "the proxy's CPUs",
        CrowdedCpus::Host => "the CPUs of the server's host",
    };
    format!("other processes took {} of the time of {cpus}", percent(share))
}

fn proxy_not_limit(idle_share: f64, peer: Peer, peer_share: f64) -> String {
    let (peer, owned) = match peer {
        Peer::Generator => ("the generator", "its own"),
        Peer::Origin => ("the origin", "its own"),
        Peer::GeneratorAndOrigin => ("generator and origin together", "theirs"),
    };
    let [idle, used] = [idle_share, peer_share].map(percent);
    format!(
        "the proxy was not the limit: its CPUs were idle {idle} of the time while {peer} used {used} of {owned}"
    )
}

fn slice_too_short(median_ns: f64, unmeasured_ns: f64) -> String {
    let [median, unmeasured] = [median_ns, unmeasured_ns].map(time);
    format!(
        "half of the responses took longer ({median}) than the part of a slice that is not measured ({unmeasured}): use \
         longer slices or fewer connections"
    )
}

fn late_counters(late_ns: f64, share: f64) -> String {
    let (late, share) = (time(late_ns), percent(share));
    format!("the counters of its slices were read {late} late, {share} of a slice")
}

fn trace_left_out(lines: u64, left_out: &[LeftOut]) -> String {
    let (unsent, kinds) = LeftOut::told(left_out);
    let [unsent, lines] = [unsent, lines].map(count);
    format!("{unsent} of {lines} lines of the trace are not sent: {kinds}")
}

fn start_spread(spread_ns: u64, uncertainty_ns: u64) -> String {
    let [spread, uncertainty] = [spread_ns, uncertainty_ns].map(|ns| time(ns as f64));
    format!("the generators started {spread} apart (known to {uncertainty})")
}

fn node_lost(nodes: &[LostNode]) -> String {
    let losses: Vec<String> =
        nodes.iter().map(|lost| format!("node `{}` was lost ({})", lost.node, lost.why)).collect();
    losses.join("; ")
}

fn dropped_requests(dropped: u64, due: u64) -> String {
    let [dropped, due] = [dropped, due].map(count);
    format!("{dropped} of {due} requests found no idle connection and were left out")
}

fn dispatch_lag(quantile: f64, lag_ns: u64, response_ns: u64) -> String {
    let [lag, response] = [lag_ns, response_ns].map(|ns| time(ns as f64));
    let percentile = quantile * 100.0;
    format!(
        "at p{percentile} the generator itself was {lag} late, of a response time of {response}"
    )
}

fn threads_crowded(threads: u64, cpus: u64) -> String {
    format!(
        "{} threads of the generator share {} (-t)",
        count(threads),
        numbers::counted(cpus, "CPU")
    )
}

fn generator_busy(share: f64, is_open: bool) -> String {
    let used = format!("the generator used {} of its CPU time", percent(share));
    if is_open { used } else { format!("{used}: the server may be able to carry more") }
}

fn generator_stopped(gap_ns: u64, measured_ns: f64) -> String {
    let gap_ns = gap_ns as f64;
    format!(
        "a thread of the generator stood still for {}, {} of the measured time: it was stopped, or others had its CPU",
        time(gap_ns),
        percent(gap_ns / measured_ns)
    )
}

fn near_self_capacity(offered: f64, self_capacity: f64) -> String {
    format!(
        "{}/s is {} of the {}/s that this generator can send (weir load --calibrate)",
        rate(offered),
        percent(offered / self_capacity),
        rate(self_capacity)
    )
}

fn censored(unended: u64, requests: u64, oldest_ns: u64) -> String {
    format!(
        "{} requests ({}) never ended, the oldest after {}; the quantiles leave them out",
        count(unended),
        percent(share(unended, requests)),
        time(oldest_ns as f64)
    )
}

fn generator_starved(starved: u64, receives: u64) -> String {
    format!(
        "received bytes waited {} times for one of the generator's buffers (about {} of the receives)",
        count(starved),
        percent(share(starved, receives))
    )
}

fn listen_overflows(on_host: u64, of_trial: u64) -> String {
    let (on_host, of_trial) = (numbers::counted(on_host, "connection"), count(of_trial));
    format!(
        "{on_host} on this host found the listener's queue full and waited for a retransmission, up to \
         {of_trial} of them this trial's (net.core.somaxconn, `backlog`)"
    )
}

fn connections_missing(wanted: u64, open: u64) -> String {
    let [wanted, open] = [wanted, open].map(count);
    format!("of {wanted} connections only {open} were open when the trial began")
}

/// `open` are the connections that were open at the start and at the end.
fn held_connections(wanted: u64, open: [u64; 2], lost: u64) -> String {
    let ([start, end], [wanted, lost]) = (open.map(count), [wanted, lost].map(count));
    format!(
        "of {wanted} connections to be held {start} were open at the start and {end} at the end, and {lost} were lost in \
         between"
    )
}

/// `bytes` and `messages` are those that bypassed TCP and those that went by TCP.
fn bypass_idle(hop: &str, bytes: [u64; 2], messages: [u64; 2]) -> String {
    if bytes[0] == 0 {
        return format!(
            "not a byte of the {hop} hop bypassed TCP, although this arm is about that"
        );
    }
    let [bypassed, by_tcp] = bytes.map(|bytes| bytes as f64);
    format!(
        "only {} of the bytes of the {hop} hop bypassed TCP ({} messages by TCP, of {})",
        percent(1.0 - by_tcp / (bypassed + by_tcp)),
        count(messages[1]),
        count(messages[0] + messages[1])
    )
}

fn bypass_refused(hop: &str, refused: u64, sockets: u64) -> String {
    format!(
        "{} sockets of the {hop} hop ({}) were refused by the bypass; what they sent went by TCP and is not counted",
        count(refused),
        percent(share(refused, sockets))
    )
}

/// Returns the share `part / of`; 0 of nothing.
fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}
