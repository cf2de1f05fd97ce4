//! Slices: entering, leaving, and the end of the trial.

use std::sync::atomic::Ordering;

use weir_model::load::Overflow;

use super::{DESERTED_AFTER_NS, Engine, State};
use crate::reactor::{ConnId, Reactor};
use crate::schedule::Share;

impl<R: Reactor> Engine<'_, R> {
    /// Enters the slice that contains `now`, passing through all slices before it.
    pub(super) fn advance(&mut self, now: u64) {
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
            && self.hands_over(active)
        {
            // What became due while this thread slept goes out first: it was not the arm's slowness.
            for place in 0..self.arms[self.plan.slices[active].arm].len() {
                let flow = self.arms[self.plan.slices[active].arm][place];
                if self.flows[flow].schedule.is_some() {
                    self.dispatch(flow);
                }
            }
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
        let opened = self.open_slices.open();
        debug_assert_eq!(opened, slice);
        self.active = Some(slice);
        let plan = self.plan.slices[slice];
        let switch_late_ns = (now - self.start).saturating_sub(plan.start);
        for &flow in &self.arms[plan.arm] {
            let state = &mut self.flows[flow];
            if let Some(data) = self.open_slices.data(slice, state.place) {
                data.switch_late_ns = switch_late_ns;
            }
            let Some(schedule) = &mut state.schedule else {
                continue;
            };
            let end = schedule.count_before(plan.end);
            let from = schedule.count_before(plan.start);
            let measured = schedule.count_before(plan.measure_from);
            let share = Share::new(from, end, self.thread, self.threads);
            let measured = Share::new(measured, end, self.thread, self.threads);
            if let Some(data) = self.open_slices.data(slice, state.place) {
                data.due = measured.left(self.threads);
            }
            self.open_slices.hold(slice);
            state.shares.push_back((slice, share));
        }
    }

    pub(super) fn leave_slice(&mut self, now: u64) {
        let Some(slice) = self.active.take() else {
            return;
        };
        let cpu = self.reactor.cpu_ns();
        // The thread's time is the arm's, whichever flow it was spent on.
        if let Some(data) = self.open_slices.data(slice, 0) {
            data.cpu_ns = cpu - self.cpu_at_slice;
        }
        self.cpu_at_slice = cpu;
        let spent = cpu - self.cpu_at_start;
        self.progress.cpu_ns.store(spent, Ordering::Relaxed);
        if self.hands_over(slice) {
            // Requests that this arm was too slow for would be a burden to the next one.
            for place in 0..self.arms[self.plan.slices[slice].arm].len() {
                let flow = self.arms[self.plan.slices[slice].arm][place];
                self.abandon_queue(flow, now);
            }
        }
        self.open_slices.release(slice);
    }

    /// Returns true if the slice is followed by one of another arm.
    fn hands_over(&self, slice: usize) -> bool {
        let arm = self.plan.slices[slice].arm;
        let next = self.plan.slices.get(slice + 1);
        next.is_some_and(|next| next.arm != arm)
    }

    /// Counts due requests that were never sent: as censored if the flow queues them, as dropped if it drops them.
    fn abandon_queue(&mut self, flow: usize, now: u64) {
        let drops = self.plan.flows[flow].overflow == Overflow::Drop;
        let t = now - self.start;
        let state = &mut self.flows[flow];
        let Some(schedule) = &mut state.schedule else {
            return;
        };
        let due = schedule.count_before(t);
        while let Some((slice, mut share)) = state.shares.pop_front() {
            share.end = share.end.min(due);
            let unsent = share.left(self.threads);
            let of_slice = self.plan.slices[slice];
            let measured = schedule.count_before(of_slice.measure_from);
            let measured = share.not_before(measured, self.thread, self.threads);
            if let Some(data) = self.open_slices.data(slice, state.place).filter(|_| unsent > 0) {
                let unsent_measured = measured.left(self.threads);
                if drops {
                    data.dropped += unsent_measured;
                } else {
                    data.queued += unsent_measured;
                    data.censored.queued += unsent;
                    let waited = t.saturating_sub(schedule.time_of(share.next));
                    data.censored.oldest_ns = data.censored.oldest_ns.max(waited);
                }
            }
            self.open_slices.release(slice);
        }
        for place in 0..self.flows[flow].owed.len() {
            self.abandon_owed(flow, place, now);
        }
    }

    /// Counts the unsent requests of one connection as censored.
    fn abandon_owed(&mut self, flow: usize, place: usize, now: u64) {
        while let Some(due) = self.next_owed(flow, place) {
            let waited = now.saturating_sub(due.intended);
            let measured = self.measures(due);
            if let Some(data) = self.data(due.slice, flow) {
                data.queued += u64::from(measured);
                data.censored.queued += 1;
                data.censored.oldest_ns = data.censored.oldest_ns.max(waited);
            }
            self.open_slices.release(due.slice);
        }
    }

    /// Ends the measurement at `t` nanoseconds after the start.
    pub(super) fn end(&mut self, t: u64, now: u64) {
        if self.totals.ended_at > 0 {
            return;
        }
        self.totals.ended_at = t.max(1);
        self.totals.cpu_ns = self.reactor.cpu_ns() - self.cpu_at_start;
        self.totals.spun_ns = self.waking.spun;
        self.totals.woken_late = self.waking.lateness();
        self.totals.longest_gap_ns = self.gaps.longest_gap;
        self.totals.starved = self.reactor.starved();
        for (totals, state) in self.totals.flows.iter_mut().zip(&self.flows) {
            totals.open_at_end = u64::from(state.open);
        }
        for state in &mut self.flows {
            let Some(schedule) = &mut state.schedule else {
                continue;
            };
            let due = schedule.count_before(t);
            state.shares.iter_mut().for_each(|(_, share)| share.end = share.end.min(due));
        }
        if let Some(hook) = &mut self.hook {
            hook(self.plan.slices.len(), now);
        }
    }

    /// Returns true if nothing is left to do, the drain time is over, or the trial is stopped. Ends the measurement
    /// first if all requests are answered, the server is gone or the trial is stopped.
    pub(super) fn over(&mut self, now: u64) -> bool {
        let t = now.saturating_sub(self.start);
        let enough = self.sent_all() || self.deserted(now) || self.stopped();
        if self.totals.ended_at == 0 && self.active.is_some() && enough {
            self.leave_slice(now);
            self.end(t, now);
        }
        if self.totals.ended_at == 0 {
            return false;
        }
        let queue = self.flows.iter().any(|state| {
            let owed = state.owed.iter().any(|owed| owed.count > 0);
            state.budget > 0 && (owed || !state.shares.is_empty())
        });
        let drained = self.outstanding == 0 && !queue;
        let patience = self.plan.drain.as_nanos() as u64;
        drained || self.stopped() || t >= self.totals.ended_at + patience
    }

    /// Returns true if all requests of a limited trial have been sent and answered.
    fn sent_all(&self) -> bool {
        let mut senders =
            self.plan.flows.iter().zip(&self.flows).filter(|(flow, _)| !flow.is_held()).peekable();
        self.outstanding == 0
            && senders.peek().is_some()
            && senders.all(|(_, state)| state.budget == 0)
    }

    /// Returns true if the number of requests is limited and no connection has been open for [`DESERTED_AFTER_NS`]. A
    /// trial of a given length goes on: servers come back, and the time without them is a result.
    fn deserted(&self, now: u64) -> bool {
        self.plan.flows.iter().any(|flow| flow.limit.is_some())
            && self.alone_since.is_some_and(|since| now.saturating_sub(since) >= DESERTED_AFTER_NS)
    }

    /// Counts all requests still in flight or waiting as censored, and closes all connections.
    pub(super) fn finish(&mut self) {
        let now = self.reactor.now();
        for id in 0..self.conns.len() as ConnId {
            self.censor_all(id, now);
            if self.conns[id as usize].state != State::Closed {
                self.reactor.close(id);
            }
        }
        for flow in 0..self.flows.len() {
            self.abandon_queue(flow, now.min(self.start + self.totals.ended_at));
        }
    }
}
