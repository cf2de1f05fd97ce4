//! A TLS server joined to a session by nothing but memory.

use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection};
use weir_load::tls::{Connector, Session};
use weir_model::tls::{Resumption, TlsSpec, TlsVersion, Trust};

/// Round trips of a handshake, with room to spare.
const ROUNDS: usize = 4;

/// Speaks all that rustls can. Ed25519 and P-256 certificates are read the same way; this one's
/// signatures always have the same length.
static CONFIG: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let private = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private.into());
    let mut config = config.expect("a key of its certificate");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
});

/// What a client offers: these versions, and tickets are kept.
pub(crate) fn connector(versions: &[TlsVersion]) -> Connector {
    let spec = TlsSpec {
        versions: versions.to_vec(),
        trust: Trust::Insecure,
        resumption: Resumption::On,
        ..TlsSpec::default()
    };
    Connector::new(&spec, "localhost").expect("nothing in it can be refused")
}

/// A session and its server.
pub(crate) struct Pair {
    pub(crate) session: Session,
    server: ServerConnection,
    /// On its way to the server.
    out: Vec<u8>,
}

impl Pair {
    /// The ClientHello is on its way.
    pub(crate) fn begun(connector: &mut Connector) -> Pair {
        let mut out = Vec::new();
        let session = Session::begin(connector, &mut out).expect("random numbers");
        let server = ServerConnection::new(Arc::clone(&CONFIG)).expect("a server");
        Pair {
            session,
            server,
            out,
        }
    }

    /// The handshake is complete, and nothing is on its way.
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

    /// What the server says to what the session has said.
    pub(crate) fn answer(&mut self) -> Vec<u8> {
        let sent = std::mem::take(&mut self.out);
        let mut rest = &sent[..];
        while !rest.is_empty() {
            self.server.read_tls(&mut rest).expect("memory can be read");
            // An error shows as an alert.
            if self.server.process_new_packets().is_err() {
                break;
            }
        }
        self.records()
    }

    /// Content from the server, in records.
    pub(crate) fn content(&mut self, content: &[u8]) -> Vec<u8> {
        use std::io::Write;
        self.server.set_buffer_limit(None);
        let mut writer = self.server.writer();
        writer.write_all(content).expect("there is no limit");
        self.records()
    }

    /// That the server says no more.
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
