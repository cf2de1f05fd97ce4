//! Properties that must hold for any bytes that a peer may send, or a file may hold.
//!
//! Each function here is the body of a fuzz target in `fuzz/fuzz_targets` of the same name: it takes any bytes and
//! panics if a property does not hold. They are an ordinary library, so that the tests of this crate can replay the
//! seeds in `fuzz/corpus`, and mutations of them, on a stable compiler; a fuzzer guided by coverage goes on from the
//! same seeds (`make fuzz`).
//!
//! The properties, beside the absence of panics:
//!
//! * The same bytes give the same outcome however they are cut into pieces, also under a small limit.
//! * The parser agrees with [`reference`] wherever the latter is sure: on every complete message, its end, the values
//!   that its fields decide, and the fields and content given to a sink.
//! * Content that is encoded and decoded again is unchanged.
//! * A TLS session's memory is bounded, and is empty after an error.
//! * An agent's messages need no more memory than their bytes, and the agent answers every request that it can answer
//!   once.
//! * A trace is in order, and reads the same after it is written in another format.
//! * A histogram that can be read reads the same after it is written again.
//!
//! The cuts are derived from the bytes, so that an input alone reproduces a failure.

mod agent;
pub mod dice;
mod histogram;
mod pieces;
mod read;
pub mod reference;
mod server;
mod tls;
mod trace;

pub use agent::agent;
pub use histogram::histogram;
pub use tls::tls;
pub use trace::trace;

use weir_http::{request, response};

use crate::dice::Dice;
use crate::pieces::cuttings;
use crate::read::{requests, responses};

/// Upper end of the small head limits that are tried: near the length of the heads in the inputs.
const SMALL_LIMIT: u32 = 200;

/// Checks the bytes that a server sends over a connection before it closes it.
///
/// # Panics
/// A property does not hold.
pub fn response(data: &[u8]) {
    let small = 1 + Dice::of(data).below(SMALL_LIMIT);
    for to_head in [false, true] {
        for limit in [response::HEAD_LIMIT, small] {
            let uncut = responses(limit, to_head, &[data]);
            for cut in cuttings(data) {
                let again = responses(limit, to_head, &cut);
                assert_eq!(again, uncut, "limit {limit}, cut {cut:?}");
            }
            if limit == response::HEAD_LIMIT {
                let sure = reference::responses(data, to_head);
                let same = uncut.complete.get(..sure.len());
                assert_eq!(same, Some(&sure[..]), "{:?}", uncut.end);
                let unparsed = &data[sure.last().map_or(0, |last| last.used)..];
                let is_more = uncut.complete.len() > sure.len();
                assert!(!is_more || !reference::is_begun_head(unparsed), "{uncut:?}");
            }
        }
    }
}

/// Checks the bytes that a client sends over a connection.
///
/// # Panics
/// A property does not hold.
pub fn request(data: &[u8]) {
    let small = 1 + Dice::of(data).below(SMALL_LIMIT);
    for limit in [request::HEAD_LIMIT, small] {
        let uncut = requests(limit, &[data]);
        for cut in cuttings(data) {
            let again = requests(limit, &cut);
            assert_eq!(again, uncut, "limit {limit}, cut {cut:?}");
        }
        if limit == request::HEAD_LIMIT {
            let sure = reference::requests(data);
            let same = uncut.complete.get(..sure.len());
            assert_eq!(same, Some(&sure[..]), "{:?}", uncut.end);
        }
    }
}

/// Checks bytes as chunked content of a response, as chunked content of a request, and as data to be encoded in chunks.
///
/// # Panics
/// A property does not hold.
pub fn chunked(data: &[u8]) {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = [head, data].concat();
    response(&answer);
    let asking = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let request_bytes = [asking, data].concat();
    request(&request_bytes);

    let from_server = responses(response::HEAD_LIMIT, false, &[&answer]);
    let from_client = requests(request::HEAD_LIMIT, &[&request_bytes]);
    let ends = (from_server.complete.first(), from_client.complete.first());
    if let (Some(server), Some(client)) = ends {
        assert_eq!(server.used - head.len(), client.used - asking.len());
    }
    // The head (and trailer) limits of the two differ; below both, they agree.
    if data.len() < request::HEAD_LIMIT as usize / 2 {
        assert_eq!(ends.0.is_some(), ends.1.is_some(), "one sees no end");
    }

    let encoded = [&head[..], &in_chunks(data)].concat();
    for cut in cuttings(&encoded) {
        let read = responses(response::HEAD_LIMIT, false, &cut);
        let [only] = &read.complete[..] else {
            panic!("{read:?}");
        };
        assert_eq!(only.used, encoded.len());
        assert_eq!(only.end.read.content_bytes, data.len() as u64);
        assert_eq!(only.end.content, data);
        assert!(only.end.read.keep_alive);
    }
}

/// Encodes content in chunks of varying sizes (RFC 9112 §7.1), with an extension or a trailer field here and there.
fn in_chunks(mut content: &[u8]) -> Vec<u8> {
    let mut dice = Dice::of(content);
    let mut coded = Vec::new();
    while !content.is_empty() {
        let most = 1 + content.len().min(64) as u32;
        let size = (1 + dice.below(most) as usize).min(content.len());
        let extension = ["", ";x", " ; name=\"a;b\""][dice.below(3) as usize];
        let line = match dice.below(2) {
            0 => format!("{size:x}{extension}\r\n"),
            _ => format!("{size:04X}{extension}\r\n"),
        };
        coded.extend(line.bytes());
        coded.extend(&content[..size]);
        coded.extend(b"\r\n");
        content = &content[size..];
    }
    let trailer = ["0\r\n\r\n", "000;last\r\nDigest: x\r\nContent-Length: 7\r\n\r\n"];
    coded.extend(trailer[dice.below(2) as usize].bytes());
    coded
}
