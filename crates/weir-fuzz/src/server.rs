//! A TLS server that is connected to a session through memory alone.

use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection};
use weir_load::tls::{Connector, Session};
use weir_model::tls::{Resumption, TlsSpec, TlsVersion, Trust};

/// Round trips allowed for a handshake, with room to spare.
const ROUNDS: usize = 4;

/// Server configuration with every version and cipher suite of rustls. Clients parse Ed25519 and P-256 certificates the
/// same way; Ed25519 is used because its signatures always have the same length.
static CONFIG: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let private = PrivatePkcs8KeyDer::from(key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private.into())
        .expect("a key of its certificate");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
});

/// Creates a client connector that offers these versions and keeps tickets.
pub(crate) fn build_connector(versions: &[TlsVersion]) -> Connector {
    let spec = TlsSpec {
        versions: versions.to_vec(),
        trust: Trust::Insecure,
        resumption: Resumption::On,
        ..TlsSpec::default()
    };
    Connector::new(&spec, "localhost").expect("nothing in it can be refused")
}

/// A client session and its server.
pub(crate) struct Pair {
    pub(crate) session: Session,
    server: ServerConnection,
    /// Bytes on their way to the server.
    out: Vec<u8>,
}

impl Pair {
    /// Creates a pair whose ClientHello is on its way to the server.
    pub(crate) fn begun(connector: &mut Connector) -> Pair {
        let mut out = Vec::new();
        let session = Session::begin(connector, &mut out).expect("random numbers");
        let server = ServerConnection::new(Arc::clone(&CONFIG)).expect("a server");
        Pair { session, server, out }
    }

    /// Creates a pair that has completed its handshake, with nothing on its way.
    pub(crate) fn shaken(connector: &mut Connector) -> Pair {
        let mut pair = Pair::begun(connector);
        for _ in 0..ROUNDS {
            let mut flight = pair.answer();
            let read = crate::tls::feed(&mut pair.session, &mut [&mut flight], &mut pair.out);
            assert_eq!(read.error, None, "the server is an honest one");
        }
        assert!(pair.session.is_open(), "no handshake in {ROUNDS} rounds");
        pair
    }

    /// Delivers the session's bytes to the server and returns the bytes of its answer.
    pub(crate) fn answer(&mut self) -> Vec<u8> {
        let sent = std::mem::take(&mut self.out);
        let mut unread = &sent[..];
        while !unread.is_empty() {
            self.server.read_tls(&mut unread).expect("memory can be read");
            // An error shows as an alert.
            if self.server.process_new_packets().is_err() {
                break;
            }
        }
        self.records()
    }

    /// Returns content from the server, encoded in records.
    pub(crate) fn content(&mut self, content: &[u8]) -> Vec<u8> {
        use std::io::Write;
        self.server.set_buffer_limit(None);
        let mut writer = self.server.writer();
        writer.write_all(content).expect("there is no limit");
        self.records()
    }

    /// Returns the server's close_notify alert.
    pub(crate) fn farewell(&mut self) -> Vec<u8> {
        self.server.send_close_notify();
        self.records()
    }

    fn records(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut bytes).expect("memory takes it");
        }
        bytes
    }
}
