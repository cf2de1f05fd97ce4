//! TLS with peers that trickle, garble, flood and close: errors, never panics, and bounded memory.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::io::Write;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use weir_load::tls::{Connector, Input, Received, Session, TlsErrorKind};
use weir_model::tls::{TlsVersion, Trust};

use crate::tls_support::{Authority, Key, Pair};

const VERSIONS: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

#[test]
fn a_byte_at_a_time() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::Rsa));
    for version in VERSIONS {
        let mut spec = authority.spec();
        spec.versions = vec![version];
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        let mut pair = Pair::new(&mut connector, &server);
        pair.portion = 1;
        pair.settle().unwrap();
        assert_eq!(pair.established, 1);
        pair.talk();
        pair.talk();
        assert_eq!(pair.session.buffered(), 0, "an idle session has no buffer");
        assert!(pair.most_buffered < 5000, "{}", pair.most_buffered);
    }
}

#[test]
fn a_megabyte_is_decrypted_where_it_was_received() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    let content = (0..1 << 20).map(|i| (i % 253) as u8).collect::<Vec<_>>();
    for version in VERSIONS {
        let mut spec = authority.spec();
        spec.versions = vec![version];
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        let mut pair = Pair::shaken(&mut connector, &server);
        pair.server.set_buffer_limit(None);
        pair.server.writer().write_all(&content).unwrap();
        let mut bytes = Vec::new();
        while pair.server.wants_write() {
            pair.server.write_tls(&mut bytes).unwrap();
        }
        let within = bytes.as_ptr_range();
        let mut at = 0;
        let mut input = Input::new(&mut bytes);
        loop {
            match pair.session.next(&mut input, &mut pair.out).unwrap() {
                Received::Nothing => break,
                Received::Plaintext(part) => {
                    assert!(within.contains(&part.as_ptr()), "copied");
                    assert_eq!(part.len(), (content.len() - at).min(16 * 1024));
                    assert!(part == &content[at..at + part.len()]);
                    at += part.len();
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(at, content.len());
        assert_eq!(pair.session.buffered(), 0);
    }
}

#[test]
fn portions_that_cut_records_anywhere() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    let content = (0..100_000).map(|i| (i % 253) as u8).collect::<Vec<_>>();
    for portion in [3, 700, 16_384, 16_400, 65_536] {
        let mut pair = Pair::new(&mut authority.connector(), &server);
        pair.portion = portion;
        pair.settle().unwrap();
        pair.server.set_buffer_limit(None);
        pair.server.writer().write_all(&content).unwrap();
        pair.session.send(&content, &mut pair.out).unwrap();
        pair.settle().unwrap();
        assert!(
            pair.received == content && pair.served == content,
            "{portion}"
        );
        assert!(pair.most_buffered <= 17 * 1024, "{}", pair.most_buffered);
        assert_eq!(pair.session.buffered(), 0);
    }
}

/// What the session says to these bytes as the server's first.
fn first_words(bytes: &[u8]) -> TlsErrorKind {
    let mut connector = Authority::new().connector();
    let mut out = Vec::new();
    let mut session = Session::begin(&mut connector, &mut out).unwrap();
    let mut bytes = bytes.to_vec();
    let mut input = Input::new(&mut bytes);
    let error = session.next(&mut input, &mut out).unwrap_err();
    assert_eq!(session.buffered(), 0);
    assert_eq!(session.next(&mut input, &mut out), Ok(Received::Nothing));
    error.kind()
}

#[test]
fn what_is_not_tls_is_said_to_be_so() {
    assert_eq!(
        first_words(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        TlsErrorKind::NotTls
    );
    assert_eq!(first_words(b"SSH-2.0-OpenSSH"), TlsErrorKind::NotTls);
    assert_eq!(
        first_words(&[22, 3, 3, 0xff, 0xff]),
        TlsErrorKind::OversizedRecord
    );
    assert_eq!(
        first_words(&[21, 3, 3, 0, 2, 2, 40]),
        TlsErrorKind::AlertReceived
    );
    assert_eq!(
        first_words(&[23, 3, 3, 0, 2, 1, 0]),
        TlsErrorKind::Misbehaved
    );
}

#[test]
fn an_endless_handshake_message_is_bounded() {
    for (length, kind) in [(0xff_ffff_u32, "announced"), (0xfff0, "allowed")] {
        let mut connector = Authority::new().connector();
        let mut out = Vec::new();
        let mut session = Session::begin(&mut connector, &mut out).unwrap();
        let [_, a, b, c] = length.to_be_bytes();
        let mut failed = false;
        let mut most = 0;
        // Records of one byte each: the overhead is five times the content.
        for byte in [2, a, b, c]
            .into_iter()
            .chain(std::iter::repeat_n(0, 0xff00))
        {
            let mut record = [22, 3, 3, 0, 1, byte];
            let mut input = Input::new(&mut record);
            if session.next(&mut input, &mut out).is_err() {
                failed = true;
                break;
            }
            most = most.max(session.buffered());
        }
        assert!(failed, "{kind}");
        assert!(most <= 300 * 1024, "{kind}: {most}");
    }
}

#[test]
fn keys_are_updated_and_updates_answered() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    let mut pair = Pair::shaken(&mut authority.connector(), &server);
    // Key updates are answered, and both sides go on with the new keys.
    for _ in 0..3 {
        pair.server.refresh_traffic_keys().unwrap();
        pair.talk();
    }
    // Updates without content between them are bounded, and so is what is said to them.
    pair.out.clear();
    let mut updates = Vec::new();
    for _ in 0..25 {
        pair.server.refresh_traffic_keys().unwrap();
        while pair.server.wants_write() {
            pair.server.write_tls(&mut updates).unwrap();
        }
    }
    pair.bring(&mut updates).unwrap();
    assert!(pair.out.len() <= updates.len());
}

#[test]
fn records_that_were_changed_repeated_or_cut() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    for version in VERSIONS {
        let mut spec = authority.spec();
        spec.versions = vec![version];
        let mut connector = Connector::new(&spec, "localhost").unwrap();
        let spoken = |connector: &mut Connector| {
            let mut pair = Pair::shaken(connector, &server);
            pair.server.writer().write_all(b"an answer").unwrap();
            let mut bytes = Vec::new();
            pair.server.write_tls(&mut bytes).unwrap();
            (pair, bytes)
        };
        let (mut pair, mut bytes) = spoken(&mut connector);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(
            pair.bring(&mut bytes).unwrap_err().kind(),
            TlsErrorKind::BadRecord
        );
        assert!(pair.received.is_empty());
        assert!(!pair.out.is_empty(), "the server is told by an alert");

        let (mut pair, bytes) = spoken(&mut connector);
        pair.bring(&mut bytes.clone()).unwrap();
        let again = pair.bring(&mut bytes.clone()).unwrap_err();
        assert_eq!(again.kind(), TlsErrorKind::BadRecord);

        let (mut pair, mut bytes) = spoken(&mut connector);
        assert_eq!(pair.session.ended(), None);
        let half = bytes.len() / 2;
        pair.bring(&mut bytes[..half]).unwrap();
        assert_eq!(
            pair.session.ended().unwrap().kind(),
            TlsErrorKind::Truncated
        );
        pair.bring(&mut bytes[half..]).unwrap();
        assert_eq!(pair.received, b"an answer");
        assert_eq!(pair.session.ended(), None);

        let mut oversize = [23, 3, 3, 0xff, 0xff];
        let error = pair.bring(&mut oversize).unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::OversizedRecord);
    }
    let mut pair = Pair::new(&mut authority.connector(), &server);
    assert_eq!(
        pair.session.ended().unwrap().kind(),
        TlsErrorKind::ClosedInHandshake
    );
    pair.settle().unwrap();
}

/// Mutations of what a server sends in a handshake and after it.
fn mutated(version: TlsVersion, change: impl FnOnce(&mut Vec<u8>), portion: usize) {
    static SERVER: OnceLock<Arc<rustls::ServerConfig>> = OnceLock::new();
    let server = SERVER.get_or_init(|| Arc::new(Authority::new().server(Key::P256)));
    let spec = weir_model::tls::TlsSpec {
        versions: vec![version],
        trust: Trust::Insecure,
        resumption: weir_model::tls::Resumption::On,
        ..weir_model::tls::TlsSpec::default()
    };
    let mut connector = Connector::new(&spec, "localhost").unwrap();
    let mut pair = Pair::new(&mut connector, server);
    pair.portion = portion;
    let mut change = Some(change);
    for _ in 0..4 {
        pair.carry_up();
        let mut down = Vec::new();
        while pair.server.wants_write() {
            pair.server.write_tls(&mut down).unwrap();
        }
        if let Some(change) = change.take() {
            change(&mut down);
        }
        let failed = pair.bring(&mut down).is_err();
        assert!(pair.session.buffered() <= 300 * 1024);
        if failed {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_change_of_a_server_flight_never_panics(
        new in any::<bool>(),
        at in any::<prop::sample::Index>(),
        kind in 0..5_u8,
        bytes in prop::collection::vec(any::<u8>(), 1..40),
        portion in prop::sample::select(vec![1_usize, 7, 100, 5000]),
    ) {
        let version = if new { TlsVersion::V1_3 } else { TlsVersion::V1_2 };
        let change = |flight: &mut Vec<u8>| {
            let at = at.index(flight.len());
            match kind {
                0 => flight[at] ^= bytes[0].max(1),
                1 => flight.truncate(at),
                2 => drop(flight.splice(at..at, bytes)),
                3 => drop(flight.drain(at..(at + bytes.len()).min(flight.len()))),
                _ => {
                    let copy = flight[at..].to_vec();
                    flight.extend(copy);
                }
            }
        };
        mutated(version, change, portion);
    }

    #[test]
    fn any_first_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), record in any::<bool>()) {
        let mut flight = bytes;
        if record {
            let length = (flight.len() as u16).to_be_bytes();
            let header = [22, 3, 3, length[0], length[1]];
            flight.splice(0..0, header);
        }
        mutated(TlsVersion::V1_3, move |down| *down = flight, 64);
    }
}
