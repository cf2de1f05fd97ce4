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
//! Closed ──connect──► Opening ──► Idle ──send──► Busy ──response──► Idle
//!    ▲                   │          │             │
//!    └────── refused, closed by the peer, broken, timed out ◄──────┘
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use weir_http::response::{ClosedError, Progress as Parsing, ResponseEnd, ResponseParser};
use weir_model::load::{Arrivals, ErrorKind};

use crate::ledger::{Cause, Errors, LONGEST_NS, new_histogram};
use crate::plan::Plan;
use crate::reactor::{ConnId, Event, Reactor};
use crate::schedule::{Schedule, Share};

pub(crate) mod slots;

use slots::{Outlet, Slots};

/// Connections being opened at once, at most: a burst beyond the listener's backlog would show the
/// SYN's retransmission time instead of the server's.
const OPENING_AT_ONCE: u32 = 128;

/// How long a connection that was refused rests before the next try.
const RETRY_AFTER_NS: u64 = 100_000_000;

/// Longest time between two looks at timeouts and retries.
const LOOK_AFTER_NS: u64 = 50_000_000;

/// Called by the first thread at the begin of each slice, before any of its requests is sent, and
/// once at the end of the last: slice number (their count at the end) and CLOCK_MONOTONIC.
pub type SliceHook = Box<dyn FnMut(usize, u64) + Send>;

/// What one thread lets others see while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Responses so far.
    pub completed: AtomicU64,
    /// Errors so far.
    pub errors: AtomicU64,
    /// Bytes received so far.
    pub received_bytes: AtomicU64,
    /// Requests in flight now.
    pub in_flight: AtomicU64,
    /// Connections open now.
    pub open: AtomicU64,
}

/// Figures of one thread that belong to no slice.
#[derive(Debug, Clone)]
pub struct ThreadTotals {
    /// Connections opened, the first time or again.
    pub connects: u64,
    /// Time to open a connection.
    pub connect_time: Histogram<u64>,
    /// Errors outside of all slices: while connections were opened, and after the end.
    pub errors: Errors,
    /// CPU time of the thread, in nanoseconds.
    pub cpu_ns: u64,
    /// When the measuring ended, nanoseconds since the trial's start: the end of the last slice,
    /// or earlier when it was stopped or had sent all it should.
    pub ended_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Opening,
    Idle,
    Busy,
}

struct Conn {
    parser: ResponseParser,
    state: State,
    group: u16,
    /// Opened before: opening it again is a reconnect.
    seen: bool,
    /// Slice of the request in flight.
    slice: usize,
    /// Of the request in flight, how much was sent.
    sent_bytes: usize,
    intended: u64,
    /// When the request was sent, or the connection began to open.
    since: u64,
    /// First byte of the response; 0 before it came.
    first_byte: u64,
    /// When the connection became idle.
    idle_since: u64,
}

#[derive(Default)]
struct Group {
    idle: VecDeque<ConnId>,
    busy: u32,
    connections: u32,
    /// Open loop: what of the slices' arrivals has not been sent, oldest slice first.
    shares: VecDeque<(usize, Share)>,
}

/// The machine.
pub(crate) struct Engine<'a, R> {
    plan: &'a Plan,
    reactor: R,
    progress: &'a Progress,
    stop: &'a AtomicBool,
    hook: Option<SliceHook>,
    thread: u64,
    conns: Vec<Conn>,
    groups: Vec<Group>,
    slots: Slots,
    schedule: Option<Schedule>,
    timeout_ns: u64,
    /// The trial's start; all slices are relative to it.
    start: u64,
    /// The slice that is on, if any.
    active: Option<usize>,
    /// Requests that may still be sent.
    budget: u64,
    in_flight: u64,
    to_open: VecDeque<ConnId>,
    resting: VecDeque<(u64, ConnId)>,
    opening: u32,
    next_look: u64,
    cpu_at_slice: u64,
    totals: ThreadTotals,
}

impl<'a, R: Reactor> Engine<'a, R> {
    pub(crate) fn new(
        plan: &'a Plan,
        thread: usize,
        reactor: R,
        outlet: Outlet,
        progress: &'a Progress,
        stop: &'a AtomicBool,
        hook: Option<SliceHook>,
    ) -> Engine<'a, R> {
        let mut conns = Vec::new();
        let mut groups = Vec::new();
        for (index, group) in plan.groups.iter().enumerate() {
            let share = plan.share(u64::from(group.connections), thread) as usize;
            conns.extend((0..share).map(|_| Conn::new(index as u16)));
            groups.push(Group {
                idle: VecDeque::with_capacity(share),
                connections: share as u32,
                ..Group::default()
            });
        }
        let schedule = match plan.arrivals {
            Arrivals::Closed => None,
            Arrivals::Constant { rate } => {
                Some(Schedule::new(rate, plan.ramp_up.as_nanos() as u64))
            }
        };
        Engine {
            plan,
            reactor,
            progress,
            stop,
            hook,
            thread: thread as u64,
            to_open: (0..conns.len() as ConnId).collect(),
            resting: VecDeque::with_capacity(conns.len()),
            conns,
            groups,
            slots: Slots::new(outlet),
            schedule,
            timeout_ns: plan.timeout.as_nanos() as u64,
            start: 0,
            active: None,
            budget: plan.requests.map_or(u64::MAX, |total| plan.share(total, thread)),
            in_flight: 0,
            opening: 0,
            next_look: 0,
            cpu_at_slice: 0,
            totals: ThreadTotals {
                connects: 0,
                connect_time: new_histogram(),
                errors: Errors::default(),
                cpu_ns: 0,
                ended_at: 0,
            },
        }
    }

    /// How many connections are this thread's.
    pub(crate) fn connections(&self) -> usize {
        self.conns.len()
    }

    /// Opens the connections. Gives how many are open when all are or `patience_ns` is over.
    pub(crate) fn open(&mut self, patience_ns: u64) -> usize {
        let deadline = self.reactor.now() + patience_ns;
        loop {
            let open = self.groups.iter().map(|group| group.idle.len()).sum();
            let now = self.reactor.now();
            if open == self.conns.len() || now >= deadline || self.stopped() {
                return open;
            }
            self.open_some(now);
            self.turn(deadline.min(now + LOOK_AFTER_NS));
        }
    }

    /// Runs all slices from `start` on, waits for what is in flight, and closes everything.
    pub(crate) fn run(mut self, start: u64) -> (ThreadTotals, R) {
        self.start = start;
        self.cpu_at_slice = thread_cpu_ns();
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
            let until = self.wake_at(now);
            self.turn(until);
        }
        self.finish();
        (self.totals, self.reactor)
    }

    /// Gives up before the start.
    pub(crate) fn abandon(self) -> ThreadTotals {
        self.totals
    }

    /// One batch of events, and the looks that are due.
    fn turn(&mut self, until: u64) {
        let stamp = self.reactor.wait(until);
        self.advance(stamp);
        while let Some(event) = self.reactor.next() {
            self.on_event(event, stamp);
        }
        if stamp >= self.next_look {
            self.look(stamp);
        }
        self.open_some(stamp);
        self.progress.in_flight.store(self.in_flight, Ordering::Relaxed);
    }

    // ---- slices -------------------------------------------------------------------------------

    /// Enters the slice that `now` lies in, through all that lie before it.
    fn advance(&mut self, now: u64) {
        if self.start == 0 || now < self.start {
            return;
        }
        let t = now - self.start;
        let mut next = match self.active {
            Some(active) if t < self.plan.slices[active].end => return,
            Some(active) => active + 1,
            None if self.totals.ended_at > 0 => return,
            None => 0,
        };
        loop {
            self.leave_slice(now);
            if next == self.plan.slices.len() {
                self.end(self.plan.end(), now);
                return;
            }
            self.enter_slice(next, now);
            if t < self.plan.slices[next].end {
                return;
            }
            next += 1;
        }
    }

    fn enter_slice(&mut self, slice: usize, now: u64) {
        if let Some(hook) = &mut self.hook {
            hook(slice, now);
        }
        let opened = self.slots.open();
        debug_assert_eq!(opened, slice);
        self.active = Some(slice);
        let plan = self.plan.slices[slice];
        if let Some(schedule) = self.schedule {
            let threads = self.plan.cpus.len() as u64;
            let end = schedule.count_before(plan.end);
            let share = Share::new(schedule.count_before(plan.start), end, self.thread, threads);
            let measured =
                Share::new(schedule.count_before(plan.measure_from), end, self.thread, threads);
            if let Some(data) = self.slots.data(slice) {
                data.due = measured.left(threads);
            }
            self.slots.hold(slice);
            self.groups[plan.group].shares.push_back((slice, share));
        }
    }

    fn leave_slice(&mut self, now: u64) {
        let Some(slice) = self.active.take() else { return };
        let cpu = thread_cpu_ns();
        if let Some(data) = self.slots.data(slice) {
            data.cpu_ns = cpu - self.cpu_at_slice;
        }
        self.cpu_at_slice = cpu;
        let group = self.plan.slices[slice].group;
        let next_group = self.plan.slices.get(slice + 1).map(|next| next.group);
        if next_group.is_some_and(|next| next != group) {
            // Requests that this arm was too slow for would be a burden to the next one.
            self.abandon_queue(group, now);
        }
        self.slots.release(slice);
    }

    /// Counts what was due and never sent as censored.
    fn abandon_queue(&mut self, group: usize, now: u64) {
        let Some(schedule) = self.schedule else { return };
        let threads = self.plan.cpus.len() as u64;
        let t = now - self.start;
        let due = schedule.count_before(t);
        while let Some((slice, mut share)) = self.groups[group].shares.pop_front() {
            share.end = share.end.min(due);
            let left = share.left(threads);
            if let Some(data) = self.slots.data(slice).filter(|_| left > 0) {
                data.censored.queued += left;
                let waited = t.saturating_sub(schedule.time_of(share.next));
                data.censored.oldest_ns = data.censored.oldest_ns.max(waited);
            }
            self.slots.release(slice);
        }
    }

    /// Ends the measuring at `t` since the start.
    fn end(&mut self, t: u64, now: u64) {
        if self.totals.ended_at > 0 {
            return;
        }
        self.totals.ended_at = t.max(1);
        if let Some(schedule) = self.schedule {
            let due = schedule.count_before(t);
            let shares = self.groups.iter_mut().flat_map(|group| &mut group.shares);
            shares.for_each(|(_, share)| share.end = share.end.min(due));
        }
        if let Some(hook) = &mut self.hook {
            hook(self.plan.slices.len(), now);
        }
    }

    /// Whether nothing is left to be done, and, before, whether it is time to stop sending.
    fn over(&mut self, now: u64) -> bool {
        let t = now.saturating_sub(self.start);
        let sent_all = self.budget == 0 && self.in_flight == 0;
        if self.totals.ended_at == 0 && self.active.is_some() && (sent_all || self.stopped()) {
            self.leave_slice(now);
            self.end(t, now);
        }
        if self.totals.ended_at == 0 {
            return false;
        }
        let queue = self.groups.iter().any(|group| !group.shares.is_empty());
        let drained = self.in_flight == 0 && !(queue && self.budget > 0);
        let patience = self.plan.drain.as_nanos() as u64;
        drained || self.stopped() || t >= self.totals.ended_at + patience
    }

    /// What is still in flight or waiting will not be heard of again.
    fn finish(&mut self) {
        let now = self.reactor.now();
        for id in 0..self.conns.len() as ConnId {
            if self.conns[id as usize].state == State::Busy {
                self.censor(id, now);
            }
            if self.conns[id as usize].state != State::Closed {
                self.reactor.close(id);
            }
        }
        for group in 0..self.groups.len() {
            self.abandon_queue(group, now.min(self.start + self.totals.ended_at));
        }
        self.totals.cpu_ns = thread_cpu_ns();
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    // ---- requests -----------------------------------------------------------------------------

    /// When the machine must turn again though nothing happens.
    fn wake_at(&mut self, now: u64) -> u64 {
        let mut until = self.next_look.max(now);
        let Some(slice) = self.active else {
            let end = match self.totals.ended_at {
                0 => self.start,
                ended_at => self.start + ended_at + self.plan.drain.as_nanos() as u64,
            };
            return until.min(end);
        };
        let plan = self.plan.slices[slice];
        until = until.min(self.start + plan.end);
        let group = &self.groups[plan.group];
        if !group.idle.is_empty() && self.budget > 0 {
            match (self.schedule, group.shares.front()) {
                (Some(schedule), Some((_, share))) if share.next < share.end => {
                    until = until.min(self.start + schedule.time_of(share.next));
                }
                (None, _) if now < self.start + self.plan.ramp_up.as_nanos() as u64 => {
                    // One more connection joins each time this much of the ramp has passed.
                    let step = self.plan.ramp_up.as_nanos() as u64 / u64::from(group.connections);
                    until = until.min(now + step.max(1));
                }
                _ => {}
            }
        }
        until
    }

    /// Sends what is due on the connections of the group that is on.
    fn dispatch_active(&mut self) {
        match self.active {
            Some(slice) => self.dispatch(self.plan.slices[slice].group),
            // After the end, what was due before it still goes out: its response time runs.
            None if self.totals.ended_at > 0 => {
                (0..self.groups.len()).for_each(|group| self.dispatch(group));
            }
            None => {}
        }
    }

    fn dispatch(&mut self, group: usize) {
        while let Some(&conn) = self.groups[group].idle.front() {
            let now = self.reactor.now();
            let Some((intended, slice)) = self.next_due(group, now) else { return };
            self.groups[group].idle.pop_front();
            self.begin(conn, intended, slice, now);
        }
    }

    /// The request that a connection of `group` is to send now: its intended time and its slice.
    fn next_due(&mut self, group: usize, now: u64) -> Option<(u64, usize)> {
        if self.budget == 0 {
            return None;
        }
        let Some(schedule) = self.schedule else {
            let slice = self.active.filter(|&slice| self.plan.slices[slice].group == group)?;
            return self.may_join(group, now).then_some((now, slice));
        };
        let state = &mut self.groups[group];
        while let Some((slice, share)) = state.shares.front_mut() {
            let slice = *slice;
            if share.next < share.end {
                let intended = self.start + schedule.time_of(share.next);
                if intended > now {
                    return None;
                }
                share.next += self.plan.cpus.len() as u64;
                return Some((intended, slice));
            }
            state.shares.pop_front();
            self.slots.release(slice);
        }
        None
    }

    /// Whether the closed loop's ramp lets one more connection be busy.
    fn may_join(&self, group: usize, now: u64) -> bool {
        let ramp = self.plan.ramp_up.as_nanos() as u64;
        let t = now - self.start;
        if t >= ramp {
            return true;
        }
        let group = &self.groups[group];
        let allowed = (u128::from(group.connections) * u128::from(t)).div_ceil(u128::from(ramp));
        u128::from(group.busy) < allowed
    }

    fn begin(&mut self, id: ConnId, intended: u64, slice: usize, now: u64) {
        let conn = &mut self.conns[id as usize];
        let group = conn.group as usize;
        conn.state = State::Busy;
        conn.slice = slice;
        conn.intended = intended;
        conn.since = now;
        conn.first_byte = 0;
        conn.sent_bytes = 0;
        conn.parser.begin(self.plan.groups[group].head);
        let lag = now - intended.max(conn.idle_since).min(now);
        self.groups[group].busy += 1;
        self.budget -= 1;
        self.in_flight += 1;
        self.slots.hold(slice);
        let measured = self.plan.slices[slice].measures(intended - self.start);
        if let Some(data) = self.slots.data(slice).filter(|_| measured) {
            data.histograms.dispatch_lag.saturating_record(lag);
        }
        if let Some(active) = self.active
            && self.plan.slices[active].measures(now - self.start)
            && let Some(data) = self.slots.data(active)
        {
            data.offered += 1;
        }
        self.transmit(id);
    }

    fn transmit(&mut self, id: ConnId) {
        let conn = &mut self.conns[id as usize];
        let request = &self.plan.groups[conn.group as usize].request[conn.sent_bytes..];
        match self.reactor.send(id, request) {
            Ok(sent) => conn.sent_bytes += sent,
            Err(errno) => self.fail(id, ErrorKind::Send, Cause::Kernel(errno)),
        }
    }

    // ---- events -------------------------------------------------------------------------------

    fn on_event(&mut self, event: Event, stamp: u64) {
        match event {
            Event::Received(id) => self.on_received(id, stamp),
            Event::Connected(id) => self.on_connected(id, stamp),
            Event::ConnectFailed(id, errno) => self.on_refused(id, errno, stamp),
            Event::Writable(id) if self.conns[id as usize].state == State::Busy => {
                self.transmit(id);
            }
            Event::Writable(_) => {}
            Event::Ended(id) => self.on_ended(id, stamp),
            Event::Failed(id, errno) => match self.conns[id as usize].state {
                State::Busy => self.fail(id, ErrorKind::Receive, Cause::Kernel(errno)),
                // A peer may reset a connection that it no longer wants.
                _ => self.drop_connection(id),
            },
        }
    }

    fn on_received(&mut self, id: ConnId, stamp: u64) {
        let bytes = self.reactor.received();
        let length = bytes.len() as u64;
        let conn = &mut self.conns[id as usize];
        self.progress.received_bytes.fetch_add(length, Ordering::Relaxed);
        if conn.state != State::Busy {
            let cause = Cause::Own("bytes that no request had asked for");
            self.error(None, ErrorKind::Unsolicited, cause);
            self.drop_connection(id);
            return;
        }
        if conn.first_byte == 0 {
            conn.first_byte = stamp;
        }
        let parsed = conn.parser.feed(bytes);
        if let Some(data) = self.slots.data(conn.slice) {
            data.received_bytes += length;
        }
        match parsed {
            Ok(fed) => match fed.event {
                Parsing::NeedMore => {}
                Parsing::Complete(end) => {
                    self.complete(id, &end, stamp, end.keep_alive, fed.consumed as u64 == length);
                }
            },
            Err(error) => self.fail(id, error.kind(), Cause::Parser(error)),
        }
    }

    /// Writes a response down and makes the connection free.
    fn complete(&mut self, id: ConnId, end: &ResponseEnd, stamp: u64, keep: bool, clean: bool) {
        let conn = &mut self.conns[id as usize];
        let (slice, group) = (conn.slice, conn.group as usize);
        let measured = self.plan.slices[slice].measures(conn.intended - self.start);
        if let Some(data) = self.slots.data(slice) {
            data.completed_whole += 1;
            data.content_bytes += end.content_bytes;
            if let Some(count) = data.statuses.get_mut(usize::from(end.status.wrapping_sub(100))) {
                *count += 1;
            }
            if measured {
                let response = stamp.saturating_sub(conn.intended);
                data.histograms.response.saturating_record(response);
                data.histograms.service.saturating_record(stamp.saturating_sub(conn.since));
                let first_byte = conn.first_byte.saturating_sub(conn.since);
                data.histograms.first_byte.saturating_record(first_byte);
                data.histograms.overflow += u64::from(response > LONGEST_NS);
            }
        }
        if let Some(active) = self.active
            && self.plan.slices[active].group == group
            && self.plan.slices[active].measures(stamp - self.start)
            && let Some(data) = self.slots.data(active)
        {
            data.completed += 1;
        }
        self.progress.completed.fetch_add(1, Ordering::Relaxed);
        self.end_request(id);
        if !clean {
            let cause = Cause::Own("bytes after the end of the response");
            self.error(None, ErrorKind::Unsolicited, cause);
        }
        if keep && clean {
            let conn = &mut self.conns[id as usize];
            conn.state = State::Idle;
            conn.idle_since = stamp;
            self.groups[group].idle.push_back(id);
        } else {
            self.drop_connection(id);
        }
        self.dispatch(group);
    }

    fn on_connected(&mut self, id: ConnId, stamp: u64) {
        let conn = &mut self.conns[id as usize];
        self.opening -= 1;
        self.totals.connects += 1;
        self.totals.connect_time.saturating_record(stamp.saturating_sub(conn.since));
        self.progress.open.fetch_add(1, Ordering::Relaxed);
        conn.state = State::Idle;
        conn.idle_since = stamp;
        let (again, group) = (conn.seen, conn.group as usize);
        conn.seen = true;
        if again
            && let Some(active) = self.active
            && self.plan.slices[active].group == group
            && let Some(data) = self.slots.data(active)
        {
            data.reconnects += 1;
        }
        self.groups[group].idle.push_back(id);
        self.dispatch(group);
    }

    fn on_refused(&mut self, id: ConnId, errno: Errno, stamp: u64) {
        self.opening -= 1;
        self.error(None, ErrorKind::Connect, Cause::Kernel(errno));
        self.rest(id, stamp);
    }

    /// The peer has closed: after a response without a length that is its end, between requests it
    /// is the peer's right, otherwise it is an error.
    fn on_ended(&mut self, id: ConnId, stamp: u64) {
        let conn = &mut self.conns[id as usize];
        if conn.state != State::Busy {
            self.drop_connection(id);
            return;
        }
        match conn.parser.finish_on_close() {
            Ok(end) => self.complete(id, &end, stamp, false, true),
            Err(closed) => {
                let kind = match closed {
                    ClosedError::Unanswered => ErrorKind::ClosedUnanswered,
                    ClosedError::Early => ErrorKind::ClosedEarly,
                };
                self.fail(id, kind, Cause::Closed(closed));
            }
        }
    }

    // ---- failures -----------------------------------------------------------------------------

    /// Counts an error where it belongs: at a request's slice, else at the slice that is on.
    fn error(&mut self, slice: Option<usize>, kind: ErrorKind, cause: Cause) {
        self.progress.errors.fetch_add(1, Ordering::Relaxed);
        match slice.or(self.active).and_then(|slice| self.slots.data(slice)) {
            Some(data) => data.errors.count(kind, cause),
            None => self.totals.errors.count(kind, cause),
        }
    }

    /// The request in flight has failed, and its connection with it.
    fn fail(&mut self, id: ConnId, kind: ErrorKind, cause: Cause) {
        let slice = self.conns[id as usize].slice;
        self.error(Some(slice), kind, cause);
        self.end_request(id);
        self.drop_connection(id);
    }

    fn end_request(&mut self, id: ConnId) {
        let conn = &self.conns[id as usize];
        self.groups[conn.group as usize].busy -= 1;
        self.in_flight -= 1;
        self.slots.release(conn.slice);
    }

    /// The request in flight will never be heard of again.
    fn censor(&mut self, id: ConnId, now: u64) {
        let conn = &self.conns[id as usize];
        let waited = now.saturating_sub(conn.intended);
        if let Some(data) = self.slots.data(conn.slice) {
            data.censored.in_flight += 1;
            data.censored.oldest_ns = data.censored.oldest_ns.max(waited);
        }
        self.end_request(id);
    }

    /// Closes a connection and opens it again.
    fn drop_connection(&mut self, id: ConnId) {
        let conn = &mut self.conns[id as usize];
        if conn.state == State::Idle {
            self.groups[conn.group as usize].idle.retain(|&other| other != id);
        }
        conn.state = State::Closed;
        self.reactor.close(id);
        self.progress.open.fetch_sub(1, Ordering::Relaxed);
        self.to_open.push_back(id);
    }

    fn rest(&mut self, id: ConnId, now: u64) {
        self.conns[id as usize].state = State::Closed;
        self.resting.push_back((now + RETRY_AFTER_NS, id));
    }

    /// Opens connections as far as the limit of simultaneous ones goes; none after the end.
    fn open_some(&mut self, now: u64) {
        if self.totals.ended_at > 0 && self.in_flight == 0 {
            return;
        }
        while self.opening < OPENING_AT_ONCE
            && let Some(id) = self.to_open.pop_front()
        {
            let conn = &mut self.conns[id as usize];
            conn.since = now;
            let address = &self.plan.groups[conn.group as usize].address;
            match self.reactor.connect(id, address) {
                Ok(()) => {
                    conn.state = State::Opening;
                    self.opening += 1;
                }
                Err(errno) => {
                    self.error(None, ErrorKind::Connect, Cause::Kernel(errno));
                    self.rest(id, now);
                }
            }
        }
    }

    /// Looks for requests and connections that take too long, and for those that have rested.
    fn look(&mut self, now: u64) {
        self.next_look = now + (self.timeout_ns / 20).clamp(1_000_000, LOOK_AFTER_NS);
        while let Some(&(at, id)) = self.resting.front()
            && at <= now
        {
            self.resting.pop_front();
            self.to_open.push_back(id);
        }
        for id in 0..self.conns.len() as ConnId {
            let conn = &self.conns[id as usize];
            if now.saturating_sub(conn.since) < self.timeout_ns {
                continue;
            }
            match conn.state {
                State::Busy => {
                    let cause = Cause::Own("no complete response within the timeout");
                    self.error(Some(conn.slice), ErrorKind::Timeout, cause);
                    self.censor(id, now);
                    self.drop_connection(id);
                }
                State::Opening => {
                    self.opening -= 1;
                    self.reactor.close(id);
                    self.error(None, ErrorKind::Connect, Cause::Kernel(Errno::TIMEDOUT));
                    self.rest(id, now);
                }
                State::Closed | State::Idle => {}
            }
        }
    }
}

impl Conn {
    fn new(group: u16) -> Conn {
        Conn {
            parser: ResponseParser::default(),
            state: State::Closed,
            group,
            seen: false,
            slice: 0,
            sent_bytes: 0,
            intended: 0,
            since: 0,
            first_byte: 0,
            idle_since: 0,
        }
    }
}

fn thread_cpu_ns() -> u64 {
    let cpu = clock_gettime(ClockId::ThreadCPUTime);
    cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64
}

#[cfg(test)]
mod tests;
