//! Protocols other than HTTP/1.1 that gateways use: FastCGI, uwsgi, SCGI, memcached, and HTTP/2 without TLS (and so
//! gRPC).
//! Each is detected by its first bytes, so one listener answers all of them and none has to be configured.

mod fastcgi;
mod http2;
mod memcached;
mod once;
mod params;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, SendFlags};

use self::once::{Block, Once};
use crate::connection::{Over, Service};
use crate::responses::Responses;

/// Number of bytes waiting to be sent above which no more answers are written.
const ENOUGH: usize = 256 * 1024;

/// Maximum size of an unfinished message in bytes: a FastCGI record has 65,798, a block of uwsgi's variables 65,539.
const MOST_HELD: usize = 128 * 1024;

/// A complete request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ForeignRequest {
    /// Identifier of the request within its connection: a stream (HTTP/2) or a request id (FastCGI).
    id: u32,
    /// Index of the content of its answer, see [`Responses::content_of`].
    content: usize,
    is_head: bool,
    /// True for a gRPC call.
    is_call: bool,
    /// Affirmative message, for a call of a service that gateways query before they pass a request on. `None`: the
    /// answer is the content.
    yes: Option<&'static [u8]>,
}

/// Error for data that do not conform to the detected protocol.
#[derive(Debug)]
struct Malformed;

/// An implementation of one of the protocols.
trait Protocol: Debug {
    /// Parses the bytes received and not used before, and returns how many were used. Complete requests are added to
    /// `requests`, immediate replies to `out`.
    fn feed(
        &mut self,
        bytes: &[u8],
        responses: &Responses,
        requests: &mut Vec<ForeignRequest>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Malformed>;

    fn answer(&mut self, request: &ForeignRequest, responses: &Responses, out: &mut Vec<u8>);

    /// Writes more of the answers for which the peer had no room.
    fn go_on(&mut self, _responses: &Responses, _out: &mut Vec<u8>) {}

    /// Returns true if the connection ends once everything has been sent.
    fn is_over(&self) -> bool;
}

/// Result of detecting a connection's protocol by its first bytes.
pub(crate) enum Detection {
    /// HTTP/1.1, or an unknown protocol.
    Http1,
    /// Not enough bytes to decide.
    Unsure,
    /// Another protocol.
    Foreign(Box<Foreign>),
}

/// Detects the protocol that begins with these bytes. No method of HTTP begins with a control character or a digit, or
/// is `get` in small letters.
pub(crate) fn detect(first: &[u8]) -> Detection {
    let protocol: Box<dyn Protocol> = match first {
        [1, ..] => Box::new(fastcgi::FastCgi::default()),
        // The kinds of application that gateways name: WSGI (the default), PSGI, Rack, CGI, PHP.
        [0 | 5 | 7 | 9 | 14, ..] => Box::new(Once::new(Block::Uwsgi)),
        [b'0'..=b'9', ..] => Box::new(Once::new(Block::Scgi)),
        // The preface of HTTP/2 (RFC 9113 §3.4).
        [b'P', b'R', b'I', ..] => Box::new(http2::Http2::default()),
        [b'g', b'e', b't', b' ', ..] => Box::new(memcached::Memcached::default()),
        b"P" | b"PR" | b"g" | b"ge" | b"get" => return Detection::Unsure,
        _ => return Detection::Http1,
    };
    Detection::Foreign(Box::new(Foreign {
        protocol,
        held: Vec::new(),
        waiting: BTreeMap::new(),
        seen: 0,
        out: Vec::new(),
        sent: 0,
    }))
}

/// A connection that does not speak HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Foreign {
    protocol: Box<dyn Protocol>,
    /// The beginning of an incomplete message.
    held: Vec<u8>,
    /// Requests that wait for their answers, by due time and order of arrival.
    waiting: BTreeMap<(u64, u64), ForeignRequest>,
    /// Number of requests so far.
    seen: u64,
    out: Vec<u8>,
    /// Number of bytes of `out` that were sent.
    sent: usize,
}

impl Foreign {
    /// Returns true if no more is to be read for now.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() - self.sent > ENOUGH
    }

    /// Returns the time at which the next answer is due, in nanoseconds since the server was started.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let ((due_ns, _), _) = self.waiting.first_key_value()?;
        Some(*due_ns)
    }

    /// Parses received bytes and queues the complete requests.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        listener: u32,
        service: &mut Service,
    ) -> Result<(), Over> {
        let mut requests = Vec::new();
        let fed = if self.held.is_empty() {
            let fed = (self.protocol).feed(bytes, &service.responses, &mut requests, &mut self.out);
            let unused = bytes.get(*fed.as_ref().unwrap_or(&0)..);
            self.held.extend_from_slice(unused.unwrap_or_default());
            fed.map(|_| ())
        } else {
            self.held.extend_from_slice(bytes);
            let held = std::mem::take(&mut self.held);
            let fed = (self.protocol).feed(&held, &service.responses, &mut requests, &mut self.out);
            self.held = held;
            fed.map(|used| drop(self.held.drain(..used)))
        };
        for request in requests {
            service.tallies[listener as usize].requests.add(1);
            service.first.came(|| service.now_ns());
            let due_ns = service.due(listener);
            self.seen += 1;
            self.waiting.insert((due_ns, self.seen), request);
        }
        if fed.is_err() || self.held.len() > MOST_HELD {
            service.tallies[listener as usize].bad_requests.add(1);
            return Err(Over);
        }
        Ok(())
    }

    /// Writes and sends the answers that are due. Returns true if the socket had no more room.
    pub(crate) fn flush(
        &mut self,
        socket: &OwnedFd,
        listener: u32,
        service: &Service,
    ) -> Result<bool, Over> {
        let tally = &service.tallies[listener as usize];
        loop {
            self.write_due(listener, service);
            if self.sent == self.out.len() {
                self.out.clear();
                self.sent = 0;
                self.protocol.go_on(&service.responses, &mut self.out);
            }
            let unsent = &self.out[self.sent..];
            if unsent.is_empty() {
                break;
            }
            match net::send(socket, unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    tally.sent_bytes.add(sent as u64);
                    self.sent += sent;
                }
                Err(Errno::AGAIN) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Over),
            }
        }
        if self.protocol.is_over() && self.waiting.is_empty() { Err(Over) } else { Ok(false) }
    }

    fn write_due(&mut self, listener: u32, service: &Service) {
        while !self.is_full()
            && let Some(first) = self.waiting.first_entry()
            && (first.key().0 == 0 || first.key().0 <= service.now_ns())
        {
            let request = first.remove();
            self.protocol.answer(&request, &service.responses, &mut self.out);
            service.tallies[listener as usize].responses.add(1);
        }
    }
}
