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
use rustix::time::{ClockId, clock_gettime};
use weir_http::response::ResponseParser;
use weir_model::load::Arrivals;

use crate::ledger::{Errors, new_histogram};
use crate::plan::Plan;
use crate::reactor::{ConnId, Reactor};
use crate::schedule::{Schedule, Share};

mod connections;
mod requests;
pub(crate) mod slots;

use slots::{Outlet, Slots};

/// Connections being opened at once, at most: a burst beyond the listener's backlog would show the
/// SYN's retransmission time instead of the server's.
const OPENING_AT_ONCE: u32 = 128;

/// How long a connection that was refused rests before the next try.
const RETRY_AFTER_NS: u64 = 100_000_000;

/// How long a trial of so many requests waits for a server that is gone.
const DESERTED_AFTER_NS: u64 = 10_000_000_000;

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

impl Progress {
    /// Adds (or, by wrapping, subtracts) in a place that only this thread writes: no locked
    /// instruction is needed.
    fn add(count: &AtomicU64, more: u64) {
        let now = count.load(Ordering::Relaxed);
        count.store(now.wrapping_add(more), Ordering::Relaxed);
    }
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
    /// Since when no connection has been open.
    alone_since: Option<u64>,
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
            Arrivals::Constant { rate } => {
                Some(Schedule::new(rate, plan.ramp_up.as_nanos() as u64))
            }
            _ => None,
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
            budget: plan
                .requests
                .map_or(u64::MAX, |total| plan.share(total, thread)),
            in_flight: 0,
            opening: 0,
            next_look: 0,
            alone_since: None,
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
        self.progress
            .in_flight
            .store(self.in_flight, Ordering::Relaxed);
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
        if let Some(active) = self.active
            && self.schedule.is_some()
            && self.hands_over(active)
        {
            // What became due while this thread slept goes out first: it was not the arm's slowness.
            self.dispatch(self.plan.slices[active].group);
        }
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
            let measured = Share::new(
                schedule.count_before(plan.measure_from),
                end,
                self.thread,
                threads,
            );
            if let Some(data) = self.slots.data(slice) {
                data.due = measured.left(threads);
            }
            self.slots.hold(slice);
            self.groups[plan.group].shares.push_back((slice, share));
        }
    }

    fn leave_slice(&mut self, now: u64) {
        let Some(slice) = self.active.take() else {
            return;
        };
        let cpu = thread_cpu_ns();
        if let Some(data) = self.slots.data(slice) {
            data.cpu_ns = cpu - self.cpu_at_slice;
        }
        self.cpu_at_slice = cpu;
        if self.hands_over(slice) {
            // Requests that this arm was too slow for would be a burden to the next one.
            self.abandon_queue(self.plan.slices[slice].group, now);
        }
        self.slots.release(slice);
    }

    /// Whether another group has the load after this slice.
    fn hands_over(&self, slice: usize) -> bool {
        let group = self.plan.slices[slice].group;
        let next = self.plan.slices.get(slice + 1);
        next.is_some_and(|next| next.group != group)
    }

    /// Counts what was due and never sent as censored.
    fn abandon_queue(&mut self, group: usize, now: u64) {
        let Some(schedule) = self.schedule else {
            return;
        };
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
        let enough = sent_all || self.deserted(now) || self.stopped();
        if self.totals.ended_at == 0 && self.active.is_some() && enough {
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

    /// A number of requests was asked for, and there has been nobody to send them to for long. A
    /// trial of a given length goes on: servers come back, and the time without them is a result.
    fn deserted(&self, now: u64) -> bool {
        self.plan.requests.is_some()
            && self
                .alone_since
                .is_some_and(|since| now.saturating_sub(since) >= DESERTED_AFTER_NS)
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
