//! TLS with peers that trickle, garble, flood and close: errors, no panics, and bounded memory.

use std::sync::Arc;

use weir_load::tls::{Input, Received, Session, TlsErrorKind};
use weir_testkit::tls::{Authority, Key, Pair, VERSIONS};

#[test]
fn a_byte_at_a_time() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::Rsa));
    for version in VERSIONS {
        let mut pair = Pair::new(&mut authority.connector_of(version), &server);
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
        let mut pair = Pair::shaken(&mut authority.connector_of(version), &server);
        let mut bytes = pair.said(&content);
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
        pair.exchange(&content);
        assert!(pair.most_buffered <= 17 * 1024, "{}", pair.most_buffered);
        assert_eq!(pair.session.buffered(), 0);
    }
}

#[test]
fn an_endless_handshake_message_is_bounded() {
    for (length, kind) in [(0xff_ffff_u32, "announced"), (0xfff0, "allowed")] {
        let mut connector = Authority::new().connector();
        let mut out = Vec::new();
        let mut session = Session::begin(&mut connector, &mut out).unwrap();
        let [_, a, b, c] = length.to_be_bytes();
        let zeros = std::iter::repeat_n(0, 0xff00);
        // Records of one byte each: the overhead is five times the content.
        let failed = [2, a, b, c].into_iter().chain(zeros).any(|byte| {
            let mut record = [22, 3, 3, 0, 1, byte];
            let mut input = Input::new(&mut record);
            let failed = session.next(&mut input, &mut out).is_err();
            let buffered = session.buffered();
            assert!(buffered <= 300 * 1024, "{kind}: {buffered}");
            failed
        });
        assert!(failed, "{kind}");
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
        updates.extend(pair.records());
    }
    pair.bring(&mut updates).unwrap();
    assert!(pair.out.len() <= updates.len());
}

#[test]
fn records_that_were_changed_repeated_or_cut() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::P256));
    for version in VERSIONS {
        let mut connector = authority.connector_of(version);
        let mut spoken = || {
            let mut pair = Pair::shaken(&mut connector, &server);
            let bytes = pair.said(b"an answer");
            (pair, bytes)
        };
        let (mut pair, mut bytes) = spoken();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(fail_to_bring(&mut pair, bytes), TlsErrorKind::BadRecord);
        assert!(pair.received.is_empty());
        assert!(!pair.out.is_empty(), "the server is told by an alert");

        let (mut pair, bytes) = spoken();
        pair.bring(&mut bytes.clone()).unwrap();
        assert_eq!(fail_to_bring(&mut pair, bytes), TlsErrorKind::BadRecord);

        let (mut pair, mut bytes) = spoken();
        assert_eq!(end_kind(&pair), None);
        let half = bytes.len() / 2;
        pair.bring(&mut bytes[..half]).unwrap();
        assert_eq!(end_kind(&pair), Some(TlsErrorKind::Truncated));
        pair.bring(&mut bytes[half..]).unwrap();
        assert_eq!(pair.received, b"an answer");
        assert_eq!(end_kind(&pair), None);

        assert!(!pair.session.has_closed());
        pair.server.send_close_notify();
        pair.settle().unwrap();
        assert!(pair.closed && pair.session.has_closed());
        assert_eq!(end_kind(&pair), None);

        let (mut pair, _) = spoken();
        let oversize = vec![23, 3, 3, 0xff, 0xff];
        assert_eq!(fail_to_bring(&mut pair, oversize), TlsErrorKind::OversizedRecord);
    }
    let mut pair = Pair::new(&mut authority.connector(), &server);
    let cut_off = pair.session.ended().unwrap();
    assert_eq!(cut_off.kind(), TlsErrorKind::ClosedInHandshake);
    pair.settle().unwrap();
}

fn fail_to_bring(pair: &mut Pair, mut bytes: Vec<u8>) -> TlsErrorKind {
    pair.bring(&mut bytes).unwrap_err().kind()
}

fn end_kind(pair: &Pair) -> Option<TlsErrorKind> {
    pair.session.ended().map(|error| error.kind())
}
