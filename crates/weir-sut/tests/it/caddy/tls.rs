//! The listener with TLS, with OpenSSL for a client.

use std::net::SocketAddr;
use std::path::Path;

use weir_model::study::{ProxyRole, file_target};
use weir_parameters::Catalog;
use weir_sut::Proxy;

use super::{Gate, caddy, stock_with};
use crate::secure::{self, TlsArm};
use crate::support::get;

fn start(changes: &[(&str, &str)], role: &ProxyRole, origin: Option<SocketAddr>) -> TlsArm {
    secure::start(&caddy(), &stock_with(changes), role, &[1024], origin)
}

#[test]
fn both_listeners_serve_alike_and_the_certificate_is_trusted() {
    let arm = start(&[], &ProxyRole::StaticFiles { size: 10 }, None);
    for target in ["/", &file_target(1024)] {
        let in_clear = get(arm.proxy.address(), target);
        assert!(in_clear.starts_with("HTTP/1.1 200 OK\r\n"), "{in_clear}");
        let (head, content) = in_clear.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("Alt-Svc"), "HTTP/3 is none of its business");
        let (trusted, text) = arm.ask(target, &[]);
        assert!(trusted && text.contains("Verification: OK"), "{text}");
        assert!(text.contains("New, TLSv1.3"), "{text}");
        assert!(text.contains(&format!("\r\n\r\n{content}")), "{text}");
        assert!(text.contains("Alt-Svc: h3="), "{text}");
    }

    let origin = Gate::start();
    let changes = [("protocols", "h1")];
    let arm = start(&changes, &ProxyRole::ReverseProxy, Some(origin.address));
    let (trusted, text) = arm.ask("/x", &[]);
    assert!(
        trusted && text.contains("\nX-Forwarded-Proto: https"),
        "{text}"
    );
    assert!(text.contains("GET /x HTTP/1.1") && !text.contains("Alt-Svc"));
    assert!(get(arm.proxy.address(), "/").contains("X-Forwarded-Proto: http\n"));
}

#[test]
fn version_suite_and_curve_are_those_that_were_asked_for() {
    let changes = [
        ("tls_protocol_max", "tls1.2"),
        ("tls_cipher_suite", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        ("tls_curve", "secp256r1"),
    ];
    let arm = start(&changes, &ProxyRole::StaticFiles { size: 10 }, None);
    let (_, text) = arm.ask("/", &[]);
    let suite = "New, TLSv1.2, Cipher is ECDHE-RSA-AES256-GCM-SHA384";
    assert!(text.contains(suite), "{text}");
    assert!(text.contains("ECDH, prime256v1, 256 bits"), "{text}");
    assert!(!arm.ask("/", &["-tls1_3"]).0);

    let changes = [("tls_protocol_min", "tls1.3")];
    let arm = start(&changes, &ProxyRole::StaticFiles { size: 10 }, None);
    assert!(!arm.ask("/", &["-tls1_2"]).0);
    assert!(arm.ask("/", &["-tls1_3"]).0);
    let effective = caddy()
        .effective(&arm.configuration, Some(&arm.proxy), &Catalog::builtin())
        .unwrap();
    assert_eq!(effective.levels["tls_protocol_min"], "tls1.3");
}

#[test]
fn sessions_are_resumed_by_ticket_unless_there_are_none() {
    for (changes, resumed) in [(&[][..], true), (&[("tls_session_tickets", "off")], false)] {
        let arm = start(changes, &ProxyRole::StaticFiles { size: 10 }, None);
        let session = arm.configuration.prefix().join("session");
        let session = session.to_str().unwrap();
        let (first, text) = arm.ask("/", &["-tls1_2", "-sess_out", session]);
        assert!(first && text.contains("New, TLSv1.2"), "{text}");
        // Without tickets Go names no session, and there is nothing to write down.
        assert_eq!(Path::new(session).exists(), resumed, "{changes:?}");
        if resumed {
            let (second, text) = arm.ask("/", &["-tls1_2", "-sess_in", session]);
            assert!(second && text.contains("Reused, TLSv1.2"), "{text}");
        }
    }
}
