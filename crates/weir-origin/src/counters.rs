//! Counters of a listener.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a listener. Values only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections accepted.
    pub connections: u64,
    /// Complete and valid requests received.
    pub requests: u64,
    /// Responses handed to the kernel completely.
    pub responses: u64,
    /// Bytes of responses handed to the kernel, heads included.
    pub sent_bytes: u64,
    /// Requests that could not be parsed and were answered with 400.
    pub bad_requests: u64,
    /// Failures to accept a connection, for lack of descriptors or memory.
    pub accept_errors: u64,
}

/// A count that one thread writes and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds to the count. Only the writing thread may call this: it is a load and a store, which spares the hot path a
    /// locked instruction.
    pub(crate) fn add(&self, more: u64) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now + more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of one listener of one thread, on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub(crate) connections: Count,
    pub(crate) requests: Count,
    pub(crate) responses: Count,
    pub(crate) sent_bytes: Count,
    pub(crate) bad_requests: Count,
    pub(crate) accept_errors: Count,
}

impl Tally {
    /// Adds these counts to those of other threads.
    pub(crate) fn add_to(&self, sum: &mut Counters) {
        sum.connections += self.connections.get();
        sum.requests += self.requests.get();
        sum.responses += self.responses.get();
        sum.sent_bytes += self.sent_bytes.get();
        sum.bad_requests += self.bad_requests.get();
        sum.accept_errors += self.accept_errors.get();
    }
}
