//! Connections: opened, heard of, broken, opened again.

use rustix::io::Errno;
use weir_http::response::ClosedError;
use weir_model::load::ErrorKind;

use super::{Engine, LOOK_AFTER_NS, OPENING_AT_ONCE, Progress, RETRY_AFTER_NS, State};
use crate::ledger::Cause;
use crate::reactor::{ConnId, Event, Reactor, Route};

impl<R: Reactor> Engine<'_, R> {
    pub(super) fn on_event(&mut self, event: Event, stamp: u64) {
        match event {
            Event::Received(id) => self.on_received(id, stamp),
            Event::Connected(id) => self.on_connected(id, stamp),
            Event::ConnectFailed(id, errno) => self.on_refused(id, errno, stamp),
            Event::Writable(id) if self.conns[id as usize].state == State::Busy => {
                self.transmit(id);
            }
            Event::Writable(_) | Event::Discarded(..) => {}
            Event::Ended(id) => self.on_ended(id, stamp),
            Event::Failed(id, errno) => match self.conns[id as usize].state {
                State::Busy => self.fail(id, ErrorKind::Receive, Cause::Kernel(errno)),
                // A peer may reset a connection that it no longer wants.
                _ => self.drop_connection(id),
            },
        }
    }

    pub(super) fn on_connected(&mut self, id: ConnId, stamp: u64) {
        let conn = &mut self.conns[id as usize];
        self.opening -= 1;
        self.totals.connects += 1;
        self.totals
            .connect_time
            .saturating_record(stamp.saturating_sub(conn.since));
        Progress::add(&self.progress.open, 1);
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

    pub(super) fn on_refused(&mut self, id: ConnId, errno: Errno, stamp: u64) {
        self.opening -= 1;
        self.error(None, ErrorKind::Connect, Cause::Kernel(errno));
        self.rest(id, stamp);
    }

    /// The peer has closed: after a response without a length that is its end, between requests it
    /// is the peer's right, otherwise it is an error.
    pub(super) fn on_ended(&mut self, id: ConnId, stamp: u64) {
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

    /// Counts an error where it belongs: at a request's slice, else at the slice that is on.
    pub(super) fn error(&mut self, slice: Option<usize>, kind: ErrorKind, cause: Cause) {
        Progress::add(&self.progress.errors, 1);
        match slice
            .or(self.active)
            .and_then(|slice| self.slots.data(slice))
        {
            Some(data) => data.errors.count(kind, cause),
            None => self.totals.errors.count(kind, cause),
        }
    }

    /// The request in flight has failed, and its connection with it.
    pub(super) fn fail(&mut self, id: ConnId, kind: ErrorKind, cause: Cause) {
        let slice = self.conns[id as usize].slice;
        self.error(Some(slice), kind, cause);
        self.end_request(id);
        self.drop_connection(id);
    }

    pub(super) fn end_request(&mut self, id: ConnId) {
        let conn = &self.conns[id as usize];
        self.groups[conn.group as usize].busy -= 1;
        self.in_flight -= 1;
        self.slots.release(conn.slice);
    }

    /// The request in flight will never be heard of again.
    pub(super) fn censor(&mut self, id: ConnId, now: u64) {
        let conn = &self.conns[id as usize];
        let waited = now.saturating_sub(conn.intended);
        if let Some(data) = self.slots.data(conn.slice) {
            data.censored.in_flight += 1;
            data.censored.oldest_ns = data.censored.oldest_ns.max(waited);
        }
        self.end_request(id);
    }

    /// Closes a connection and opens it again.
    pub(super) fn drop_connection(&mut self, id: ConnId) {
        let conn = &mut self.conns[id as usize];
        if conn.state == State::Idle {
            self.groups[conn.group as usize]
                .idle
                .retain(|&other| other != id);
        }
        conn.state = State::Closed;
        self.reactor.close(id);
        Progress::add(&self.progress.open, u64::MAX);
        self.to_open.push_back(id);
    }

    pub(super) fn rest(&mut self, id: ConnId, now: u64) {
        self.conns[id as usize].state = State::Closed;
        self.resting.push_back((now + RETRY_AFTER_NS, id));
    }

    /// Opens connections as far as the limit of simultaneous ones goes; none after the end.
    pub(super) fn open_some(&mut self, now: u64) {
        if self.totals.ended_at > 0 && self.in_flight == 0 {
            return;
        }
        while self.opening < OPENING_AT_ONCE
            && let Some(id) = self.to_open.pop_front()
        {
            let conn = &mut self.conns[id as usize];
            conn.since = now;
            let route = Route::to(self.plan.groups[conn.group as usize].address);
            match self.reactor.connect(id, &route) {
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
    pub(super) fn look(&mut self, now: u64) {
        self.next_look = now + (self.timeout_ns / 20).clamp(1_000_000, LOOK_AFTER_NS);
        while let Some(&(at, id)) = self.resting.front()
            && at <= now
        {
            self.resting.pop_front();
            self.to_open.push_back(id);
        }
        let mut open = false;
        for id in 0..self.conns.len() as ConnId {
            let conn = &self.conns[id as usize];
            open |= matches!(conn.state, State::Idle | State::Busy);
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
        self.alone_since = match open {
            true => None,
            false => self.alone_since.or(Some(now)),
        };
    }
}
