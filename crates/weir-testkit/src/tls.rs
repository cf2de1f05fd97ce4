//! Certificates, and a rustls server connected to a session in memory.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use tempfile::TempDir;
use weir_load::tls::{Connector, EarlyData, Input, Received, Session, TlsError};
use weir_model::tls::{TlsSpec, TlsVersion, Trust};

pub const VERSIONS: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

#[derive(Clone, Copy)]
pub enum Key {
    Rsa,
    P256,
}

impl Key {
    fn generate(self) -> KeyPair {
        match self {
            Key::Rsa => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            Key::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        }
        .unwrap()
    }
}

pub struct Identity {
    pub pem: String,
    pub key_pem: String,
    der: CertificateDer<'static>,
    key: Vec<u8>,
}

/// A certificate authority with a directory of its own.
pub struct Authority {
    pub folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
}

impl Authority {
    pub fn new() -> Authority {
        Authority::named("weir test")
    }

    pub fn named(name: &str) -> Authority {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::P256.generate();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let der = certificate.der().clone();
        let issuer = Issuer::new(params, key);
        Authority { folder, issuer, der }
    }

    pub fn file(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    /// Writes a file into the directory; returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.file(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn issue(&self, key: Key, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let pair = key.generate();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&pair, &self.issuer).unwrap();
        identity(&certificate, &pair)
    }

    /// Issues a certificate with a P-256 key and no special properties.
    pub fn plain(&self) -> Identity {
        self.issue(Key::P256, |_| {})
    }

    pub fn server(&self, key: Key) -> ServerConfig {
        server(&self.issue(key, |_| {}))
    }

    pub fn spec(&self) -> TlsSpec {
        TlsSpec { trust: Trust::Ca(self.file("ca.pem")), ..TlsSpec::default() }
    }

    /// Returns settings that allow only `version`.
    pub fn spec_of(&self, version: TlsVersion) -> TlsSpec {
        TlsSpec { versions: vec![version], ..self.spec() }
    }

    /// Creates a connector that allows only `version`.
    pub fn connector_of(&self, version: TlsVersion) -> Connector {
        Connector::new(&self.spec_of(version), "localhost").unwrap()
    }

    pub fn connector(&self) -> Connector {
        Connector::new(&self.spec(), "localhost").unwrap()
    }

    /// Creates a server that requires a client certificate of this authority.
    pub fn demanding_server(&self) -> ServerConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let identity = self.issue(Key::P256, |_| {});
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.unwrap())
            .with_single_cert(vec![identity.der.clone()], identity.private_key())
            .unwrap()
    }
}

pub fn self_signed() -> Identity {
    let pair = Key::P256.generate();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    identity(&params.self_signed(&pair).unwrap(), &pair)
}

fn identity(certificate: &rcgen::Certificate, pair: &KeyPair) -> Identity {
    Identity {
        pem: certificate.pem(),
        key_pem: pair.serialize_pem(),
        der: certificate.der().clone(),
        key: pair.serialize_der(),
    }
}

impl Identity {
    fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }
}

/// Creates a server that supports all of rustls' versions and groups, and stores every session.
pub fn server(identity: &Identity) -> ServerConfig {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = aws_lc_rs::ALL_KX_GROUPS.to_vec();
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.der.clone()], identity.private_key())
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = ServerSessionMemoryCache::new(100_000);
    config
}

/// A session, its server, and the bytes exchanged between them.
pub struct Pair {
    pub session: Session,
    pub server: ServerConnection,
    /// Bytes to be sent to the server.
    pub out: Vec<u8>,
    /// Plaintext returned by the session.
    pub received: Vec<u8>,
    /// Plaintext received by the server.
    pub served: Vec<u8>,
    pub closed: bool,
    pub established: u32,
    /// Maximum number of bytes that arrive at once, in both directions.
    pub portion: usize,
    pub most_buffered: usize,
}

impl Pair {
    pub fn new(connector: &mut Connector, server: &Arc<ServerConfig>) -> Pair {
        let mut out = Vec::new();
        let session = Session::begin(connector, &mut out).unwrap();
        Pair {
            session,
            server: ServerConnection::new(server.clone()).unwrap(),
            out,
            received: Vec::new(),
            served: Vec::new(),
            closed: false,
            established: 0,
            portion: usize::MAX,
            most_buffered: 0,
        }
    }

    /// Carries bytes both ways until no more are sent; returns the session's error, if any.
    pub fn settle(&mut self) -> Result<(), TlsError> {
        loop {
            let moved = !self.out.is_empty();
            self.carry_up();
            let mut down = self.records();
            if down.is_empty() && !moved {
                return Ok(());
            }
            self.bring(&mut down)?;
        }
    }

    /// Takes the bytes that the server has to send.
    pub fn records(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Makes the server send `content`; returns the records.
    pub fn said(&mut self, content: &[u8]) -> Vec<u8> {
        self.server.set_buffer_limit(None);
        self.server.writer().write_all(content).unwrap();
        self.records()
    }

    /// Sends the same content both ways at once, and checks that all of it arrives.
    pub fn exchange(&mut self, content: &[u8]) {
        self.received.clear();
        self.served.clear();
        self.server.set_buffer_limit(None);
        self.server.writer().write_all(content).unwrap();
        self.session.send(content, &mut self.out).unwrap();
        self.settle().unwrap();
        assert!(self.received == content && self.served == content);
    }

    /// Passes the session's output to the server, whose errors appear as alerts.
    pub fn carry_up(&mut self) {
        let up = std::mem::take(&mut self.out);
        for mut part in up.chunks(self.portion.min(4096)) {
            while !part.is_empty() {
                let read = self.server.read_tls(&mut part).is_ok();
                if !read || self.server.process_new_packets().is_err() {
                    return;
                }
                if let Some(mut early) = self.server.early_data() {
                    early.read_to_end(&mut self.served).unwrap();
                }
                // WouldBlock when there is no more, and UnexpectedEof or 0 after a close.
                let _ = self.server.reader().read_to_end(&mut self.served);
            }
        }
    }

    /// Passes bytes from the server to the session.
    pub fn bring(&mut self, bytes: &mut [u8]) -> Result<(), TlsError> {
        for part in bytes.chunks_mut(self.portion) {
            let mut input = Input::new(part);
            loop {
                match self.session.next(&mut input, &mut self.out)? {
                    Received::Nothing => break,
                    Received::Established => self.established += 1,
                    Received::Plaintext(content) => self.received.extend_from_slice(content),
                    Received::Closed => self.closed = true,
                }
            }
            self.most_buffered = self.most_buffered.max(self.session.buffered());
        }
        Ok(())
    }

    /// Completes a handshake that must succeed.
    pub fn shaken(connector: &mut Connector, server: &Arc<ServerConfig>) -> Pair {
        let mut pair = Pair::new(connector, server);
        pair.settle().unwrap();
        assert_eq!(pair.established, 1);
        assert!(pair.session.is_open());
        pair
    }

    /// Sends a text each way and checks that it arrives.
    pub fn talk(&mut self) {
        self.session.send(b"a question", &mut self.out).unwrap();
        self.settle().unwrap();
        assert!(self.served.ends_with(b"a question"));
        self.server.writer().write_all(b"an answer").unwrap();
        self.settle().unwrap();
        assert!(self.received.ends_with(b"an answer"));
    }

    pub fn early(&self) -> EarlyData {
        self.session.negotiated().unwrap().early_data
    }

    pub fn resumed(&self) -> bool {
        self.session.negotiated().unwrap().resumed
    }
}
