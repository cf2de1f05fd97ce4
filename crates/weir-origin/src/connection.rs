//! A client's connection: receives requests and sends responses; in HTTP/1.1 in the same order.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown};
use weir_http::request::{Progress, RequestParser};

use crate::counters::Tally;
use crate::delay::Delays;
use crate::protocols::{self, Detection, Foreign};
use crate::responses::{BAD_REQUEST, CONTINUE, Responses, Which};
use crate::stall::FirstRequest;

/// Maximum number of waiting responses; beyond this no more requests are read.
const PIPELINE: usize = 64;

/// Maximum number of consecutive reads before other connections have their turn.
const READS_PER_TURN: usize = 8;

/// State shared by all connections of a thread.
pub(crate) struct Service {
    pub(crate) responses: Arc<Responses>,
    pub(crate) tallies: Arc<[Tally]>,
    pub(crate) first: Arc<FirstRequest>,
    pub(crate) delays: Delays,
    /// Reduction of each listener's speed, per cent.
    pub(crate) taken: Arc<[AtomicU32]>,
    pub(crate) clock: Instant,
    pub(crate) buffer: Vec<u8>,
}

impl Service {
    /// Returns the nanoseconds since the server was started.
    pub(crate) fn now_ns(&self) -> u64 {
        // Fits for 584 years.
        self.clock.elapsed().as_nanos() as u64
    }

    /// Returns the time at which the response to a request that just arrived at a listener is due, in nanoseconds since
    /// the server was started; 0 if at once.
    pub(crate) fn due(&mut self, listener: u32) -> u64 {
        let clock = self.clock;
        let taken_percent = self.taken[listener as usize].load(Ordering::Relaxed);
        self.delays.due(|| clock.elapsed().as_nanos() as u64, taken_percent)
    }
}

/// A response that cannot be sent yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    /// Time at which it may be sent, in nanoseconds since the server was started.
    due_ns: u64,
    which: Which,
}

/// Event that a connection waits for after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Bytes from the client.
    Read,
    /// Room in the socket's send buffer.
    Write,
    /// Time at which a response is due.
    Due(u64),
    /// None: there is more to read, after other connections had their turn.
    Turn,
    /// The connection has ended.
    Over,
}

/// Error for a connection that cannot be used any more.
pub(crate) struct Over;

/// Maximum number of bytes kept of a request line that arrives in pieces.
const LINE: usize = 1024;

/// Returns the request target of a request line: its second word (RFC 9112 §3).
fn target_in(line: &[u8]) -> Option<&[u8]> {
    let mut words = line.split(|&byte| byte == b' ');
    words.nth(1).filter(|_| words.next().is_some())
}

#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    listener: u32,
    /// True until the client has sent enough to tell its protocol.
    is_new: bool,
    /// State of a protocol other than HTTP/1.1.
    foreign: Option<Box<Foreign>>,
    parser: RequestParser,
    /// Bytes that may be needed again: the beginning of a connection of unknown protocol, or of a request with an
    /// incomplete head, if content depends on the target.
    begun: Vec<u8>,
    pending: VecDeque<Pending>,
    /// Number of bytes sent of the first pending response.
    sent: usize,
    /// True if there may be data to read that epoll will not report again.
    unread: bool,
    /// True if the client has sent everything, or is gone.
    ends: bool,
    /// True if nothing more is read: the client has ended, made an error, or requested the close.
    deaf: bool,
    /// True if registered with epoll.
    pub(crate) is_added: bool,
    /// True if epoll reports room to send.
    pub(crate) tells_room: bool,
    /// True if there is a timer for the first pending response.
    pub(crate) has_timer: bool,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, listener: u32) -> Connection {
        Connection {
            socket,
            listener,
            is_new: true,
            foreign: None,
            parser: RequestParser::default(),
            begun: Vec::new(),
            pending: VecDeque::new(),
            sent: 0,
            unread: true,
            ends: false,
            deaf: false,
            is_added: false,
            tells_room: false,
            has_timer: false,
        }
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Notes that epoll reported bytes to read, and with `ends` the end of the stream after them. It reports them only
    /// once.
    pub(crate) fn readable(&mut self, ends: bool) {
        self.unread = true;
        self.ends |= ends;
    }

    /// Sends the responses that are due and reads requests.
    pub(crate) fn turn(&mut self, service: &mut Service) -> Wait {
        self.try_turn(service).unwrap_or(Wait::Over)
    }

    fn try_turn(&mut self, service: &mut Service) -> Result<Wait, Over> {
        for _ in 0..READS_PER_TURN {
            let blocked = self.flush(service)?;
            if !self.unread || self.deaf || self.is_full() {
                return self.wait(blocked);
            }
            self.read(service)?;
        }
        match self.flush(service)? {
            _ if self.unread && !self.is_full() && !self.deaf => Ok(Wait::Turn),
            blocked => self.wait(blocked),
        }
    }

    /// Returns true if so much waits to be sent that no more is read.
    fn is_full(&self) -> bool {
        match &self.foreign {
            Some(foreign) => foreign.is_full(),
            None => self.pending.len() > PIPELINE,
        }
    }

    fn wait(&self, blocked: bool) -> Result<Wait, Over> {
        let first = self.pending.front().map(|first| first.due_ns);
        let of_foreign = self.foreign.as_ref().and_then(|foreign| foreign.due_ns());
        match first.or(of_foreign) {
            _ if blocked => Ok(Wait::Write),
            Some(due_ns) => Ok(Wait::Due(due_ns)),
            None if self.deaf => Err(Over),
            None => Ok(Wait::Read),
        }
    }

    /// Reads once and answers complete requests, or queues their answers.
    fn read(&mut self, service: &mut Service) -> Result<(), Over> {
        let mut buffer = std::mem::take(&mut service.buffer);
        let read = match net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((0, _)) => {
                self.deaf = true;
                Ok(())
            }
            Ok((length, _)) => {
                // A short read took all there was, and epoll tells when there is more.
                self.unread = length == buffer.len() || self.ends;
                self.bytes(&buffer[..length], service)
            }
            Err(Errno::AGAIN) => {
                self.unread = false;
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            // Reset by the client, for the most part: its business.
            Err(_) => Err(Over),
        };
        service.buffer = buffer;
        read
    }

    fn bytes(&mut self, bytes: &[u8], service: &mut Service) -> Result<(), Over> {
        if let Some(foreign) = &mut self.foreign {
            return foreign.feed(bytes, self.listener, service);
        }
        if !self.is_new {
            return self.requests(bytes, service);
        }
        // Nearly always empty: one piece has the bytes that tell.
        let mut first = std::mem::take(&mut self.begun);
        let bytes = if first.is_empty() {
            bytes
        } else {
            first.extend_from_slice(bytes);
            &first
        };
        match protocols::detect(bytes) {
            Detection::Unsure => {
                self.begun = bytes.to_vec();
                return Ok(());
            }
            Detection::Http1 => self.requests(bytes, service)?,
            Detection::Foreign(mut foreign) => {
                foreign.feed(bytes, self.listener, service)?;
                self.foreign = Some(foreign);
            }
        }
        self.is_new = false;
        Ok(())
    }

    fn requests(&mut self, mut bytes: &[u8], service: &mut Service) -> Result<(), Over> {
        while !bytes.is_empty() && !self.deaf {
            let Ok(fed) = self.parser.feed(bytes) else {
                service.tallies[self.listener as usize].bad_requests.add(1);
                self.deaf = true;
                return self.answer(BAD_REQUEST, 0, service);
            };
            let read = bytes;
            bytes = &bytes[fed.consumed..];
            match fed.event {
                Progress::NeedMore => {
                    self.keep_line(read, service);
                    if self.parser.take_continue() {
                        self.answer(CONTINUE, 0, service)?;
                    }
                }
                Progress::Complete(end) => {
                    service.tallies[self.listener as usize].requests.add(1);
                    service.first.came(|| service.now_ns());
                    self.deaf = !end.keep_alive;
                    if end.target.is_none() {
                        // The line may end in the piece that ends the head.
                        self.keep_line(&read[..fed.consumed], service);
                    }
                    let target = match end.target.clone() {
                        Some(range) => Some(&read[range]),
                        None => target_in(&self.begun),
                    };
                    let which = service.responses.answer(&end, target);
                    self.begun.clear();
                    let due_ns = service.due(self.listener);
                    self.answer(which, due_ns, service)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps the beginning of a request that arrives in pieces, as far as it may contain the request line.
    fn keep_line(&mut self, piece: &[u8], service: &Service) {
        if service.responses.goes_by_target() && !self.begun.contains(&b'\n') {
            let room = LINE.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    /// Sends a response at once if no other precedes it, else queues it.
    fn answer(&mut self, which: Which, due_ns: u64, service: &Service) -> Result<(), Over> {
        if self.pending.is_empty() && due_ns == 0 && self.send(which, service)? {
            return Ok(());
        }
        self.pending.push_back(Pending { due_ns, which });
        Ok(())
    }

    /// Sends the pending responses that are due. Returns true if the socket had no more room.
    fn flush(&mut self, service: &Service) -> Result<bool, Over> {
        if let Some(foreign) = &mut self.foreign {
            return foreign.flush(&self.socket, self.listener, service);
        }
        let mut now_ns = None;
        while let Some(first) = self.pending.front() {
            // Part of it was sent, or the clock says that it may be.
            let due = first.due_ns == 0
                || self.sent > 0
                || first.due_ns <= *now_ns.get_or_insert_with(|| service.now_ns());
            if !due {
                return Ok(false);
            }
            if !self.send(first.which, service)? {
                return Ok(true);
            }
            self.pending.pop_front();
        }
        Ok(false)
    }

    /// Sends the rest of a response. Returns true if it is complete.
    fn send(&mut self, which: Which, service: &Service) -> Result<bool, Over> {
        let tally = &service.tallies[self.listener as usize];
        loop {
            let (piece, more) = service.responses.piece(which, self.sent);
            if piece.is_empty() {
                break;
            }
            let mut flags = SendFlags::NOSIGNAL;
            flags.set(SendFlags::MORE, more);
            match net::send(&self.socket, piece, flags) {
                Ok(sent) => {
                    tally.sent_bytes.add(sent as u64);
                    self.sent += sent;
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Over),
            }
        }
        self.sent = 0;
        let response = service.responses.get(which);
        if response.is_answer {
            tally.responses.add(1);
        }
        if which == BAD_REQUEST {
            self.hang_up();
        }
        if response.closes { Err(Over) } else { Ok(true) }
    }

    /// Ends a connection whose client is probably still sending. Received bytes are read first: closing a socket with
    /// unread bytes resets the connection, and the reset may overtake the response (RFC 9112 §9.6).
    fn hang_up(&self) {
        let _ = net::shutdown(&self.socket, Shutdown::Write);
        let mut waste = [0_u8; 4096];
        for _ in 0..64 {
            match net::recv(&self.socket, &mut waste, RecvFlags::empty()) {
                Ok((1.., _)) => {}
                _ => break,
            }
        }
    }
}
