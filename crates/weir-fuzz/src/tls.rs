//! Properties that must hold for the bytes of a TLS server.

use weir_load::tls::{Connector, Input, Received, Session, TlsErrorKind};
use weir_model::tls::TlsVersion;

use crate::dice::Dice;
use crate::pieces::cuttings;
use crate::server::{Pair, build_connector};

const VERSIONS: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

/// Upper bound of a session's memory in bytes: twice the handshake messages that it keeps, as vectors grow by doubling,
/// plus a record.
const MOST_BUFFERED: usize = 300 * 1024;

/// Upper bound in bytes of the incomplete record that an open session keeps.
const MOST_OF_A_RECORD: usize = 17 * 1024;

/// Result of a session fed with bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    established: bool,
    content: Vec<u8>,
    closed: bool,
    pub(crate) error: Option<TlsErrorKind>,
    /// Error that the session would report if the connection ended here.
    end: Option<TlsErrorKind>,
}

/// Feeds pieces to a session in order.
pub(crate) fn feed(session: &mut Session, pieces: &mut [&mut [u8]], out: &mut Vec<u8>) -> Outcome {
    let mut read = Outcome::default();
    for piece in pieces {
        let mut input = Input::new(piece);
        loop {
            match session.next(&mut input, out) {
                Ok(Received::Nothing) => break,
                Ok(Received::Established) => {
                    assert!(!read.established, "established twice");
                    read.established = true;
                }
                Ok(Received::Plaintext(content)) => {
                    assert!(!content.is_empty());
                    read.content.extend_from_slice(content);
                }
                Ok(Received::Closed) => read.closed = true,
                Err(error) => {
                    assert_eq!(read.error, None, "an error is the last");
                    assert_ne!(error.kind(), TlsErrorKind::Internal, "{error}");
                    assert!(error.id() < 512 && !error.words().is_empty());
                    assert_eq!(session.buffered(), 0, "after {error}");
                    read.error = Some(error.kind());
                }
            }
        }
        assert!(session.buffered() <= MOST_BUFFERED, "{}", session.buffered());
    }
    assert!(!read.closed || session.has_closed(), "what was said is known");
    read.end = session.ended().map(|error| error.kind());
    read
}

/// Checks the bytes that a server sends: as the first of a connection, in the middle of a valid handshake, after a
/// handshake, and as content that a valid server encrypts.
///
/// # Panics
/// A property does not hold.
pub fn tls(data: &[u8]) {
    first(&mut build_connector(&[]), data);
    for version in VERSIONS {
        let mut connector = build_connector(&[version]);
        amid(&mut connector, data);
        after(&mut connector, data);
        content(&mut connector, data);
    }
}

/// Cuts bytes in the ways that matter to a session: byte by byte, in two, at random.
fn cuts(data: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut all: Vec<_> = cuttings(data)
        .into_iter()
        .map(|cut| cut.into_iter().map(<[u8]>::to_vec).collect())
        .collect();
    all.truncate(4);
    all
}

fn feed_cut(pair: &mut Pair, cut: &mut [Vec<u8>]) -> Outcome {
    let mut pieces: Vec<_> = cut.iter_mut().map(Vec::as_mut_slice).collect();
    feed(&mut pair.session, &mut pieces, &mut Vec::new())
}

fn feed_whole(pair: &mut Pair, bytes: &[u8]) -> Outcome {
    feed_cut(pair, &mut [bytes.to_vec()])
}

/// Checks bytes in place of a handshake: bytes that were not made for this client never complete one.
fn first(connector: &mut Connector, data: &[u8]) {
    let uncut = feed_whole(&mut Pair::begun(connector), data);
    assert!(!uncut.established && uncut.content.is_empty());
    for mut cut in cuts(data) {
        let again = feed_cut(&mut Pair::begun(connector), &mut cut);
        assert_eq!(again, uncut, "cut {cut:?}");
    }
}

/// Checks a server's flight with one change: data in place of a part or inserted, a flipped bit, a missing part, or a
/// repeated part. Nothing changed passes as content.
fn amid(connector: &mut Connector, data: &[u8]) {
    let mut dice = Dice::of(data);
    for kind in 0..5 {
        let mut pair = Pair::begun(connector);
        let mut flight = pair.answer();
        let at = dice.below(flight.len() as u32) as usize;
        let end = (at + data.len()).min(flight.len());
        match kind {
            0 => drop(flight.splice(at..end, data.iter().copied())),
            1 => drop(flight.splice(at..at, data.iter().copied())),
            2 => flight[at] ^= 1 << dice.below(8),
            3 => drop(flight.drain(at..end)),
            _ => flight.extend_from_within(at..),
        }
        let portion = [1, 7, 100, 700][dice.below(4) as usize];
        let mut cut: Vec<_> = flight.chunks(portion).map(<[u8]>::to_vec).collect();
        let read = feed_cut(&mut pair, &mut cut);
        assert!(read.content.is_empty());
    }
}

/// Checks bytes after a handshake: no record is authentic that the server has not made.
fn after(connector: &mut Connector, data: &[u8]) {
    let uncut = feed_whole(&mut Pair::shaken(connector), data);
    assert!(uncut.content.is_empty() && !uncut.closed);
    for mut cut in cuts(data).into_iter().take(2) {
        let again = feed_cut(&mut Pair::shaken(connector), &mut cut);
        assert_eq!(again, uncut, "cut {cut:?}");
    }
}

/// Checks that content arrives unchanged, and that no bytes of it stay in the session.
fn content(connector: &mut Connector, data: &[u8]) {
    let mut pair = Pair::shaken(connector);
    for _ in 0..2 {
        let records = pair.content(data);
        for mut cut in cuts(&records).into_iter().take(1) {
            let read = feed_cut(&mut pair, &mut cut);
            assert_eq!((&read.content[..], read.error, read.end), (data, None, None));
        }
        assert_eq!(pair.session.buffered(), 0);
    }
    let records = pair.content(data);
    let half = records.len() / 2;
    let read = feed_whole(&mut pair, &records[..half]);
    assert!(data.starts_with(&read.content));
    assert!(pair.session.buffered() <= MOST_OF_A_RECORD);
    // The peer is heard to the end only when it has said so itself, and in whole.
    let farewell = [&records[half..], &pair.farewell()].concat();
    for (number, piece) in farewell.chunks(farewell.len() - 1).enumerate() {
        let read = feed_whole(&mut pair, piece);
        assert_eq!((read.closed, pair.session.has_closed()), (number == 1, number == 1));
    }
}
