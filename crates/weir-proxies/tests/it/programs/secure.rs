//! OpenSSL's own client, for tests.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use weir_sut::Certificate;

/// Host that the certificate is for.
pub(crate) const NAME: &str = "weir.test";

/// Returns true if the handshake succeeded, and all output of `openssl s_client` for it and for a GET of `target`. The
/// certificate is verified against itself and the name.
pub(crate) fn ask(
    certificate: &Certificate,
    address: SocketAddr,
    target: &str,
    arguments: &[&str],
) -> (bool, String) {
    let mut client = Command::new("openssl")
        .args(["s_client", "-ign_eof", "-connect", &address.to_string()])
        .args(["-servername", NAME, "-verify_hostname", NAME])
        .args(["-verify_return_error", "-CAfile"])
        .arg(certificate.file())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("these tests need OpenSSL's program: apt-get install openssl");
    let request = format!("GET {target} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
    // A client whose handshake failed reads no request.
    let mut stdin = client.stdin.take().expect("it is piped");
    let _ = stdin.write_all(request.as_bytes());
    drop(stdin);
    let output = client.wait_with_output().expect("it ends");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.success(), text)
}
