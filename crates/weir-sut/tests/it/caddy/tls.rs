//! The listener with TLS, with OpenSSL for a client.

use std::net::SocketAddr;

use weir_model::study::{ProxyRole, file_target};

use super::{Gate, caddy, stock_with};
use crate::secure::{self, TlsArm};
use crate::support::get;

fn start(changes: &[(&str, &str)], role: &ProxyRole, origin: Option<SocketAddr>) -> TlsArm {
    secure::start(&*caddy(), &stock_with(changes), role, &[1024], origin)
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
