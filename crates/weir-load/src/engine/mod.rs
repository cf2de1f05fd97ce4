//! Event-driven load engine of one thread.
//!
//! A turn takes a batch of events, advances the connections concerned, and sends what has become due on connections
//! that have become idle. All state of a request is in its connection; there is no queue of due requests, because the
//! schedule computes the next arrival from its number.
//!
//! The life of a connection:
//!
//! ```text
//! Closed ──connect──► Connecting ──[TLS]──► Securing ──► Open ──► Closed
//!    ▲                    │                    │           │
//!    └───── refused, closed by the peer, broken, timed out, worn out
//! ```
//!
//! Requests are separate from these states: a kept connection takes requests while it is open. A connection that serves
//! a single request takes it while it is closed, and opening it is part of the response time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_http::response::{ResponseEnd, ResponseParser};
use weir_model::load::Lifetime;

use crate::expect::{Check, Unexpected};
use crate::ledger::SliceData;
use crate::plan::{Flow, Plan};
use crate::reactor::{ConnId, Reactor};
use crate::tls::Session;

mod connections;
mod flow;
mod gaps;
mod lists;
pub(crate) mod open_slices;
mod requests;
mod responses;
mod secure;
mod slices;
mod streams;
mod totals;
mod waking;

use flow::FlowState;
use gaps::Gaps;
use lists::{Kind, Links};
use open_slices::{OpenSlices, Outlet};
pub use secure::TlsCounts;
pub use totals::{FlowTotals, Progress, ThreadTotals};
use waking::{Wake, Waking};

/// Maximum number of connections being opened at once: a burst beyond the listener's backlog would measure the SYN's
/// retransmission time instead of the server's response time.
const OPENING_AT_ONCE: u32 = 128;

/// Rest of a refused connection before the next attempt, nanoseconds.
const RETRY_AFTER_NS: u64 = 100_000_000;

/// Maximum number of times that rest is doubled for a connection that the server closes repeatedly before answering
/// anything: up to 1.6 s.
const MOST_DOUBLINGS: u8 = 4;

/// Time beyond the timeout for which failing connections are retried before the trial begins without them, nanoseconds.
const STUCK_AFTER_NS: u64 = 1_000_000_000;

/// Longest timeout considered when waiting for failing connections. A lost SYN is sent again after 1, 3 and 7 s (RFC
/// 6298): if a server accepts no further connection for longer than the gaps between these, and closes others, it will
/// not accept more later.
const STUCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which a trial with a given number of requests gives up on a server that is gone, nanoseconds.
const DESERTED_AFTER_NS: u64 = 10_000_000_000;

/// Longest time between two checks of timeouts and retries, nanoseconds.
const LOOK_AFTER_NS: u64 = 50_000_000;

/// Number of sleeps before a trial by which a thread learns how late it wakes up and what CPU time a sleep costs.
const PRACTICE: u64 = 32;

/// Callback of the first thread at the beginning of each slice, before any of its requests is sent, and once at the end
/// of the last. Arguments: slice number (the number of slices at the end) and CLOCK_MONOTONIC time in nanoseconds.
pub type SliceHook = Box<dyn FnMut(usize, u64) + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Connecting,
    /// TCP is open, the TLS handshake is in progress.
    Securing,
    Open,
}

/// Part of a request that the reactor has not accepted yet.
#[derive(Debug, Default)]
enum Unsent {
    #[default]
    Nothing,
    /// The rest of the only request's own bytes, from this offset on.
    Request(usize),
    /// Bytes rendered for this connection. Boxed because they are rare, so that a connection needs space only for the
    /// pointer.
    Bytes(Box<UnsentBytes>),
}

/// Bytes rendered for a connection, of which some have been sent.
#[derive(Debug)]
struct UnsentBytes {
    bytes: Vec<u8>,
    sent: usize,
}

impl Unsent {
    fn is_some(&self) -> bool {
        !matches!(self, Unsent::Nothing)
    }

    /// Creates an unsent rest from bytes of which none has been sent.
    fn rest(bytes: &[u8]) -> Unsent {
        Unsent::Bytes(Box::new(UnsentBytes { bytes: bytes.to_vec(), sent: 0 }))
    }
}

struct Conn {
    parser: ResponseParser,
    state: State,
    flow: u16,
    /// True if the connection was open before, so that opening it again is a reconnect.
    seen: bool,
    /// True while the kernel drops the rest of the content.
    discarding: bool,
    /// Number of requests in flight, or waiting for the connection to open.
    outstanding: u16,
    /// Stream of the oldest outstanding request.
    oldest: u16,
    /// Number of responses since the connection was opened.
    served: u32,
    /// Number of consecutive failures, or closes by the server, without a response in between.
    setbacks: u8,
    unsent: Unsent,
    /// Time since which something is awaited: the connection, or the oldest request's response.
    since: u64,
    /// Time of the response's first byte; 0 until it has arrived.
    first_byte: u64,
    /// Time at which the connection last became able to take a request.
    idle_since: u64,
    /// Time at which the connection was opened; during the TLS handshake, the time at which that began.
    opened: u64,
}

/// A request that a connection has taken.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight {
    intended: u64,
    sent: u64,
    /// Number of its arrival.
    number: u64,
    slice: u32,
    /// Index in the flow's set of requests.
    request: u32,
}

/// A request that is due.
#[derive(Debug, Clone, Copy)]
struct Due {
    intended: u64,
    slice: usize,
    number: u64,
}

/// A response that is complete within the bytes just received.
#[derive(Debug, Clone, Copy)]
struct Ended {
    stream: u16,
    end: ResponseEnd,
    first_byte: u64,
    verdict: Result<(), Unexpected>,
}

/// Inputs of a thread's engine.
pub(crate) struct Setup<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) progress: &'a Progress,
    pub(crate) stop: &'a AtomicBool,
    /// Channel for the slices' data; it carries the thread's number.
    pub(crate) outlet: Outlet,
    pub(crate) hook: Option<SliceHook>,
}

/// Load engine of one thread; see the module documentation.
pub(crate) struct Engine<'a, R> {
    plan: &'a Plan,
    reactor: R,
    progress: &'a Progress,
    stop: &'a AtomicBool,
    hook: Option<SliceHook>,
    /// Index of this thread among the threads of all generators (`threads` is their number).
    thread: u64,
    threads: u64,
    conns: Vec<Conn>,
    /// Requests in flight, by connection and stream; see [`streams`].
    in_flight: Vec<InFlight>,
    links: Links,
    /// State of the response checks, by connection; empty if no response is checked.
    checks: Vec<Check>,
    /// TLS sessions, by connection; empty if no flow uses TLS.
    sessions: Vec<Option<Box<Session>>>,
    flows: Vec<FlowState>,
    /// Indices of the flows, by arm.
    arms: Vec<Vec<usize>>,
    open_slices: OpenSlices,
    /// Start of the trial; all times of slices are relative to it.
    start: u64,
    /// Number of the active slice, if any.
    active: Option<usize>,
    /// Number of requests in flight on all connections.
    outstanding: u64,
    opening: u32,
    /// Number of connections that were open at least once.
    opened: usize,
    /// Resting connections with the time at which their rest ends; the earliest is on top.
    resting: BinaryHeap<Reverse<(u64, ConnId)>>,
    next_look: u64,
    waking: Waking,
    gaps: Gaps,
    /// Time since which no connection has been open; `None` while one is.
    alone_since: Option<u64>,
    cpu_at_slice: u64,
    cpu_at_start: u64,
    /// Buffer in which requests of the corked connection are rendered.
    scratch: Vec<u8>,
    corked: Option<ConnId>,
    /// TLS records to be passed to the reactor.
    sealed: Vec<u8>,
    ended: Vec<Ended>,
    totals: ThreadTotals,
}

impl<'a, R: Reactor> Engine<'a, R> {
    pub(crate) fn new(reactor: R, setup: Setup<'a>) -> Engine<'a, R> {
        let (plan, thread) = (setup.plan, setup.outlet.thread);
        let mut conns = Vec::with_capacity(plan.connections_of(thread));
        let mut flows = Vec::new();
        let last_arm = plan.flows.iter().map(|flow| flow.arm).max();
        let mut arms = vec![Vec::new(); 1 + last_arm.unwrap_or(0)];
        let mut rings = 0;
        for (flow, place) in plan.flows.iter().zip(plan.places()) {
            let state = FlowState {
                first: conns.len() as ConnId,
                rings,
                place,
                ..FlowState::new(plan, flow, thread)
            };
            rings += state.connections as usize * usize::from(flow.pipeline);
            arms[flow.arm].push(flows.len());
            let index = flows.len() as u16;
            conns.extend((0..state.connections).map(|_| Conn::new(index)));
            flows.push(state);
        }
        let longest = plan.flows.iter().map(Flow::longest_request).max();
        let deepest = plan.flows.iter().map(|flow| usize::from(flow.pipeline));
        let mut engine = Engine {
            plan,
            reactor,
            progress: setup.progress,
            stop: setup.stop,
            hook: setup.hook,
            thread: plan.deal().number(thread),
            threads: plan.deal().all(),
            in_flight: vec![InFlight::default(); rings],
            links: Links::new(conns.len()),
            checks: if plan.flows.iter().any(|flow| flow.requests.expects()) {
                conns.iter().map(|_| Check::default()).collect()
            } else {
                Vec::new()
            },
            sessions: if plan.flows.iter().any(|flow| flow.tls.is_some()) {
                conns.iter().map(|_| None).collect()
            } else {
                Vec::new()
            },
            arms,
            open_slices: OpenSlices::new(setup.outlet, plan.width()),
            start: 0,
            active: None,
            outstanding: 0,
            opening: 0,
            opened: 0,
            resting: BinaryHeap::with_capacity(conns.len()),
            next_look: 0,
            waking: Waking::of(plan),
            gaps: Gaps::default(),
            alone_since: None,
            cpu_at_slice: 0,
            cpu_at_start: 0,
            scratch: Vec::with_capacity(longest.unwrap_or(0)),
            corked: None,
            sealed: Vec::with_capacity(2 * longest.unwrap_or(0)),
            ended: Vec::with_capacity(deepest.max().unwrap_or(1)),
            totals: ThreadTotals::new(&flows),
            conns,
            flows,
        };
        engine.prepare();
        engine
    }

    /// Puts connections that serve one request into the free list, and queues the others to be opened.
    fn prepare(&mut self) {
        for (flow, state) in self.plan.flows.iter().zip(&mut self.flows) {
            let ids = state.first..state.first + state.connections;
            match flow.lifetime {
                Lifetime::Request => ids.for_each(|id| self.links.push(&mut state.free, id)),
                _ => state.to_open.extend(ids),
            }
        }
    }

    /// Returns the number of connections that this thread opens before the start.
    pub(crate) fn connections(&self) -> usize {
        self.flows
            .iter()
            .zip(&self.plan.flows)
            .filter(|(_, flow)| flow.lifetime != Lifetime::Request)
            .map(|(state, _)| state.connections as usize)
            .sum()
    }

    /// Opens the connections and returns how many could be opened. Ends when all are open, when `patience_ns` is over,
    /// or when no further one could be opened for longer than the timeout (at most [`STUCK_TIMEOUT`]) plus
    /// [`STUCK_AFTER_NS`]. If each was open once and the server has closed some, it ends after [`STUCK_AFTER_NS`].
    pub(crate) fn open(&mut self, patience_ns: u64) -> usize {
        let wanted = self.connections();
        let begin = self.reactor.now();
        let deadline = begin + patience_ns;
        let timeout = self
            .plan
            .flows
            .iter()
            .map(|flow| flow.timeout)
            .max()
            .unwrap_or_default()
            .min(STUCK_TIMEOUT);
        let stuck_after = timeout.as_nanos() as u64 + STUCK_AFTER_NS;
        let (mut most, mut grown) = (0, begin);
        loop {
            let now = self.reactor.now();
            let open = self.flows.iter().map(|state| state.open as usize).sum();
            if open > most {
                (most, grown) = (open, now);
            }
            let stuck = if self.opened >= wanted {
                now - grown >= STUCK_AFTER_NS
            } else {
                now - grown >= stuck_after && !self.totals.errors.is_empty()
            };
            if open == wanted || now >= deadline || stuck || self.stopped() {
                return self.opened.min(wanted);
            }
            self.open_some(now);
            let paced = self
                .flows
                .iter()
                .filter(|state| state.is_paced())
                .map(|state| state.next_connect)
                .min();
            let until = paced.unwrap_or(u64::MAX).min(now + LOOK_AFTER_NS);
            self.turn(now, Wake::at(deadline.min(until)));
        }
    }

    /// Learns how late this thread wakes up, from some sleeps as long as those between arrivals.
    pub(crate) fn practise(&mut self) {
        let Some(sleep) = self.waking.practice().filter(|_| !self.stopped()) else {
            return;
        };
        let begin = self.reactor.cpu_ns();
        for _ in 0..PRACTICE {
            let now = self.reactor.now();
            self.turn(now, Wake::at(now + sleep));
        }
        let cpu_ns = self.reactor.cpu_ns() - begin;
        self.waking.nap_takes(cpu_ns / PRACTICE);
    }

    /// Runs all slices from `start` on, waits for the requests in flight, and closes all connections.
    pub(crate) fn run(mut self, start: u64) -> (ThreadTotals, R) {
        self.start = start;
        self.cpu_at_slice = self.reactor.cpu_ns();
        self.cpu_at_start = self.cpu_at_slice;
        for (totals, state) in self.totals.flows.iter_mut().zip(&self.flows) {
            totals.connected = u64::from(state.open);
        }
        // Connections may have been idle for long before the start; that is nobody's lateness.
        for conn in &mut self.conns {
            conn.idle_since = conn.idle_since.max(start);
        }
        loop {
            let now = self.reactor.now();
            self.advance(now);
            if self.over(now) {
                break;
            }
            self.dispatch_active();
            let now = self.reactor.now();
            let wake = self.wake_at(now);
            self.turn(now, wake);
        }
        self.finish();
        (self.totals, self.reactor)
    }

    /// Ends the engine before the start and returns its figures.
    pub(crate) fn abandon(self) -> ThreadTotals {
        self.totals
    }

    /// Waits from `now` for a batch of events, handles it, and makes the checks that are due.
    fn turn(&mut self, now: u64, wake: Wake) {
        let stamp = self.reactor.wait(wake.until);
        if self.start > 0 && self.totals.ended_at == 0 {
            let since = self.start + self.plan.ramp_up.as_nanos() as u64;
            self.gaps.turned((now, wake.until, stamp), since);
        }
        self.advance(stamp);
        let mut quiet = true;
        while let Some(event) = self.reactor.next() {
            quiet = false;
            self.on_event(event, stamp);
        }
        self.waking.waited(now, wake, stamp, quiet);
        if stamp >= self.next_look {
            self.look(stamp);
        }
        self.open_some(stamp);
        self.progress.in_flight.store(self.outstanding, Ordering::Relaxed);
    }

    /// Returns the figures of a slice for a flow; `None` if the slice is closed.
    #[inline]
    fn data(&mut self, slice: usize, flow: usize) -> Option<&mut SliceData> {
        self.open_slices.data(slice, self.flows[flow].place)
    }

    /// Returns the figures of the active slice for a flow; `None` if the flow is not in its arm.
    #[inline]
    fn active_data(&mut self, flow: usize) -> Option<&mut SliceData> {
        let active = self.active?;
        let on = self.plan.slices[active].arm == self.plan.flows[flow].arm;
        on.then(|| self.data(active, flow)).flatten()
    }

    /// Returns the data of a flow in the slice that is on, if it counts at `now`, or in the one after it, which begins
    /// with the next turn.
    #[inline]
    fn measured_data(&mut self, flow: usize, now: u64) -> Option<&mut SliceData> {
        let active = self.active?;
        let mut candidates = self.plan.slices[active..].iter().take(2);
        let arm = self.plan.flows[flow].arm;
        let counts = candidates.any(|slice| slice.arm == arm && slice.measures(now - self.start));
        counts.then(|| self.data(active, flow)).flatten()
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Conn {
    fn new(flow: u16) -> Conn {
        Conn {
            parser: ResponseParser::default(),
            state: State::Closed,
            flow,
            seen: false,
            discarding: false,
            outstanding: 0,
            oldest: 0,
            served: 0,
            setbacks: 0,
            unsent: Unsent::Nothing,
            since: 0,
            first_byte: 0,
            idle_since: 0,
            opened: 0,
        }
    }
}

impl Flow {
    /// Returns the length of the longest block sent at once: the longest request times the pipeline depth, bytes.
    fn longest_request(&self) -> usize {
        self.requests.max_len() * usize::from(self.pipeline)
    }
}

#[cfg(test)]
mod tests;
