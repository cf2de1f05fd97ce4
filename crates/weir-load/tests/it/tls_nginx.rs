//! TLS with the real nginx (and so OpenSSL) over a socket.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_load::tls::{Connector, Input, Negotiated, Received, Session};
use weir_model::tls::{Resumption, TlsVersion};

use crate::tls_support::{Authority, Key};

const PATIENCE: Duration = Duration::from_secs(20);

struct Nginx {
    process: Child,
    address: SocketAddr,
}

impl Nginx {
    fn start(authority: &Authority, ciphers: &str) -> Nginx {
        // An address of this process's own: nobody takes the port before nginx does.
        let [.., high, low] = std::process::id().to_be_bytes();
        let free = TcpListener::bind((Ipv4Addr::new(127, 77, high, low), 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let identity = authority.issue(Key::Rsa, |_| {});
        let certificate = authority.write("nginx.pem", &identity.pem);
        let key = authority.write("nginx.key", &identity.key_pem);
        let folder = authority.file("");
        let configuration = format!(
            "daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid;\n\
             error_log {folder}/error.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n\
             fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
             server {{ listen {address} ssl; server_name localhost;\n\
             ssl_certificate {certificate}; ssl_certificate_key {key};\n\
             ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers {ciphers}; ssl_early_data on;\n\
             location / {{ return 200 \"$ssl_protocol $ssl_session_reused\\n\"; }}\n\
             location /large {{ root {folder}; }} }} }}\n"
        );
        let file = authority.write("nginx.conf", &configuration);
        authority.write("large", &"weir".repeat(250_000));
        let process = Command::new("/usr/sbin/nginx")
            .args(["-p", &folder, "-e", "stderr", "-c", &file])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx");
        let nginx = Nginx { process, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    /// One connection with one request; gives what was agreed on and all of the response.
    fn get(&self, connector: &mut Connector, target: &str) -> (Negotiated, Vec<u8>) {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
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
                        if early != weir_load::tls::EarlyData::Accepted {
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

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn nginx_answers_and_resumes_in_both_versions() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "ECDHE-RSA-AES256-GCM-SHA384");
    let cases = [
        (TlsVersion::V1_2, "TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
        (TlsVersion::V1_3, "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
    ];
    for (version, name, cipher) in cases {
        let mut spec = authority.spec();
        spec.versions = vec![version];
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
            assert!(
                text.ends_with(&format!("\r\n\r\n{name} {reused}\n")),
                "{text}"
            );
        }
        let (_, response) = nginx.get(&mut connector, "/large");
        assert!(response.ends_with(&b"weir".repeat(250_000)));
    }
}

#[test]
fn nginx_takes_early_data() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "ECDHE-RSA-AES256-GCM-SHA384");
    let mut spec = authority.spec();
    spec.resumption = Resumption::On;
    spec.early_data = true;
    let mut connector = Connector::new(&spec, "localhost").unwrap();
    for connection in 0..3 {
        let (negotiated, response) = nginx.get(&mut connector, "/");
        let expected = match connection {
            0 => weir_load::tls::EarlyData::None,
            _ => weir_load::tls::EarlyData::Accepted,
        };
        assert_eq!(negotiated.early_data, expected);
        assert!(response.starts_with(b"HTTP/1.1 200 "));
    }
}
