//! Resolved description of a trial: nothing in it is looked up again while the trial runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_model::deal::{Deal, OtherThreads};
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::load::{Arrivals, Assignment, Close, Lifetime, Overflow};
use weir_model::spin::Spin;

use crate::reactor::{Io, Route};
use crate::request_set::RequestSet;
use crate::schedule::Schedule;
use crate::tls::Connector;
use crate::trace::Trace;

/// Plan of a trial.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Flows, at least one; an active flow sends at the same time as all others of its arm.
    pub flows: Vec<Flow>,
    /// Slices in order of time, without gaps, the first at 0; at least one.
    pub slices: Vec<Slice>,
    /// Time from the trial's start during which the load grows evenly.
    pub ramp_up: Duration,
    /// Maximum wait at the end for requests still in flight.
    pub drain: Duration,
    /// Time before an arrival from which the thread is awake, because wake-ups are late by some tens of microseconds.
    pub spin: Spin,
    /// I/O backend.
    pub io: Io,
    /// CPUs, one thread pinned to each (`None`: not pinned); at least one.
    pub cpus: Vec<Option<u32>>,
    /// Threads of other generators. The flows are then those of all generators together, and each thread takes its
    /// share.
    pub others: OtherThreads,
}

/// Connections that send the same mix of requests to the same server in the same manner.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Arm of the flow: it sends while a slice of this arm is active. Its connections stay open all the time.
    pub arm: usize,
    /// Number of connections over all threads.
    pub connections: u32,
    /// Server and source addresses, at least one; connections take them in turn.
    pub routes: Vec<Route>,
    /// TLS settings; `None` for plaintext.
    pub tls: Option<Arc<Connector>>,
    /// Lifetime of a connection.
    pub lifetime: Lifetime,
    /// Way in which a connection is closed at the end of its lifetime.
    pub close: Close,
    /// Maximum number of connections opened per second, over all threads; `None` if unlimited.
    pub connect_rate: Option<f64>,
    /// Arrival process of the requests.
    pub arrivals: Arrivals,
    /// Arrival times of a trace, nanoseconds since its beginning, ascending; only for [`Arrivals::Trace`].
    pub trace: Option<Arc<[u64]>>,
    /// Rule that assigns due requests to connections.
    pub assignment: Assignment,
    /// Treatment of a request that finds no idle connection.
    pub overflow: Overflow,
    /// Requests to send.
    pub requests: RequestSet,
    /// Maximum number of requests in flight on one connection (RFC 9112 §9.3.2); at least 1.
    pub pipeline: u16,
    /// Time limit for a response, counted from when its request was sent, and for opening a connection.
    pub timeout: Duration,
    /// Maximum number of requests; `None` if unlimited.
    pub limit: Option<u64>,
    /// True if unchecked content is received too, instead of dropped in the kernel from 64 KiB on. For sockets that
    /// bypass the kernel's TCP: on those of a sockmap, the flag that requests dropping (MSG_TRUNC) copies.
    pub keeps_content: bool,
}

/// Units per request when requests are counted by their shares.
const THOUSANDTHS: u64 = 1000;

/// A period in which the load goes to one arm. Times are nanoseconds since the trial's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Arm whose flows are active.
    pub arm: usize,
    /// Beginning of the slice.
    pub start: u64,
    /// Time from which figures are taken.
    pub measure_from: u64,
    /// End of the slice.
    pub end: u64,
}

impl Slice {
    /// Returns true if a time lies in the measured part.
    pub fn measures(&self, t: u64) -> bool {
        self.measure_from <= t && t < self.end
    }

    /// Returns the time until which requests are counted by shares. It precedes the end by a third of the unmeasured
    /// time at the beginning, so that requests in flight at that time still end under the load; by at most half of the
    /// measured part.
    pub fn served_until(&self) -> u64 {
        let lead = self.measure_from - self.start;
        self.end - (lead / 3).min((self.end - self.measure_from) / 2)
    }

    /// Returns the share of a request, in service from `sent` to `ended`, that falls between [`Slice::measure_from`]
    /// and [`Slice::served_until`], in thousandths. Connections that send together are answered together: of 50
    /// connections, a slice has 24 or 25 times 50 whole answers, a difference of 4 % that is the same each time. Shares
    /// grow continuously with time.
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
    /// Creates a plain flow of arm 0: one server, kept connections, no pipelining, a timeout of 2 s.
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

    /// Creates the described flow, of arm 0: sends `requests` over `routes` at `arrivals`, or at the times of `trace`.
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

    /// Returns true if the connections are opened and never used.
    pub fn is_held(&self) -> bool {
        matches!(self.arrivals, Arrivals::Held)
    }

    /// Returns true if requests have due times that do not depend on the answers.
    pub fn is_open_loop(&self) -> bool {
        !matches!(self.arrivals, Arrivals::Closed | Arrivals::Held)
    }

    /// Returns the schedule of the requests; `None` in a closed loop and for held connections.
    pub(crate) fn schedule(&self, ramp_up: Duration) -> Option<Schedule> {
        let ramp_up_ns = ramp_up.as_nanos() as u64;
        match &self.trace {
            Some(times) => {
                let every = match &self.arrivals {
                    Arrivals::Trace { every_ns, .. } => *every_ns,
                    _ => None,
                };
                Some(Schedule::trace(times.clone(), ramp_up_ns, every))
            }
            None => Schedule::new(&self.arrivals, ramp_up_ns),
        }
    }

    /// Returns the number of requests that the schedule expects between two times of the trial, in nanoseconds; `None`
    /// without a schedule.
    pub fn expected(&self, ramp_up: Duration, from: u64, to: u64) -> Option<f64> {
        let schedule = self.schedule(ramp_up)?;
        Some(schedule.expected(from, to))
    }
}

impl Plan {
    /// Creates a plan with one flow on one thread that is not pinned: no ramp, and 2 s at the end for requests still in
    /// flight.
    pub fn single(flow: Flow, slices: Vec<Slice>, io: Io) -> Plan {
        Plan {
            flows: vec![flow],
            slices,
            ramp_up: Duration::ZERO,
            drain: Duration::from_secs(2),
            spin: Spin::OFF,
            io,
            cpus: vec![None],
            others: OtherThreads::default(),
        }
    }

    /// Returns the slices of a plain load test: `ramp_up` unmeasured, then `sustain` in steps of a second.
    pub fn seconds(ramp_up: Duration, sustain: Duration) -> Vec<Slice> {
        const SECOND: u64 = 1_000_000_000;
        let ramp = ramp_up.as_nanos() as u64;
        let end = ramp + (sustain.as_nanos() as u64).max(1);
        let mut slices = Vec::new();
        if ramp > 0 {
            slices.push(Slice { arm: 0, start: 0, measure_from: ramp, end: ramp });
        }
        let mut start = ramp;
        while start < end {
            // A remainder of less than half a second joins the last full one.
            let is_last = end - start < SECOND + SECOND / 2;
            let next = if is_last { end } else { start + SECOND };
            slices.push(Slice { arm: 0, start, measure_from: start, end: next });
            start = next;
        }
        slices
    }

    /// Returns the end of the last slice, nanoseconds.
    pub(crate) fn end(&self) -> u64 {
        self.slices.last().map_or(0, |slice| slice.end)
    }

    /// Returns the mean time between two arrivals of a thread, nanoseconds; without arrivals, at least the whole trial.
    pub(crate) fn gap(&self) -> u64 {
        let end = self.end();
        let all: f64 =
            self.flows.iter().filter_map(|flow| flow.expected(self.ramp_up, 0, end)).sum();
        (end as f64 * self.deal().all() as f64 / all.max(1.0)) as u64
    }

    /// Returns how the load is divided between the threads of all generators.
    pub(crate) fn deal(&self) -> Deal {
        self.others.beside(self.cpus.len())
    }

    /// Returns the index of each flow among the flows of its arm.
    pub fn places(&self) -> Vec<usize> {
        (0..self.flows.len())
            .map(|index| {
                let earlier = &self.flows[..index];
                earlier.iter().filter(|f| f.arm == self.flows[index].arm).count()
            })
            .collect()
    }

    /// Returns the largest number of flows in an arm.
    pub(crate) fn width(&self) -> usize {
        self.places().into_iter().max().map_or(1, |place| place + 1)
    }

    /// Returns the number of connections of one thread, over all flows.
    pub(crate) fn connections_of(&self, thread: usize) -> usize {
        self.flows
            .iter()
            .map(|flow| self.deal().share(flow.connections.into(), thread) as usize)
            .sum()
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
