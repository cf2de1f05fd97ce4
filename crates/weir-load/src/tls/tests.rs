//! Messages that no well-behaved server sends after its handshake, created with the keys of a real one.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use weir_model::tls::{Resumption, TlsSpec, TlsVersion, Trust};

use super::records::{MAX_PLAINTEXT, Records, content};
use super::{Connector, Input, Received, Session, TlsError, TlsErrorKind};

const VERSIONS: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

fn build_server() -> ServerConnection {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.enable_secret_extraction = true;
    config.send_tls13_tickets = 0;
    ServerConnection::new(Arc::new(config)).unwrap()
}

/// An open session and the record keys of its server.
struct Open {
    session: Session,
    server: Records,
    out: Vec<u8>,
}

impl Open {
    fn new(version: TlsVersion) -> Open {
        let spec = TlsSpec {
            versions: vec![version],
            trust: Trust::Insecure,
            resumption: Resumption::On,
            ..TlsSpec::default()
        };
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        let mut server = build_server();
        let mut out = Vec::new();
        let mut session = Session::begin(&mut connector, &mut out).unwrap();
        while !session.is_open() || !out.is_empty() {
            server.read_tls(&mut out.as_slice()).unwrap();
            out.clear();
            server.process_new_packets().unwrap();
            let mut down = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut down).unwrap();
            }
            let mut input = Input::new(&mut down);
            while session.next(&mut input, &mut out).unwrap() != Received::Nothing {}
        }
        let secrets = server.dangerous_extract_secrets().unwrap();
        let server = Records::new(version, &secrets).unwrap();
        Open { session, server, out }
    }

    /// Sends a record from the server; returns the content that the session passes on.
    fn bring(&mut self, kind: u8, plaintext: &[u8]) -> Result<Vec<u8>, TlsError> {
        let mut bytes = Vec::new();
        self.server.seal(kind, plaintext, &mut bytes).unwrap();
        let mut input = Input::new(&mut bytes);
        let mut content = Vec::new();
        loop {
            match self.session.next(&mut input, &mut self.out)? {
                Received::Nothing => return Ok(content),
                Received::Plaintext(part) => content.extend_from_slice(part),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the content type and plaintext of the first record that the session has to send.
    fn said(&mut self) -> (u8, Vec<u8>) {
        let length = 5 + usize::from(u16::from_be_bytes([self.out[3], self.out[4]]));
        let mut record = self.out.drain(..length).collect::<Vec<_>>();
        let (kind, range) = self.server.open(&mut record).unwrap();
        (kind, record[range].to_vec())
    }

    /// Returns how many of these records the session accepts, up to 1000.
    fn endures(&mut self, kind: u8, plaintext: &[u8]) -> usize {
        (0..1000).take_while(|_| self.bring(kind, plaintext).is_ok()).count()
    }
}

#[test]
fn records_that_bring_nothing_are_bounded() {
    use TlsVersion::{V1_2, V1_3};
    let warning = [1, 110];
    for (version, kind, plaintext) in [
        (V1_2, content::APPLICATION_DATA, &b""[..]),
        (V1_3, content::APPLICATION_DATA, b""),
        (V1_2, content::ALERT, &warning),
        (V1_3, content::ALERT, &[1, 90]),
    ] {
        assert_eq!(Open::new(version).endures(kind, plaintext), 32);
    }
    let hello_request = [0, 0, 0, 0];
    let mut renegotiated = Open::new(V1_2);
    assert_eq!(renegotiated.endures(content::HANDSHAKE, &hello_request), 32);
    assert_eq!(renegotiated.said(), (content::ALERT, vec![1, 100]));

    // Content in between shows that the peer means well.
    let mut open = Open::new(V1_2);
    for _ in 0..100 {
        open.bring(content::ALERT, &warning).unwrap();
        assert_eq!(open.bring(content::APPLICATION_DATA, b"x").unwrap(), b"x");
    }
}

#[test]
fn alerts_name_themselves() {
    for version in VERSIONS {
        let mut open = Open::new(version);
        let error = open.bring(content::ALERT, &[2, 80]).unwrap_err();
        assert_eq!(error.words(), "alert received: internal_error (80)");
        assert_eq!(error.id(), 256 + 80);
        assert!(open.out.is_empty(), "an alert is not answered");
    }
    // TLS 1.3 has no warnings (RFC 8446 §6.2).
    let error = Open::new(TlsVersion::V1_3).bring(content::ALERT, &[1, 110]);
    assert_eq!(error.unwrap_err().id(), 256 + 110);
}

#[test]
fn what_has_no_place_after_the_handshake_is_an_error() {
    let certificate_request = [13, 0, 0, 0];
    let update_and_more = [24, 0, 0, 1, 0, 4, 0, 0, 0];
    let cases: [(u8, &[u8]); 6] = [
        (content::HANDSHAKE, &certificate_request),
        (content::HANDSHAKE, &update_and_more),
        (content::HANDSHAKE, &[24, 0, 0, 1, 2]),
        (content::CHANGE_CIPHER_SPEC, &[1]),
        (content::HANDSHAKE, &[]),
        (content::ALERT, &[2]),
    ];
    for version in VERSIONS {
        for (kind, plaintext) in cases {
            let mut open = Open::new(version);
            let error = open.bring(kind, plaintext).unwrap_err().kind();
            assert_eq!(error, TlsErrorKind::Misbehaved, "{plaintext:?}");
            assert_eq!(open.said(), (content::ALERT, vec![2, 10]));
            assert_eq!(open.session.buffered(), 0);
        }
    }
}

#[test]
fn a_message_in_parts_is_put_together_and_bounded() {
    let ticket = [4, 0, 0, 13, 0, 0, 0, 9, 0, 0, 0, 0, 1, 1, 0, 1, 7, 0, 0];
    let mut open = Open::new(TlsVersion::V1_3);
    let mut message = ticket[..17].to_vec();
    message.extend([0, 0]);
    message[3] = (message.len() - 4) as u8;
    for byte in &message {
        open.bring(content::HANDSHAKE, &[*byte]).unwrap();
    }
    assert_eq!(open.session.buffered(), 0);

    let mut open = Open::new(TlsVersion::V1_3);
    open.bring(content::HANDSHAKE, &message[..5]).unwrap();
    let error = open.bring(content::APPLICATION_DATA, b"x").unwrap_err();
    assert_eq!(error.kind(), TlsErrorKind::Misbehaved);

    let mut open = Open::new(TlsVersion::V1_3);
    let error = open.bring(content::HANDSHAKE, &[4, 0xff, 0xff, 0xff]);
    assert_eq!(error.unwrap_err().kind(), TlsErrorKind::HandshakeTooLarge);
    let mut open = Open::new(TlsVersion::V1_3);
    open.bring(content::HANDSHAKE, &[4, 0, 0xff, 0xff]).unwrap();
    for _ in 0..3 {
        open.bring(content::HANDSHAKE, &[0; 16_000]).unwrap();
    }
    assert!(open.session.buffered() <= 128 * 1024);
}

#[test]
fn padding_is_cut_off_and_may_not_be_all() {
    // The padding of a record is zeros behind the type (RFC 8446 §5.4): a type of zero makes the
    // plaintext's own end look like the type.
    let mut open = Open::new(TlsVersion::V1_3);
    let mut padded = b"content".to_vec();
    padded.push(content::APPLICATION_DATA);
    padded.extend([0; 50]);
    assert_eq!(open.bring(0, &padded).unwrap(), b"content");
    let error = open.bring(0, &[0; 20]).unwrap_err();
    assert_eq!(error.kind(), TlsErrorKind::Misbehaved);
}

#[test]
fn keys_that_have_done_enough_are_renewed() {
    let mut open = Open::new(TlsVersion::V1_3);
    open.session.records().unwrap().wear();
    open.server.wear();
    open.session.send(b"x", &mut open.out).unwrap();
    assert_eq!(open.said(), (content::HANDSHAKE, vec![24, 0, 0, 1, 0]));
    let length = open.out.len();
    open.session.send(b"x", &mut open.out).unwrap();
    assert_eq!(open.out.len(), 2 * length, "once is enough");

    let mut open = Open::new(TlsVersion::V1_2);
    open.session.records().unwrap().wear();
    open.server.wear();
    open.session.send(b"x", &mut open.out).unwrap();
    assert_eq!(open.said(), (content::APPLICATION_DATA, b"x".to_vec()));
}

#[test]
fn long_content_is_cut_into_records() {
    for version in VERSIONS {
        let mut open = Open::new(version);
        let content = vec![7; 2 * MAX_PLAINTEXT + 1];
        open.session.send(&content, &mut open.out).unwrap();
        let lengths = [(); 3].map(|()| open.said().1.len());
        assert_eq!(lengths, [MAX_PLAINTEXT, MAX_PLAINTEXT, 1]);
        assert!(open.out.is_empty());
    }
}
