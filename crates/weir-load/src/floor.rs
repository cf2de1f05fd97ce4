//! Lowest cost of a request on this machine: fixed bytes sent, received bytes counted; nothing is parsed, timed or
//! recorded.
//!
//! CPU time up to this floor is the kernel's; the excess over it is the engine's own. See [`crate::calibrate`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_http::response::{Progress, ResponseParser};

use crate::reactor::{ConnId, Event, Reactor, Route};

/// Figures of a floor run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Floor {
    /// Number of complete responses.
    pub requests: u64,
    /// Number of connections that were opened.
    pub connections: u32,
    /// CPU time of the thread after all connections were open, in nanoseconds.
    pub cpu_ns: u64,
    /// Time after all connections were open, in nanoseconds.
    pub ns: u64,
}

/// State of a connection: whether it is open, and how much of the current response has arrived.
#[derive(Clone, Default)]
struct Line {
    received: u64,
    open: bool,
}

/// Parameters of a floor run.
#[derive(Debug, Clone, Copy)]
pub struct Loop<'a> {
    /// Server address and other settings of the connections.
    pub route: &'a Route,
    /// The bytes of each request.
    pub request: &'a [u8],
    /// Number of connections, each with one request at a time.
    pub connections: u32,
    /// Duration from the moment when all connections are open.
    pub duration: Duration,
}

/// Runs a closed loop on the calling thread. All responses must have the same length; it is taken from the first one.
pub fn run<R: Reactor>(mut reactor: R, job: Loop<'_>, stop: &AtomicBool) -> Floor {
    let Loop { route, request, connections, duration } = job;
    let mut lines = vec![Line::default(); connections as usize];
    for id in 0..connections {
        // Those that cannot be opened are not in the count.
        let _ = reactor.connect(id, route);
    }
    let mut floor = Floor::default();
    let mut length = Length::default();
    let mut begun: Option<(u64, u64)> = None;
    let opening = reactor.now() + duration.as_nanos() as u64;
    loop {
        let now = reactor.now();
        let end = begun.map_or(opening, |(start, _)| start + duration.as_nanos() as u64);
        if now >= end || stop.load(Ordering::Relaxed) {
            break;
        }
        reactor.wait(end);
        while let Some(event) = reactor.next() {
            match event {
                Event::Connected(id) => {
                    lines[id as usize].open = true;
                    floor.connections += 1;
                    if floor.connections == connections {
                        begun = Some((reactor.now(), reactor.cpu_ns()));
                        (0..connections).for_each(|id| send(&mut reactor, id, request));
                    }
                }
                Event::Received(id) => {
                    let bytes = &*reactor.received();
                    let Some(whole) = length.learn(bytes) else {
                        continue;
                    };
                    let line = &mut lines[id as usize];
                    line.received += bytes.len() as u64;
                    if line.received >= whole {
                        line.received = 0;
                        floor.requests += 1;
                        send(&mut reactor, id, request);
                    }
                }
                // Nothing is made good: a floor with faults is none, and its count shows it.
                _ => {}
            }
        }
    }
    if let Some((start, cpu)) = begun {
        floor.ns = reactor.now() - start;
        floor.cpu_ns = reactor.cpu_ns() - cpu;
    }
    lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.open)
        .for_each(|(id, _)| reactor.close(id as ConnId));
    floor
}

fn send<R: Reactor>(reactor: &mut R, id: ConnId, request: &[u8]) {
    // A short request is taken whole; a connection that broke falls silent.
    let _ = reactor.send(id, request);
}

/// Length of a whole response, taken from the first one; its head must arrive in one piece.
#[derive(Default)]
struct Length(Option<u64>);

impl Length {
    fn learn(&mut self, bytes: &[u8]) -> Option<u64> {
        if self.0.is_none() {
            let mut parser = ResponseParser::default();
            parser.begin(false);
            let fed = parser.feed(bytes).ok()?;
            self.0 = match (fed.event, parser.content_left()) {
                (Progress::Complete(_), _) => Some(fed.consumed as u64),
                (Progress::NeedMore, Some(left)) => Some(bytes.len() as u64 + left),
                (Progress::NeedMore, None) => None,
            };
        }
        self.0
    }
}
