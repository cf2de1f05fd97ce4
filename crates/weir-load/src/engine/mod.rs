//! The event machine of one thread.
//!
//! A turn reaps a batch of events, moves the connections that they concern, and sends what has
//! become due on connections that have become idle. Everything that a request needs is in its
//! connection; a queue of requests that are due is never stored, because the schedule can tell the
//! next one from its number.
//!
//! The life of a connection:
//!
//! ```text
//! Closed ──connect──► Connecting ──[TLS]──► Securing ──► Open ──► Closed
//!    ▲                    │                    │           │
//!    └───── refused, closed by the peer, broken, timed out, worn out
//! ```
//!
//! Requests are apart from that: a connection that is kept takes them while it is open, one that
//! serves a single request takes it while it is closed, and opening it is part of the response time.

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
mod lists;
mod requests;
mod responses;
mod secure;
mod slices;
pub(crate) mod slots;
mod streams;
mod totals;
mod turns;
mod waking;

use flow::FlowState;
use lists::{Kind, Links};
pub use secure::TlsCounts;
use slots::{Outlet, Slots};
pub use totals::{FlowTotals, Progress, ThreadTotals};
use turns::Turns;
use waking::{Wake, Waking};

/// Connections being opened at once, at most: a burst beyond the listener's backlog would show the
/// SYN's retransmission time instead of the server's.
const OPENING_AT_ONCE: u32 = 128;

/// How long a connection that was refused rests before the next try.
const RETRY_AFTER_NS: u64 = 100_000_000;

/// How often in a row that time is doubled for a connection that the server closes again and again before it has answered
/// anything: to 1.6 s.
const MOST_DOUBLINGS: u8 = 4;

/// Beyond the timeout, how long connections that fail to open are tried before the trial begins without
/// them.
const STUCK_AFTER_NS: u64 = 1_000_000_000;

/// The longest timeout that is waited for so. A SYN that is lost is sent again after 1, 3 and 7 s (RFC 6298): a server
/// that has let no more connections be open for longer than between these, and closes others, will not later.
const STUCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a trial of so many requests waits for a server that is gone.
const DESERTED_AFTER_NS: u64 = 10_000_000_000;

/// Longest time between two looks at timeouts and retries.
const LOOK_AFTER_NS: u64 = 50_000_000;

/// Sleeps before a trial by which a thread learns how late it is woken, and what a sleep takes.
const PRACTICE: u64 = 32;

/// Called by the first thread at the begin of each slice, before any of its requests is sent, and
/// once at the end of the last: slice number (their count at the end) and CLOCK_MONOTONIC.
pub type SliceHook = Box<dyn FnMut(usize, u64) + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Connecting,
    /// In the TLS handshake.
    Securing,
    Open,
}

/// What of a request has not been taken by the reactor yet.
#[derive(Debug, Default)]
enum Unsent {
    #[default]
    Nothing,
    /// The rest of the only request's own bytes, from here on.
    Request(usize),
    /// Bytes made for this connection. Rare, so a connection holds no more than the place of it.
    Bytes(Box<Rest>),
}

/// Bytes that were made for a connection, of which some have been sent.
#[derive(Debug)]
struct Rest {
    bytes: Vec<u8>,
    sent: usize,
}

impl Unsent {
    fn is_some(&self) -> bool {
        !matches!(self, Unsent::Nothing)
    }

    /// These bytes, none of which has been sent.
    fn rest(bytes: &[u8]) -> Unsent {
        Unsent::Bytes(Box::new(Rest {
            bytes: bytes.to_vec(),
            sent: 0,
        }))
    }
}

struct Conn {
    parser: ResponseParser,
    state: State,
    flow: u16,
    /// Opened before: opening it again is a reconnect.
    seen: bool,
    /// The rest of the content is being dropped in the kernel.
    discarding: bool,
    /// Requests in flight, or waiting for the connection to open.
    outstanding: u16,
    /// Stream of the oldest of them.
    oldest: u16,
    /// Responses since it was opened.
    served: u32,
    /// Times in a row that it broke, or the server closed it, without a response in between.
    setbacks: u8,
    unsent: Unsent,
    /// Since when something is awaited: the connection, or the oldest request's response.
    since: u64,
    /// First byte of the response; 0 before it came.
    first_byte: u64,
    /// When it last became able to take a request.
    idle_since: u64,
    /// When it was opened; before, when its TLS handshake began.
    opened: u64,
}

/// A request that was taken by a connection.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight {
    intended: u64,
    sent: u64,
    /// Its arrival's number.
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

/// A response that has ended in the bytes at hand.
#[derive(Debug, Clone, Copy)]
struct Ended {
    stream: u16,
    end: ResponseEnd,
    first_byte: u64,
    verdict: Result<(), Unexpected>,
}

/// What a thread starts with.
pub(crate) struct Setup<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) progress: &'a Progress,
    pub(crate) stop: &'a AtomicBool,
    /// Where its slices go; it knows the thread's number.
    pub(crate) outlet: Outlet,
    pub(crate) hook: Option<SliceHook>,
}

/// The machine.
pub(crate) struct Engine<'a, R> {
    plan: &'a Plan,
    reactor: R,
    progress: &'a Progress,
    stop: &'a AtomicBool,
    hook: Option<SliceHook>,
    /// Its number among those of all generators, and how many these are.
    thread: u64,
    threads: u64,
    conns: Vec<Conn>,
    /// By connection and stream; see [`streams`].
    in_flight: Vec<InFlight>,
    links: Links,
    /// By connection, where some response is checked; else empty.
    checks: Vec<Check>,
    /// By connection, where some flow speaks TLS; else empty.
    sessions: Vec<Option<Box<Session>>>,
    flows: Vec<FlowState>,
    /// Flows by arm.
    arms: Vec<Vec<usize>>,
    slots: Slots,
    /// The trial's start; all slices are relative to it.
    start: u64,
    /// The slice that is on, if any.
    active: Option<usize>,
    /// Requests in flight on all connections.
    outstanding: u64,
    opening: u32,
    /// When connections have rested, the next one on top.
    resting: BinaryHeap<Reverse<(u64, ConnId)>>,
    next_look: u64,
    waking: Waking,
    turns: Turns,
    /// Since when no connection has been open.
    alone_since: Option<u64>,
    cpu_at_slice: u64,
    cpu_at_start: u64,
    /// Requests that are being made, for the connection that is corked.
    scratch: Vec<u8>,
    corked: Option<ConnId>,
    /// Records on their way to the reactor.
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
            checks: match plan.flows.iter().any(|flow| flow.requests.expects()) {
                true => conns.iter().map(|_| Check::default()).collect(),
                false => Vec::new(),
            },
            sessions: match plan.flows.iter().any(|flow| flow.tls.is_some()) {
                true => conns.iter().map(|_| None).collect(),
                false => Vec::new(),
            },
            arms,
            slots: Slots::new(setup.outlet, plan.width()),
            start: 0,
            active: None,
            outstanding: 0,
            opening: 0,
            resting: BinaryHeap::with_capacity(conns.len()),
            next_look: 0,
            waking: Waking::of(plan),
            turns: Turns::default(),
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

    /// Connections that serve one request are ready as they are; the others are to be opened.
    fn prepare(&mut self) {
        for (flow, state) in self.plan.flows.iter().zip(&mut self.flows) {
            let ids = state.first..state.first + state.connections;
            match flow.lifetime {
                Lifetime::Request => ids.for_each(|id| self.links.push(&mut state.free, id)),
                _ => state.to_open.extend(ids),
            }
        }
    }

    /// How many connections this thread opens before the start.
    pub(crate) fn connections(&self) -> usize {
        let kept = self.flows.iter().zip(&self.plan.flows);
        let kept = kept.filter(|(_, flow)| flow.lifetime != Lifetime::Request);
        kept.map(|(state, _)| state.connections as usize).sum()
    }

    /// Opens the connections. Gives how many are open when all are, when `patience_ns` is over, or when
    /// for longer than the timeout, or some seconds, none more could be opened.
    pub(crate) fn open(&mut self, patience_ns: u64) -> usize {
        let wanted = self.connections();
        let begin = self.reactor.now();
        let deadline = begin + patience_ns;
        let timeout = self.plan.flows.iter().map(|flow| flow.timeout).max();
        let timeout = timeout.unwrap_or_default().min(STUCK_TIMEOUT);
        let stuck_after = timeout.as_nanos() as u64 + STUCK_AFTER_NS;
        let (mut most, mut grown) = (0, begin);
        loop {
            let now = self.reactor.now();
            let open = self.flows.iter().map(|state| state.open as usize).sum();
            if open > most {
                (most, grown) = (open, now);
            }
            let stuck = now - grown >= stuck_after && !self.totals.errors.is_empty();
            if open == wanted || now >= deadline || stuck || self.stopped() {
                return open;
            }
            self.open_some(now);
            let paced = self.flows.iter().filter(|state| state.is_paced());
            let paced = paced.map(|state| state.next_connect).min();
            let until = paced.unwrap_or(u64::MAX).min(now + LOOK_AFTER_NS);
            self.turn(now, Wake::at(deadline.min(until)));
        }
    }

    /// Learns how late this thread is woken, by some sleeps like those between arrivals.
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

    /// Runs all slices from `start` on, waits for what is in flight, and closes everything.
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

    /// Gives up before the start.
    pub(crate) fn abandon(self) -> ThreadTotals {
        self.totals
    }

    /// One batch of events, awaited since `now`, and the looks that are due.
    fn turn(&mut self, now: u64, wake: Wake) {
        let stamp = self.reactor.wait(wake.until);
        if self.start > 0 && self.totals.ended_at == 0 {
            let since = self.start + self.plan.ramp_up.as_nanos() as u64;
            self.turns.turned((now, wake.until, stamp), since);
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
        self.progress
            .in_flight
            .store(self.outstanding, Ordering::Relaxed);
    }

    /// What a slice counts for a flow.
    #[inline]
    fn data(&mut self, slice: usize, flow: usize) -> Option<&mut SliceData> {
        self.slots.data(slice, self.flows[flow].place)
    }

    /// What the slice that is on counts for a flow, if the flow is on.
    #[inline]
    fn active_data(&mut self, flow: usize) -> Option<&mut SliceData> {
        let active = self.active?;
        let on = self.plan.slices[active].arm == self.plan.flows[flow].arm;
        on.then(|| self.data(active, flow)).flatten()
    }

    /// What the slice that is on counts for a flow, if it counts at `now`, or the one after it, which begins with the
    /// next turn.
    #[inline]
    fn measured_data(&mut self, flow: usize, now: u64) -> Option<&mut SliceData> {
        let active = self.active?;
        let mut near = self.plan.slices[active..].iter().take(2);
        let arm = self.plan.flows[flow].arm;
        let counts = near.any(|slice| slice.arm == arm && slice.measures(now - self.start));
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
    /// Bytes of the longest thing that is sent in one piece.
    fn longest_request(&self) -> usize {
        self.requests.max_len() * usize::from(self.pipeline)
    }
}

#[cfg(test)]
mod tests;
