//! The real nginx asked over TLS by OpenSSL's own client: certificate, versions, ciphers, tickets.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use weir_model::study::{ProxyRole, file_target};
use weir_parameters::Catalog;
use weir_sut::{Certificate, Proxy, SutError, WorkFolder};

use crate::secure::{self, NAME, TlsArm};
use crate::support::{Origin, get, nginx, stock_with};

fn start(
    changes: &[(&str, &str)],
    role: &ProxyRole,
    sizes: &[u64],
    origin: Option<SocketAddr>,
) -> TlsArm {
    secure::start(&nginx(), &stock_with(changes), role, sizes, origin)
}

#[test]
fn a_client_trusts_the_certificate_and_gets_its_file_over_tls_and_in_clear() {
    let sizes = [0, 1024, 1 << 20];
    let arm = start(
        &[("gzip", "off")],
        &ProxyRole::StaticFiles { size: 10 },
        &sizes,
        None,
    );
    for size in sizes {
        let target = file_target(size);
        let in_clear = get(arm.proxy.address(), &target);
        let (head, content) = in_clear.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(content.len() as u64, size);

        let (trusted, text) = arm.ask(&target, &[]);
        assert!(trusted, "{text}");
        assert!(text.contains("Verification: OK"), "{text}");
        assert!(text.contains("Server public key is 2048 bit"), "{text}");
        assert!(text.contains(&format!("Content-Length: {size}\r\n")));
    }
    assert!(get(arm.proxy.address(), "/").contains("Content-Length: 10\r\n"));
}

#[test]
fn a_reverse_proxy_passes_on_what_it_was_asked_over_tls() {
    let origin = Origin::start();
    let arm = start(&[], &ProxyRole::ReverseProxy, &[], Some(origin.address));
    let (trusted, text) = arm.ask("/", &[]);
    assert!(trusted && text.contains("\r\n\r\nhello"), "{text}");
    assert_eq!(origin.connections(), 1);
}

#[test]
fn versions_and_ciphers_are_those_of_the_settings() {
    const CIPHER: &str = "ECDHE-RSA-AES256-GCM-SHA384";
    let arm = start(
        &[("ssl_protocols", "TLSv1.2"), ("ssl_ciphers", CIPHER)],
        &ProxyRole::StaticFiles { size: 1 },
        &[],
        None,
    );
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
    for (changes, resumed) in [
        (&[("ssl_session_tickets", "on")][..], true),
        (&[("ssl_session_tickets", "off")], false),
        (
            &[("ssl_session_tickets", "off"), ("ssl_session_cache", "1m")],
            true,
        ),
    ] {
        let arm = start(changes, &ProxyRole::StaticFiles { size: 1 }, &[], None);
        let session = arm.configuration.prefix().join("session.pem");
        let session = session.to_str().unwrap();
        let (first, text) = arm.ask("/", &["-tls1_2", "-sess_out", session]);
        assert!(first && text.contains("New, TLSv1.2"), "{text}");
        let (second, text) = arm.ask("/", &["-tls1_2", "-sess_in", session]);
        assert!(second, "{text}");
        assert_eq!(text.contains("Reused, TLSv1.2"), resumed, "{changes:?}");
    }
}

#[test]
fn settings_of_tls_read_back_beside_the_flags_of_the_listener_in_clear() {
    let arm = start(
        &[
            ("backlog", "99"),
            ("ssl_protocols", "TLSv1.2"),
            ("ssl_session_cache", "10m"),
            ("ssl_buffer_size", "4k"),
        ],
        &ProxyRole::StaticFiles { size: 1 },
        &[],
        None,
    );
    let effective = nginx()
        .effective(&arm.configuration, None, &Catalog::builtin())
        .unwrap();
    for (id, level) in [
        ("backlog", "99"),
        ("ssl_protocols", "TLSv1.2"),
        ("ssl_session_cache", "10m"),
        ("ssl_buffer_size", "4k"),
        ("ssl_session_tickets", "on"),
        ("ssl_prefer_server_ciphers", "on"),
    ] {
        assert_eq!(
            effective.levels.get(id).map(String::as_str),
            Some(level),
            "{id}"
        );
    }
    assert_eq!(effective.text.matches("backlog=99").count(), 2);
    assert_eq!(
        nginx().check(&arm.configuration).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn the_key_is_nobody_else_s_to_read_and_no_two_runs_have_the_same() {
    let folders = [(); 2].map(|()| WorkFolder::create().unwrap());
    let made = folders
        .each_ref()
        .map(|folder| Certificate::make(folder.path(), NAME).unwrap());
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(made[0].key_file()), 0o600);
    let keys = made
        .each_ref()
        .map(|made| fs::read(made.key_file()).unwrap());
    assert_ne!(keys[0], keys[1]);
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .arg(made[0].file())
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
        Certificate::make(folders[0].path(), "no host\u{e9}"),
        Err(SutError::Certificate { .. })
    ));
}
