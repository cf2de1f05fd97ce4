//! Tests of the real proxies over TLS with OpenSSL's own client: certificate, versions, ciphers, sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use weir_model::study::ProxyKind::{self, Caddy, Envoy, Haproxy, Httpd, Nginx};
use weir_model::study::file_target;
use weir_sut::{Certificate, SutError, WorkFolder};

use crate::programs::httpd::ALONE;
use crate::programs::nginx::{files, nginx};
use crate::programs::secure::NAME;
use crate::programs::setup::{Arm, Changes, Setup, program};
use crate::programs::support::Origin;

/// Names of a proxy's own counters with their expected values.
type Counted = &'static [(&'static str, u64)];

/// A cipher suite of TLS 1.2 and one of TLS 1.3.
pub(crate) const CIPHER: &str = "ECDHE-RSA-AES256-GCM-SHA384";
const SUITE: &str = "TLS_CHACHA20_POLY1305_SHA256";

fn start(kind: ProxyKind, changes: Changes<'_>, origin: &Origin) -> Arm {
    Setup::proxy(kind, changes, origin.address).start_with_tls()
}

/// Checks the proxy's own counters; a missing one has counted nothing.
fn must_have_counted(kind: ProxyKind, arm: &Arm, counted: Counted) {
    let counters = arm.counters();
    for (name, count) in counted {
        let value = counters.get(*name).copied().unwrap_or(0);
        assert_eq!(value, *count, "{kind:?} {name}");
    }
}

fn must_have(kind: ProxyKind, arm: &Arm, changes: Changes<'_>) {
    let levels = arm.effective().levels;
    for (id, level) in changes {
        let value = levels.get(*id).map(String::as_str);
        assert_eq!(value, Some(*level), "{kind:?} {id}");
    }
}

#[test]
fn both_listeners_pass_on_what_they_are_asked_with_a_certificate_that_is_trusted() {
    // Connections to the origin for two requests, one over TLS: where it says how they are shared.
    for (kind, changes, connections, counted) in [
        (Nginx, &[][..], Some(2), &[][..]),
        (Httpd, &[ALONE], Some(1), &[]),
        (Caddy, &[], Some(2), &[]),
        (
            Haproxy,
            &[("nbthread", "2"), ("shards", "2")],
            Some(2),
            &[("frontend.hrsp_2xx", 2), ("frontend.ssl_sess", 1)],
        ),
        (Envoy, &[], None, &[("http.ingress.downstream_rq_total", 2)]),
    ] {
        let origin = Origin::start();
        let arm = start(kind, changes, &origin);
        assert!(arm.get("/").ends_with("hello"));
        let (trusted, text) = arm.ask("/", &[]);
        let is_trusted = trusted && text.contains("Verification: OK");
        assert!(is_trusted, "{kind:?} {text}");
        assert!(text.contains("Server public key is 2048 bit"), "{text}");
        assert!(text.contains("\r\n\r\nhello"), "{text}");
        must_have_counted(kind, &arm, counted);
        if let Some(connections) = connections {
            assert_eq!(origin.connections(), connections, "{kind:?}");
        }
        let remarks = program(kind).check(&arm.configuration).unwrap();
        assert_eq!(remarks, Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn files_are_the_same_over_tls_and_in_clear() {
    let sizes = [0, 1024, 1 << 20];
    for kind in ProxyKind::started().filter(|kind| kind.serves_files()) {
        let setup = Setup { sizes: &sizes, ..Setup::files(kind, &[], 10) };
        let arm = setup.start_with_tls();
        for size in sizes {
            let target = file_target(size);
            let in_clear = arm.get(&target);
            let (head, content) = in_clear.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{kind:?} {head}");
            assert_eq!(content.len() as u64, size);
            let (trusted, text) = arm.ask(&target, &[]);
            assert!(trusted && text.contains("Verification: OK"), "{kind:?} {text}");
            assert!(text.contains(&format!("Content-Length: {size}\r\n")), "{kind:?}");
            assert!(text.contains(content), "the same file over either");
        }
        assert!(arm.get("/").contains("Content-Length: 10\r\n"));
    }
}

#[test]
fn the_newest_version_and_the_ciphers_are_those_of_the_settings() {
    let of_apache: Changes<'_> = &[("ssl_protocols", "TLSv1.2"), ("ssl_ciphers", CIPHER)];
    for (kind, changes, also, counted) in [
        (Nginx, of_apache, "", &[][..]),
        (Httpd, of_apache, "", &[]),
        (Haproxy, &[("ssl_max_ver", "TLSv1.2"), ("ssl_ciphers", CIPHER)], "", &[]),
        (
            Envoy,
            &[("tls_maximum_protocol_version", "TLSv1_2"), ("cipher_suites", CIPHER)],
            "",
            &[
                ("listener.tls.ssl.handshake", 1),
                ("listener.tls.ssl.connection_error", 2),
                ("http.ingress.downstream_rq_total", 2),
                ("http.ingress.downstream_cx_ssl_total", 3),
            ],
        ),
        (
            Caddy,
            &[
                ("tls_protocol_max", "tls1.2"),
                ("tls_cipher_suite", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
                ("tls_curve", "secp256r1"),
            ],
            "ECDH, prime256v1, 256 bits",
            &[],
        ),
    ] {
        let origin = Origin::start();
        let arm = start(kind, changes, &origin);
        let (spoken, text) = arm.ask("/", &[]);
        assert!(spoken && text.contains("hello"), "{kind:?} {text}");
        let agreed = format!("New, TLSv1.2, Cipher is {CIPHER}");
        assert!(text.contains(&agreed) && text.contains(also), "{kind:?} {text}");
        let (spoken, text) = arm.ask("/", &["-tls1_3"]);
        assert!(!spoken && text.contains("alert protocol version"), "{kind:?} {text}");
        let arguments = ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"];
        let (spoken, text) = arm.ask("/", &arguments);
        assert!(!spoken && text.contains("handshake failure"), "{kind:?} {text}");
        // In clear it answers as well.
        assert!(arm.get("/").ends_with("hello"));
        must_have_counted(kind, &arm, counted);
        must_have(kind, &arm, changes);
    }
}

#[test]
fn the_oldest_version_is_that_of_the_settings() {
    let of_haproxy: Changes<'_> = &[("ssl_min_ver", "TLSv1.3"), ("ssl_ciphersuites", SUITE)];
    for (kind, changes, agreed) in [
        (Nginx, &[("ssl_protocols", "TLSv1.3")][..], ""),
        (Httpd, &[("ssl_protocols", "TLSv1.3")], ""),
        (Haproxy, of_haproxy, SUITE),
        (Envoy, &[("tls_minimum_protocol_version", "TLSv1_3")], ""),
        (Caddy, &[("tls_protocol_min", "tls1.3")], ""),
    ] {
        let arm = start(kind, changes, &Origin::start());
        let (spoken, text) = arm.ask("/", &["-tls1_3"]);
        let words = format!("New, TLSv1.3, Cipher is {agreed}");
        assert!(spoken && text.contains(&words), "{kind:?} {text}");
        let (spoken, text) = arm.ask("/", &["-tls1_2"]);
        assert!(!spoken, "{kind:?} {text}");
        must_have(kind, &arm, changes);
    }
}

const STATEFUL: (&str, &str) = ("stateful_session_resumption", "on");
const STATELESS: (&str, &str) = ("stateful_session_resumption", "off");
const NO_CACHE: (&str, &str) = ("ssl_session_cache", "none");
const TICKETS: (&str, &str) = ("ssl_session_tickets", "on");
const NO_TICKETS: (&str, &str) = ("ssl_session_tickets", "off");
const FORGETS: (&str, &str) = ("tune_ssl_cachesize", "0");
const TWO: (&str, &str) = ("max_request_workers", "50");
const REUSED: &str = "frontend.ssl_reused_sess";
const RESUMED: &str = "listener.tls.ssl.session_reused";
const HITS: &str = "CacheRetrieveHitCount";
/// Settings with true if sessions are resumed under them, and expected counters.
#[rustfmt::skip]
const SESSIONS: [(ProxyKind, Changes<'static>, bool, Counted); 14] = [
    (Nginx, &[TICKETS], true, &[]),
    (Nginx, &[NO_TICKETS], false, &[]),
    (Nginx, &[NO_TICKETS, ("ssl_session_cache", "1m")], true, &[]),
    (Haproxy, &[TICKETS, FORGETS], true, &[(REUSED, 1)]),
    (Haproxy, &[NO_TICKETS, FORGETS], false, &[(REUSED, 0)]),
    (Haproxy, &[NO_TICKETS], true, &[(REUSED, 1)]),
    (Envoy, &[TICKETS, STATELESS], true, &[(RESUMED, 1)]),
    (Envoy, &[NO_TICKETS, STATELESS], false, &[(RESUMED, 0)]),
    (Envoy, &[NO_TICKETS, STATEFUL], true, &[(RESUMED, 1)]),
    (Caddy, &[], true, &[]),
    (Caddy, &[("tls_session_tickets", "off")], false, &[]),
    // Whichever process of the two the second connection comes to.
    (Httpd, &[TWO, TICKETS, NO_CACHE], true, &[(HITS, 0)]),
    (Httpd, &[TWO, NO_TICKETS, NO_CACHE], false, &[(HITS, 0)]),
    (Httpd, &[TWO, NO_TICKETS, ("ssl_session_cache", "500k")], true, &[(HITS, 1)]),
];

#[test]
fn sessions_are_resumed_as_the_settings_say() {
    for (kind, changes, resumed, counted) in SESSIONS {
        let origin = Origin::start();
        let arm = start(kind, changes, &origin);
        let session = arm.configuration.prefix().join("session.pem");
        let file = session.to_str().unwrap();
        let (first, text) = arm.ask("/", &["-tls1_2", "-sess_out", file]);
        assert!(first && text.contains("New, TLSv1.2"), "{kind:?} {text}");
        // Without a ticket and a number there is no session for OpenSSL to write down.
        assert!(session.exists() || !resumed, "{kind:?} {changes:?}");
        if session.exists() {
            let (second, text) = arm.ask("/", &["-tls1_2", "-sess_in", file]);
            assert!(second, "{kind:?} {text}");
            assert_eq!(text.contains("Reused, TLSv1.2"), resumed, "{kind:?} {changes:?}");
        }
        must_have_counted(kind, &arm, counted);
    }
}

#[test]
fn settings_of_tls_read_back_beside_the_flags_of_the_listener_in_clear() {
    let changes = [
        ("backlog", "99"),
        ("ssl_protocols", "TLSv1.2"),
        ("ssl_session_cache", "10m"),
        ("ssl_buffer_size", "4k"),
    ];
    let arm = files(&changes).start_with_tls();
    let catalog = crate::programs::setup::catalog_of(Nginx);
    let effective = nginx().effective(&arm.configuration, None, &catalog).unwrap();
    let untouched = [("ssl_session_tickets", "on"), ("ssl_prefer_server_ciphers", "on")];
    for (id, level) in changes.into_iter().chain(untouched) {
        let value = effective.levels.get(id).map(String::as_str);
        assert_eq!(value, Some(level), "{id}");
    }
    assert_eq!(effective.text.matches("backlog=99").count(), 2);
    let remarks = nginx().check(&arm.configuration).unwrap();
    assert_eq!(remarks, Vec::<String>::new());
}

#[test]
fn the_key_is_nobody_else_s_to_read_and_no_two_runs_have_the_same() {
    let folders = [(); 2].map(|()| WorkFolder::create().unwrap());
    let certificates = folders
        .each_ref()
        .map(|folder| Certificate::make(folder.path(), &[NAME.to_owned()]).unwrap());
    let keys =
        certificates.each_ref().map(|certificate| certificate.file().with_file_name("key.pem"));
    let mode = fs::metadata(&keys[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let texts = keys.map(|key| fs::read(key).unwrap());
    assert_ne!(texts[0], texts[1]);
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .arg(certificates[0].file())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    for words in [
        "Public-Key: (2048 bit)",
        "sha256WithRSAEncryption",
        "DNS:weir.test",
        "TLS Web Server Authentication",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    assert!(matches!(
        Certificate::make(folders[0].path(), &["no host\u{e9}".to_owned()]),
        Err(SutError::Certificate { .. })
    ));
}
