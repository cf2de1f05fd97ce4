//! Figures that belong to no slice, and what others may see while a thread runs.

use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;

use super::FlowState;
use super::secure::TlsCounts;
use crate::ledger::{Errors, new_histogram};

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
    /// CPU time of the thread from the trial's start to the end of the last slice that has ended, in nanoseconds.
    pub cpu_ns: AtomicU64,
}

impl Progress {
    /// Adds (or, by wrapping, subtracts) in a place that only this thread writes: no locked
    /// instruction is needed.
    pub(super) fn add(count: &AtomicU64, more: u64) {
        let now = count.load(Ordering::Relaxed);
        count.store(now.wrapping_add(more), Ordering::Relaxed);
    }
}

/// Figures of one flow on one thread that belong to no slice.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowTotals {
    /// Connections asked for.
    pub connections: u64,
    /// Connections that were open when the trial began.
    pub connected: u64,
    /// Connections that were open when the measuring ended.
    pub open_at_end: u64,
    /// Connections opened, the first time or again.
    pub connects: u64,
    /// Connections that the peer closed while another arm had the load.
    pub lost_at_rest: u64,
    /// Time to open a connection.
    pub connect_time: Histogram<u64>,
    /// Time of a TLS handshake, from the open connection on.
    pub tls_time: Histogram<u64>,
    /// What handshakes agreed on.
    pub tls: TlsCounts,
}

/// Figures of one thread that belong to no slice.
#[derive(Debug, Clone)]
pub struct ThreadTotals {
    /// By flow.
    pub flows: Vec<FlowTotals>,
    /// Errors outside of all slices: while connections were opened, and after the end.
    pub errors: Errors,
    /// CPU time of the thread from the trial's start to the end of the measuring, in nanoseconds.
    pub cpu_ns: u64,
    /// Of this, how long it was awake only because a request was soon due.
    pub spun_ns: u64,
    /// How late it was woken lately, at the median and at the p99, in nanoseconds; 0 where no sleep ended by the time.
    pub woken_late: [u64; 2],
    /// In measured time, how long it did not come round at most, beyond what it asked to wait, in nanoseconds.
    pub longest_gap_ns: u64,
    /// When the measuring ended, nanoseconds since the trial's start: the end of the last slice,
    /// or earlier when it was stopped or had sent all it should.
    pub ended_at: u64,
    /// How often received bytes had to wait for a buffer.
    pub starved: u64,
}

impl ThreadTotals {
    /// Of a thread that has not begun.
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
    /// Adds what another thread has counted.
    pub fn add(&mut self, other: &FlowTotals) {
        self.connections += other.connections;
        self.connected += other.connected;
        self.open_at_end += other.open_at_end;
        self.connects += other.connects;
        self.lost_at_rest += other.lost_at_rest;
        let times = [
            (&mut self.connect_time, &other.connect_time),
            (&mut self.tls_time, &other.tls_time),
        ];
        for (own, others) in times {
            own.add(others)
                .expect("all histograms have the same bounds");
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
