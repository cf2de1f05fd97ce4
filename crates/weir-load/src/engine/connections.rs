//! Life of connections: opening, events, failures, age, reopening.

use std::cmp::Reverse;

use rustix::io::Errno;
use weir_http::response::ClosedError;
use weir_model::load::{Close, ErrorKind, Lifetime};

use super::{
    Engine, LOOK_AFTER_NS, MOST_DOUBLINGS, OPENING_AT_ONCE, Progress, RETRY_AFTER_NS, State, Unsent,
};
use crate::ledger::Cause;
use crate::reactor::{ConnId, Event, Reactor, Route};

/// Cause reported when a handshake is given up.
const NO_HANDSHAKE: &str = "no complete TLS handshake within the timeout";

impl<R: Reactor> Engine<'_, R> {
    pub(super) fn on_event(&mut self, event: Event, stamp: u64) {
        match event {
            Event::Received(id) => self.on_received(id, stamp),
            Event::Discarded(id, bytes) => self.on_discarded(id, bytes, stamp),
            Event::Connected(id) => self.on_connected(id, stamp),
            Event::ConnectFailed(id, errno) => {
                self.not_opened(id, ErrorKind::Connect, Cause::Kernel(errno), stamp);
            }
            Event::Writable(id) => self.send_on(id),
            Event::Ended(id) if self.is_secure(id) => self.on_ended_secure(id, stamp),
            Event::Ended(id) => self.on_ended(id, stamp),
            Event::Failed(id, errno) => {
                let kind = if self.conns[id as usize].unsent.is_some() {
                    ErrorKind::Send
                } else {
                    ErrorKind::Receive
                };
                self.broken(id, kind, Cause::Kernel(errno));
            }
        }
    }

    fn on_connected(&mut self, id: ConnId, stamp: u64) {
        let conn = &mut self.conns[id as usize];
        let flow = usize::from(conn.flow);
        let took = stamp.saturating_sub(conn.since);
        self.totals.flows[flow].connects += 1;
        self.totals.flows[flow].connect_time.saturating_record(took);
        if self.is_secure(id) { self.secure(id, stamp) } else { self.on_open(id, stamp, false) }
    }

    /// Marks a connection as open and sends the request that waits for it, unless it is already `sent`.
    pub(super) fn on_open(&mut self, id: ConnId, stamp: u64, sent: bool) {
        let conn = &mut self.conns[id as usize];
        let flow = usize::from(conn.flow);
        let state = &mut self.flows[flow];
        Progress::add(&self.progress.open, 1);
        state.open += 1;
        conn.state = State::Open;
        conn.opened = stamp;
        conn.served = 0;
        let again = std::mem::replace(&mut conn.seen, true);
        self.opened += usize::from(!again);
        if matches!(self.plan.flows[flow].lifetime, Lifetime::Time(_)) {
            self.links.push(&mut state.aging, id);
        }
        if conn.outstanding > 0 {
            if !sent {
                self.transmit(self.awaited(id));
                self.uncork();
            }
            return;
        }
        self.opening -= 1;
        self.links.remove(&mut state.awaited, id);
        if again && let Some(data) = self.active_data(flow) {
            data.reconnects += 1;
        }
        self.offer(id, stamp);
    }

    /// Handles a connection that could not be opened; the request that it was opened for fails too.
    pub(super) fn not_opened(&mut self, id: ConnId, kind: ErrorKind, cause: Cause, now: u64) {
        let conn = &self.conns[id as usize];
        let flow = usize::from(conn.flow);
        if conn.outstanding > 0 {
            self.fail_oldest(id, kind, cause, now);
        } else {
            self.opening -= 1;
            self.error(id, None, kind, cause);
        }
        self.links.remove(&mut self.flows[flow].awaited, id);
        self.rest(id, now + RETRY_AFTER_NS);
    }

    /// Handles a close by the peer. After a response without a length it is the end of the content; between requests
    /// the peer may close; otherwise it is an error.
    pub(super) fn on_ended(&mut self, id: ConnId, stamp: u64) {
        let conn = &mut self.conns[id as usize];
        if conn.outstanding == 0 {
            self.lost(id, stamp);
            return;
        }
        match conn.parser.finish_on_close() {
            Ok(mut end) => {
                end.keep_alive = false;
                self.ended_otherwise(id, end, stamp);
                self.settle(id, stamp, None);
            }
            Err(closed) => {
                let kind = match closed {
                    ClosedError::Unanswered => ErrorKind::ClosedUnanswered,
                    ClosedError::Early => ErrorKind::ClosedEarly,
                };
                self.fail(id, kind, Cause::Closed(closed));
            }
        }
    }

    /// Handles a connection that the peer has closed or reset while no response was awaited.
    pub(super) fn lost(&mut self, id: ConnId, stamp: u64) {
        let conn = &self.conns[id as usize];
        let (flow, unused) = (usize::from(conn.flow), conn.served == 0);
        if let Some(data) = self.active_data(flow) {
            data.lost += 1;
        } else if self.active.is_some() {
            self.totals.flows[flow].lost_at_rest += 1;
        }
        if unused && !self.opens_for_each(flow) {
            // Who turns connections away at once gets the next one a little later, and more so each time.
            self.close(id);
            let conn = &mut self.conns[id as usize];
            let length = RETRY_AFTER_NS << conn.setbacks.min(MOST_DOUBLINGS);
            conn.setbacks = conn.setbacks.saturating_add(1);
            self.rest(id, stamp + length);
        } else {
            self.renew(id, stamp);
        }
    }

    /// Counts an error in the slice of its request, or in the active slice if it belongs to no request.
    pub(super) fn error(
        &mut self,
        id: ConnId,
        slice: Option<usize>,
        kind: ErrorKind,
        cause: Cause,
    ) {
        Progress::add(&self.progress.errors, 1);
        let flow = usize::from(self.conns[id as usize].flow);
        let data = match slice {
            Some(slice) => self.data(slice, flow),
            None => self.active_data(flow),
        };
        match data {
            Some(data) => data.errors.count(kind, cause),
            None => self.totals.errors.count(kind, cause),
        }
    }

    /// Fails a connection and the requests in flight on it. A connection that fails repeatedly rests before it is
    /// opened again.
    pub(super) fn fail(&mut self, id: ConnId, kind: ErrorKind, cause: Cause) {
        let now = self.reactor.now();
        self.fail_requests(id, kind, &cause, now);
        let conn = &mut self.conns[id as usize];
        conn.setbacks = conn.setbacks.saturating_add(1);
        if conn.setbacks > 1 {
            self.close(id);
            self.rest(id, now + RETRY_AFTER_NS);
        } else {
            self.renew(id, now);
        }
    }

    /// Fails the requests that the server will not answer because it closes after an earlier response.
    pub(super) fn lose_requests(&mut self, id: ConnId, now: u64) {
        let cause = Cause::Own("the server closes after an earlier response");
        self.fail_requests(id, ErrorKind::ClosedUnanswered, &cause, now);
    }

    /// Counts all requests in flight on a connection as failed.
    fn fail_requests(&mut self, id: ConnId, kind: ErrorKind, cause: &Cause, now: u64) {
        while self.conns[id as usize].outstanding > 0 {
            self.fail_oldest(id, kind, cause.clone(), now);
        }
    }

    fn fail_oldest(&mut self, id: ConnId, kind: ErrorKind, cause: Cause, now: u64) {
        let key = self.awaited(id);
        let slice = self.request_of(key).slice as usize;
        self.error(id, Some(slice), kind, cause);
        self.end_request(key, now);
    }

    /// Counts all requests in flight on a connection as censored: their responses will never be known.
    pub(super) fn censor_all(&mut self, id: ConnId, now: u64) {
        while self.conns[id as usize].outstanding > 0 {
            self.censor_oldest(id, now);
            self.end_request(self.awaited(id), now);
        }
    }

    /// Closes a connection on which nothing is in flight; it is reopened when it is needed.
    pub(super) fn renew(&mut self, id: ConnId, now: u64) {
        self.close(id);
        self.make_ready(id, now);
    }

    /// Makes a closed connection ready: for a request if it serves only one, otherwise to be opened.
    fn make_ready(&mut self, id: ConnId, now: u64) {
        let flow = usize::from(self.conns[id as usize].flow);
        if self.opens_for_each(flow) {
            self.offer(id, now);
        } else {
            self.flows[flow].to_open.push_back(id);
        }
    }

    pub(super) fn close(&mut self, id: ConnId) {
        let conn = &mut self.conns[id as usize];
        let state = &mut self.flows[usize::from(conn.flow)];
        if conn.state == State::Open {
            state.open -= 1;
            Progress::add(&self.progress.open, u64::MAX);
        }
        if self.corked == Some(id) {
            self.corked = None;
            self.scratch.clear();
        }
        self.links.remove(&mut state.free, id);
        self.links.remove(&mut state.awaited, id);
        self.links.remove(&mut state.aging, id);
        conn.state = State::Closed;
        conn.unsent = Unsent::Nothing;
        conn.discarding = false;
        if let Some(session) = self.sessions.get_mut(id as usize) {
            // No close_notify: the messages' own lengths say that they are complete (RFC 9112 §9.8).
            *session = None;
        }
        self.reactor.close(id);
    }

    /// Keeps a closed connection from being opened before `until`.
    fn rest(&mut self, id: ConnId, until: u64) {
        self.conns[id as usize].state = State::Closed;
        self.resting.push(Reverse((until, id)));
    }

    /// Opens connections within the limits on simultaneous attempts and on their rate; none after the end.
    pub(super) fn open_some(&mut self, now: u64) {
        if self.totals.ended_at > 0 && self.outstanding == 0 {
            return;
        }
        for flow in 0..self.flows.len() {
            while self.opening < OPENING_AT_ONCE
                && self.flows[flow].may_open(now)
                && let Some(id) = self.flows[flow].to_open.pop_front()
            {
                self.opening += 1;
                self.conns[id as usize].since = now;
                let state = &mut self.flows[flow];
                self.links.push(&mut state.awaited, id);
                self.connect(id, now);
            }
        }
    }

    /// Starts to open a connection, for its own sake or for the request assigned to it.
    pub(super) fn connect(&mut self, id: ConnId, now: u64) {
        let conn = &mut self.conns[id as usize];
        conn.state = State::Connecting;
        let flow = usize::from(conn.flow);
        let route = self.route(flow, id);
        if let Err(errno) = self.reactor.connect(id, &route) {
            self.not_opened(id, ErrorKind::Connect, Cause::Kernel(errno), now);
        }
    }

    fn route(&self, flow: usize, id: ConnId) -> Route {
        let state = &self.flows[flow];
        let routes = &self.plan.flows[flow].routes;
        let number = state.offset + u64::from(id - state.first);
        Route {
            // A TLS handshake goes back and forth.
            brief: self.opens_for_each(flow) && state.connector.is_none(),
            reset: self.plan.flows[flow].close == Close::Reset,
            ..routes[(number % routes.len() as u64) as usize]
        }
    }

    /// Checks for requests and connections that have timed out, and for connections whose rest is over.
    pub(super) fn look(&mut self, now: u64) {
        let mut next = now + LOOK_AFTER_NS;
        while let Some(&Reverse((at, id))) = self.resting.peek()
            && at <= now
        {
            self.resting.pop();
            self.make_ready(id, now);
        }
        let mut open = 0;
        for flow in 0..self.flows.len() {
            let timeout = self.plan.flows[flow].timeout.as_nanos() as u64;
            next = next.min(now + (timeout / 20).max(1_000_000));
            self.time_out(flow, timeout, now);
            self.retire(flow, now);
            open += self.flows[flow].open;
            if self.flows[flow].is_paced() {
                next = next.min(self.flows[flow].next_connect.max(now + 1));
            }
        }
        self.next_look = next;
        self.alone_since = match open {
            0 => self.alone_since.or(Some(now)),
            _ => None,
        };
    }

    /// Gives up connection attempts and requests that have taken longer than `timeout`.
    fn time_out(&mut self, flow: usize, timeout: u64, now: u64) {
        while let Some(id) = self.flows[flow].awaited.first() {
            let conn = &self.conns[id as usize];
            if now.saturating_sub(conn.since) < timeout {
                return;
            }
            if conn.state != State::Open {
                let (kind, cause) = match conn.state {
                    State::Securing => (ErrorKind::Tls, Cause::Own(NO_HANDSHAKE)),
                    _ => (ErrorKind::Connect, Cause::Kernel(Errno::TIMEDOUT)),
                };
                self.close(id);
                self.not_opened(id, kind, cause, now);
                continue;
            }
            let slice = self.request_of(self.awaited(id)).slice as usize;
            let cause = Cause::Own("no complete response within the timeout");
            self.error(id, Some(slice), ErrorKind::Timeout, cause);
            self.censor_all(id, now);
            self.renew(id, now);
        }
    }

    /// Counts a connection's oldest request in flight, if there is one, as censored.
    fn censor_oldest(&mut self, id: ConnId, now: u64) {
        if self.conns[id as usize].outstanding == 0 {
            return;
        }
        let flow = usize::from(self.conns[id as usize].flow);
        let entry = self.request_of(self.awaited(id));
        let waited = now.saturating_sub(entry.intended);
        if let Some(data) = self.data(entry.slice as usize, flow) {
            data.censored.in_flight += 1;
            data.censored.oldest_ns = data.censored.oldest_ns.max(waited);
        }
    }

    /// Renews idle connections whose lifetime is over; a busy one is renewed once its responses have arrived.
    fn retire(&mut self, flow: usize, now: u64) {
        let Lifetime::Time(most) = self.plan.flows[flow].lifetime else {
            return;
        };
        while let Some(id) = self.flows[flow].aging.first() {
            let conn = &self.conns[id as usize];
            if now.saturating_sub(conn.opened) < most {
                return;
            }
            if conn.outstanding > 0 {
                self.links.remove(&mut self.flows[flow].aging, id);
            } else {
                self.renew(id, now);
            }
        }
    }
}

impl super::FlowState {
    /// Returns true if connections wait to be opened and the connect rate is limited.
    pub(super) fn is_paced(&self) -> bool {
        self.connect_gap > 0 && !self.to_open.is_empty()
    }

    /// Returns true if the connect rate allows one more connection, and counts that connection.
    fn may_open(&mut self, now: u64) -> bool {
        if self.to_open.is_empty() || now < self.next_connect {
            return false;
        }
        // A thread that was late makes up for 10 ms at most: the rate is a limit, not an average.
        let earliest = match self.next_connect {
            0 => now,
            _ => now.saturating_sub(10_000_000),
        };
        self.next_connect = self.next_connect.max(earliest) + self.connect_gap;
        true
    }
}
