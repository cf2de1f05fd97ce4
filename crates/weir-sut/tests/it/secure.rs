//! A proxy with a listener of either kind, and OpenSSL's own client to ask it over TLS.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use weir_model::study::{ProxyRole, Settings};
use weir_parameters::Catalog;
use weir_sut::{
    Certificate, Configuration, Launch, Proxy, RunningProxy, Site, SutError, TlsListener,
    WorkFolder,
};

use crate::support::{free_address, launcher};

/// The host that the certificate is for.
pub(crate) const NAME: &str = "weir.test";

/// The proxy ends before its folder.
pub(crate) struct TlsArm {
    pub(crate) proxy: RunningProxy,
    pub(crate) configuration: Configuration,
    certificate: Certificate,
    _folder: WorkFolder,
}

/// Starts one. `sizes` are those of files beside the role's own.
pub(crate) fn start(
    program: &dyn Proxy,
    settings: &Settings,
    role: &ProxyRole,
    sizes: &[u64],
    origin: Option<SocketAddr>,
) -> TlsArm {
    let folder = WorkFolder::create().expect("temporary files can be written");
    let certificate = Certificate::make(folder.path(), NAME).expect("a certificate can be made");
    for attempt in 0.. {
        let tls = TlsListener {
            listen: free_address(),
            certificate: &certificate,
        };
        let site = Site {
            tls: Some(tls),
            sizes,
            ..Site::new(role, free_address(), origin)
        };
        // The same prefix each time: what is there already is no obstacle.
        let prefix = folder.prefix("arm");
        let configuration = program
            .write(&prefix, settings, &site, &Catalog::builtin())
            .expect("the configuration can be written");
        match weir_sut::start(program, &configuration, &launcher(), &Launch::default()) {
            Ok(proxy) => {
                return TlsArm {
                    proxy,
                    configuration,
                    certificate,
                    _folder: folder,
                };
            }
            Err(SutError::PortTaken { .. }) if attempt < 3 => {}
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("every attempt ends in one of three ways")
}

impl TlsArm {
    pub(crate) fn ask(&self, target: &str, arguments: &[&str]) -> (bool, String) {
        let address = self.configuration.tls_listen();
        let address = address.expect("it listens for TLS");
        ask(&self.certificate, address, target, arguments)
    }
}

/// Whether the handshake succeeded, and all that `openssl s_client` prints of it and of a GET of
/// `target`, with the certificate verified against itself and the name.
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
