//! The real Envoy asked over TLS by OpenSSL's own client: certificate, versions, ciphers, sessions.

use std::fs;

use crate::envoy::Arm;
use crate::envoy_serving::{arm, counter};
use crate::secure;
use crate::support::{Origin, get};

impl Arm {
    /// What `openssl s_client` prints of a handshake and a GET, with the certificate verified.
    fn ask_tls(&self, arguments: &[&str]) -> (bool, String) {
        let address = self.configuration.tls_listen();
        let address = address.expect("it listens for TLS");
        secure::ask(&self.certificate, address, "/", arguments)
    }
}

#[test]
fn versions_and_ciphers_of_tls_are_those_of_the_settings() {
    const CIPHER: &str = "ECDHE-RSA-AES256-GCM-SHA384";
    let origin = Origin::start();
    let arm = arm(
        &[
            ("tls_maximum_protocol_version", "TLSv1_2"),
            ("cipher_suites", CIPHER),
        ],
        origin.address,
    );
    let (trusted, text) = arm.ask_tls(&[]);
    assert!(trusted && text.contains("hello"), "{text}");
    assert!(
        text.contains(&format!("New, TLSv1.2, Cipher is {CIPHER}")),
        "{text}"
    );
    let (spoken, text) = arm.ask_tls(&["-tls1_3"]);
    assert!(!spoken && text.contains("alert protocol version"), "{text}");
    let other = ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"];
    let (spoken, text) = arm.ask_tls(&other);
    assert!(!spoken && text.contains("handshake failure"), "{text}");
    assert_eq!(counter(&arm, "listener.tls.ssl.handshake"), 1);
    assert_eq!(counter(&arm, "listener.tls.ssl.connection_error"), 2);
    // In clear it answers as well, and both count as one ingress.
    assert!(get(arm.proxy.address(), "/").ends_with("hello"));
    assert_eq!(counter(&arm, "http.ingress.downstream_rq_total"), 2);
    assert_eq!(counter(&arm, "http.ingress.downstream_cx_ssl_total"), 3);
}

#[test]
fn sessions_are_resumed_as_the_settings_say() {
    let origin = Origin::start();
    for (tickets, remembered, resumed) in [
        ("on", "off", true),
        ("off", "off", false),
        ("off", "on", true),
    ] {
        let changes = [
            ("ssl_session_tickets", tickets),
            ("stateful_session_resumption", remembered),
        ];
        let arm = arm(&changes, origin.address);
        let session = arm.configuration.prefix().join("session.pem");
        let session = session.to_str().unwrap();
        let (first, text) = arm.ask_tls(&["-tls1_2", "-sess_out", session]);
        assert!(first && text.contains("New, TLSv1.2"), "{text}");
        // Without a ticket and a number there is no session for OpenSSL to write.
        if fs::exists(session).unwrap() {
            let (second, text) = arm.ask_tls(&["-tls1_2", "-sess_in", session]);
            assert!(second, "{text}");
            assert_eq!(text.contains("Reused, TLSv1.2"), resumed, "{changes:?}");
        }
        let reused = counter(&arm, "listener.tls.ssl.session_reused");
        assert_eq!(reused, u64::from(resumed), "{changes:?}");
    }
}
