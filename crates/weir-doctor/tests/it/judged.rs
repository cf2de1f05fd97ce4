//! Each rule: the facts that trigger it, those that do not, and that its own commands fix the problem.

use proptest::prelude::*;
use weir_doctor::{
    Calculation, Evidence, Examination, FileEvidence, Finding, HostEvidence, LimitOrigin, Listener,
    LoadDemand, PortProblem, QueueProblem, Request, Severity, UnitLimit, Unread, examine, gather,
};
use weir_testkit::doctor_host::{DEBIAN_NGINX, Host, SITE, list_lines};

#[test]
fn a_client_of_a_reverse_proxy_takes_two_connections() {
    // Two workers with 768 each: 768 clients exactly.
    let host = Host::debian().asking(768, 10.0);
    host.is_silent_about("worker-connections-too-few");
    let host = Host::debian().asking(769, 10.0);
    let finding = host.finding("worker-connections-too-few");
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(list_lines(&finding), ["/etc/nginx/nginx.conf:5: worker_connections 768"]);
    host.obey(&finding);
    host.is_silent_about("worker-connections-too-few");
}

#[test]
fn static_files_take_one_connection_and_two_descriptors() {
    let host = Host::debian().asking(1500, 10.0);
    host.site("server { listen 80; }");
    host.is_silent_about("worker-connections-too-few");
    let finding = host.finding("descriptors-too-few");
    assert_eq!(finding.evidence[0], HostEvidence::WorkerLimit { pid: 101, soft: 1024 }.into());
}

#[test]
fn the_workers_limit_counts_and_not_what_the_file_says() {
    let host = Host::debian().asking(2000, 10.0);
    let raised = format!("worker_rlimit_nofile 2000000;\n{DEBIAN_NGINX}");
    host.write("/etc/nginx/nginx.conf", &raised);
    for id in ["descriptors-too-few", "rlimit-not-taken", "descriptors-above-nr-open"] {
        host.finding(id);
    }
    host.running("0-1", 2_000_000, 2_000_000);
    host.is_silent_about("descriptors-too-few");
    host.is_silent_about("rlimit-not-taken");
}

#[test]
fn ports_run_out_by_time_wait_unless_tuples_may_be_reused() {
    // 28,232 ports for 60 s: 470 connections per second.
    host_at(470.0).is_silent_about("origin-ports-run-out");
    let host = host_at(471.0);
    let finding = host.finding("origin-ports-run-out");
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(count_ports(&finding), Some(28_232));
    host.obey(&finding);
    host.is_silent_about("origin-ports-run-out");
    host.is_silent_about("origin-keepalive-missing");
    host.is_silent_about("origin-keepalive-inert");

    let reusing = host_at(471.0);
    reusing.sysctl("net/ipv4/tcp_tw_reuse", "1");
    reusing.is_silent_about("origin-ports-run-out");
    reusing.sysctl("net/ipv4/tcp_timestamps", "0");
    reusing.finding("origin-ports-run-out");

    // 2, the default, is for loopback alone.
    let local = host_at(471.0);
    local.site(&SITE.replace("10.0.0.2", "127.0.0.1"));
    local.is_silent_about("origin-ports-run-out");

    let two = host_at(471.0);
    let servers = "server 10.0.0.3:8080;\n\tserver 10.0.0.2:8080";
    two.site(&SITE.replace("server 10.0.0.2:8080", servers));
    two.is_silent_about("origin-ports-run-out");
}

/// Returns the local ports in the evidence.
fn count_ports(finding: &Finding) -> Option<u64> {
    finding.evidence.iter().find_map(|one| match one {
        Evidence::Calculation(Calculation::Tuples { ports, .. }) => Some(ports.ports),
        _ => None,
    })
}

fn host_at(rate: f64) -> Host {
    Host::debian().asking(10, rate)
}

#[test]
fn a_unit_without_a_limit_of_descriptors_has_that_of_systemd() {
    let host = Host::debian().asking(50_000, 100.0);
    let limit = UnitLimit {
        unit: "nginx.service".to_owned(),
        soft: Some(1024),
        origin: LimitOrigin::Default,
    };
    let (few, _) = find_too_few(&host);
    assert_eq!(few.expect("a finding").evidence[0], FileEvidence::UnitLimit(limit).into());

    let manager = "[Manager]\n#DefaultLimitNOFILE=10\nDefaultLimitNOFILE=1048576:1048576\n";
    host.write("/etc/systemd/system.conf", manager);
    assert_eq!(find_too_few(&host).0, None);

    // Without a unit it is the shell's, which nobody knows.
    let unit = host.root().join("lib/systemd/system/nginx.service");
    std::fs::remove_file(unit).expect("it was there");
    let (few, unread) = find_too_few(&host);
    assert_eq!(few, None);
    let is_unread = unread.iter().any(|one| one.what == "the descriptors of a worker");
    assert!(is_unread, "{unread:?}");
}

/// Judges the limit of descriptors as the service would run, and not as it does.
fn find_too_few(host: &Host) -> (Option<Finding>, Vec<Unread>) {
    let named = Request {
        asked: host.asked,
        root: Some(host.root().to_owned()),
        nginx: Some("/etc/nginx/nginx.conf".into()),
        ..Request::default()
    };
    let facts = gather(&named).expect("a host that can be read");
    let mut findings = examine(&facts).findings.into_iter();
    (findings.find(|one| one.problem.id() == "descriptors-too-few"), facts.unread)
}

#[test]
fn reserved_ports_are_none() {
    let host = Host::debian().asking(10, 470.0);
    host.sysctl("net/ipv4/ip_local_reserved_ports", "40000-40999,50000");
    let finding = host.finding("origin-ports-run-out");
    assert_eq!(count_ports(&finding), Some(27_231));
}

#[test]
fn keepalive_needs_the_protocol_and_the_field() {
    let site = SITE.replace("8080;", "8080;\n\tkeepalive 16;");
    let host = Host::debian().asking(10, 5.0);
    host.site(&site);
    let finding = host.finding("origin-keepalive-inert");
    assert!(list_lines(&finding)[0].ends_with("keepalive 16"), "{finding:?}");
    host.obey(&finding);
    host.is_silent_about("origin-keepalive-inert");

    // A field set in the location hides those of the server.
    let (version, field) = ("proxy_http_version 1.1;", "proxy_set_header Connection \"\";");
    let of_server = site.replace("\tlisten", &format!("\t{version} {field}\n\tlisten"));
    let host_field = "\t\tproxy_set_header Host $host;\n\t\tproxy_pass";
    host.site(&of_server.replace("\t\tproxy_pass", host_field));
    let finding = host.finding("origin-keepalive-inert");
    host.obey(&finding);
    host.is_silent_about("origin-keepalive-inert");
}

/// The common `map`, in one line or several, and with the opposite default.
#[test]
fn a_map_that_closes_what_asks_for_no_upgrade_is_found() {
    let field = "\t\tproxy_http_version 1.1;\n\t\tproxy_set_header Upgrade $http_upgrade;\n\
                 \t\tproxy_set_header Connection $connection_upgrade;\n\t\tproxy_pass";
    let site = SITE.replace("8080;", "8080;\n\tkeepalive 16;").replace("\t\tproxy_pass", field);
    for (entries, is_closed) in [
        ("default upgrade; '' close;", true),
        ("default upgrade;\n    ''   close;\n", true),
        ("default close; websocket upgrade;", true),
        ("default upgrade; '' '';", false),
        ("default upgrade;", false),
    ] {
        let host = Host::debian().asking(10, 5.0);
        let map = format!("map $http_upgrade $connection_upgrade {{ {entries} }}\n");
        host.site(&format!("{map}{site}"));
        if is_closed {
            let finding = host.finding("origin-keepalive-inert");
            let lines = list_lines(&finding);
            for end in ["Connection $connection_upgrade", " close"] {
                assert!(lines.iter().any(|line| line.ends_with(end)), "{end}: {lines:?}");
            }
            host.obey(&finding);
        }
        host.is_silent_about("origin-keepalive-inert");
    }
    // Since 1.29.7 no `keepalive` is needed, and the field closes connections all the same.
    let host = Host::debian().asking(10, 5.0);
    let map = "map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n";
    host.site(&format!("{map}{}", site.replace("\tkeepalive 16;\n", "")));
    let mut facts = host.facts();
    facts.nginx_version = Some([1, 29, 7]);
    let findings = examine(&facts).findings;
    assert!(
        findings.iter().any(|one| one.problem.id() == "origin-keepalive-inert"),
        "{findings:?}"
    );
}

#[test]
fn since_1_29_7_connections_are_kept_unless_told_otherwise() {
    let host = Host::debian().asking(10, 5000.0);
    let mut facts = host.facts();
    for (patch, are_kept) in [(7, true), (6, false)] {
        facts.nginx_version = Some([1, 29, patch]);
        let ids: Vec<String> =
            examine(&facts).findings.iter().map(|one| one.problem.id()).collect();
        let is_said = ids.iter().any(|id| id == "origin-ports-run-out");
        let any = ids.iter().any(|id| id.starts_with("origin-"));
        assert_eq!((is_said, any), (!are_kept, !are_kept), "{ids:?}");
    }
}

#[test]
fn the_smaller_of_backlog_and_somaxconn_and_which_of_them() {
    let host = Host::debian();
    host.is_silent_about("backlog-capped");
    host.is_silent_about("somaxconn-inert");
    host.sysctl("net/core/somaxconn", "128");
    let capped = host.finding("backlog-capped");
    let problem = QueueProblem::BacklogCapped { backlog: 511, somaxconn: 128 };
    assert_eq!(capped.problem, problem.into());

    host.sysctl("net/core/somaxconn", "32768");
    host.write("/etc/sysctl.d/60-x.conf", "net.core.somaxconn=32768\n");
    let inert = host.finding("somaxconn-inert");
    let problem =
        QueueProblem::SomaxconnInert { somaxconn: 32_768, backlog: 511, default_backlog: 511 };
    assert_eq!(inert.problem, problem.into());
    host.obey(&inert);
    host.is_silent_about("somaxconn-inert");
    host.is_silent_about("backlog-capped");
    let text =
        std::fs::read_to_string(host.root().join("etc/nginx/sites-enabled/default")).unwrap();
    assert!(text.contains("listen 80 default_server backlog=32768;"), "{text}");
}

#[test]
fn what_the_kernel_keeps_stands_above_what_the_files_say() {
    let host = Host::debian();
    let mut facts = host.facts();
    facts.asked.connections_per_second = Some(2000.0);
    facts.listeners =
        Some(vec![Listener { address: "0.0.0.0:80".parse().unwrap(), waiting: 0, backlog: 128 }]);
    let findings = examine(&facts).findings;
    let find = |id: &str| findings.iter().find(|one| one.problem.id() == id).expect(id);
    let address = "0.0.0.0:80".to_owned();
    let queue = HostEvidence::Queue { address, waiting: 0, backlog: 128 }.into();
    assert!(find("backlog-not-in-force").evidence.contains(&queue), "{findings:?}");
    assert_eq!(find("backlog-short").severity, Severity::Warning);
}

#[test]
fn advice_that_does_nothing_is_caught() {
    #[rustfmt::skip]
    let rows = [
        ("sys.fs.file-max = 1048576", "sysctl-no-such-name"),
        ("net.ipv4.tcp_tw_recycle = 1", "tw-recycle-advice"),
        ("net.ipv4.tcp_fin_timeout = 60", "fin-timeout-advice"),
        ("net.ipv4.tcp_low_latency = 0", "sysctl-without-effect"),
        ("net.ipv4.ip_local_port_range = 1024", "port-range-half"),
        ("net.ipv4.ip_local_port_range = 80 60999", "port-range-privileged"),
        ("net/ipv4/ip_local_port_range = 1024 65535", "sysctl-not-live"),
        ("net.core.rmem_max = 212992", "socket-buffers-inert"),
        ("net.ipv4.tcp_max_syn_backlog = 512", "syn-backlog-inert"),
        ("fs.file-max = 100000", "file-max-advice"),
    ];
    for (line, id) in rows {
        let host = Host::debian();
        host.is_silent_about(id);
        host.write("/etc/sysctl.d/60-advice.conf", &format!("\n{line}\n"));
        let finding = host.finding(id);
        let evidence = list_lines(&finding).join("\n");
        let position = "/etc/sysctl.d/60-advice.conf:2: ";
        assert!(evidence.contains(position), "{id}: {evidence}");
        assert!(finding.source.starts_with("https://"), "{id}");
    }
}

/// All commands of an examination are followed, and no directive is duplicated.
#[test]
fn all_remedies_go_together() {
    let host = Host::debian().asking(20_000, 2000.0);
    let wrong = DEBIAN_NGINX.replace("768", "65535");
    host.write("/etc/nginx/nginx.conf", &wrong);
    host.write("/etc/security/limits.conf", "* soft nofile 1048576\n");
    host.sysctl("net/core/somaxconn", "32768");
    host.write("/etc/sysctl.d/1.conf", "net.core.somaxconn = 32768\n");
    let site = SITE.replace("8080;", "8080;\n\tkeepalive 16;");
    host.write(
        "/etc/nginx/sites-enabled/other",
        &site.replace("origin", "other").replace("80 ", "81 "),
    );
    let mut facts = host.facts();
    facts.asked.connections_per_second = Some(10_000.0);
    for finding in examine(&facts).findings {
        host.obey(&finding);
    }
    let facts = host.facts();
    let configuration = facts.configuration.as_ref().unwrap();
    for (name, times) in [
        ("worker_rlimit_nofile", 1),
        ("keepalive", 2),
        ("proxy_http_version", 2),
        ("proxy_set_header", 2),
    ] {
        assert_eq!(configuration.all(&[name]).len(), times, "{name}");
    }
    let first = configuration.all(&["listen"])[0].statement.words();
    assert!(first.ends_with("default_server backlog=32768 reuseport"), "{first}");
    host.is_silent_about("origin-ports-run-out");
    host.is_silent_about("origin-keepalive-missing");
}

/// A hand-written WebSocket header is kept.
#[test]
fn the_header_of_an_upgrade_stays() {
    let by_hand = "\t\tproxy_http_version 1.1;\n\t\tproxy_set_header Upgrade $http_upgrade;\n\
                   \t\tproxy_set_header Connection \"Upgrade\";\n\t\tproxy_pass";
    let host = Host::debian();
    host.site(&SITE.replace("\t\tproxy_pass", by_hand));
    host.obey(&host.finding("origin-keepalive-missing"));
    host.is_silent_about("origin-keepalive-missing");
    host.is_silent_about("origin-keepalive-inert");
    let site = host.read("/etc/nginx/sites-enabled/default");
    assert!(site.contains("Connection \"Upgrade\";"), "{site}");
    assert!(site.contains("keepalive 64;"), "{site}");
}

/// Directives that an `if` may not contain are put before it, once for all passes of its location.
#[test]
fn what_an_if_passes_on_gets_its_protocol_from_the_location() {
    let host = Host::debian();
    let inner = "\t\tif ($arg_c = a) { proxy_pass http://origin; }\n\t\tproxy_pass";
    host.site(&SITE.replace("\t\tproxy_pass", inner));
    host.obey(&host.finding("origin-keepalive-missing"));
    host.is_silent_about("origin-keepalive-missing");
    let facts = host.facts();
    let configuration = facts.configuration.as_ref().unwrap();
    for name in ["proxy_http_version", "proxy_set_header"] {
        let all = configuration.all(&[name]);
        assert_eq!(all.len(), 1, "{name}");
        assert!(!all[0].is_in("if"), "{name}");
    }
}

#[test]
fn a_variable_that_holds_one_thing_is_taken_for_it() {
    let named = "set $name 10.0.0.7:8000; set $scheme_and http://10.0.0.7:8000;";
    let findings = examine_sets(named).findings;
    for id in ["origin-keepalive-missing", "origin-ports-run-out"] {
        assert!(findings.iter().any(|one| one.problem.id() == id), "no {id}: {findings:?}");
    }
    for sets in [
        "set $scheme_and http://$host;",
        "set $scheme_and http://10.0.0.7; if ($arg_a) { set $scheme_and http://10.0.0.8; }",
        "",
    ] {
        let findings = examine_sets(sets).findings;
        assert!(
            !findings.iter().any(|one| one.problem.id().starts_with("origin-")),
            "{sets}: {findings:?}"
        );
    }
}

fn examine_sets(sets: &str) -> Examination {
    let host = Host::debian().asking(10, 471.0);
    host.site(&format!(
        "server {{ listen 80; {sets} location / {{ proxy_pass $scheme_and/x; }} }}\n"
    ));
    host.examined()
}

/// All of the load may go to one location.
#[test]
fn ports_are_those_of_the_place_with_the_fewest_origin_servers() {
    let host = Host::debian().asking(10, 471.0);
    let locations: String = (3..7)
        .map(|nth| format!("location /{nth} {{ proxy_pass http://10.0.0.{nth}; }}\n"))
        .collect();
    host.site(&SITE.replace("\tlocation", &format!("{locations}\tlocation")));
    let finding = host.finding("origin-ports-run-out");
    let problem =
        PortProblem::OriginPortsRunOut { requests_per_second: 471.0, connections_per_second: 470 };
    assert_eq!(finding.problem, problem.into());
}

/// nginx may not raise the hard limit: the unit, the container or the shell that starts it has to.
#[test]
fn a_limit_above_the_hard_one_is_to_be_raised_outside() {
    let host = Host::debian().asking(20_000, 100.0);
    host.running("0-1", 20_000, 20_000);
    let obeyed = host.finding("descriptors-too-few");
    assert!(obeyed.change[0].contains("worker_rlimit_nofile"), "{obeyed:?}");
    host.obey(&obeyed);
    for id in ["descriptors-too-few", "rlimit-not-taken"] {
        let finding = host.finding(id);
        let change = finding.change.join("\n");
        assert!(change.contains("systemctl edit nginx.service: LimitNOFILE="), "{change}");
        assert!(!change.contains("sed"), "{change}");
    }
}

#[test]
fn other_rules_have_their_cause() {
    let (conf, tw) = ("/etc/nginx/nginx.conf", "/proc/sys/net/ipv4/tcp_max_tw_buckets");
    let small = "server { listen 127.0.0.1:40000; }".to_owned();
    let memory = "/proc/sys/net/ipv4/tcp_mem";
    let aborts = "/proc/sys/net/ipv4/tcp_abort_on_overflow";
    let few = "net.ipv4.tcp_max_tw_buckets = 5000\n".to_owned();
    #[rustfmt::skip]
    let rows = [
        ("client-keepalive-off", vec![(conf, replace_gzip("gzip on; keepalive_timeout 0;"))]),
        ("keepalive-requests-low", vec![(conf, replace_gzip("gzip on; keepalive_requests 100;"))]),
        ("gzip-of-compressed", vec![(conf, replace_gzip("gzip on; gzip_types image/png;"))]),
        ("workers-below-cpus", vec![("/sys/devices/system/cpu/online", "0-7\n".to_owned())]),
        ("listen-port-in-range", vec![("/etc/nginx/sites-enabled/default", small)]),
        ("tcp-mem", vec![(memory, "10 20 300".to_owned())]),
        ("time-wait-cut-short", vec![(tw, "5000".to_owned()), ("/etc/sysctl.d/1.conf", few)]),
        ("abort-on-overflow", vec![(aborts, "1".to_owned())]),
    ];
    for (id, files) in rows {
        let host = Host::debian().asking(100, 5.0);
        host.is_silent_about(id);
        for (path, text) in files {
            host.write(path, &text);
        }
        if id == "workers-below-cpus" {
            host.running("0-7", 1024, 1024);
        }
        assert!(!host.finding(id).evidence.is_empty(), "{id}");
    }
}

fn replace_gzip(directives: &str) -> String {
    DEBIAN_NGINX.replace("gzip on;", directives)
}

proptest! {
    /// More load never gives fewer errors.
    #[test]
    fn more_load_is_never_easier(connections in 1_u64..1_000_000_000, rate in 1.0..1e9) {
        let host = Host::debian();
        let mut facts = host.facts();
        let [once, twice] = [1, 2].map(|factor: u64| {
            facts.asked = LoadDemand {
                connections: Some(connections.saturating_mul(factor).min(1_000_000_000)),
                rate: Some(rate * factor as f64),
                connections_per_second: None,
            };
            let examination = examine(&facts);
            examination.count(Severity::Error)
        });
        prop_assert!(once <= twice);
    }
}
