//! The real HAProxy asked over TLS by OpenSSL's own client.

use weir_model::study::ProxyRole;
use weir_sut::Proxy;

use crate::haproxy::{haproxy, stock_with};
use crate::secure::{self, TlsArm};
use crate::support::{Origin, get};

/// A proxy with a listener of either kind, and its origin server.
struct Arm {
    secure: TlsArm,
    origin: Origin,
}

fn start(changes: &[(&str, &str)]) -> Arm {
    let origin = Origin::start();
    let (settings, role) = (stock_with(changes), ProxyRole::ReverseProxy);
    Arm {
        secure: secure::start(&haproxy(), &settings, &role, &[], Some(origin.address)),
        origin,
    }
}

impl Arm {
    fn ask(&self, arguments: &[&str]) -> (bool, String) {
        self.secure.ask("/", arguments)
    }

    fn counter(&self, name: &str) -> u64 {
        haproxy()
            .counters(&self.secure.configuration)
            .expect("it answers")[name]
    }
}

#[test]
fn both_listeners_pass_on_what_they_are_asked() {
    let arm = start(&[("nbthread", "2"), ("shards", "2")]);
    assert!(get(arm.secure.proxy.address(), "/").ends_with("hello"));
    let (trusted, text) = arm.ask(&[]);
    assert!(trusted && text.contains("Verification: OK"), "{text}");
    assert!(text.contains("Server public key is 2048 bit"), "{text}");
    assert!(text.contains("\r\n\r\nhello"), "{text}");
    assert_eq!(arm.origin.connections(), 2);
    assert_eq!(arm.counter("frontend.hrsp_2xx"), 2);
    assert_eq!(arm.counter("frontend.ssl_sess"), 1);
    let remarks = haproxy().check(&arm.secure.configuration).unwrap();
    assert_eq!(remarks, Vec::<String>::new());
}

#[test]
fn versions_and_ciphers_are_those_of_the_settings() {
    const CIPHER: &str = "ECDHE-RSA-AES256-GCM-SHA384";
    let arm = start(&[("ssl_max_ver", "TLSv1.2"), ("ssl_ciphers", CIPHER)]);
    let (spoken, text) = arm.ask(&[]);
    assert!(spoken, "{text}");
    assert!(
        text.contains(&format!("New, TLSv1.2, Cipher is {CIPHER}")),
        "{text}"
    );
    let (spoken, text) = arm.ask(&["-tls1_3"]);
    assert!(!spoken && text.contains("alert protocol version"), "{text}");
    let other = ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"];
    let (spoken, text) = arm.ask(&other);
    assert!(!spoken && text.contains("handshake failure"), "{text}");

    const SUITE: &str = "TLS_CHACHA20_POLY1305_SHA256";
    let arm = start(&[("ssl_min_ver", "TLSv1.3"), ("ssl_ciphersuites", SUITE)]);
    let (spoken, text) = arm.ask(&[]);
    assert!(
        spoken && text.contains(&format!("New, TLSv1.3, Cipher is {SUITE}")),
        "{text}"
    );
    let (spoken, text) = arm.ask(&["-tls1_2"]);
    assert!(!spoken, "{text}");
}

#[test]
fn sessions_are_resumed_as_the_settings_say() {
    let none = ("tune_ssl_cachesize", "0");
    for (changes, resumed) in [
        (&[("ssl_session_tickets", "on"), none][..], true),
        (&[("ssl_session_tickets", "off"), none], false),
        (&[("ssl_session_tickets", "off")], true),
    ] {
        let arm = start(changes);
        let session = arm.secure.configuration.prefix().join("session.pem");
        let file = session.to_str().unwrap();
        let (first, text) = arm.ask(&["-tls1_2", "-sess_out", file]);
        assert!(first && text.contains("New, TLSv1.2"), "{text}");
        // A client that was given nothing to come back with has nothing to write down.
        assert_eq!(session.exists(), resumed, "{changes:?}");
        if resumed {
            let (second, text) = arm.ask(&["-tls1_2", "-sess_in", file]);
            assert!(second && text.contains("Reused, TLSv1.2"), "{text}");
        }
        assert_eq!(arm.counter("frontend.ssl_reused_sess"), u64::from(resumed));
    }
}
