//! For each limiter, evidence that names it first with the parameter to change, and evidence that just fails to.

use std::collections::BTreeSet;

use weir_limits::{Answer, Evidence, Fact, Judgement, NextLimit, Quantities, Rules, judge};
use weir_model::study::ProxyKind;
use weir_model::study::ProxyKind::{Caddy, Envoy, Haproxy, Httpd, Nginx};

/// A proxy with no resource exhausted, in requests per second, seconds and shares. `a>b`: a at a low load, b now.
const CALM: &str = "rate=2000>10000 rate_intended=10000 rate_offered=10000 offered_share=1 service_time=0.001>0.002 \
    dispatch_lag=0.00005 origin_time=0.0003 origin_time_share=0.15 bytes=12e6 network_capacity=1e9 network_use=0.012 \
    opened_by_load=0 full_handshakes=0 full_handshakes_per_request=0 workers=4 no_port_errors=0 closed_errors=0 \
    timeout_errors=0 unexpected_errors=0 gateway_errors=0 failed=0 syn_modes=0 crosses_link=1 asks_compressed=1 compression_on=0 compression_level=1 access_log_on=1 \
    cpu=0.12>0.6 cpu_all=0.12>0.6 cpu_others=0.01 proxy_wait=0.02 descriptors_open=50 origin_cpu=0.3 cpu_steal=0 cpu_softirq_busiest=0.1 proxy_cpus=0.4>2 worker_use=0.1>0.5 \
    cpu_per_request=0.0002>0.0002 user_share=0.3 busiest_process=0.1>0.55 busiest_ready=0.12>0.6 process_threads=1 processes_begun=0 busiest_thread=0.1>0.55 \
    generator_thread=0.4 generator_wait=0.01 generator_throttled=0 closed=0 origin_thread=0.3 switches_per_request=1>0.5 throttled=0 pressure_cpu=0.05 \
    memory=5e7 group_memory=0.3 oom_kills=0 pressure_memory=0 memory_aborts=0 pressure_io=0.01 disk_use=0.05 \
    written_per_request=90 proxy_written_per_request=90 listen_overflows=0 listen_drops=0 syn_queue_full=0 accept_queue=0.02 backlog=511 \
    inbound_opens_per_request=0.0001 accept_queue_mean=0.01 outbound_opens_per_request=0.001 \
    outbound_established=64 outbound_opening=0 attempts_failed=0 connections=500 outbound_time=0.0004 outbound_time_share=0.2 time_wait=100 local_ports=28232 \
    ports_use=0.004 generator_time_wait=10 generator_local_ports=64000 descriptors=0.05 files=0.01 \
    origin_listen_overflows=0 origin_accept_queue=0 syn_retransmits=0 outbound_syn_retransmits=0 \
    retransmits_per_request=0 retransmitted=1 generator_retransmits_per_request=0 link_drops=0 softnet_dropped=0 \
    softnet_squeezed=0.1 proxy_waits=0.1 generator_cpu=0.3 conntrack=0.1 conntrack_refused=0 saturated=1";

/// Counters of each proxy itself, with no resource exhausted.
fn own(proxy: ProxyKind) -> &'static str {
    match proxy {
        Nginx => {
            "log_worker_connections=0 log_open_files=0 log_no_live_origin=0 log_origin_timed_out=0 \
             temporary_files_per_request=0 worker_connections_most=768 log_no_address=0 \
             log_limit_req=0 log_limit_req_delayed=0 limit_req_rate=0 log_limit_conn=0 log_big_header=0 log_origin_closed=0 accepted=64 handled=64"
        }
        Haproxy => {
            "haproxy_idle=40 haproxy_connections=64 haproxy_connections_most=4000 haproxy_connections_use=0.016 \
             haproxy_sessions=64 haproxy_sessions_most=4000 haproxy_sessions_use=0.016 haproxy_queue=0 \
             haproxy_servers=2 haproxy_failed_responses=0 origin_connections_most=1000 \
             haproxy_denied=0 haproxy_denied_connections=0 haproxy_session_rate=10 haproxy_session_rate_most=0"
        }
        Envoy => {
            "envoy_inbound_overflow=0 envoy_global_overflow=0 envoy_connections_overflow=0 envoy_pending_overflow=0 \
             envoy_rate_limited=0 envoy_closed_active=0"
        }
        Httpd => {
            "httpd_idle_workers=300 httpd_busy_workers=64 httpd_workers_most=400 log_pool_exhausted=0"
        }
        _ => "origin_connections_most=1000",
    }
}

fn put(evidence: &mut Evidence, facts: &str) {
    let quantities = Quantities::builtin();
    for fact in facts.split_whitespace() {
        let (name, value) = fact.split_once('=').expect("name=value");
        let quantity = quantities.get(name).unwrap_or_else(|| panic!("no quantity {name}"));
        if value == "?" {
            evidence.quantities.remove(name);
            continue;
        }
        let (low, value) = match value.split_once('>') {
            Some((low, value)) => (Some(parse_number(low, fact)), parse_number(value, fact)),
            None => (None, parse_number(value, fact)),
        };
        let fact = Fact {
            value,
            at_low_load: low,
            unit: quantity.unit.clone(),
            from: quantity_sources(name),
            read_of: None,
        };
        evidence.quantities.insert(name.to_owned(), fact);
    }
}

fn parse_number(text: &str, fact: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{fact}"))
}

fn quantity_sources(name: &str) -> Vec<String> {
    vec![format!("test.{name}")]
}

fn judged(proxy: ProxyKind, facts: &[&str]) -> Judgement {
    let mut evidence = Evidence::default();
    for facts in [CALM, own(proxy)].iter().chain(facts) {
        put(&mut evidence, facts);
    }
    judge(&evidence, Rules::builtin(), Some(proxy))
}

fn first(judgement: &Judgement) -> (&str, &str) {
    let finding = judgement.findings.first();
    finding.map_or(("", ""), |one| (&*one.limiter, one.turn.first().map_or("", String::as_str)))
}

const FULL: &str = "cpu=0.12>0.98 cpu_all=0.12>0.98 busiest_process=0.1>0.9 busiest_thread=0.1>0.9 pressure_cpu=0.6 worker_use=0.1>0.98 haproxy_idle=1";

/// Proxy, differences from [`CALM`], the limiter, the parameter, and the change that makes it a near miss.
#[rustfmt::skip]
const ROWS: &[(ProxyKind, &str, &str, &str, &str)] = &[
    (Nginx, "generator_thread=0.97 dispatch_lag=0.004", "generator", "", "dispatch_lag=0.0001"),
    (Envoy, "generator_wait=0.5 dispatch_lag=0.02", "generator", "", "generator_wait=0.1"),
    (Caddy, "generator_thread=0.98 dispatch_lag=?", "generator", "", "dispatch_lag=0.0001"),
    (Nginx, "generator_cpu=0.99 dispatch_lag=0.003", "generator", "", "dispatch_lag=0.0008"),
    (Nginx, "generator_wait=0.6 offered_share=0.8 dispatch_lag=?", "generator", "", "offered_share=1"),
    (Nginx, "closed=1 dispatch_lag=? generator_thread=0.98 origin_cpu=?", "generator", "", "generator_thread=0.8"),
    (Haproxy, "closed=1 dispatch_lag=? generator_wait=0.5 origin_cpu=?", "generator", "", "generator_wait=0.2"),
    (Caddy, "generator_throttled=0.3", "generator", "", "generator_throttled=0"),
    (Nginx, "generator_time_wait=63000 no_port_errors=0.2", "generator", "", "no_port_errors=0"),
    (Nginx, "cpu_all=0.99 cpu=0.6 cpu_others=0.39 proxy_wait=0.6", "crowded", "", "proxy_wait=0.1"),
    (Haproxy, "cpu_all=0.99 cpu=0.5 cpu_others=0.49 proxy_wait=0.6 origin_cpu=0.97", "crowded", "", "cpu_others=0.05 origin_cpu=0.5"),
    (Nginx, "origin_thread=0.98", "origin", "", "origin_thread=0.8"),
    (Nginx, "origin_cpu=0.97", "origin", "", "origin_cpu=0.9"),
    (Haproxy, "origin_time=0.0003>0.02 origin_time_share=0.9 service_time=0.001>0.022", "origin", "", "origin_time_share=0.5"),
    (Envoy, "origin_time=? origin_time_share=? outbound_time_share=0.97 outbound_established=200 connections=200 outbound_time=0.02 service_time=0.001>0.02", "origin", "", "outbound_time_share=0.5"),
    (Nginx, "origin_listen_overflows=30 origin_accept_queue=1", "origin", "", "origin_listen_overflows=0"),
    (Nginx, "outbound_opening=40 outbound_syn_retransmits=90 syn_queue_full=28 retransmits_per_request=0.3", "origin", "", "outbound_opening=0 syn_queue_full=0 retransmits_per_request=0"),
    (Nginx, "log_origin_timed_out=12", "origin", "", "log_origin_timed_out=0"),
    (Nginx, "log_no_live_origin=12", "origin", "", "log_no_live_origin=0"),
    (Nginx, "log_origin_closed=4 gateway_errors=0.002", "origin", "", "log_origin_closed=0"),
    (Haproxy, "haproxy_failed_responses=2", "origin", "", "haproxy_failed_responses=0"),
    (Envoy, "envoy_closed_active=2 unexpected_errors=0.002", "origin", "", "unexpected_errors=0"),
    (Nginx, "processes_begun=2 closed_errors=0.0004", "reload", "", "processes_begun=0"),
    (Caddy, "gateway_errors=0.4 unexpected_errors=0.4", "origin", "", "gateway_errors=0"),
    (Httpd, "attempts_failed=5000 failed=0.4", "origin", "", "failed=0"),
    (Haproxy, "haproxy_servers=0 unexpected_errors=1", "origin", "", "haproxy_servers=1"),
    (Nginx, "listen_overflows=40 accept_queue=1.05 backlog=16 syn_modes=0.01 syn_retransmits=40", "accept_queue", "backlog", "listen_overflows=0 syn_modes=0"),
    (Caddy, "listen_overflows=40 accept_queue=1", "accept_queue", "net.core.somaxconn", "listen_overflows=0.1"),
    (Httpd, "syn_queue_full=100 syn_modes=0.01 syn_retransmits=100", "syn_queue", "backlog", "syn_queue_full=0 syn_modes=0"),
    (Nginx, "listen_drops=50 syn_retransmits=50", "syn_queue", "net.ipv4.tcp_max_syn_backlog", "listen_drops=0.1"),
    (Nginx, "syn_modes=0.004 syn_retransmits=9", "lost_syns", "net.core.somaxconn", "syn_modes=0.00001"),
    (Nginx, "log_no_address=500 local_ports=200 ports_use=1 outbound_opens_per_request=0.9", "ports", "net.ipv4.ip_local_port_range", "log_no_address=0"),
    (Nginx, "log_no_address=500 ports_use=1 outbound_opens_per_request=0.9", "ports", "origin_keepalive", "log_no_address=0"),
    (Haproxy, "unexpected_errors=0.3 ports_use=0.99 local_ports=200 outbound_opens_per_request=0.9", "ports", "net.ipv4.ip_local_port_range", "unexpected_errors=0"),
    (Haproxy, "unexpected_errors=0.3 ports_use=0.99 outbound_opens_per_request=0.9", "ports", "http_reuse", "ports_use=0.3"),
    (Nginx, "ports_use=0.5 cpu_per_request=0.0002>0.0005 cpu=0.1>0.99 outbound_opens_per_request=1", "time_wait", "net.ipv4.tcp_tw_reuse", "cpu_per_request=0.0002>0.0002 cpu=0.1>0.6"),
    (Nginx, "log_open_files=40 descriptors=1", "descriptors", "worker_rlimit_nofile", "log_open_files=0 descriptors=0.9"),
    (Envoy, "descriptors=0.999", "descriptors", "rlimit_nofile", "descriptors=0.9"),
    (Envoy, "files=0.999", "descriptors", "fs.file-max", "files=0.9"),
    (Nginx, "log_worker_connections=300 listen_overflows=5", "worker_connections", "worker_connections", "log_worker_connections=0 listen_overflows=0"),
    (Nginx, "descriptors_open=64 worker_connections_most=64 inbound_opens_per_request=3", "worker_connections", "worker_connections", "descriptors_open=40 inbound_opens_per_request=0"),
    (Nginx, "accepted=1000 handled=600", "worker_connections", "worker_connections", "handled=1000"),
    (Haproxy, "haproxy_queue=40 origin_time_share=0.9 origin_time=0.01", "maxconn", "server_maxconn", "haproxy_queue=0 origin_time_share=0.2"),
    (Haproxy, "haproxy_connections_use=1 haproxy_sessions_use=1 listen_overflows=9", "maxconn", "maxconn", "haproxy_connections_use=0.9 haproxy_sessions_use=0.9 listen_overflows=0"),
    (Haproxy, "haproxy_sessions_use=1", "maxconn", "frontend_maxconn", "haproxy_sessions_use=0.9"),
    (Httpd, "httpd_busy_workers=370", "maxconn", "max_request_workers", "httpd_busy_workers=300"),
    (Httpd, "httpd_idle_workers=0 httpd_busy_workers=400 listen_overflows=3", "maxconn", "max_request_workers", "httpd_idle_workers=100 httpd_busy_workers=300 listen_overflows=0"),
    (Httpd, "log_pool_exhausted=90 unexpected_errors=0.4", "maxconn", "proxy_max", "log_pool_exhausted=0"),
    (Haproxy, "haproxy_queue=? outbound_established=4 origin_connections_most=4", "maxconn", "server_maxconn", "outbound_established=3"),
    (Caddy, "outbound_established=10 origin_connections_most=10", "maxconn", "origin_max_connections", "outbound_established=8"),
    (Envoy, "envoy_connections_overflow=70", "circuit_breaker", "max_connections", "envoy_connections_overflow=0"),
    (Envoy, "envoy_pending_overflow=70", "circuit_breaker", "max_pending_requests", "envoy_pending_overflow=0"),
    (Envoy, "envoy_inbound_overflow=70", "circuit_breaker", "max_active_downstream_connections", "envoy_inbound_overflow=0"),
    (Envoy, "envoy_global_overflow=70", "circuit_breaker", "max_active_downstream_connections", "envoy_global_overflow=0"),
    (Nginx, "log_limit_req=300 unexpected_errors=0.3", "rate_limit", "", "log_limit_req=0"),
    (Nginx, "log_limit_req_delayed=300", "rate_limit", "", "log_limit_req_delayed=0"),
    (Nginx, "limit_req_rate=9900", "rate_limit", "", "limit_req_rate=30000"),
    (Nginx, "log_limit_conn=300", "rate_limit", "", "log_limit_conn=0"),
    (Nginx, "log_big_header=300 unexpected_errors=0.3", "header_buffer", "proxy_buffer_size", "log_big_header=0"),
    (Haproxy, "haproxy_denied=70", "rate_limit", "", "haproxy_denied=0"),
    (Haproxy, "haproxy_denied_connections=70 syn_modes=0.004", "rate_limit", "", "haproxy_denied_connections=0 syn_modes=0"),
    (Haproxy, "haproxy_session_rate=100 haproxy_session_rate_most=100", "rate_limit", "", "haproxy_session_rate=60"),
    (Envoy, "envoy_rate_limited=70", "rate_limit", "", "envoy_rate_limited=0 envoy_closed_active=0"),
    (Httpd, "cpu=0.9 proxy_waits=7", "cpu", "access_log", "proxy_waits=0.5"),
    (Nginx, "busiest_process=0.1>0.88 busiest_ready=0.1>0.99", "cpu_one_worker", "worker_processes", "busiest_ready=0.1>0.9"),
    (Nginx, "busiest_process=0.1>0.99 busiest_thread=?", "cpu_one_worker", "worker_processes", "busiest_process=0.1>0.85"),
    (Envoy, "process_threads=4 busiest_thread=0.1>0.99", "cpu_one_worker", "concurrency", "process_threads=4 busiest_thread=0.1>0.8"),
    (Haproxy, "worker_use=0.1>0.99 haproxy_idle=1", "cpu_one_worker", "nbthread", "worker_use=0.1>0.8"),
    (Nginx, "cpu_softirq_busiest=0.95 softnet_squeezed=40", "softirq", "net.core.rps_sock_flow_entries", "cpu_softirq_busiest=0.5"),
    (Nginx, "softnet_dropped=40 syn_modes=0.001", "softirq", "net.core.netdev_max_backlog", "softnet_dropped=0 syn_modes=0"),
    (Nginx, "cpu=0.1>0.99 cpu_steal=0.3", "steal", "", "cpu=0.1>0.5"),
    (Nginx, "throttled=0.4", "quota", "worker_processes", "throttled=0.01"),
    (Caddy, "throttled=0.4 listen_overflows=4", "quota", "gomaxprocs", "throttled=0.01 listen_overflows=0"),
    (Nginx, "full_handshakes_per_request=1 cpu=0.1>0.99 user_share=0.8", "tls", "ssl_session_cache", "cpu=0.1>0.7"),
    (Nginx, "full_handshakes_per_request=1 busiest_process=0.1>0.99 user_share=0.8 cpu=?", "tls", "ssl_session_cache", "busiest_process=0.1>0.7"),
    (Nginx, "compression_on=1 compression_level=9 user_share=0.9 cpu=0.1>0.99", "compression", "gzip_comp_level", "cpu=0.1>0.7"),
    (Httpd, "compression_on=1 compression_level=9 user_share=0.9 busiest_process=0.1>0.99 cpu=?", "compression", "deflate_compression_level", "busiest_process=0.1>0.7"),
    (Nginx, "inbound_opens_per_request=1 cpu=0.1>0.97", "keepalive_inbound", "keepalive_requests", "opened_by_load=1 cpu=0.1>0.6"),
    (Nginx, "outbound_opens_per_request=1 cpu=0.1>0.97", "keepalive_origin", "origin_keepalive", "cpu=0.1>0.7"),
    (Httpd, "outbound_opens_per_request=1 cpu=0.1>0.97", "keepalive_origin", "proxy_disablereuse", "cpu=0.1>0.7"),
    (Envoy, "pressure_memory=0.3 pressure_io=0.4", "memory", "per_connection_buffer_limit", "pressure_memory=0.001 pressure_io=0.01"),
    (Caddy, "oom_kills=2", "memory", "gomemlimit", "oom_kills=0"),
    (Nginx, "memory_aborts=5", "memory", "net.ipv4.tcp_mem", "memory_aborts=0"),
    (Nginx, "temporary_files_per_request=0.9 pressure_io=0.4 written_per_request=200000", "disk_temporary", "proxy_buffering", "temporary_files_per_request=0 pressure_io=0.01"),
    (Nginx, "proxy_written_per_request=20000 pressure_io=0.4 temporary_files_per_request=? saturated=0", "disk_temporary", "proxy_buffering", "pressure_io=0.01"),
    (Nginx, "proxy_written_per_request=900000", "disk_temporary", "proxy_buffering", "proxy_written_per_request=9000"),
    (Nginx, "pressure_io=0.5 disk_use=0.99", "disk_log", "access_log", "written_per_request=9000"),
    (Nginx, "pressure_io=0.5", "disk_log", "access_log", "disk_use=0"),
    (Haproxy, "pressure_io=0.3 disk_use=0.99", "disk_log", "access_log", "access_log_on=0"),
    (Envoy, "pressure_io=0.8 saturated=?", "disk_log", "access_log", "pressure_io=0.3 saturated=1 access_log_on=0"),
    (Nginx, "conntrack=1 conntrack_refused=20 syn_retransmits=20 syn_modes=0.01", "conntrack", "net.netfilter.nf_conntrack_max", "conntrack=0.2 syn_modes=0"),
    (Nginx, "conntrack=1 conntrack_refused=? syn_retransmits=20", "conntrack", "net.netfilter.nf_conntrack_max", "syn_retransmits=0"),
    (Nginx, "network_use=0.97 bytes=9.7e8", "network", "gzip", "network_use=0.8"),
    (Envoy, "link_drops=90 retransmits_per_request=0.008", "network", "net.core.default_qdisc", "retransmits_per_request=0.001"),
    (Envoy, "retransmits_per_request=0.08 generator_retransmits_per_request=0.05 retransmitted=800", "network", "net.core.default_qdisc", "retransmits_per_request=0.005"),
    (Caddy, "switches_per_request=1>6", "lock", "metrics", "switches_per_request=6>6"),
];

#[test]
fn each_limiter_is_named_first_and_a_near_miss_names_nothing() {
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (proxy, facts, limiter, parameter, near) in ROWS {
        let judgement = judged(*proxy, &[facts]);
        let is_right =
            first(&judgement) == (*limiter, *parameter) && judgement.answer == Answer::Named;
        if !is_right {
            let names: Vec<_> = judgement
                .findings
                .iter()
                .map(|one| (&one.limiter, one.certainty, &one.after))
                .collect();
            wrong.push(format!("{limiter} {parameter} by {facts}: {names:?}"));
        }
        let missed = judged(*proxy, &[facts, near]);
        if missed.findings.iter().any(|one| one.limiter == *limiter)
            || missed.answer == Answer::Named
        {
            wrong.push(format!("near miss of {limiter} by {near}: {:?}", first(&missed)));
        }
        let ruled = missed.ruled_out.iter().find(|one| one.limiter == *limiter);
        let is_unknown = missed.unknown.iter().any(|one| one.limiter == *limiter);
        if !is_unknown && ruled.is_none_or(|one| one.why.is_empty()) {
            wrong.push(format!("{limiter} is not ruled out by {near}"));
        }
        seen.insert(*limiter);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rules = Rules::builtin();
    let unseen: Vec<&str> = rules
        .limiters()
        .into_iter()
        .filter(|name| !seen.contains(name) && *name != "cpu")
        .collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn a_healthy_run_names_the_cpu_and_nothing_else() {
    for proxy in [Nginx, Haproxy, Envoy, Caddy, Httpd] {
        for more in [
            "",
            "saturated=0",
            "saturated=?",
            "user_share=0.7",
            "service_time=0.001>0.4 origin_time_share=0.01",
        ] {
            let facts =
                if proxy == Haproxy { FULL.to_owned() } else { FULL.replace("haproxy_idle=1", "") };
            let judgement = judged(proxy, &[&facts, more]);
            let names: Vec<&str> = judgement.findings.iter().map(|one| &*one.limiter).collect();
            assert_eq!(names, ["cpu"], "{proxy:?} {more}");
            let calm = judged(proxy, &["saturated=0", more.replace("saturated=?", "").as_str()]);
            assert_eq!(
                (calm.answer, calm.findings.len()),
                (Answer::NoLimitReached, 0),
                "{proxy:?} {more}"
            );
        }
    }
}

#[test]
fn missing_counters_are_unknown_and_not_ruled_out() {
    for (proxy, missing, limiter, names) in [
        (Nginx, "listen_overflows=?", "accept_queue", "listen_overflows"),
        (Nginx, "log_worker_connections=?", "worker_connections", "log_worker_connections"),
        (Nginx, "cpu=?", "cpu", "cpu"),
        (Envoy, "throttled=?", "quota", "throttled"),
        // What it would have to grow against.
        (Caddy, "switches_per_request=6", "lock", "switches_per_request"),
    ] {
        let judgement = judged(proxy, &[missing]);
        let unknown = judgement.unknown.iter().find(|one| one.limiter == limiter);
        assert_eq!(
            unknown.map(|one| one.missing.as_slice()),
            Some(&[names.to_owned()][..]),
            "{limiter}"
        );
        assert!(judgement.ruled_out.iter().all(|one| one.limiter != limiter), "{limiter}");
    }
    let nothing = judge(&Evidence::default(), Rules::builtin(), None);
    assert_eq!((nothing.answer, nothing.ruled_out.len()), (Answer::DoNotKnow, 0));
    assert_eq!(nothing.unknown.len(), Rules::builtin().limiters().len());
}

/// A limiter shown by the pods that could be read is named; one that they do not show may apply to the others.
#[test]
fn what_some_pods_alone_do_not_show_is_unknown_and_not_ruled_out() {
    for (facts, is_named) in [("throttled=0", false), ("throttled=0.4", true)] {
        let mut evidence = Evidence::default();
        for facts in [CALM, own(Nginx), facts] {
            put(&mut evidence, facts);
        }
        let fact = evidence.quantities.get_mut("throttled").expect("known");
        fact.read_of = Some((1, 2));
        let judgement = judge(&evidence, Rules::builtin(), Some(Nginx));
        assert_eq!(first(&judgement).0 == "quota", is_named, "{judgement:?}");
        let unknown = judgement.unknown.iter().find(|one| one.limiter == "quota");
        let missing = unknown.map(|one| one.missing.join(" "));
        assert_eq!(missing.as_deref(), (!is_named).then_some("throttled"));
        let ruled_out: Vec<&str> = judgement.ruled_out.iter().map(|one| &*one.limiter).collect();
        assert!(!ruled_out.contains(&"quota"));
        // Limiters of others have all that they need.
        assert!(ruled_out.contains(&"origin"), "{judgement:?}");
    }
}

#[test]
fn contradictory_evidence_names_nothing() {
    // All CPUs are busy and HAProxy says that it has nothing to do: it polls.
    let polling = judged(Haproxy, &[FULL, "haproxy_idle=97"]);
    assert_eq!(
        (polling.answer, polling.findings.len()),
        (Answer::DoNotKnow, 0),
        "{:?}",
        polling.findings
    );
    assert!(polling.seen.iter().any(|one| one.quantity == "cpu" && one.value > 0.9));
    let why = polling.ruled_out.iter().find(|one| one.limiter == "cpu").expect("ruled out");
    assert!(why.why.iter().any(|one| one.quantity == "haproxy_idle" && one.holds), "{why:?}");
    // More is asked for than is carried, and nothing says why.
    let silent = judged(Nginx, &[]);
    assert_eq!((silent.answer, silent.findings.len()), (Answer::DoNotKnow, 0));
    // The origin's time is known to be short, so connections that are held to it say nothing.
    let held =
        judged(Envoy, &["outbound_time_share=0.97 outbound_established=200 connections=200"]);
    assert_eq!(held.answer, Answer::DoNotKnow, "{:?}", first(&held));
    assert!(held.seen.iter().any(|one| one.quantity == "outbound_time_share"));
}

#[test]
fn consequences_come_after_their_cause() {
    let judgement = judged(
        Nginx,
        &[
            FULL,
            "ports_use=0.5 cpu_per_request=0.0002>0.0006 outbound_opens_per_request=1 \
        listen_overflows=9 accept_queue_mean=0.9 syn_modes=0.01 syn_retransmits=9",
        ],
    );
    let order: Vec<&str> = judgement.findings.iter().map(|one| &*one.limiter).collect();
    assert_eq!(order, ["time_wait", "keepalive_origin", "cpu", "accept_queue", "lost_syns"]);
    let cpu = judgement.findings.iter().find(|one| one.limiter == "cpu");
    let causes = cpu.map(|finding| finding.after.clone());
    assert_eq!(causes, Some(vec!["time_wait".to_owned(), "keepalive_origin".to_owned()]));
    // Behind full CPUs any queue fills and stays full; one that bursts overflow is too short whatever they do.
    for (mean, causes) in [("accept_queue_mean=0.1", &[][..]), ("accept_queue_mean=0.97", &["cpu"])]
    {
        let judgement = judged(Nginx, &[FULL, "listen_overflows=9 accept_queue=1", mean]);
        let mut findings = judgement.findings.into_iter();
        let queue = findings.find(|one| one.limiter == "accept_queue");
        assert_eq!(queue.expect("it shows").after, causes);
    }
}

#[test]
fn what_comes_next_is_projected_from_the_low_load() {
    let judgement = judged(Nginx, &["log_worker_connections=300"]);
    let finding = &judgement.findings[0];
    // 0.12 of the CPUs at 2,000/s and 0.6 at 10,000/s: full at 16,667/s.
    let Some(NextLimit::Resource { quantity, used, at_rate: Some(at) }) = &finding.behind else {
        panic!("{:?}", finding.behind);
    };
    assert_eq!((quantity.as_str(), *used), ("cpu", 0.6));
    assert!((at - 16_666.7).abs() < 1.0, "{at}");
    let says = "nginx logged {log_worker_connections} times that worker_connections are not enough";
    assert_eq!(finding.says, says);
    let both = judged(Nginx, &["log_worker_connections=300 memory_aborts=3"]);
    assert_eq!(both.findings[0].behind, Some(NextLimit::Limiter("memory".to_owned())));
}
