//! Tests of `weir load` over TLS with the real nginx, whose own log is compared.

use std::collections::HashSet;

use weir_model::load_report::{LoadReport, NameCount};
use weir_testkit::faulty::start_origin;
use weir_testkit::loads::{Server, only_status, reported};
use weir_testkit::program::{Ended, HasAll, Running, weir, within};
use weir_testkit::secure::{Authority, Identity, Logged, Nginx};

/// Directives that allow TLS 1.2 every cipher that weir supports with an RSA certificate.
const ALL_RSA: &str = "ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256:\
    ECDHE-RSA-CHACHA20-POLY1305;";

/// Sends a load to nginx, which must answer every request with 200, and ends nginx.
#[track_caller]
fn load(authority: &Authority, directives: &str, line: &str) -> (LoadReport, Vec<Logged>) {
    let nginx = Nginx::start(authority, directives);
    // A busy machine may take its time.
    let (report, ended) = nginx.report(&format!("-T 20s --ca {} {line}", authority.file()));
    assert_eq!(ended.with_code(0).stderr, "", "{line}");
    assert!(report.results.errors.is_empty(), "{line}: {:?}", report.results.errors);
    assert_eq!(only_status(&report).0, 200, "{line}");
    let log = nginx.log();
    assert_eq!(log.len() as u64, report.results.counts.completed_whole, "{line}");
    (report, log)
}

fn connections(log: &[Logged]) -> u64 {
    let numbers: HashSet<_> = log.iter().map(|line| &line.connection).collect();
    numbers.len() as u64
}

fn only(counts: &[NameCount]) -> (&str, u64) {
    let [count] = counts else { panic!("{counts:?}") };
    (&count.name, count.count)
}

#[test]
fn what_was_agreed_on_is_what_nginx_saw() {
    let authority = Authority::new();
    #[rustfmt::skip]
    let rows = [
        ("--tls 1.2 --ciphers ECDHE-RSA-AES256-GCM-SHA384", "1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("--tls 1.2 --ciphers TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "1.2",
         "ECDHE-RSA-AES128-GCM-SHA256"),
        ("--ciphers ecdhe-rsa-chacha20-poly1305", "1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("--tls 1.3 --ciphers TLS_AES_128_GCM_SHA256", "1.3", "TLS_AES_128_GCM_SHA256"),
        ("", "1.3", "TLS_AES_256_GCM_SHA384"),
    ];
    for (options, version, cipher) in rows {
        for (io, policy) in [
            ("epoll", "keep-alive"),
            ("auto", "keep-alive"),
            ("epoll", "per-request"),
            ("auto", "per-request"),
            ("auto", "5"),
        ] {
            let line = format!("{options} --io {io} --connection {policy} -n 40 -c 4 -t 1");
            let (report, log) = load(&authority, ALL_RSA, &line);
            assert_eq!(report.results.counts.completed_whole, 40, "{line}");
            let tls = report.results.tls.as_ref().expect("figures of TLS");
            let opened = match policy {
                "keep-alive" => 4,
                "per-request" => 40,
                // The last of each may be opened and not used.
                _ => tls.handshakes.clamp(8, 12),
            };
            assert_eq!(tls.handshakes, opened, "{line}");
            assert!((opened - 4..=opened).contains(&connections(&log)), "{line}");
            assert_eq!(report.results.tls_time.count, opened, "{line}");
            assert_eq!((tls.resumed, tls.early_data), (0, 0), "{line}");
            let name = format!("TLS {version}");
            assert_eq!(only(&tls.versions), (&*name, opened), "{line}");
            assert_eq!(only(&tls.ciphers), (cipher, opened), "{line}");
            assert_eq!(only(&tls.groups), ("x25519", opened), "{line}");
            for request in &log {
                assert_eq!(request.version, format!("TLSv{version}"), "{line}");
                assert_eq!((&*request.cipher, &*request.reused), (cipher, "."), "{line}");
                // An address is no server name (RFC 6066 §3).
                assert_eq!((&*request.server_name, &*request.alpn), ("", "http/1.1"));
            }
        }
    }
}

#[test]
fn groups_are_as_asked_for() {
    let authority = Authority::new();
    for (options, group) in
        [("secp384r1", "secp384r1"), ("P-256,x25519", "secp256r1"), ("x25519", "x25519")]
    {
        let line = format!("--groups {options} -n 10 -c 2 -t 1");
        let (report, _) = load(&authority, ALL_RSA, &line);
        let tls = report.results.tls.expect("figures of TLS");
        assert_eq!(only(&tls.groups), (group, 2), "{options}");
    }
}

#[test]
fn people_are_told_what_was_agreed_on() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, ALL_RSA);
    let flags = "--resumption on --connection per-request -n 20 -c 1 -t 1";
    nginx.load(&format!("-q --ca {} {flags}", authority.file())).with_code(0).stdout.has_all(&[
        "20 handshakes, 95.0 % resumed",
        "TLS 1.3",
        "TLS_AES_256_GCM_SHA384",
        "x25519",
        "TLS handshake",
        "errors        none",
    ]);
}

#[test]
fn resumption_is_what_nginx_counted() {
    let authority = Authority::new();
    for (share, resumed) in [("off", 0), ("on", 99), ("80%", 80)] {
        for version in ["1.2", "1.3"] {
            for policy in ["-c 1 -t 1", "-c 4 -t 2"] {
                let line = format!(
                    "--tls {version} --resumption {share} --connection per-request -n 100 {policy}"
                );
                let (report, log) = load(&authority, ALL_RSA, &line);
                let tls = report.results.tls.expect("figures of TLS");
                let reused = log.iter().filter(|request| request.reused == "r").count() as u64;
                assert_eq!((tls.handshakes, tls.resumed), (100, reused), "{line}");
                // Each thread begins without a ticket, and so do connections opened at once.
                let none = if policy == "-c 1 -t 1" { 0 } else { 6 };
                within(reused, u64::saturating_sub(resumed, none)..=resumed);
            }
        }
    }
}

#[test]
fn kept_connections_resume_when_they_are_renewed() {
    let authority = Authority::new();
    let line = "--resumption on --connection 10 -n 100 -c 1 -t 1";
    let (report, log) = load(&authority, ALL_RSA, line);
    let tls = report.results.tls.expect("figures of TLS");
    assert_eq!(tls.resumed, tls.handshakes - 1);
    let reused = log.iter().filter(|request| request.reused == "r").count();
    assert_eq!(reused, 90, "all but those of the first connection");
}

#[test]
fn requests_go_with_the_first_flight_and_only_once() {
    let authority = Authority::new();
    for io in ["epoll", "auto"] {
        let line = format!(
            "--io {io} --resumption on --early-data --connection per-request -n 50 -c 1 -t 1"
        );
        let (report, log) = load(&authority, "ssl_early_data on;", &line);
        let tls = report.results.tls.expect("figures of TLS");
        // Tickets come after the client's Finished: a connection whose request was answered before
        // that may bring none, and the one before it brought two.
        let reused = log.iter().filter(|request| request.reused == "r").count() as u64;
        assert_eq!((tls.resumed, tls.early_data), (reused, reused), "{io}");
        assert!(reused >= 50 / 3, "{io}: {reused}");
        // nginx forgets how a request came when the handshake ends before it is looked at.
        let early = log.iter().filter(|request| request.early == "1").count() as u64;
        assert!((1..=reused).contains(&early), "{io}: {early}");
        assert_eq!(log.len(), 50, "{io}");
    }
    // A server that takes none gets the requests after the handshake.
    let line = "--resumption on --early-data --connection per-request -n 20 -c 1 -t 1";
    let (report, log) = load(&authority, "ssl_early_data off;", line);
    assert_eq!(report.results.tls.expect("figures of TLS").early_data, 0);
    assert!(log.iter().all(|request| request.early.is_empty()), "{log:?}");
}

#[test]
fn a_client_shows_its_certificate_where_it_must() {
    let authority = Authority::new();
    let ca = authority.file();
    let demand = format!("{ALL_RSA} ssl_verify_client on; ssl_client_certificate {ca};");
    let trusted = options_of(&authority.issue(|_| {}));
    for version in ["1.2", "1.3"] {
        load(&authority, &demand, &format!("--tls {version} {trusted} -n 20 -c 2"));
    }
    let elsewhere = Authority::new();
    let untrusted = options_of(&elsewhere.issue(|_| {}));
    // nginx lets the handshake pass, and says 400.
    for without in ["", &untrusted] {
        let nginx = Nginx::start(&authority, &demand);
        let (report, _) = nginx.report(&format!("--ca {ca} {without} -n 10 -c 2"));
        assert_eq!(only_status(&report), (400, 10), "{without}");
    }
}

fn options_of(identity: &Identity) -> String {
    format!("--cert {} --key {}", identity.certificate, identity.key)
}

/// Sends a load to an nginx that weir must not trust.
fn distrusted(nginx: &Nginx, line: &str) -> Ended {
    let ended = nginx.load(&format!("-q -n 4 -c 2 -t 1 {line}"));
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

#[test]
fn a_certificate_of_nobody_we_trust_is_an_error_unless_anybody_will_do() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "");
    let stranger = Authority::new();
    // Both authorities have the same name.
    let words = "invalid certificate: not signed by the authority that it names";
    for policy in ["keep-alive", "per-request"] {
        let line = format!("--connection {policy} --ca {}", stranger.file());
        let ended = distrusted(&nginx, &line).with_code(1);
        let hint =
            "\nhint: name the file of its authority with --ca, or accept any certificate with -k";
        ended.says(&[words, hint]).stderr.has_none(&["listening"]);
    }
    distrusted(&nginx, "--insecure").with_code(0);
    distrusted(&nginx, "-k").with_code(0);
    distrusted(&nginx, &format!("--ca {}", authority.file())).with_code(0);
}

#[test]
fn a_certificate_for_another_name() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "");
    let ca = format!("--ca {}", authority.file());
    let ended = distrusted(&nginx, &format!("{ca} --sni elsewhere.test")).with_code(1);
    ended.says(&["not valid for name \"elsewhere.test\"", "\nhint: ", "--sni"]);
    distrusted(&nginx, &format!("{ca} --sni weir.test")).with_code(0);
    distrusted(&nginx, "-k --sni elsewhere.test").with_code(0);
    let log = nginx.log();
    assert_eq!(log[0].server_name, "weir.test");
    assert_eq!(log[log.len() - 1].server_name, "elsewhere.test");
}

#[test]
fn an_address_of_ones_own_choice_and_the_name_of_the_url() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "");
    let (ca, to) = (authority.file(), nginx.address);
    let report = reported(&format!("--ca {ca} --to {to} -n 10 -c 2 https://weir.test/"));
    assert_eq!(report.results.counts.completed_whole, 10);
    for request in nginx.log() {
        assert_eq!([&*request.server_name, &*request.host], ["weir.test"; 2]);
    }
}

#[test]
fn protocols_are_offered_as_asked() {
    let authority = Authority::new();
    let line = "--alpn other,http/1.1 -n 4 -c 1";
    let (_, log) = load(&authority, "", line);
    assert!(log.iter().all(|request| request.alpn == "http/1.1"), "{log:?}");
    // OpenSSL ends a handshake in which nothing is in common (RFC 7301 §3.2).
    let nginx = Nginx::start(&authority, "");
    let ended = distrusted(&nginx, &format!("--ca {} --alpn other", authority.file()));
    let words = "alert received: no_application_protocol (120)";
    ended.with_code(1).says(&[words]);
}

#[test]
fn a_megabyte_each_way() {
    let authority = Authority::new();
    let content = authority.write("content", &"x".repeat(1 << 20));
    for io in ["epoll", "auto"] {
        for version in ["1.2", "1.3"] {
            for policy in ["keep-alive", "per-request"] {
                let nginx = Nginx::start(&authority, ALL_RSA);
                let common = format!(
                    "--ca {} --tls {version} --io {io} --connection {policy} -n 8 -c 2 -t 1 -T 30s",
                    authority.file()
                );
                let url = nginx.url();
                let checks = "--expect size=1MiB --expect status=200";
                let down = reported(&format!("{common} {checks} {url}large"));
                assert!(down.results.errors.is_empty(), "{common}: {:?}", down.results.errors);
                assert_eq!(down.results.counts.content_bytes, 8 << 20, "{common}");
                let post = format!("-m POST --content-file {content}");
                let up = reported(&format!("{common} {post} {url}up"));
                assert!(up.results.errors.is_empty(), "{common}: {:?}", up.results.errors);
                assert_eq!(only_status(&up), (200, 8), "{common}");
            }
        }
    }
}

/// Tests content of unknown length without chunks, which nginx ends by closing the connection.
#[test]
fn content_until_the_close_is_whole_as_nginx_ends_it() {
    let authority = Authority::new();
    let open = format!("{ALL_RSA} chunked_transfer_encoding off; gzip on; gzip_types *;");
    let nginx = Nginx::start(&authority, &open);
    for io in ["epoll", "auto"] {
        for version in ["1.2", "1.3"] {
            let line = format!("--tls {version} --io {io} -n 8 -c 2 -t 1 -T 30s");
            let checks = "--expect status=200 -H accept-encoding:gzip";
            let (ca, url) = (authority.file(), nginx.url());
            let report = reported(&format!("--ca {ca} {line} {checks} {url}large"));
            assert!(report.results.errors.is_empty(), "{line}: {:?}", report.results.errors);
            assert_eq!(only_status(&report), (200, 8), "{line}");
            let handshakes = report.results.tls.expect("figures of TLS").handshakes;
            assert!(handshakes >= 8, "{line}: each answer ends its connection");
        }
    }
}

#[test]
fn several_requests_in_flight() {
    let authority = Authority::new();
    for io in ["epoll", "auto"] {
        let line = format!("--io {io} --pipeline 8 -n 400 -c 2 -t 1");
        let (report, log) = load(&authority, ALL_RSA, &line);
        assert_eq!(report.results.counts.completed_whole, 400, "{io}");
        assert_eq!(report.results.counts.content_bytes, 2 * 400, "{io}");
        assert_eq!(connections(&log), 2, "{io}");
    }
}

#[test]
fn an_open_loop_over_tls() {
    let authority = Authority::new();
    for policy in ["keep-alive", "per-request"] {
        let line = format!("-R 200 -d 500ms --connection {policy} -c 4 -t 1");
        let (report, _) = load(&authority, ALL_RSA, &line);
        assert_eq!(report.results.counts.due, 100, "{policy}");
        assert_eq!(report.results.counts.completed_whole, 100, "{policy}");
    }
}

#[test]
fn a_flow_in_clear_beside_one_over_tls() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "");
    let origin = start_origin();
    let clear = format!("clear: -c 1 -n 10 http://{}/", origin.addresses()[0]);
    let (ca, url) = (authority.file(), nginx.url());
    let line = ["load", "-q", "--format", "json", "--ca", &ca, "--tls", "1.3"];
    let more = ["-c", "2", "-t", "1", "-n", "20", "--flow", &clear, &url];
    let ended = Running::start(&mut weir(line.iter().chain(&more))).end();
    let report: LoadReport = serde_json::from_str(&ended.with_code(0).stdout).unwrap();
    let [main, clear] = &report.flows[..] else { panic!("{:?}", report.flows) };
    let handshakes = main.results.tls.as_ref().map(|tls| tls.handshakes);
    assert_eq!((main.results.counts.completed_whole, handshakes), (20, Some(2)));
    assert_eq!((clear.results.counts.completed_whole, &clear.results.tls), (10, &None));
}
