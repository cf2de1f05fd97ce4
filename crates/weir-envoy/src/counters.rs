//! Envoy's own counters. Envoy keeps all of them anyway, by worker, and adds them up on request.

use std::collections::BTreeMap;

use weir_sut::{Configuration, SutError, admin};

/// Target of the request for counters: those of the parts that weir wrote, not of Envoy's administration.
const ASK: &str =
    "/stats?type=Counters&filter=^(cluster.origin|http.ingress|listener.(clear|tls))[.]";

/// Counters that an operator looks at, by the name behind the part's. Envoy has some hundred more.
#[rustfmt::skip]
const WANTED: [&str; 46] = [
    // The cluster: connections to the origin server, and requests on them.
    "upstream_cx_connect_fail", "upstream_cx_connect_timeout", "upstream_cx_destroy_with_active_rq",
    "upstream_cx_idle_timeout", "upstream_cx_max_requests", "upstream_cx_overflow",
    "upstream_cx_pool_overflow", "upstream_cx_rx_bytes_total", "upstream_cx_total",
    "upstream_cx_tx_bytes_total", "upstream_flow_control_paused_reading_total",
    "upstream_rq_pending_failure_eject", "upstream_rq_pending_overflow",
    "upstream_rq_pending_total", "upstream_rq_retry", "upstream_rq_retry_overflow",
    "upstream_rq_rx_reset", "upstream_rq_timeout", "upstream_rq_total", "upstream_rq_tx_reset",
    // Clients: connections, and requests on them.
    "downstream_cx_drain_close", "downstream_cx_idle_timeout", "downstream_cx_max_requests_reached",
    "downstream_cx_overload_disable_keepalive", "downstream_cx_protocol_error",
    "downstream_cx_ssl_total", "downstream_cx_total",
    "downstream_flow_control_paused_reading_total", "downstream_rq_1xx", "downstream_rq_2xx",
    "downstream_rq_3xx", "downstream_rq_4xx", "downstream_rq_5xx", "downstream_rq_header_timeout",
    "downstream_rq_idle_timeout", "downstream_rq_overload_close", "downstream_rq_rx_reset",
    "downstream_rq_timeout", "downstream_rq_total", "downstream_rq_tx_reset",
    // Listeners: what they turned away, and their TLS.
    "downstream_cx_overflow", "downstream_cx_overload_reject", "downstream_global_cx_overflow",
    "ssl.connection_error", "ssl.handshake", "ssl.session_reused",
];

/// Target of the request for counters of a user's configuration, whose parts have names of their own. Counters of
/// filters begin with any name.
pub(crate) const ASK_OWN: &str = "/stats?type=Counters&filter=^(cluster|http|listener|local_rate_limit)[.]|[.]http_local_rate_limit[.]";

/// Endings of the names of rate limit filters' counters, and the name of their sum.
const LIMITS: [&str; 2] = [".rate_limited", ".ratelimit.over_limit"];
const LIMITED: &str = "rate_limited";

pub(super) fn read(configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
    Ok(if configuration.own.is_some() {
        sum(&admin::get(configuration, ASK_OWN)?)
    } else {
        parse(&admin::get(configuration, ASK)?)
    })
}

/// Reads the counters summed over all parts of a kind, of weir's configuration or a user's.
pub(super) fn sampled(configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
    let ask = if configuration.own.is_some() { ASK_OWN } else { ASK };
    admin::get(configuration, ask).map(|text| sum(&text))
}

/// Prefix of counters that a request for statistics increments itself.
const OF_ADMINISTRATION: &str = "http.admin.";

/// Sums the counters of all parts of a kind, as `cluster.upstream_rq_total`. Counters by worker, and those by listener
/// and connection manager, are left out, since other counters include them.
pub(crate) fn sum(text: &str) -> BTreeMap<String, u64> {
    // Each such filter has its counter from the beginning: without one, nothing is turned away.
    let mut all = BTreeMap::from([(LIMITED.to_owned(), 0)]);
    for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        let is_elsewhere = name.starts_with(OF_ADMINISTRATION)
            || name.starts_with("listener.admin.")
            || name.contains(".worker_")
            || (name.starts_with("listener.") && name.contains(".http."));
        let Some(kind) = name.split('.').next().filter(|_| !is_elsewhere) else {
            continue;
        };
        let count = value.trim().parse::<u64>();
        if let (true, Ok(count)) = (LIMITS.iter().any(|limit| name.ends_with(limit)), &count) {
            *all.entry(LIMITED.to_owned()).or_default() += count;
        }
        let wanted = WANTED.iter().find(|wanted| {
            let before = name.strip_suffix(*wanted);
            before.is_some_and(|before| before.ends_with('.'))
        });
        if let (Some(wanted), Ok(count)) = (wanted, count) {
            *all.entry(format!("{kind}.{wanted}")).or_default() += count;
        }
    }
    all
}

/// Parses lines of the form `http.ingress.downstream_rq_total: 12`.
fn parse(text: &str) -> BTreeMap<String, u64> {
    text.lines().filter_map(parse_counter).collect()
}

fn parse_counter(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.split_once(": ")?;
    // The part's name is two words: `cluster.origin`, `listener.tls`.
    let counter = name.splitn(3, '.').nth(2)?;
    let number = value.trim().parse().ok()?;
    WANTED.contains(&counter).then(|| (name.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_user_s_are_added_up_by_kind() {
        let text = "cluster.a.b.upstream_rq_total: 3\n\
                    cluster.c.upstream_rq_total: 4\n\
                    http.admin.downstream_rq_total: 9\n\
                    http.shop.downstream_rq_total: 7\n\
                    listener.0.0.0.0_80.http.shop.downstream_rq_2xx: 7\n\
                    listener.0.0.0.0_80.worker_0.downstream_cx_total: 2\n\
                    listener.0.0.0.0_80.downstream_cx_total: 2\n\
                    listener.admin.downstream_cx_total: 5\n\
                    cluster.c.x_upstream_rq_total: 1\n\
                    cluster.c.ratelimit.over_limit: 2\n\
                    local_rate_limit.tcp.rate_limited: 3\n\
                    shop.http_local_rate_limit.rate_limited: 4\n\
                    shop.http_local_rate_limit.ok: 9\n";
        let expected = [
            ("cluster.upstream_rq_total", 7),
            ("http.downstream_rq_total", 7),
            ("listener.downstream_cx_total", 2),
            ("rate_limited", 9),
        ]
        .map(|(name, number)| (name.to_owned(), number));
        assert_eq!(sum(text), BTreeMap::from(expected));
    }

    #[test]
    fn what_is_wanted_is_taken_under_envoy_s_own_names() {
        let text = "cluster.origin.upstream_rq_pending_overflow: 3\n\
                    cluster.origin.upstream_rq_200: 9\n\
                    http.ingress.downstream_rq_total: 12\n\
                    http.ingress.downstream_rq_time: P0(1,1)\n\
                    listener.tls.ssl.handshake: 4\n\
                    listener.tls.worker_0.downstream_cx_total: 4\n\
                    nonsense\n";
        let expected = [
            ("cluster.origin.upstream_rq_pending_overflow", 3),
            ("http.ingress.downstream_rq_total", 12),
            ("listener.tls.ssl.handshake", 4),
        ]
        .map(|(name, number)| (name.to_owned(), number));
        assert_eq!(parse(text), BTreeMap::from(expected));
    }
}
