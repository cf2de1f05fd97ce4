//! TLS with the real nginx (and so OpenSSL) over a socket.

use std::io::{Read, Write};

use weir_load::tls::{Connector, EarlyData, Input, Negotiated, Received, Session};
use weir_model::tls::Resumption;

use crate::support::Nginx;
use crate::tls_support::{Authority, Key, VERSIONS};

const CIPHER_12: &str = "ECDHE-RSA-AES256-GCM-SHA384";

fn start(authority: &Authority) -> Nginx {
    let identity = authority.issue(Key::Rsa, |_| {});
    let certificate = authority.write("nginx.pem", &identity.pem);
    let key = authority.write("nginx.key", &identity.key_pem);
    authority.write("large", &"weir".repeat(250_000));
    let folder = authority.folder.path();
    let lines = format!(
        "server_name localhost; ssl_certificate {certificate}; ssl_certificate_key {key};\n\
         ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers {CIPHER_12}; ssl_early_data on;\n\
         location / {{ return 200 \"$ssl_protocol $ssl_session_reused\\n\"; }}\n\
         location /large {{ root {}; }}",
        folder.display()
    );
    Nginx::start(folder, "ssl", &lines)
}

impl Nginx {
    /// One connection with one request; gives what was agreed on and all of the response.
    fn get(&self, connector: &mut Connector, target: &str) -> (Negotiated, Vec<u8>) {
        let mut socket = self.connect();
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut out = Vec::new();
        let mut session = Session::begin(connector, &mut out).unwrap();
        session.early(request.as_bytes(), &mut out).unwrap();
        let mut response = Vec::new();
        let mut closed = false;
        let mut bytes = vec![0; 64 * 1024];
        loop {
            socket.write_all(&out).unwrap();
            out.clear();
            let got = socket.read(&mut bytes).unwrap();
            let mut input = Input::new(&mut bytes[..got]);
            loop {
                match session.next(&mut input, &mut out).unwrap() {
                    Received::Nothing => break,
                    Received::Plaintext(part) => response.extend_from_slice(part),
                    Received::Established => {
                        let early = session.negotiated().unwrap().early_data;
                        if early != EarlyData::Accepted {
                            session.send(request.as_bytes(), &mut out).unwrap();
                        }
                    }
                    Received::Closed => closed = true,
                }
            }
            // nginx closes its socket after close_notify and waits for no answer.
            if got == 0 || closed {
                assert_eq!(session.ended(), None);
                return (*session.negotiated().unwrap(), response);
            }
        }
    }
}

#[test]
fn nginx_answers_and_resumes_in_both_versions() {
    let authority = Authority::new();
    let nginx = start(&authority);
    let names = [
        ("TLSv1.2", CIPHER_12),
        ("TLSv1.3", "TLS_AES_256_GCM_SHA384"),
    ];
    for (version, (name, cipher)) in VERSIONS.into_iter().zip(names) {
        let mut spec = authority.spec_of(version);
        spec.resumption = Resumption::On;
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        for connection in 0..5 {
            let (negotiated, response) = nginx.get(&mut connector, "/");
            assert_eq!(negotiated.version, version);
            assert_eq!(negotiated.cipher.name(), cipher);
            assert_eq!(negotiated.resumed, connection > 0);
            // nginx sees the same.
            let reused = if connection > 0 { "r" } else { "." };
            let text = String::from_utf8(response).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
            let end = format!("\r\n\r\n{name} {reused}\n");
            assert!(text.ends_with(&end), "{text}");
        }
        let (_, response) = nginx.get(&mut connector, "/large");
        assert!(response.ends_with(&b"weir".repeat(250_000)));
    }
}

#[test]
fn nginx_takes_early_data() {
    let authority = Authority::new();
    let nginx = start(&authority);
    let mut spec = authority.spec();
    spec.resumption = Resumption::On;
    spec.early_data = true;
    let mut connector = Connector::new(&spec, "localhost").unwrap();
    for expected in [EarlyData::None, EarlyData::Accepted, EarlyData::Accepted] {
        let (negotiated, response) = nginx.get(&mut connector, "/");
        assert_eq!(negotiated.early_data, expected);
        assert!(response.starts_with(b"HTTP/1.1 200 "));
    }
}
