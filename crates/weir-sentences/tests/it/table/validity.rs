//! Reasons to doubt a measurement, by rule.

use std::collections::BTreeSet;

use weir_analysis::validity::RULES;
use weir_model::load::{ErrorCount, ErrorKind, LeftOut};
use weir_model::record::{
    CrowdedCpus, HeldBack, LostNode, Observation, Peer, Validity, ValidityReason,
};
use weir_sentences::validity::describe;

use super::Row;

/// A case, and what was observed.
type Case = (&'static str, Observation);

fn cases() -> Vec<Case> {
    [of_requests(), of_proxies(), of_times(), of_generators(), of_connections()].concat()
}

fn of_requests() -> Vec<Case> {
    use Observation::{
        Censored, Dropped, Failures, FewResponses, NothingAnswered, OfferedRate, TraceLeftOut,
    };
    let error = Some(ErrorCount {
        kind: ErrorKind::Connect,
        words: "Connection refused (os error 111)".to_owned(),
        errno: Some(111),
        count: 12_345,
    });
    let left_out = [("not HTTP", 12, 4), ("CONNECT", 300, 17)]
        .map(|(what, lines, first)| LeftOut { what: what.to_owned(), lines, first });
    vec![
        ("No response", NothingAnswered { error: None }),
        ("No response, and errors", NothingAnswered { error: error.clone() }),
        ("No response in the measured time", FewResponses { responses: 0 }),
        ("One response", FewResponses { responses: 1 }),
        ("Too few responses for a median", FewResponses { responses: 4 }),
        ("Too few responses for a p99", FewResponses { responses: 99 }),
        (
            "Responses with an unexpected status",
            Failures { failed: 123, requests: 100_000, error: None },
        ),
        ("Requests that failed", Failures { failed: 12_345, requests: 123_456, error }),
        ("More or fewer requests than were due", OfferedRate { offered: 98_765, due: 100_000 }),
        (
            "A trace of which much is not sent",
            TraceLeftOut { lines: 1_234, left_out: left_out.into() },
        ),
        ("Requests that found no idle connection", Dropped { dropped: 2_345, due: 100_000 }),
        (
            "Requests that never ended",
            Censored { unended: 1_234, requests: 100_000, oldest_ns: 4_321_000_000 },
        ),
    ]
}

fn of_proxies() -> Vec<Case> {
    use Observation::{NodeLost, ProxyCrowded, ProxyNotLimit, ProxySteal, ProxyThrottled};
    let not_limit = |peer| ProxyNotLimit { idle_share: 0.31, peer, peer_share: 0.97 };
    let lost = |node: &str, why: &str| LostNode { node: node.to_owned(), why: why.to_owned() };
    vec![
        ("A proxy whose CPUs the hypervisor took", ProxySteal { share: 0.251 }),
        (
            "A proxy held back by a CPU quota",
            ProxyThrottled(HeldBack { held_back_ns: 61e6, slices_ns: 4e9 }),
        ),
        (
            "A proxy that shares its CPUs with other processes",
            ProxyCrowded { cpus: CrowdedCpus::Proxy, share: 0.21 },
        ),
        (
            "A server that weir did not start, and other processes on its host",
            ProxyCrowded { cpus: CrowdedCpus::Host, share: 0.062 },
        ),
        ("A generator that was the limit", not_limit(Peer::Generator)),
        ("An origin server that was the limit", not_limit(Peer::Origin)),
        ("Generator and origin server that share CPUs", not_limit(Peer::GeneratorAndOrigin)),
        ("A lost node", NodeLost { nodes: vec![lost("worker-2", "NotReady: kubelet stopped")] }),
        (
            "Two lost nodes",
            NodeLost { nodes: vec![lost("worker-2", "NotReady"), lost("worker-3", "deleted")] },
        ),
    ]
}

fn of_times() -> Vec<Case> {
    use Observation::{DispatchLag, LateCounters, SliceTooShort, StartSpread};
    vec![
        (
            "Slices that are too short for the response times",
            SliceTooShort { median_ns: 34.5e6, unmeasured_ns: 25e6 },
        ),
        ("Counters that were read late", LateCounters { late_ns: 7.25e6, share: 0.0725 }),
        (
            "Generators that started apart",
            StartSpread { spread_ns: 12_300_000, uncertainty_ns: 150_000 },
        ),
        (
            "A generator late at the median",
            DispatchLag { quantile: 0.5, lag_ns: 58_000, response_ns: 92_000 },
        ),
        (
            "A generator late at the p99",
            DispatchLag { quantile: 0.99, lag_ns: 1_234_000_000, response_ns: 2_345_000_000 },
        ),
    ]
}

fn of_generators() -> Vec<Case> {
    use Observation::{
        GeneratorBusy, GeneratorStarved, GeneratorStopped, NearSelfCapacity, Steal, ThreadsCrowded,
        Throttled,
    };
    vec![
        ("A generator whose CPUs the hypervisor took", Steal { share: 0.012 }),
        (
            "weir held back by a CPU quota",
            Throttled(HeldBack { held_back_ns: 1_234e6, slices_ns: 4e9 }),
        ),
        ("Threads that share a CPU", ThreadsCrowded { threads: 9, cpus: 1 }),
        ("Threads that share several CPUs", ThreadsCrowded { threads: 1_000, cpus: 2 }),
        ("A busy generator of an open loop", GeneratorBusy { share: 0.97, is_open: true }),
        ("A busy generator of a closed loop", GeneratorBusy { share: 0.97, is_open: false }),
        ("A thread that stood still", GeneratorStopped { gap_ns: 161_000_000, measured_ns: 3e9 }),
        (
            "A rate close to what the generator can send",
            NearSelfCapacity { rate: 91_234.5, self_capacity: 100_000.0 },
        ),
        (
            "Received bytes that waited for a buffer",
            GeneratorStarved { starved: 1_234, receives: 100_000 },
        ),
    ]
}

fn of_connections() -> Vec<Case> {
    use Observation::{
        BypassIdle, BypassRefused, ConnectionsMissing, HeldConnections, ListenOverflows,
        PortsExhausted,
    };
    let idle = |redirected_bytes, redirected| BypassIdle {
        hop: "inbound".to_owned(),
        redirected_bytes,
        tcp_bytes: 3_000_000,
        redirected,
        tcp: 3_000,
    };
    vec![
        ("A generator without local ports", PortsExhausted { connections: 1_234 }),
        ("A full listen queue", ListenOverflows { on_host: 2_345, of_trial: 1_234 }),
        (
            "Connections that were not open at the start",
            ConnectionsMissing { wanted: 10_000, open_at_start: 9_876 },
        ),
        (
            "Held connections that were lost",
            HeldConnections {
                wanted: 10_000,
                open_at_start: 9_999,
                open_at_end: 9_876,
                lost: 1_234,
            },
        ),
        ("A bypass that carried nothing", idle(0, 0)),
        ("A bypass that carried little", idle(1_000_000, 1_000)),
        (
            "Sockets that the bypass had no place for",
            BypassRefused { hop: "outbound".to_owned(), refused: 1_234, sockets: 100_000 },
        ),
    ]
}

fn describe_case(observation: Observation, subject: Option<&str>) -> String {
    describe(&ValidityReason {
        validity: Validity::Suspect,
        subject: subject.map(str::to_owned),
        observation,
    })
}

pub(super) fn rows() -> Vec<Row> {
    let subject = Some("generator-2");
    let busy = Observation::GeneratorBusy { share: 0.97, is_open: true };
    cases()
        .into_iter()
        .map(|(case, observation)| (case, describe_case(observation, None)))
        .chain([("One of several generators", describe_case(busy, subject))])
        .collect()
}

#[test]
fn each_rule_has_a_sentence_whose_counts_have_separators() {
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    let described: BTreeSet<&str> =
        cases().iter().map(|(_, observation)| observation.rule()).collect();
    assert_eq!(described, rules);
    for (case, text) in rows() {
        let longest = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
        assert!(longest < Some(4), "{case}: {text}");
    }
}
