//! What a trial is to do, resolved: nothing in here is looked up again while it runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_model::deal::{Deal, Others};
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::load::{Arrivals, Assignment, Close, Lifetime, Overflow};
use weir_model::spin::Spin;

use crate::reactor::{Io, Route};
use crate::request_set::RequestSet;
use crate::schedule::Schedule;
use crate::tls::Connector;
use crate::trace::Trace;

/// A trial.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Who sends what. At least one; a flow that is on sends at the same time as all others of its
    /// arm.
    pub flows: Vec<Flow>,
    /// Slices in order of time, without gaps, the first at 0. At least one.
    pub slices: Vec<Slice>,
    /// The load grows evenly for this long from the trial's start.
    pub ramp_up: Duration,
    /// How long is waited at the end for what is still in flight.
    pub drain: Duration,
    /// How long before an arrival the thread is awake, because a wake-up is late by some tens of
    /// microseconds.
    pub spin: Spin,
    /// How the kernel is asked.
    pub io: Io,
    /// CPUs, one thread pinned to each. At least one.
    pub cpus: Vec<Option<u32>>,
    /// Threads of other generators. Flows are then those of all generators together, and each thread takes its share.
    pub others: Others,
}

/// Connections that send the same mix of requests to the same server in the same manner.
#[derive(Debug, Clone)]
pub struct Flow {
    /// It sends while a slice of this arm is on. Its connections stay open all the time.
    pub arm: usize,
    /// Connections over all threads.
    pub connections: u32,
    /// Whom they ask, and where from; at least one. Connection k takes the k-th, round and round.
    pub routes: Vec<Route>,
    /// How connections are secured; absent: not at all.
    pub tls: Option<Arc<Connector>>,
    /// How long a connection is used.
    pub lifetime: Lifetime,
    /// How a connection that has served its time is closed.
    pub close: Close,
    /// Connections opened per second at most, over all threads.
    pub connect_rate: Option<f64>,
    /// When requests are due.
    pub arrivals: Arrivals,
    /// Times of a trace's arrivals, nanoseconds since its begin, ascending; for
    /// [`Arrivals::Trace`] alone.
    pub trace: Option<Arc<[u64]>>,
    /// Which connection sends what is due.
    pub assignment: Assignment,
    /// What becomes of a request that finds no idle connection.
    pub overflow: Overflow,
    /// What is sent.
    pub requests: RequestSet,
    /// Requests in flight on one connection at most (RFC 9112 §9.3.2); at least 1.
    pub pipeline: u16,
    /// How long a response may take from when its request was sent, and a connection to open.
    pub timeout: Duration,
    /// Requests at most.
    pub limit: Option<u64>,
    /// Content that nobody looks at is received all the same, instead of dropped in the kernel from
    /// 64 KiB on. For sockets that go past the kernel's TCP: on those of a sockmap, what asks for
    /// dropping (MSG_TRUNC) copies.
    pub keeps_content: bool,
}

/// Parts of a request that it is counted by.
const THOUSANDTHS: u64 = 1000;

/// A stretch of time in which the load goes to one arm. Times are nanoseconds since the trial's
/// start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The arm whose flows are on.
    pub arm: usize,
    /// Begin.
    pub start: u64,
    /// Figures are taken from here on.
    pub measure_from: u64,
    /// End.
    pub end: u64,
}

impl Slice {
    /// Whether a moment lies in the measured part.
    pub fn measures(&self, t: u64) -> bool {
        self.measure_from <= t && t < self.end
    }

    /// Until when requests are counted by shares: earlier than the end by a third of what is not measured at the
    /// begin, so that what is in flight then still ends under the load; by half of the measured part at most.
    pub fn served_until(&self) -> u64 {
        let lead = self.measure_from - self.start;
        self.end - (lead / 3).min((self.end - self.measure_from) / 2)
    }

    /// How much of a request that was in service between two moments falls between [`Slice::measure_from`] and
    /// [`Slice::served_until`], in thousandths. Connections that send together are answered together: of 50, a
    /// slice has 24 or 25 times 50 whole answers, which is 4 % more or less, and the same ones each time. Shares go up
    /// with the time alone.
    pub fn served(&self, sent: u64, ended: u64) -> u64 {
        let (from, until) = (self.measure_from, self.served_until());
        if from <= sent && ended <= until {
            return THOUSANDTHS;
        }
        let within = ended.min(until).saturating_sub(sent.max(from));
        within * THOUSANDTHS / ended.saturating_sub(sent).max(1)
    }
}

impl Flow {
    /// A plain flow of arm 0: one server, kept connections, no pipelining, a timeout of 2 s.
    pub fn new(
        peer: SocketAddr,
        requests: RequestSet,
        connections: u32,
        arrivals: Arrivals,
    ) -> Flow {
        // When requests are due is given beside it.
        let spec = FlowSpec::new(connections, ArrivalsSpec::Closed);
        Flow::described(&spec, requests, vec![Route::to(peer)], arrivals, None)
    }

    /// The flow that is described, of arm 0: what sends `requests` to whom `routes` lead, at
    /// `arrivals`, or at the times of `trace`.
    pub fn described(
        spec: &FlowSpec,
        requests: RequestSet,
        routes: Vec<Route>,
        arrivals: Arrivals,
        trace: Option<&Trace>,
    ) -> Flow {
        Flow {
            arm: 0,
            connections: spec.connections,
            routes,
            tls: None,
            lifetime: spec.lifetime,
            close: spec.close,
            connect_rate: spec.connect_rate,
            arrivals,
            trace: trace.map(|trace| trace.times.clone()),
            assignment: spec.assignment,
            overflow: spec.overflow,
            requests,
            pipeline: spec.pipeline.max(1),
            timeout: spec.timeout,
            limit: spec.limit,
            keeps_content: false,
        }
    }

    /// Whether its connections are opened and never used.
    pub fn is_held(&self) -> bool {
        matches!(self.arrivals, Arrivals::Held)
    }

    /// Whether requests are due at times of their own, whatever the answers do.
    pub fn is_open_loop(&self) -> bool {
        !matches!(self.arrivals, Arrivals::Closed | Arrivals::Held)
    }

    /// When its requests are due; `None` in a closed loop and where connections are held.
    pub(crate) fn schedule(&self, ramp_up: Duration) -> Option<Schedule> {
        let ramp_up = ramp_up.as_nanos() as u64;
        match &self.trace {
            Some(times) => {
                let every = match &self.arrivals {
                    Arrivals::Trace { every_ns, .. } => *every_ns,
                    _ => None,
                };
                Some(Schedule::trace(times.clone(), ramp_up, every))
            }
            None => Schedule::new(&self.arrivals, ramp_up),
        }
    }

    /// Requests that the schedule expects between two moments of the trial, in nanoseconds.
    pub fn expected(&self, ramp_up: Duration, from: u64, to: u64) -> Option<f64> {
        let schedule = self.schedule(ramp_up)?;
        Some(schedule.expected(from, to))
    }
}

impl Plan {
    /// One flow on one thread, wherever the kernel puts that: no ramp, and 2 s at the end for what is
    /// still in flight.
    pub fn single(flow: Flow, slices: Vec<Slice>, io: Io) -> Plan {
        Plan {
            flows: vec![flow],
            slices,
            ramp_up: Duration::ZERO,
            drain: Duration::from_secs(2),
            spin: Spin::OFF,
            io,
            cpus: vec![None],
            others: Others::default(),
        }
    }

    /// The slices of a plain load test: `ramp_up` unmeasured, then `sustain` in steps of a second.
    pub fn seconds(ramp_up: Duration, sustain: Duration) -> Vec<Slice> {
        const SECOND: u64 = 1_000_000_000;
        let ramp = ramp_up.as_nanos() as u64;
        let end = ramp + (sustain.as_nanos() as u64).max(1);
        let slice = |start, measure_from, end| Slice {
            arm: 0,
            start,
            measure_from,
            end,
        };
        let mut slices = Vec::new();
        if ramp > 0 {
            slices.push(slice(0, ramp, ramp));
        }
        let mut start = ramp;
        while start < end {
            // A remainder of less than half a second joins the last full one.
            let is_last = end - start < SECOND + SECOND / 2;
            let next = if is_last { end } else { start + SECOND };
            slices.push(slice(start, start, next));
            start = next;
        }
        slices
    }

    /// The end of the last slice.
    pub(crate) fn end(&self) -> u64 {
        self.slices.last().map_or(0, |slice| slice.end)
    }

    /// Nanoseconds between two arrivals of a thread, on average; without any, the whole trial.
    pub(crate) fn gap(&self) -> u64 {
        let end = self.end();
        let expected = |flow: &Flow| flow.expected(self.ramp_up, 0, end);
        let all: f64 = self.flows.iter().filter_map(expected).sum();
        (end as f64 * self.deal().all() as f64 / all.max(1.0)) as u64
    }

    /// What its threads have of the load.
    pub(crate) fn deal(&self) -> Deal {
        self.others.beside(self.cpus.len())
    }

    /// The place of each flow among those of its arm.
    pub fn places(&self) -> Vec<usize> {
        let before = |index: usize| {
            let earlier = &self.flows[..index];
            let same = earlier.iter().filter(|f| f.arm == self.flows[index].arm);
            same.count()
        };
        (0..self.flows.len()).map(before).collect()
    }

    /// Flows of an arm at most.
    pub(crate) fn width(&self) -> usize {
        self.places().into_iter().max().map_or(1, |place| place + 1)
    }

    /// Connections of one thread, over all flows.
    pub(crate) fn connections_of(&self, thread: usize) -> usize {
        let share = |flow: &Flow| self.deal().share(flow.connections.into(), thread) as usize;
        self.flows.iter().map(share).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_load_has_slices_of_a_second_without_gaps() {
        for (ramp_ms, sustain_ms) in [(0, 10_000), (500, 2_300), (0, 400), (1000, 1_600)] {
            let [ramp, sustain] = [ramp_ms, sustain_ms].map(Duration::from_millis);
            let slices = Plan::seconds(ramp, sustain);
            assert_eq!(slices[0].start, 0);
            assert!(slices.windows(2).all(|pair| pair[0].end == pair[1].start));
            let measured = slices.iter().map(|slice| slice.end - slice.measure_from);
            assert_eq!(measured.sum::<u64>(), sustain.as_nanos() as u64);
        }
    }
}
