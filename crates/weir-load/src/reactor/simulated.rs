//! Simulated network and clock in memory: exact and deterministic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustix::io::Errno;

use super::{ConnId, Event, Reactor, Route};

/// Reaction of the simulated server to one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// Pieces of the response, each with its arrival in nanoseconds after the request.
    pub(crate) pieces: Vec<(u64, Vec<u8>)>,
    /// End of the connection, in nanoseconds after the request, and true if by a reset; `None` if it stays open.
    pub(crate) end: Option<(u64, bool)>,
}

impl Answer {
    /// Creates an answer with a whole response after `delay` nanoseconds.
    pub(crate) fn after(delay: u64, bytes: &[u8]) -> Answer {
        Answer { pieces: vec![(delay, bytes.to_vec())], end: None }
    }

    /// Adds an end of the connection `delay` nanoseconds after the request.
    pub(crate) fn ending(mut self, delay: u64, by_reset: bool) -> Answer {
        self.end = Some((delay, by_reset));
        self
    }
}

/// List of times, shared with a test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instants(std::rc::Rc<std::cell::RefCell<Vec<u64>>>);

impl Instants {
    /// Adds one.
    pub(crate) fn note(&self, at: u64) {
        self.0.borrow_mut().push(at);
    }

    /// Takes all times recorded so far.
    pub(crate) fn take(&self) -> Vec<u64> {
        self.0.take()
    }
}

/// Function that decides answers. Arguments: time of the request, connection, number of requests before it on all
/// connections.
pub(crate) type Server = Box<dyn FnMut(u64, ConnId, u64) -> Answer>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Connected,
    Refused,
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// Future event: time, sequence number, connection, generation of the connection, kind.
type Coming = (u64, u64, ConnId, u32, What);

/// The simulated reactor.
pub(crate) struct Simulated {
    clock: u64,
    sequence: u64,
    server: Server,
    requests: u64,
    /// Generation of each connection; odd while it is open.
    generations: Vec<u32>,
    to_come: BinaryHeap<Reverse<Coming>>,
    bytes: Vec<u8>,
    /// Number of connections refused before the first is accepted.
    pub(crate) refuse: u32,
    /// Number of connection attempts that get no reply before the first is accepted.
    pub(crate) lose: u32,
    /// Number of requests after which all further connections are refused.
    pub(crate) gone_after: u64,
    /// Function from the requested end of a sleep to its lateness, nanoseconds, if no event ends it.
    pub(crate) oversleep: Box<dyn FnMut(u64) -> u64>,
    /// Duration of a wait that does not sleep, nanoseconds.
    pub(crate) look_ns: u64,
    /// Step by which the clock goes on whenever somebody reads it.
    pub(crate) step_ns: u64,
    /// CPU time of one sleep, nanoseconds (`cpu_ns`: total so far).
    pub(crate) nap_ns: u64,
    cpu_ns: u64,
    /// Maximum number of bytes that one send takes.
    pub(crate) send_at_most: usize,
    unsent: Vec<usize>,
    /// Time after opening at which the server closes every connection, nanoseconds; `None` if it does not.
    pub(crate) turn_away_after: Option<u64>,
    /// Times at which connections were requested.
    pub(crate) connects: Instants,
}

/// Time to open a connection, nanoseconds.
pub(crate) const CONNECT_NS: u64 = 10_000;

impl Simulated {
    pub(crate) fn new(connections: usize, server: Server) -> Simulated {
        Simulated {
            clock: 1_000_000_000,
            sequence: 0,
            server,
            requests: 0,
            generations: vec![0; connections],
            to_come: BinaryHeap::new(),
            bytes: Vec::new(),
            refuse: 0,
            lose: 0,
            gone_after: u64::MAX,
            oversleep: Box::new(|_| 0),
            look_ns: 0,
            step_ns: 0,
            nap_ns: 0,
            cpu_ns: 0,
            send_at_most: usize::MAX,
            unsent: vec![0; connections],
            turn_away_after: None,
            connects: Instants::default(),
        }
    }

    fn schedule(&mut self, at: u64, conn: ConnId, what: What) {
        self.sequence += 1;
        let generation = self.generations[conn as usize];
        let coming = (at, self.sequence, conn, generation, what);
        self.to_come.push(Reverse(coming));
    }

    /// Returns the time of the next event, if there is one.
    fn next_at(&self) -> Option<u64> {
        self.to_come.peek().map(|Reverse((at, ..))| *at)
    }

    /// Asks the server function for the answer to one request and schedules it.
    fn answer(&mut self, conn: ConnId) {
        let answer = (self.server)(self.clock, conn, self.requests);
        self.requests += 1;
        for (delay, piece) in answer.pieces {
            self.schedule(self.clock + delay, conn, What::Bytes(piece));
        }
        if let Some((delay, by_reset)) = answer.end {
            let event = if by_reset { What::Reset } else { What::End };
            self.schedule(self.clock + delay, conn, event);
        }
    }
}

impl Reactor for Simulated {
    fn now(&mut self) -> u64 {
        self.clock += self.step_ns;
        self.clock
    }

    fn cpu_ns(&mut self) -> u64 {
        self.cpu_ns
    }

    fn connect(&mut self, conn: ConnId, _route: &Route) -> Result<(), Errno> {
        self.generations[conn as usize] += 1;
        self.connects.note(self.clock);
        if self.lose > 0 {
            self.lose -= 1;
            return Ok(());
        }
        let refused = self.refuse > 0 || self.requests >= self.gone_after;
        self.refuse = self.refuse.saturating_sub(1);
        let outcomes = [What::Connected, What::Refused];
        let event = outcomes[usize::from(refused)].clone();
        self.schedule(self.clock + CONNECT_NS, conn, event);
        if let Some(after) = self.turn_away_after {
            self.schedule(self.clock + CONNECT_NS + after, conn, What::End);
        }
        Ok(())
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> Result<usize, Errno> {
        let sent = bytes.len().min(self.send_at_most);
        if sent < bytes.len() {
            self.unsent[conn as usize] = bytes.len() - sent;
            // Room again a microsecond later: told as an empty piece, see `next`.
            self.schedule(self.clock + 1000, conn, What::Bytes(Vec::new()));
            return Ok(sent);
        }
        self.unsent[conn as usize] = 0;
        // The end of a request that was sent in parts is one, whatever it looks like.
        let heads = bytes.windows(4).filter(|four| four == b"\r\n\r\n");
        for _ in 0..heads.count().max(1) {
            self.answer(conn);
        }
        Ok(sent)
    }

    fn wait(&mut self, until: u64) -> u64 {
        let next = self.next_at().unwrap_or(u64::MAX);
        self.cpu_ns += if until > self.clock { self.nap_ns } else { 0 };
        let late = match until {
            _ if next <= until => 0,
            until if until <= self.clock => self.look_ns + (self.clock - until),
            until => (self.oversleep)(until),
        };
        self.clock = self.clock.max(next.min(until + late));
        self.clock
    }

    fn next(&mut self) -> Option<Event> {
        while self.next_at().is_some_and(|at| at <= self.clock) {
            let Reverse((_, _, conn, generation, what)) = self.to_come.pop()?;
            if self.generations[conn as usize] != generation {
                continue;
            }
            return Some(match what {
                What::Connected => Event::Connected(conn),
                What::Refused => {
                    self.generations[conn as usize] += 1;
                    Event::ConnectFailed(conn, Errno::CONNREFUSED)
                }
                What::Bytes(bytes) if bytes.is_empty() => Event::Writable(conn),
                What::Bytes(bytes) => {
                    self.bytes = bytes;
                    Event::Received(conn)
                }
                What::End => Event::Ended(conn),
                What::Reset => Event::Failed(conn, Errno::CONNRESET),
            });
        }
        None
    }

    fn received(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Does nothing: all bytes are reported by [`Event::Received`].
    fn discard(&mut self, _conn: ConnId, _bytes: u64) {}

    fn starved(&self) -> u64 {
        0
    }

    fn close(&mut self, conn: ConnId) {
        self.generations[conn as usize] += 1;
    }
}
