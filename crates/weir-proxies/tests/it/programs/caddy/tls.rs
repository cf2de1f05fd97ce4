//! Tests of the TLS listener, with OpenSSL as the client.

use weir_model::study::file_target;

use super::{files, proxy};
use crate::programs::gate::Gate;
use crate::programs::setup::Setup;

#[test]
fn both_listeners_serve_alike_and_the_certificate_is_trusted() {
    let setup = Setup { sizes: &[1024], ..files(&[]) };
    let arm = setup.start_with_tls();
    for target in ["/", &file_target(1024)] {
        let in_clear = arm.get(target);
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
    let arm = proxy(&[("protocols", "h1")], origin.address).start_with_tls();
    let (trusted, text) = arm.ask("/x", &[]);
    assert!(trusted && text.contains("\nX-Forwarded-Proto: https"), "{text}");
    assert!(text.contains("GET /x HTTP/1.1") && !text.contains("Alt-Svc"));
    assert!(arm.get("/").contains("X-Forwarded-Proto: http\n"));
}
