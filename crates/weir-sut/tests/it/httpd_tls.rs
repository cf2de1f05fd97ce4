//! The real httpd asked over TLS by OpenSSL's own client: certificate, versions, ciphers, sessions.

use std::net::SocketAddr;

use weir_model::study::{ProxyRole, file_target};
use weir_sut::Proxy;

use crate::httpd::{ALONE, httpd, stock_with};
use crate::secure::{self, TlsArm};
use crate::support::{Origin, get};

fn start(changes: &[(&str, &str)], role: &ProxyRole, origin: Option<SocketAddr>) -> TlsArm {
    secure::start(&httpd(), &stock_with(changes), role, &[1024], origin)
}

#[test]
fn a_client_trusts_the_certificate_and_gets_its_file_over_tls_and_in_clear() {
    let arm = start(&[], &ProxyRole::StaticFiles { size: 10 }, None);
    let target = file_target(1024);
    let in_clear = get(arm.proxy.address(), &target);
    let (_, content) = in_clear.split_once("\r\n\r\n").unwrap();
    let (trusted, text) = arm.ask(&target, &[]);
    assert!(trusted && text.contains("Verification: OK"), "{text}");
    assert!(text.contains("Server public key is 2048 bit"), "{text}");
    assert!(text.contains("Content-Length: 1024\r\n"), "{text}");
    assert!(text.contains(content), "the same file over either");
}

#[test]
fn both_listeners_share_the_connections_to_the_origin() {
    let origin = Origin::start();
    let arm = start(&[ALONE], &ProxyRole::ReverseProxy, Some(origin.address));
    for _ in 0..3 {
        assert!(get(arm.proxy.address(), "/").ends_with("hello"));
        let (trusted, text) = arm.ask("/", &[]);
        assert!(trusted && text.contains("\r\n\r\nhello"), "{text}");
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn versions_and_ciphers_are_those_of_the_settings() {
    const CIPHER: &str = "ECDHE-RSA-AES256-GCM-SHA384";
    let changes = [("ssl_protocols", "TLSv1.2"), ("ssl_ciphers", CIPHER)];
    let arm = start(&changes, &ProxyRole::StaticFiles { size: 1 }, None);
    let (spoken, text) = arm.ask("/", &[]);
    assert!(spoken, "{text}");
    assert!(
        text.contains(&format!("New, TLSv1.2, Cipher is {CIPHER}")),
        "{text}"
    );
    let (spoken, text) = arm.ask("/", &["-tls1_3"]);
    assert!(!spoken && text.contains("alert protocol version"), "{text}");
    let other = ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"];
    let (spoken, text) = arm.ask("/", &other);
    assert!(!spoken && text.contains("handshake failure"), "{text}");
}

#[test]
fn sessions_are_resumed_as_the_settings_say() {
    for (tickets, cache, resumed) in [
        ("on", "none", true),
        ("off", "none", false),
        ("off", "500k", true),
    ] {
        let changes = [
            ("max_request_workers", "50"),
            ("ssl_session_tickets", tickets),
            ("ssl_session_cache", cache),
        ];
        let arm = start(&changes, &ProxyRole::StaticFiles { size: 1 }, None);
        let session = arm.configuration.prefix().join("session.pem");
        let file = session.to_str().unwrap();
        let (first, text) = arm.ask("/", &["-tls1_2", "-sess_out", file]);
        assert!(first && text.contains("New, TLSv1.2"), "{text}");
        // Without either there is no session that a client could keep.
        assert_eq!(session.is_file(), resumed, "{changes:?}");
        if resumed {
            // Whichever process of the two it comes to.
            let (second, text) = arm.ask("/", &["-tls1_2", "-sess_in", file]);
            assert!(second && text.contains("Reused, TLSv1.2"), "{text}");
        }
        let counters = httpd().counters(&arm.configuration).unwrap();
        let stored = counters.get("CacheStoreCount").copied();
        assert_eq!(
            stored.is_some_and(|stored| stored > 0),
            cache != "none",
            "{counters:?}"
        );
        if cache != "none" {
            assert_eq!(
                counters.get("CacheRetrieveHitCount"),
                Some(&1),
                "{counters:?}"
            );
        }
    }
}
