//! Counters of the proxies.

use std::collections::BTreeMap;

use weir_model::record::{PartRecord, Record};
use weir_model::study::{ProxyRole, Study};
use weir_parameters::Catalog;
use weir_record::Run;

use crate::evidence::Hop;

/// Endings of counter names for requests or connections that the proxy turned away, gave up or had to try again. If
/// such a counter moved, a ratio may be that of a proxy that did less work. Envoy's names are whole words
/// (`upstream_rq_pending_overflow`, `upstream_cx_connect_timeout`).
#[rustfmt::skip]
const TELLING_ENDS: [&str; 16] = [
    "overflow", "overflowed", "refused", "rejected", "reject", "error", "errors", "retry",
    "retries", "timeout", "timeouts", "dropped", "failed", "fail", "failures", "ejected",
];
/// Such counters of HAProxy, whose statistics have short names (management guide, section 9.1): requests, responses,
/// connections and sessions denied by rules; errors of requests, connections and responses; retries and redispatches;
/// internal errors. `qtime` is left out: it is a mean of the last 1024 requests, so differences of it mean nothing.
const TELLING_NAMES: [&str; 11] =
    ["dreq", "dresp", "dcon", "dses", "ereq", "econ", "eresp", "wretr", "wredis", "eint", "wrew"];

/// Returns true if a proxy's counter counts requests or connections that it turned away, gave up, or had to try again.
pub fn is_telling(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    TELLING_NAMES.contains(&&*last) || TELLING_ENDS.iter().any(|end| last.ends_with(end))
}

/// Returns the sums over all continuous trials of one load, without counters that stayed 0.
pub(crate) fn of(run: &Run, load: &str, arm: &str) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let records = run.records.iter().filter_map(|record| match record {
        Record::Counters(counters) if counters.phase.counts() => Some(counters),
        _ => None,
    });
    for record in records.filter(|record| record.load == load && record.arm == arm) {
        for (name, count) in record.counted.iter().filter(|(_, count)| **count > 0) {
            let sum = sums.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    sums
}

/// Returns the bypass's counts for each hop of an arm that is to be bypassed, in a continuous trial; all 0 if nothing
/// was counted.
pub(crate) fn hops(run: &Run, part: &PartRecord, arm: &str) -> impl Iterator<Item = Hop> {
    let counted = run.records.iter().find_map(|record| match record {
        Record::Counters(counters)
            if counters.arm == arm
                && counters.load == part.load
                && (counters.session, counters.first_block) == (part.session, part.first_block) =>
        {
            Some(counters)
        }
        _ => None,
    });
    bypassed(&run.header.study, arm).into_iter().map(move |name| {
        let [redirected_bytes, tcp_bytes, redirected, tcp, refused, sockets] =
            ["redirected_bytes", "tcp_bytes", "redirected", "tcp", "refused", "sockets"].map(
                |what| {
                    let counter = format!("sockmap.{name}.{what}");
                    counted.and_then(|record| record.counted.get(&counter)).copied().unwrap_or(0)
                },
            );
        Hop { name, redirected_bytes, tcp_bytes, redirected, tcp, refused, sockets }
    })
}

/// Returns the names of the hops on which an arm's bytes are to bypass TCP.
fn bypassed(study: &Study, arm: &str) -> Vec<&'static str> {
    let Some(arm) = study.arms.iter().find(|known| known.name == arm) else {
        return Vec::new();
    };
    let has_origin = !matches!(study.proxy_of(arm).role, ProxyRole::StaticFiles { .. });
    Catalog::builtin()
        .bypassed(&arm.settings)
        .into_iter()
        .filter(|hop| has_origin || *hop == weir_parameters::Hop::Inbound)
        .map(weir_parameters::Hop::name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_turned_away_is_told_from_what_was_done() {
        let telling = [
            "cluster.origin.upstream_rq_pending_overflow",
            "cluster.origin.upstream_cx_connect_timeout",
            "cluster.origin.upstream_rq_retry",
            "listener.downstream_cx_overload_reject",
            "backend.econ",
            "backend.wretr",
            "frontend.dreq",
            "PoolFailed",
        ];
        for name in telling {
            assert!(is_telling(name), "{name}");
        }
        let neutral = [
            "cluster.origin.upstream_rq_total",
            "cluster.origin.upstream_cx_overflowing_is_no_end",
            "frontend.req_tot",
            "backend.reuse",
            "qtime",
            "",
        ];
        for name in neutral {
            assert!(!is_telling(name), "{name}");
        }
    }
}
