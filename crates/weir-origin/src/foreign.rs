//! Protocols other than HTTP/1.1 in which gateways ask: FastCGI, uwsgi, SCGI, memcached, and HTTP/2 without TLS (with it
//! gRPC).
//! Each is known by its first bytes, so one listener answers all of them and nobody has to say what will come.

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

/// Bytes that wait to be sent before no more answers are written.
const ENOUGH: usize = 256 * 1024;

/// Bytes of an unfinished message at most: a FastCGI record has 65,798, a block of uwsgi's variables 65,539.
const MOST_HELD: usize = 128 * 1024;

/// A whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    /// What tells it from others of the connection: a stream (HTTP/2) or a request (FastCGI).
    id: u32,
    /// Its content, see [`Responses::content_of`].
    content: usize,
    is_head: bool,
    /// It is a call by gRPC.
    is_call: bool,
    /// The message that says yes to a call of a service that gateways ask before they pass a request on; else it
    /// is the content.
    yes: Option<&'static [u8]>,
}

/// What came is not the protocol that it began as.
#[derive(Debug)]
struct Malformed;

/// One of the protocols.
trait Protocol: Debug {
    /// Takes what has come and was not used before, and says how much of it is used. Whole requests go to `asked`,
    /// what is to be said at once to `out`.
    fn feed(
        &mut self,
        bytes: &[u8],
        responses: &Responses,
        asked: &mut Vec<Asked>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Malformed>;

    /// Answers a request.
    fn answer(&mut self, asked: &Asked, responses: &Responses, out: &mut Vec<u8>);

    /// Writes more of answers that the peer had no room for.
    fn go_on(&mut self, _responses: &Responses, _out: &mut Vec<u8>) {}

    /// Whether the connection is over once all is sent.
    fn is_over(&self) -> bool;
}

/// What the first bytes of a connection say.
pub(crate) enum Told {
    /// That it is HTTP/1.1, or nothing that is known here.
    Http1,
    /// Not yet which.
    Unsure,
    /// Which other protocol it is.
    Foreign(Box<Foreign>),
}

/// Which protocol begins with these bytes. No method of HTTP begins with a control character or a digit, or is
/// `get` in small letters.
pub(crate) fn told(first: &[u8]) -> Told {
    let protocol: Box<dyn Protocol> = match first {
        [1, ..] => Box::new(fastcgi::FastCgi::default()),
        // The kinds of application that gateways name: WSGI (the default), PSGI, Rack, CGI, PHP.
        [0 | 5 | 7 | 9 | 14, ..] => Box::new(Once::new(Block::Uwsgi)),
        [b'0'..=b'9', ..] => Box::new(Once::new(Block::Scgi)),
        // The preface of HTTP/2 (RFC 9113 §3.4).
        [b'P', b'R', b'I', ..] => Box::new(http2::Http2::default()),
        [b'g', b'e', b't', b' ', ..] => Box::new(memcached::Memcached::default()),
        b"P" | b"PR" | b"g" | b"ge" | b"get" => return Told::Unsure,
        _ => return Told::Http1,
    };
    Told::Foreign(Box::new(Foreign {
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
    /// Begin of a message that has not ended.
    held: Vec<u8>,
    /// Requests that wait for their answers, by the time these are due and the order in which they came.
    waiting: BTreeMap<(u64, u64), Asked>,
    /// Requests so far.
    seen: u64,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    sent: usize,
}

impl Foreign {
    /// Whether no more is to be read for now.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() - self.sent > ENOUGH
    }

    /// When the next answer is due, in nanoseconds since the server was started.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let ((due_ns, _), _) = self.waiting.first_key_value()?;
        Some(*due_ns)
    }

    /// Takes bytes in.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        listener: u32,
        service: &mut Service,
    ) -> Result<(), Over> {
        let mut asked = Vec::new();
        let fed = match self.held.is_empty() {
            true => {
                let fed =
                    (self.protocol).feed(bytes, &service.responses, &mut asked, &mut self.out);
                let rest = bytes.get(*fed.as_ref().unwrap_or(&0)..);
                self.held.extend_from_slice(rest.unwrap_or_default());
                fed.map(|_| ())
            }
            false => {
                self.held.extend_from_slice(bytes);
                let held = std::mem::take(&mut self.held);
                let fed =
                    (self.protocol).feed(&held, &service.responses, &mut asked, &mut self.out);
                self.held = held;
                fed.map(|used| drop(self.held.drain(..used)))
            }
        };
        for asked in asked {
            service.tallies[listener as usize].requests.add(1);
            service.first.came(|| service.now_ns());
            let due_ns = service.due(listener);
            self.seen += 1;
            self.waiting.insert((due_ns, self.seen), asked);
        }
        if fed.is_err() || self.held.len() > MOST_HELD {
            service.tallies[listener as usize].bad_requests.add(1);
            return Err(Over);
        }
        Ok(())
    }

    /// Answers what is due and sends; whether the socket had no more room.
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
            let rest = &self.out[self.sent..];
            if rest.is_empty() {
                break;
            }
            match net::send(socket, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    tally.sent_bytes.add(sent as u64);
                    self.sent += sent;
                }
                Err(Errno::AGAIN) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Over),
            }
        }
        match self.protocol.is_over() && self.waiting.is_empty() {
            true => Err(Over),
            false => Ok(false),
        }
    }

    fn write_due(&mut self, listener: u32, service: &Service) {
        while !self.is_full()
            && let Some(first) = self.waiting.first_entry()
            && (first.key().0 == 0 || first.key().0 <= service.now_ns())
        {
            let asked = first.remove();
            self.protocol
                .answer(&asked, &service.responses, &mut self.out);
            service.tallies[listener as usize].responses.add(1);
        }
    }
}
