//! Requests: when they are due, their assignment to connections, and sending.

use weir_model::load::{Assignment, ErrorKind, Lifetime, Overflow};

use super::streams::{StreamKey, ahead_of};
use super::waking::Wake;
use super::{Due, Engine, InFlight, State, Unsent};
use crate::ledger::Cause;
use crate::reactor::{ConnId, Reactor};

impl<R: Reactor> Engine<'_, R> {
    /// Returns the time at which the next turn must begin even if no event arrives.
    pub(super) fn wake_at(&mut self, now: u64) -> Wake {
        let until = self.next_look.max(now);
        let Some(slice) = self.active else {
            return match self.totals.ended_at {
                0 => self.awake_for(self.start, until, now),
                ended_at => {
                    let drained = ended_at + self.plan.drain.as_nanos() as u64;
                    Wake::at(until.min(self.start + drained))
                }
            };
        };
        let plan = self.plan.slices[slice];
        let deadline = until.min(self.start + plan.end);
        let mut arrival = u64::MAX;
        for place in 0..self.arms[plan.arm].len() {
            let flow = self.arms[plan.arm][place];
            arrival = self.time_of_next_arrival(flow, now).unwrap_or(arrival).min(arrival);
        }
        self.awake_for(arrival, deadline, now)
    }

    /// Computes the wake-up for an arrival: early enough to be awake for it, and at the latest at `until`.
    fn awake_for(&self, arrival: u64, until: u64, now: u64) -> Wake {
        let early = self.waking.wake_for(arrival, now);
        Wake {
            until: early.max(now).min(until),
            spins: early <= now && now < arrival && now < until,
        }
    }

    /// Returns the time at which a flow's next request is due; `None` if none could be sent.
    fn time_of_next_arrival(&mut self, flow: usize, now: u64) -> Option<u64> {
        let ramp_up = self.plan.ramp_up.as_nanos() as u64;
        let state = &mut self.flows[flow];
        let bound = self.plan.flows[flow].assignment == Assignment::PerConnection;
        if state.budget == 0 || state.free.is_empty() && !bound {
            return None;
        }
        match (&mut state.schedule, state.shares.front()) {
            (Some(schedule), Some((_, share))) if share.next < share.end => {
                Some(self.start.saturating_add(schedule.time_of(share.next)))
            }
            (None, _) if now < self.start + ramp_up && !self.plan.flows[flow].is_held() => {
                // One more connection joins each time this much of the ramp has passed.
                let step = ramp_up / u64::from(state.connections.max(1));
                Some(now + step.max(1))
            }
            _ => None,
        }
    }

    /// Sends due requests of the active slice's flows; after the end, of all flows.
    pub(super) fn dispatch_active(&mut self) {
        match self.active {
            Some(slice) => {
                let arm = self.plan.slices[slice].arm;
                for place in 0..self.arms[arm].len() {
                    self.dispatch(self.arms[arm][place]);
                }
            }
            // After the end, what was due before it still goes out: its response time runs.
            None if self.totals.ended_at > 0 => {
                (0..self.flows.len()).for_each(|flow| self.dispatch(flow));
            }
            None => {}
        }
    }

    /// Sends a flow's due requests as far as connections can take them.
    pub(super) fn dispatch(&mut self, flow: usize) {
        if !self.flows[flow].owed.is_empty() {
            self.dispatch_bound(flow);
            return;
        }
        while let Some(id) = self.flows[flow].free.first() {
            let now = self.reactor.now();
            let idle_since = self.conns[id as usize].idle_since;
            let Some(due) = self.next_due(flow, idle_since, now) else {
                break;
            };
            self.begin(id, due, now);
        }
        self.uncork();
    }

    /// Takes the request that a connection of `flow`, idle since `idle_since`, is to send now.
    fn next_due(&mut self, flow: usize, idle_since: u64, now: u64) -> Option<Due> {
        if self.flows[flow].budget == 0 {
            return None;
        }
        if self.flows[flow].schedule.is_none() {
            return self.next_at_will(flow, now);
        }
        let drops = self.plan.flows[flow].overflow == Overflow::Drop;
        while let Some(due) = self.take_arrived(flow, now) {
            if !drops || idle_since <= due.intended {
                return Some(due);
            }
            self.drop_due(due, flow);
        }
        None
    }

    /// Returns true if a request is due in the measured part of its slice.
    pub(super) fn measures(&self, due: Due) -> bool {
        self.plan.slices[due.slice].measures(due.intended - self.start)
    }

    fn drop_due(&mut self, due: Due, flow: usize) {
        let measured = self.measures(due);
        if let Some(data) = self.data(due.slice, flow) {
            data.dropped += u64::from(measured);
        }
    }

    /// Returns a request due now, for a closed loop; `None` if the flow is not active or the ramp does not allow one
    /// more.
    fn next_at_will(&mut self, flow: usize, now: u64) -> Option<Due> {
        let plan = &self.plan.flows[flow];
        let arm = plan.arm;
        let slice = self.active.filter(|slice| self.plan.slices[*slice].arm == arm)?;
        // Late in a turn the slice may be over: the next one begins with the next turn.
        let is_over = now - self.start >= self.plan.slices[slice].end;
        if is_over || plan.is_held() || !self.may_join(flow, now) {
            return None;
        }
        let state = &mut self.flows[flow];
        let number = state.sent * self.threads + self.thread;
        state.sent += 1;
        Some(Due { intended: now, slice, number })
    }

    /// Takes the next arrival off the schedule, if its time has come.
    fn take_arrived(&mut self, flow: usize, now: u64) -> Option<Due> {
        let state = &mut self.flows[flow];
        let schedule = state.schedule.as_mut()?;
        while let Some((slice, share)) = state.shares.front_mut() {
            let slice = *slice;
            if share.next < share.end {
                let number = share.next;
                let intended = self.start.saturating_add(schedule.time_of(number));
                if intended > now {
                    return None;
                }
                share.next += self.threads;
                return Some(Due { intended, slice, number });
            }
            state.shares.pop_front();
            self.open_slices.release(slice);
        }
        None
    }

    /// Returns true if the closed loop's ramp allows one more busy connection.
    fn may_join(&self, flow: usize, now: u64) -> bool {
        let ramp = self.plan.ramp_up.as_nanos() as u64;
        let t = now - self.start;
        if t >= ramp {
            return true;
        }
        let state = &self.flows[flow];
        let allowed = (u128::from(state.connections) * u128::from(t)).div_ceil(u128::from(ramp));
        u128::from(state.busy) < allowed
    }

    // ---- arrivals that belong to connections ------------------------------------------------

    /// Assigns every arrival whose time has come to the connection that it belongs to.
    fn dispatch_bound(&mut self, flow: usize) {
        let now = self.reactor.now();
        let drops = self.plan.flows[flow].overflow == Overflow::Drop;
        while self.flows[flow].budget > 0 {
            let Some(due) = self.take_arrived(flow, now) else {
                break;
            };
            let state = &mut self.flows[flow];
            let index = (due.number / self.threads % u64::from(state.connections)) as usize;
            let id = state.first + index as ConnId;
            let owed = &mut state.owed[index];
            if self.links.has(id, super::Kind::Free) && owed.count == 0 {
                self.begin(id, due, now);
            } else if drops {
                self.drop_due(due, flow);
            } else {
                if owed.count == 0 {
                    owed.number = due.number;
                }
                owed.count += 1;
                self.open_slices.hold(due.slice);
            }
        }
        self.uncork();
    }

    /// Takes the oldest request that waits for a connection; its slice remains held for it.
    pub(super) fn next_owed(&mut self, flow: usize, place: usize) -> Option<Due> {
        let state = &mut self.flows[flow];
        let owed = &mut state.owed[place];
        if owed.count == 0 {
            return None;
        }
        let number = owed.number;
        owed.count -= 1;
        owed.number += u64::from(state.connections) * self.threads;
        let t = state.schedule.as_mut()?.time_of(number);
        Some(Due {
            intended: self.start + t,
            slice: self.plan.slices.partition_point(|slice| slice.end <= t),
            number,
        })
    }

    /// Sends the requests that wait for this connection.
    fn settle_owed(&mut self, id: ConnId) {
        let flow = usize::from(self.conns[id as usize].flow);
        let index = (id - self.flows[flow].first) as usize;
        while self.flows[flow].budget > 0
            && self.links.has(id, super::Kind::Free)
            && let Some(due) = self.next_owed(flow, index)
        {
            let now = self.reactor.now();
            self.begin(id, due, now);
            self.open_slices.release(due.slice);
        }
        self.uncork();
    }

    // ---- from due to sent -------------------------------------------------------------------

    /// Puts a connection that can take a request into the free list, and sends due requests.
    pub(super) fn offer(&mut self, id: ConnId, since: u64) {
        let conn = &mut self.conns[id as usize];
        conn.idle_since = since;
        let flow = usize::from(conn.flow);
        let state = &mut self.flows[flow];
        self.links.push(&mut state.free, id);
        if state.owed.is_empty() {
            self.dispatch(flow);
        } else {
            self.settle_owed(id);
        }
    }

    /// Assigns a request to a connection and sends it if the connection is open; if it is closed, opens it.
    fn begin(&mut self, id: ConnId, due: Due, now: u64) {
        let conn = &mut self.conns[id as usize];
        let flow = usize::from(conn.flow);
        let plan = &self.plan.flows[flow];
        let state = &mut self.flows[flow];
        let request = plan.requests.choose(due.number, &mut state.random);
        let stream = ahead_of(conn.oldest, conn.outstanding, plan.pipeline);
        let streams = state.streams_of(id, plan.pipeline);
        self.in_flight[streams.start + usize::from(stream)] = InFlight {
            intended: due.intended,
            sent: now,
            number: due.number,
            slice: due.slice as u32,
            request,
        };
        let lag = now - due.intended.max(conn.idle_since).min(now);
        if conn.outstanding == 0 {
            conn.since = now;
            conn.first_byte = 0;
            let wanted = plan.requests.get(request);
            conn.parser.begin(wanted.head);
            let check = self.checks.get_mut(id as usize);
            if let (Some(expectation), Some(check)) = (&wanted.expect, check) {
                check.begin(expectation);
            }
            state.busy += 1;
            self.links.push(&mut state.awaited, id);
        }
        conn.outstanding += 1;
        let full = conn.outstanding == plan.pipeline;
        if full || plan.is_open_loop() {
            // From the end of the list, the next request goes to another connection. A closed loop
            // fills one after the other instead, so that their requests go out together.
            self.links.remove(&mut state.free, id);
        }
        if !full {
            self.links.push(&mut state.free, id);
        }
        state.budget -= 1;
        self.outstanding += 1;
        self.open_slices.hold(due.slice);
        self.count_sent(flow, due, lag, now);
        match self.conns[id as usize].state {
            State::Open => self.transmit(StreamKey { conn: id, stream }),
            State::Connecting | State::Securing => {}
            State::Closed => self.connect(id, now),
        }
    }

    #[inline]
    fn count_sent(&mut self, flow: usize, due: Due, lag: u64, now: u64) {
        if self.measures(due)
            && let Some(data) = self.data(due.slice, flow)
        {
            data.histograms.dispatch_lag.saturating_record(lag);
        }
        if let Some(data) = self.measured_data(flow, now) {
            data.offered += 1;
        }
    }

    /// Sends a stream's request on an open connection. Pipelined requests are gathered first, see `uncork`.
    pub(super) fn transmit(&mut self, key: StreamKey) {
        let (id, entry) = (key.conn, self.request_of(key));
        let conn = &mut self.conns[id as usize];
        let flow = usize::from(conn.flow);
        let plan = &self.plan.flows[flow];
        let template = &plan.requests.get(entry.request).template;
        if plan.pipeline == 1
            && plan.tls.is_none()
            && let Some(bytes) = template.fixed()
        {
            match self.reactor.send(id, bytes) {
                Ok(sent) if sent == bytes.len() => {}
                Ok(sent) => conn.unsent = Unsent::Request(sent),
                Err(errno) => self.fail(id, ErrorKind::Send, Cause::Kernel(errno)),
            }
            return;
        }
        if self.corked != Some(id) {
            self.uncork();
            self.corked = Some(id);
        }
        let random = &mut self.flows[flow].random;
        template.render(entry.number, random, &mut self.scratch);
    }

    /// Sends the requests gathered for the corked connection.
    pub(super) fn uncork(&mut self) {
        let Some(id) = self.corked.take() else { return };
        if self.is_secure(id) {
            self.send_secure(id);
            self.scratch.clear();
            return;
        }
        let conn = &mut self.conns[id as usize];
        if let Unsent::Bytes(rest) = &mut conn.unsent {
            // What came before is not out yet.
            rest.bytes.extend_from_slice(&self.scratch);
        } else {
            match self.reactor.send(id, &self.scratch) {
                Ok(sent) if sent == self.scratch.len() => {}
                Ok(sent) => conn.unsent = Unsent::rest(&self.scratch[sent..]),
                Err(errno) => self.fail(id, ErrorKind::Send, Cause::Kernel(errno)),
            }
        }
        self.scratch.clear();
    }

    /// Sends more of a connection's unsent bytes once its socket has room.
    pub(super) fn send_on(&mut self, id: ConnId) {
        let entry = self.request_of(self.awaited(id));
        let conn = &mut self.conns[id as usize];
        let plan = &self.plan.flows[usize::from(conn.flow)];
        let (bytes, at) = match &mut conn.unsent {
            Unsent::Nothing => return,
            Unsent::Bytes(rest) => (rest.bytes.as_slice(), &mut rest.sent),
            Unsent::Request(at) => {
                let template = &plan.requests.get(entry.request).template;
                (template.fixed().unwrap_or_default(), at)
            }
        };
        match self.reactor.send(id, &bytes[*at..]) {
            Ok(sent) => {
                *at += sent;
                if *at == bytes.len() {
                    conn.unsent = Unsent::Nothing;
                }
            }
            Err(errno) => self.fail(id, ErrorKind::Send, Cause::Kernel(errno)),
        }
    }

    /// Returns true if the flow's connections serve one request each.
    pub(super) fn opens_for_each(&self, flow: usize) -> bool {
        self.plan.flows[flow].lifetime == Lifetime::Request
    }
}
