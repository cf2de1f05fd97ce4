//! Requests: what is due, sent, answered.

use weir_http::response::{Progress as Parsing, ResponseEnd};
use weir_model::load::ErrorKind;

use super::{Engine, Progress, State};
use crate::ledger::{Cause, LONGEST_NS};
use crate::reactor::{ConnId, Reactor};

impl<R: Reactor> Engine<'_, R> {
    /// When the machine must turn again though nothing happens.
    pub(super) fn wake_at(&mut self, now: u64) -> u64 {
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
    pub(super) fn dispatch_active(&mut self) {
        match self.active {
            Some(slice) => self.dispatch(self.plan.slices[slice].group),
            // After the end, what was due before it still goes out: its response time runs.
            None if self.totals.ended_at > 0 => {
                (0..self.groups.len()).for_each(|group| self.dispatch(group));
            }
            None => {}
        }
    }

    pub(super) fn dispatch(&mut self, group: usize) {
        while let Some(&conn) = self.groups[group].idle.front() {
            let now = self.reactor.now();
            let Some((intended, slice)) = self.next_due(group, now) else {
                return;
            };
            self.groups[group].idle.pop_front();
            self.begin(conn, intended, slice, now);
        }
    }

    /// The request that a connection of `group` is to send now: its intended time and its slice.
    pub(super) fn next_due(&mut self, group: usize, now: u64) -> Option<(u64, usize)> {
        if self.budget == 0 {
            return None;
        }
        let Some(schedule) = self.schedule else {
            let slice = self
                .active
                .filter(|&slice| self.plan.slices[slice].group == group)?;
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
    pub(super) fn may_join(&self, group: usize, now: u64) -> bool {
        let ramp = self.plan.ramp_up.as_nanos() as u64;
        let t = now - self.start;
        if t >= ramp {
            return true;
        }
        let group = &self.groups[group];
        let allowed = (u128::from(group.connections) * u128::from(t)).div_ceil(u128::from(ramp));
        u128::from(group.busy) < allowed
    }

    pub(super) fn begin(&mut self, id: ConnId, intended: u64, slice: usize, now: u64) {
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

    pub(super) fn transmit(&mut self, id: ConnId) {
        let conn = &mut self.conns[id as usize];
        let request = &self.plan.groups[conn.group as usize].request[conn.sent_bytes..];
        match self.reactor.send(id, request) {
            Ok(sent) => conn.sent_bytes += sent,
            Err(errno) => self.fail(id, ErrorKind::Send, Cause::Kernel(errno)),
        }
    }

    pub(super) fn on_received(&mut self, id: ConnId, stamp: u64) {
        let bytes = self.reactor.received();
        let length = bytes.len() as u64;
        let conn = &mut self.conns[id as usize];
        Progress::add(&self.progress.received_bytes, length);
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
                    self.complete(
                        id,
                        &end,
                        stamp,
                        end.keep_alive,
                        fed.consumed as u64 == length,
                    );
                }
            },
            Err(error) => self.fail(id, error.kind(), Cause::Parser(error)),
        }
    }

    /// Writes a response down and makes the connection free.
    pub(super) fn complete(
        &mut self,
        id: ConnId,
        end: &ResponseEnd,
        stamp: u64,
        keep: bool,
        clean: bool,
    ) {
        let conn = &mut self.conns[id as usize];
        let (slice, group) = (conn.slice, conn.group as usize);
        let measured = self.plan.slices[slice].measures(conn.intended - self.start);
        if let Some(data) = self.slots.data(slice) {
            data.completed_whole += 1;
            data.content_bytes += end.content_bytes;
            if let Some(count) = data
                .statuses
                .get_mut(usize::from(end.status.wrapping_sub(100)))
            {
                *count += 1;
            }
            if measured {
                let response = stamp.saturating_sub(conn.intended);
                data.histograms.response.saturating_record(response);
                data.histograms
                    .service
                    .saturating_record(stamp.saturating_sub(conn.since));
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
        Progress::add(&self.progress.completed, 1);
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
}
