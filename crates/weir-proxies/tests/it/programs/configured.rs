//! Tests of all proxies' configurations: accepted and read back, refused, and how they handle an origin server and
//! files.

use std::fs;
use std::path::Path;

use weir_model::study::ProxyKind::{self, Caddy, Envoy, Haproxy, Httpd, Nginx};
use weir_model::study::{Settings, file_target};
use weir_parameters::{LevelKind, Parameter, Rule};
use weir_sut::{Certificate, SutError, UserConfiguration, WorkFolder};

use crate::programs::httpd::ALONE;
use crate::programs::secure::NAME;
use crate::programs::setup::{Arm, Changes, Setup, catalog_of, nobody, program, run, stock};
use crate::programs::support::{Origin, free_address};
use crate::programs::tls::CIPHER;

/// Samples of every kind of level, and more of them for proxies that are checked faster than httpd.
const SAMPLES: &str = "on,off,0,1,64,4k,500k,0s,250ms,10s,none";
const MORE: &str = "buffered,auto,2,1000,1m,2m,max=1000,max=1000 inactive=10s,text/html,\
                    text/css application/json";

/// Returns levels of a parameter in their canonical spelling: bounds, words, and all samples that it accepts.
pub(crate) fn levels(kind: ProxyKind, row: &Parameter) -> Vec<String> {
    let mut samples: Vec<String> = SAMPLES.split(',').map(str::to_owned).collect();
    if kind != Httpd {
        samples.extend(MORE.split(',').map(str::to_owned));
    }
    match &row.level {
        LevelKind::Integer { min, max, words } => {
            samples.extend([min.to_string(), max.to_string()]);
            samples.extend(words.clone());
        }
        LevelKind::Size { min, max, words } => {
            samples.extend(words.clone());
            if kind == Caddy {
                samples.extend([min.to_string(), max.to_string()]);
            }
        }
        LevelKind::Duration { min, max, .. } if kind == Caddy => {
            samples.extend([min, max].map(|bound| format!("{}ms", bound.as_millis())));
        }
        LevelKind::Set(words) => samples.extend([words.join(" "), words[words.len() - 1].clone()]),
        LevelKind::Choice(words) => samples.extend(words.clone()),
        // Nearly every word is a cipher list, and names of no suite are refused.
        LevelKind::CipherList => {
            samples = ciphers(kind, &row.id).iter().map(|&cipher| cipher.to_owned()).collect();
        }
        _ => {}
    }
    samples.extend(row.default.all().iter().filter_map(|it| it.level.clone()));
    samples.extend(row.debian.clone());
    let checked = samples.iter().filter_map(|level| row.check(level).ok());
    let mut levels: Vec<String> = Vec::new();
    for level in checked {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    // The versions of TLS keep their order, so that the two rows of them agree in every round.
    if !matches!(row.level, LevelKind::Choice(_)) {
        levels.sort();
    }
    assert!(levels.len() > 1, "{}: no samples of its kind", row.id);
    levels
}

fn ciphers(kind: ProxyKind, id: &str) -> &'static [&'static str] {
    match kind {
        // Suites of TLS 1.3 have names of their own.
        _ if id == "ssl_ciphersuites" => {
            &["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]
        }
        Envoy => &[CIPHER, "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305"],
        Httpd => &["DEFAULT", CIPHER, "HIGH:!aNULL"],
        Haproxy => &[CIPHER, "HIGH:!aNULL:!SHA1"],
        _ => &["none", CIPHER, "HIGH:!aNULL:!SHA1"],
    }
}

/// Returns settings of many rows at once, each round with another of their levels, until all have been used: a start of
/// the program for each level of each row would take minutes.
pub(crate) fn rounds(kind: ProxyKind) -> Vec<Settings> {
    let catalog = catalog_of(kind);
    let rows = catalog.parameters(kind);
    let rows: Vec<_> = rows
        .filter(|row| kind != Caddy || companions(row).next().is_none())
        .map(|row| (row.id.clone(), levels(kind, row)))
        .collect();
    let most = rows.iter().map(|(_, levels)| levels.len()).max();
    (0..most.unwrap_or(0))
        .map(|number| {
            let mut settings = stock(kind, &[]);
            settings.extend(
                rows.iter().map(|(id, levels)| (id.clone(), levels[number % levels.len()].clone())),
            );
            // Without compression there is no filter that its other rows would be of.
            if kind == Envoy {
                settings.insert("gzip".to_owned(), "on".to_owned());
            }
            settings
        })
        .collect()
}

/// Returns the settings that a parameter needs to have an effect, each with the levels at which it has none.
fn companions(row: &Parameter) -> impl Iterator<Item = (&String, &Vec<String>)> {
    row.constraints.iter().map(|constraint| &constraint.rule).filter_map(|rule| match rule {
        Rule::NotWith { setting, levels } => Some((setting, levels)),
        _ => None,
    })
}

/// Checks each level alone, in the role in which its row has an effect.
fn each_level_must_read_back(kind: ProxyKind) {
    let folder = WorkFolder::create().expect("the work folder can be made");
    for row in catalog_of(kind).parameters(kind) {
        let mut writes = row.writes.iter();
        let is_for_files = writes.any(|write| write.context.name() == "directory");
        for level in levels(kind, row) {
            let changes = [(&*row.id, &*level)];
            let setup = if is_for_files {
                Setup::files(kind, &changes, 1)
            } else {
                Setup::proxy(kind, &changes, nobody())
            };
            setup.must_read_back(&folder);
        }
    }
}

/// Checks many rows at once, with a listener in clear and one with TLS.
fn rounds_must_read_back(kind: ProxyKind, others: Vec<Settings>) {
    let folder = WorkFolder::create().expect("the work folder can be made");
    let certificate = Certificate::make(folder.path(), &[NAME.to_owned()]).expect("a certificate");
    for settings in rounds(kind).into_iter().chain(others) {
        let setup = Setup {
            settings,
            certificate: Some(&certificate),
            ..Setup::proxy(kind, &[], nobody())
        };
        setup.must_read_back(&folder);
        if kind == Haproxy {
            let remarks = program(kind).check(&setup.write(&folder)).expect("it is accepted");
            assert_eq!(remarks, Vec::<String>::new(), "{:#?}", setup.settings);
        }
    }
}

#[test]
fn every_level_of_nginx_is_accepted_and_reads_back() {
    each_level_must_read_back(Nginx);
}

#[test]
fn every_level_of_httpd_is_accepted_and_reads_back() {
    each_level_must_read_back(Httpd);
}

#[test]
fn every_level_of_haproxy_is_accepted_and_reads_back() {
    rounds_must_read_back(Haproxy, Vec::new());
}

#[test]
fn every_level_of_envoy_is_accepted_and_reads_back() {
    rounds_must_read_back(Envoy, vec![stock(Envoy, &[("gzip", "off")])]);
}

#[test]
fn every_level_of_caddy_is_accepted_and_reads_back() {
    let catalog = catalog_of(Caddy);
    let mut all_settings = Vec::new();
    for row in catalog.parameters(Caddy) {
        let mut with: Settings = stock(Caddy, &[]);
        for (setting, idle) in companions(row) {
            let samples = levels(Caddy, catalog.get(Caddy, setting).unwrap());
            let level = samples.into_iter().find(|level| !idle.contains(level));
            with.insert(setting.clone(), level.expect("a level that is not idle"));
        }
        if companions(row).next().is_some() {
            all_settings.extend(levels(Caddy, row).into_iter().map(|level| {
                let mut settings = with.clone();
                settings.insert(row.id.clone(), level);
                settings
            }));
        }
    }
    rounds_must_read_back(Caddy, all_settings);
}

#[test]
fn a_refusal_is_in_the_proxy_s_own_words() {
    const SOON: Changes<'_> = &[("keepalive_timeout", "soon")];
    let folder = WorkFolder::create().unwrap();
    // What fits the types and is wrong all the same.
    let fitting = [
        ("tls_minimum_protocol_version", "TLSv1_3"),
        ("tls_maximum_protocol_version", "TLSv1_2"),
        ("max_connections_to_accept_per_socket_event", "0"),
    ];
    let haproxy = [("timeout_client", "soon")];
    // What it says when it is asked, and when it is started all the same.
    for (setup, checked, started) in [
        (
            Setup::files(Nginx, SOON, 1),
            &[r#"[emerg] "keepalive_timeout" directive invalid value"#][..],
            "invalid value",
        ),
        (
            Setup::proxy(Haproxy, &haproxy, nobody()),
            &["parsing [conf/haproxy.cfg:", "'timeout client'"],
            "'timeout client'",
        ),
        (
            Setup::proxy(Envoy, SOON, nobody()),
            &["common_http_protocol_options.idle_timeout", "duration"],
            "idle_timeout",
        ),
        (
            Setup::proxy(Envoy, &fitting, nobody()),
            &["MaxConnectionsToAcceptPerSocketEvent"],
            "MaxConnectionsToAcceptPerSocketEvent",
        ),
        (Setup::files(Caddy, SOON, 10), &["invalid duration \"soon\""], "\"soon\""),
        (
            Setup::files(Httpd, &[("keepalive", "perhaps")], 1),
            // With the place.
            &["KeepAlive must be On or Off", "httpd.conf"],
            "On or Off",
        ),
    ] {
        let (program, configuration) = (program(setup.kind), setup.write(&folder));
        let error = program.check(&configuration).unwrap_err();
        let SutError::Refused { words, .. } = &error else {
            panic!("{error}");
        };
        assert!(checked.iter().all(|part| words.contains(part)), "{words}");
        assert!(!words.contains("\"level\":\"info\""), "{words}");
        let is_short = setup.kind != Envoy || words.lines().count() < 6;
        assert!(is_short, "without the document: {words}");
        assert!(error.hint().is_some());
        let error = run(&*program, &configuration).unwrap_err();
        let is_so = matches!(&error, SutError::NotStarted { words, .. } if words.contains(started));
        assert!(is_so, "{error}");
    }
}

#[test]
fn what_cannot_be_configured_is_refused_before_anything_is_written() {
    let folder = WorkFolder::create().unwrap();
    let refused = |setup: &Setup<'_>| setup.try_write(&folder, free_address()).unwrap_err();
    let missing_file = UserConfiguration { file: Path::new("/nonexistent/proxy.json"), asks: &[] };
    for kind in ProxyKind::started() {
        let without = Setup { origin: None, ..Setup::proxy(kind, &[], nobody()) };
        assert!(matches!(refused(&without), SutError::NoOrigin));
        let foreign = if kind == Nginx { "nbthread" } else { "worker_processes" };
        for id in ["colour", foreign] {
            let error = refused(&Setup::proxy(kind, &[(id, "1")], nobody()));
            assert!(matches!(&error, SutError::UnknownParameter { id: of, .. } if of == id));
        }
        for id in ["net.core.somaxconn", "fs.file-max", "rlimit_nofile"] {
            let error = refused(&Setup::proxy(kind, &[(id, "65536")], nobody()));
            assert!(matches!(&error, SutError::NotOfProxy { id: of } if of == id));
        }
        if !kind.serves_files() {
            let error = refused(&Setup::files(kind, &[], 1)).to_string();
            let words = format!("{} cannot serve files: ", kind.title());
            assert!(error.starts_with(&words), "{error}");
        }
        let missing =
            refused(&Setup { own: Some(missing_file), ..Setup::proxy(kind, &[], nobody()) });
        match kind {
            Httpd => assert!(matches!(missing, SutError::Unable { .. }), "{missing}"),
            _ => assert!(matches!(missing, SutError::UserConfiguration(_)), "{missing}"),
        }
    }
    let error = refused(&Setup::proxy(Envoy, &[("backlog", "many")], nobody())).to_string();
    assert!(error.contains("`many` in `listener`"), "{error}");
    assert!(!folder.prefix("arm").exists());
}

const REQUESTS: usize = 20;

#[test]
fn connections_to_the_origin_are_kept_as_the_settings_say() {
    let every_time = REQUESTS..=REQUESTS;
    // Envoy may have opened one more ahead, on which no request has gone; of HAProxy's one may be on its
    // way back to the pool when the next request comes.
    let (one_of_envoy, few) = (1..=2, 1..=REQUESTS / 2 - 1);
    let worker = ("worker_processes", "1");
    let (single, thread) = (("concurrency", "1"), ("nbthread", "1"));
    let always = ("http_reuse", "always");
    let server_close = ("http_connection_mode", "http-server-close");
    // Each request on a client's connection of its own.
    #[rustfmt::skip]
    let rows = [
        (Nginx, vec![worker], every_time.clone()),
        (Nginx, vec![worker, ("origin_keepalive", "16")], 1..=1),
        (Httpd, vec![ALONE], 1..=1),
        (Httpd, vec![ALONE, ("proxy_disablereuse", "on")], every_time.clone()),
        (Envoy, vec![single], one_of_envoy),
        (Envoy, vec![single, ("origin_keepalive_requests", "1")], REQUESTS..=REQUESTS + 1),
        (Envoy, vec![single, ("origin_keepalive_requests", "10")], 2..=3),
        (Haproxy, vec![thread, ("http_reuse", "safe")], every_time.clone()),
        (Haproxy, vec![thread, always, ("pool_purge_delay", "60s")], few),
        (Haproxy, vec![thread, always, ("pool_max_conn", "0")], every_time.clone()),
        (Haproxy, vec![thread, always, server_close], every_time),
    ];
    for (kind, changes, connections) in rows {
        let origin = Origin::start();
        let mut arm = Setup::proxy(kind, &changes, origin.address).start();
        let before = arm.proxy.cpu_ns();
        for _ in 0..REQUESTS {
            let response = arm.get("/");
            let is_passed_on =
                response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("hello");
            assert!(is_passed_on, "{kind:?} {response}");
        }
        let opened = origin.connections();
        assert!(connections.contains(&opened), "{kind:?} {changes:?}: {opened}");
        assert!(arm.proxy.cpu_ns() > before);
        arm.proxy.alive().unwrap();
        must_have_noted(&arm);
    }
}

/// Checks that a proxy logged or counted the requests.
fn must_have_noted(arm: &Arm) {
    let kind = arm.configuration.kind();
    if [Nginx, Httpd].contains(&kind) {
        let log = arm.configuration.prefix().join("logs/access.log");
        let lines = fs::read_to_string(log).unwrap_or_default().lines().count();
        assert_eq!(lines, REQUESTS, "the arm logs into its own folder");
    }
    if kind == Nginx {
        assert_eq!(arm.proxy.error_log_tail(), "");
    }
    if kind == Envoy {
        for (name, value) in [
            ("cluster.origin.upstream_rq_total", REQUESTS),
            ("http.ingress.downstream_rq_2xx", REQUESTS),
            ("cluster.origin.upstream_rq_pending_overflow", 0),
        ] {
            assert_eq!(arm.counter(name), value as u64, "{name}");
        }
        // Besides those of weir, which looked whether it accepts.
        assert!(arm.counter("http.ingress.downstream_cx_total") > REQUESTS as u64);
    }
}

#[test]
fn two_arms_live_side_by_side_and_each_has_its_workers() {
    let origin = Origin::start();
    #[rustfmt::skip]
    let rows = [
        (Nginx, &[("worker_processes", "1")], [("worker_processes", "3"), ("reuseport", "on")],
         [1, 3]),
        // One master and one worker each.
        (Haproxy, &[("nbthread", "1")], [("nbthread", "2"), ("shards", "2")], [1, 1]),
    ];
    for (kind, first, second, workers) in rows {
        let arms = [&first[..], &second]
            .map(|changes| Setup::proxy(kind, changes, origin.address).start());
        let counts = arms.each_ref().map(|arm| arm.proxy.worker_pids().len());
        assert_eq!(counts, workers);
        assert!(arms.iter().all(|arm| arm.get("/").ends_with("hello")));
        assert_ne!(arms[0].proxy.master_pid(), arms[1].proxy.master_pid());
    }
}

#[test]
fn files_have_the_sizes_and_types_that_were_asked_for() {
    let sizes = [0, 1024, 1 << 20];
    let binary = Some("Content-Type: application/octet-stream");
    for (kind, media_type) in [(Nginx, binary), (Httpd, binary), (Caddy, None)] {
        let arm =
            Setup { sizes: &sizes, ..Setup::files(kind, &[("access_log", "off")], 5000) }.start();
        let pages = ["/", "/index.html"].map(|page| (page.to_owned(), 5000));
        let files = sizes.map(|size| (file_target(size), size));
        for (target, size) in pages.into_iter().chain(files) {
            let response = arm.get(&target);
            let (head, content) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{kind:?} {head}");
            assert!(head.contains(&format!("Content-Length: {size}")), "{kind:?} {head}");
            assert_eq!(content.len() as u64, size);
            assert!(content.bytes().all(|b| b == b'\n' || b.is_ascii_graphic() || b == b' '));
            let content_type = match size {
                5000 => Some("Content-Type: text/html"),
                _ => media_type,
            };
            assert!(head.contains(content_type.unwrap_or("HTTP")), "{kind:?} {head}");
            assert!(content_type.is_some() || !head.contains("Content-Type"), "{kind:?} {head}");
        }
        assert!(arm.get("/2").starts_with("HTTP/1.1 404 "));
        assert!(!arm.configuration.prefix().join("logs/access.log").exists());
    }
}

#[test]
fn an_origin_that_is_not_there_is_told_to_clients_and_counted() {
    for (kind, status, counter) in [
        (Nginx, 502, None),
        (Haproxy, 503, Some("backend.econ")),
        (Envoy, 503, Some("cluster.origin.upstream_cx_connect_fail")),
        (Caddy, 502, None),
        (Httpd, 503, Some("AH00957")),
    ] {
        let arm = Setup::proxy(kind, &[], free_address()).start();
        let response = arm.get("/");
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{kind:?} {response}");
        if let Some(name) = counter {
            assert!(arm.counter(name) > 0, "{kind:?}");
        }
        if kind == Caddy {
            // It is told in what Caddy prints.
            let output = arm.proxy.error_log_tail();
            assert!(output.contains("connection refused"), "{output}");
        }
    }
}
