//! Figures that belong to no slice, and the progress that other threads can read.

use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;

use super::FlowState;
use super::secure::TlsCounts;
use crate::ledger::{Errors, new_histogram};

/// Counters of one thread that others can read while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of responses so far.
    pub completed: AtomicU64,
    /// Number of errors so far.
    pub errors: AtomicU64,
    /// Number of bytes received so far.
    pub received_bytes: AtomicU64,
    /// Number of requests in flight now.
    pub in_flight: AtomicU64,
    /// Number of connections open now.
    pub open: AtomicU64,
    /// CPU time of the thread from the trial's start to the end of the last slice that has ended, in nanoseconds.
    pub cpu_ns: AtomicU64,
}

impl Progress {
    /// Adds (or, by wrapping, subtracts) on a counter that only this thread writes: no locked instruction is needed.
    pub(super) fn add(count: &AtomicU64, more: u64) {
        let now = count.load(Ordering::Relaxed);
        count.store(now.wrapping_add(more), Ordering::Relaxed);
    }
}

/// Figures of one flow on one thread that belong to no slice.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowTotals {
    /// Number of connections that the plan requires.
    pub connections: u64,
    /// Number of connections that were open when the trial began.
    pub connected: u64,
    /// Number of connections that were open when the measurement ended.
    pub open_at_end: u64,
    /// Number of connections opened, for the first time or again.
    pub connects: u64,
    /// Number of connections that the peer closed while another arm had the load.
    pub lost_at_rest: u64,
    /// Time to open a connection, nanoseconds.
    pub connect_time: Histogram<u64>,
    /// Time of a TLS handshake, from the open TCP connection on, nanoseconds.
    pub tls_time: Histogram<u64>,
    /// TLS handshakes, counted by negotiated parameters.
    pub tls: TlsCounts,
}

/// Figures of one thread that belong to no slice.
#[derive(Debug, Clone)]
pub struct ThreadTotals {
    /// Figures by flow.
    pub flows: Vec<FlowTotals>,
    /// Errors outside all slices: while connections were opened, and after the end.
    pub errors: Errors,
    /// CPU time of the thread from the trial's start to the end of the measurement, in nanoseconds.
    pub cpu_ns: u64,
    /// CPU time that the thread spun because a request was soon due, nanoseconds; part of `cpu_ns`.
    pub spun_ns: u64,
    /// Recent lateness of the thread's wake-ups, median and p99, in nanoseconds; 0 if no sleep ended because its time
    /// was up.
    pub woken_late: [u64; 2],
    /// Longest time in the measured part for which the thread did not run beyond the wait that it requested, in
    /// nanoseconds.
    pub longest_gap_ns: u64,
    /// End of the measurement, nanoseconds since the trial's start: the end of the last slice, or earlier if the trial
    /// was stopped or had sent all its requests.
    pub ended_at: u64,
    /// Number of times that received bytes had to wait for a buffer.
    pub starved: u64,
}

impl ThreadTotals {
    /// Creates the figures of a thread that has not begun.
    pub(super) fn new(flows: &[FlowState]) -> ThreadTotals {
        ThreadTotals {
            flows: flows.iter().map(FlowTotals::new).collect(),
            errors: Errors::default(),
            cpu_ns: 0,
            spun_ns: 0,
            woken_late: [0; 2],
            longest_gap_ns: 0,
            ended_at: 0,
            starved: 0,
        }
    }
}

impl FlowTotals {
    /// Adds the figures of another thread.
    pub fn add(&mut self, other: &FlowTotals) {
        self.connections += other.connections;
        self.connected += other.connected;
        self.open_at_end += other.open_at_end;
        self.connects += other.connects;
        self.lost_at_rest += other.lost_at_rest;
        let times =
            [(&mut self.connect_time, &other.connect_time), (&mut self.tls_time, &other.tls_time)];
        for (own, others) in times {
            own.add(others).expect("all histograms have the same bounds");
        }
        self.tls.add(&other.tls);
    }

    pub(super) fn new(state: &FlowState) -> FlowTotals {
        FlowTotals {
            connections: u64::from(state.connections),
            connected: 0,
            open_at_end: 0,
            connects: 0,
            lost_at_rest: 0,
            connect_time: new_histogram(),
            tls_time: new_histogram(),
            tls: TlsCounts::default(),
        }
    }
}
