//! The least that a request can cost here: fixed bytes sent, fixed bytes counted, nothing parsed,
//! timed or written down.
//!
//! What the engine takes beyond this is its own; what it takes up to this is the kernel's. See
//! [`crate::calibrate`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_http::response::{Progress, ResponseParser};

use crate::reactor::{ConnId, Event, Reactor, Route};

/// What a floor run counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Floor {
    /// Responses whose last byte came.
    pub requests: u64,
    /// Connections that were open.
    pub connections: u32,
    /// CPU time of the thread since all connections were open, in nanoseconds.
    pub cpu_ns: u64,
    /// Time since then, in nanoseconds.
    pub ns: u64,
}

/// A connection: how much of the current response has come.
#[derive(Clone, Default)]
struct Line {
    received: u64,
    open: bool,
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct Loop<'a> {
    /// To whom.
    pub route: &'a Route,
    /// The bytes of each request.
    pub request: &'a [u8],
    /// One request at a time on each.
    pub connections: u32,
    /// From the moment when all connections are open.
    pub duration: Duration,
}

/// Runs a closed loop on the calling thread. All responses must be of one length, which the first one
/// tells.
pub fn run<R: Reactor>(mut reactor: R, job: Loop<'_>, stop: &AtomicBool) -> Floor {
    let Loop {
        route,
        request,
        connections,
        duration,
    } = job;
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
    let open = lines.iter().enumerate().filter(|(_, line)| line.open);
    open.for_each(|(id, _)| reactor.close(id as ConnId));
    floor
}

fn send<R: Reactor>(reactor: &mut R, id: ConnId, request: &[u8]) {
    // A short request is taken whole; a connection that broke falls silent.
    let _ = reactor.send(id, request);
}

/// Length of a whole response, found in the first one, which must come in one piece.
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
