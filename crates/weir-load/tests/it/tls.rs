//! TLS against a rustls server in memory: negotiation, resumption and refusals.

use std::sync::Arc;

use weir_load::tls::{Cipher, Connector, EarlyData, Group, SetupError, TlsErrorKind};
use weir_model::tls::{ClientCertificate, Resumption, TlsSpec, TlsVersion, Trust};
use weir_testkit::tls::{Authority, Key, Pair, VERSIONS, self_signed, server};

#[test]
fn full_handshakes_of_both_versions_carry_content() {
    let authority = Authority::new();
    for (version, key) in VERSIONS.into_iter().flat_map(|v| [(v, Key::Rsa), (v, Key::P256)]) {
        let server = Arc::new(authority.server(key));
        let mut pair = Pair::shaken(&mut authority.connector_of(version), &server);
        pair.talk();
        let negotiated = *pair.session.negotiated().unwrap();
        assert_eq!(negotiated.version, version);
        assert_eq!(negotiated.group.name(), "x25519");
        assert!(!negotiated.resumed && !negotiated.retried);
        assert_eq!(negotiated.early_data, EarlyData::None);
        assert_eq!(pair.server.alpn_protocol(), Some(&b"http/1.1"[..]));
        pair.server.send_close_notify();
        pair.settle().unwrap();
        assert!(pair.closed);
        assert_eq!(pair.session.ended(), None);
    }
}

#[test]
fn every_cipher_by_its_name() {
    let authority = Authority::new();
    let [rsa, ecdsa] = [Key::Rsa, Key::P256].map(|key| Arc::new(authority.server(key)));
    for name in (0..Cipher::COUNT).map(Cipher::name_of) {
        let mut spec = authority.spec();
        spec.ciphers = weir_model::tls::names::parse_ciphers(name).unwrap();
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        let server = if name.contains("ECDSA") { &ecdsa } else { &rsa };
        let mut pair = Pair::shaken(&mut connector, server);
        let negotiated = pair.session.negotiated().unwrap();
        assert_eq!(negotiated.cipher.name(), name);
        let version = VERSIONS[usize::from(name.starts_with("TLS_"))];
        assert_eq!(negotiated.version, version, "{name}");
        pair.talk();
        pair.talk();
        // Nonces and sequence numbers hold over many records of all sizes.
        let content = (0..200_000).map(|i| (i % 251) as u8).collect::<Vec<_>>();
        pair.exchange(&content);
    }
}

#[test]
fn every_group_by_its_name_and_a_retry_for_another() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    for index in 0..Group::COUNT - 1 {
        let mut spec = authority.spec_of(TlsVersion::V1_3);
        spec.groups = vec![Group::name_of(index).to_owned()];
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        let pair = Pair::shaken(&mut connector, &server);
        assert_eq!(pair.session.negotiated().unwrap().group.index(), index);
    }
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::SECP384R1];
    let choosy = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(server.cert_resolver.clone());
    let choosy = Arc::new(choosy);
    let mut connector = authority.connector();
    for _ in 0..2 {
        let mut pair = Pair::shaken(&mut connector, &choosy);
        let negotiated = pair.session.negotiated().unwrap();
        assert!(negotiated.retried);
        assert_eq!(negotiated.group.name(), "secp384r1");
        assert_eq!(pair.server.alpn_protocol(), None);
        pair.talk();
    }
}

fn resumed_of(spec: &TlsSpec, server: &Arc<rustls::ServerConfig>, connections: usize) -> Vec<bool> {
    let mut connector = Connector::new(spec, "localhost").unwrap();
    (0..connections).map(|_| Pair::shaken(&mut connector, server).resumed()).collect()
}

#[test]
fn the_share_of_resumed_connections_is_exact() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    for version in VERSIONS {
        let mut spec = authority.spec_of(version);
        assert!(!resumed_of(&spec, &server, 20).contains(&true));

        spec.resumption = Resumption::On;
        let resumed = resumed_of(&spec, &server, 20);
        assert_eq!(resumed.iter().filter(|r| **r).count(), 19, "{resumed:?}");
        assert!(!resumed[0]);

        spec.resumption = Resumption::Ratio(0.8);
        let resumed = resumed_of(&spec, &server, 1000);
        let mut so_far = 0;
        for (index, resumed) in resumed.iter().enumerate() {
            so_far += usize::from(*resumed);
            assert_eq!(so_far, (index + 1) * 4 / 5);
        }
    }
}

#[test]
fn a_thread_has_tickets_of_its_own() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    let mut spec = authority.spec();
    spec.resumption = Resumption::On;
    let mut first = Connector::new(&spec, "localhost").unwrap();
    assert!(!Pair::shaken(&mut first, &server).resumed());
    let mut second = first.for_thread();
    assert!(!Pair::shaken(&mut second, &server).resumed());
    assert!(Pair::shaken(&mut second, &server).resumed());
    assert!(Pair::shaken(&mut first, &server).resumed());
}

#[test]
fn early_data_is_accepted_or_must_be_sent_again() {
    let authority = Authority::new();
    let mut willing = authority.server(Key::P256);
    willing.max_early_data_size = 100;
    let willing = Arc::new(willing);
    let mut spec = authority.spec();
    spec.resumption = Resumption::On;
    spec.early_data = true;
    let mut connector = Connector::new(&spec, "localhost").unwrap();

    let mut first = Pair::new(&mut connector, &willing);
    assert!(!first.session.early(b"too soon", &mut first.out).unwrap());
    first.settle().unwrap();
    assert_eq!(first.early(), EarlyData::None);

    let mut second = Pair::new(&mut connector, &willing);
    assert!(!second.session.early(&[0; 101], &mut second.out).unwrap());
    assert!(second.session.early(b"early ", &mut second.out).unwrap());
    assert!(second.session.early(b"bird", &mut second.out).unwrap());
    assert!(!second.session.early(&[0; 91], &mut second.out).unwrap());
    second.settle().unwrap();
    assert_eq!(second.early(), EarlyData::Accepted);
    assert_eq!(second.served, b"early bird");
    assert!(second.resumed());
    second.talk();

    // The ticket allows it, but the server has changed its mind since.
    let mut unwilling = rustls::ServerConfig::clone(&willing);
    unwilling.max_early_data_size = 0;
    let mut third = Pair::new(&mut connector, &Arc::new(unwilling));
    assert!(third.session.early(b"early bird", &mut third.out).unwrap());
    third.settle().unwrap();
    assert_eq!(third.early(), EarlyData::Rejected);
    assert!(third.served.is_empty());
    third.talk();

    // Offered and not used.
    let mut fourth = Pair::shaken(&mut connector, &willing);
    assert_eq!(fourth.early(), EarlyData::None);
    assert!(!fourth.session.early(b"late", &mut fourth.out).unwrap());
    fourth.talk();
}

#[test]
fn a_server_may_demand_a_client_certificate() {
    let authority = Authority::new();
    let server = Arc::new(authority.demanding_server());
    for version in VERSIONS {
        let mut spec = authority.spec_of(version);
        let mut pair = Pair::new(&mut Connector::new(&spec, "localhost").unwrap(), &server);
        let error = pair.settle().unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::AlertReceived);
        assert_eq!(error.words(), "alert received: certificate_required (116)");
        assert!(error.id() > 256);

        let client = authority.issue(Key::Rsa, |_| {});
        spec.client = Some(ClientCertificate {
            certificate: authority.write("client.pem", &client.pem),
            key: authority.write("client.key", &client.key_pem),
        });
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        Pair::shaken(&mut connector, &server).talk();
    }
}

#[test]
fn certificates_that_must_not_be_believed() {
    let authority = Authority::new();
    let [expired, early] = [2001, 4001].map(|year| {
        authority.issue(Key::P256, |params| {
            params.not_before = rcgen::date_time_ymd(year, 1, 1);
            params.not_after = rcgen::date_time_ymd(year + 1, 1, 1);
        })
    });
    let good = authority.plain();
    let stranger = Authority::named("a stranger").plain();
    let impostor = Authority::new().plain();
    let self_issued = self_signed();
    #[rustfmt::skip]
    let cases = [
        (&expired, "localhost", TlsErrorKind::CertificateExpired, "expired"),
        (&early, "localhost", TlsErrorKind::CertificateNotYetValid, "not valid yet"),
        (&good, "elsewhere.example", TlsErrorKind::NameMismatch, "elsewhere.example"),
        (&good, "127.0.0.1", TlsErrorKind::NameMismatch, "127.0.0.1"),
        (&stranger, "localhost", TlsErrorKind::UnknownIssuer, "unknown issuer"),
        (&impostor, "localhost", TlsErrorKind::BadCertificate, "of the same name"),
        (&self_issued, "localhost", TlsErrorKind::UnknownIssuer, "self-signed"),
    ];
    for (identity, name, kind, words) in cases {
        let server = Arc::new(server(identity));
        let mut connector = Connector::new(&authority.spec(), name).unwrap();
        let mut pair = Pair::new(&mut connector, &server);
        let error = pair.settle().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.words().contains(words), "{error}");
        assert!(!pair.out.is_empty(), "the server is told by an alert");
        assert!(pair.session.send(b"x", &mut pair.out).is_err());
        // It is the same number each time: an engine counts by it.
        let mut again = Pair::new(&mut connector, &server);
        assert_eq!(again.settle().unwrap_err().id(), error.id());

        let mut careless = authority.spec();
        careless.trust = Trust::Insecure;
        Pair::shaken(&mut Connector::new(&careless, name).unwrap(), &server).talk();
    }
    // Another name can be asked for than the host's.
    let mut spec = authority.spec();
    spec.server_name = Some("localhost".to_owned());
    let server = Arc::new(server(&good));
    let mut connector = Connector::new(&spec, "127.0.0.1").unwrap();
    let pair = Pair::shaken(&mut connector, &server);
    assert_eq!(pair.server.server_name(), Some("localhost"));
}

#[test]
fn nothing_in_common_is_said_so() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    let mut spec = authority.spec();
    spec.ciphers = vec!["ECDHE-RSA-AES256-GCM-SHA384".to_owned()];
    let mut connector = Connector::new(&spec, "localhost").unwrap();
    let error = Pair::new(&mut connector, &server).settle().unwrap_err();
    assert_eq!(error.words(), "alert received: handshake_failure (40)");
}

#[test]
fn what_cannot_be_set_up_says_where_and_what_to_do() {
    let authority = Authority::new();
    let error = fail_to_set_up(&trust_ca(authority.file("absent.pem")));
    assert!(matches!(error, SetupError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("absent.pem"), "{error}");
    let empty = authority.write("empty.pem", "nothing here\n");
    assert!(matches!(fail_to_set_up(&trust_ca(empty)), SetupError::Missing { .. }));

    let good = std::fs::read_to_string(authority.file("ca.pem")).unwrap();
    let section =
        |text| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    let line = good.lines().count() + 2;
    #[rustfmt::skip]
    let rows = [
        (format!("{good}\n{}", section("!!")), format!("bad.pem:{line}: ")),
        (good[..good.len() / 2].to_owned(), "bad.pem:1: the section has no".to_owned()),
        (section("AAAA"), "bad.pem:1: not a certificate".to_owned()),
    ];
    for (text, words) in rows {
        let error = fail_to_set_up(&trust_ca(authority.write("bad.pem", &text))).to_string();
        assert!(error.contains(&words), "{error}");
    }

    let (one, other) = (authority.plain(), authority.plain());
    let mut spec = authority.spec();
    let certificate = authority.write("one.pem", &one.pem);
    let key = authority.write("other.key", &other.key_pem);
    spec.client = Some(ClientCertificate { certificate, key });
    assert!(matches!(fail_to_set_up(&spec), SetupError::KeyMismatch { .. }));
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    spec.client.as_mut().unwrap().key = authority.write("locked.key", locked);
    let error = fail_to_set_up(&spec);
    let (said, hint) = (error.to_string(), error.hint().unwrap());
    let words = "locked.key:1: the private key is encrypted";
    assert!(said.ends_with(words), "{said}");
    assert!(hint.contains("openssl pkey"), "{hint}");
}

fn fail_to_set_up(spec: &TlsSpec) -> SetupError {
    Connector::new(spec, "localhost").unwrap_err()
}

fn trust_ca(path: String) -> TlsSpec {
    TlsSpec { trust: Trust::Ca(path), ..TlsSpec::default() }
}

#[test]
fn what_contradicts_itself_or_is_nothing_is_refused() {
    let authority = Authority::new();
    let error = fail_with(&authority, |spec| {
        spec.versions = vec![TlsVersion::V1_3];
        spec.ciphers = vec!["ECDHE-RSA-AES256-GCM-SHA384".to_owned()];
    });
    assert!(matches!(error, SetupError::NoCipherFor("1.3")));
    let error = fail_with(&authority, |spec| spec.early_data = true);
    assert!(matches!(error, SetupError::EarlyData));
    let error = fail_with(&authority, |spec| spec.resumption = Resumption::Ratio(1.5));
    assert!(matches!(error, SetupError::Ratio(_)));
    let error = fail_with(&authority, |spec| spec.alpn = vec![String::new()]);
    assert!(matches!(error, SetupError::Alpn(_)));
    let error = Connector::new(&authority.spec(), "not a name").unwrap_err();
    assert!(matches!(error, SetupError::ServerName(_)));
    assert!(Connector::new(&authority.spec(), "[::1]").is_ok());
}

fn fail_with(authority: &Authority, change: fn(&mut TlsSpec)) -> SetupError {
    let mut spec = authority.spec();
    change(&mut spec);
    fail_to_set_up(&spec)
}
