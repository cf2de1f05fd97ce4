//! What a trial is to do, resolved: nothing in here is looked up again while it runs.

use std::net::SocketAddr;
use std::time::Duration;

use weir_model::load::Arrivals;

/// A trial.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Connections by whom they ask. At least one.
    pub groups: Vec<Group>,
    /// Slices in order of time, without gaps, the first at 0. At least one.
    pub slices: Vec<Slice>,
    /// Closed or open loop.
    pub arrivals: Arrivals,
    /// The load grows evenly for this long from the trial's start.
    pub ramp_up: Duration,
    /// How long a response may take from when its request was sent, and a connection to open.
    pub timeout: Duration,
    /// How long is waited at the end for what is still in flight.
    pub drain: Duration,
    /// Requests at most.
    pub requests: Option<u64>,
    /// CPUs, one thread pinned to each. At least one.
    pub cpus: Vec<Option<u32>>,
}

/// Connections that ask the same address the same thing.
#[derive(Debug, Clone)]
pub struct Group {
    /// Whom they ask.
    pub address: SocketAddr,
    /// The request as it goes over the wire.
    pub request: Vec<u8>,
    /// Whether its method is HEAD, so that responses have no content (RFC 9112 §6.3).
    pub head: bool,
    /// Connections over all threads, kept open for the whole trial.
    pub connections: u32,
}

/// A stretch of time in which the load goes to one group. Times are nanoseconds since the trial's
/// start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Index in [`Plan::groups`].
    pub group: usize,
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
}

impl Plan {
    /// The slices of a plain load test: `ramp_up` unmeasured, then `sustain` in steps of a second.
    pub fn seconds(ramp_up: Duration, sustain: Duration) -> Vec<Slice> {
        const SECOND: u64 = 1_000_000_000;
        let ramp = ramp_up.as_nanos() as u64;
        let end = ramp + (sustain.as_nanos() as u64).max(1);
        let mut slices = Vec::new();
        if ramp > 0 {
            slices.push(Slice {
                group: 0,
                start: 0,
                measure_from: ramp,
                end: ramp,
            });
        }
        let mut start = ramp;
        while start < end {
            // A remainder of less than half a second joins the last full one.
            let next = if end - start < SECOND + SECOND / 2 {
                end
            } else {
                start + SECOND
            };
            slices.push(Slice {
                group: 0,
                start,
                measure_from: start,
                end: next,
            });
            start = next;
        }
        slices
    }

    /// The end of the last slice.
    pub(crate) fn end(&self) -> u64 {
        self.slices.last().map_or(0, |slice| slice.end)
    }

    /// Connections of one thread, over all groups.
    pub(crate) fn connections_of(&self, thread: usize) -> usize {
        let groups = self.groups.iter();
        groups
            .map(|group| self.share(u64::from(group.connections), thread) as usize)
            .sum()
    }

    /// Of `total` things, how many fall to `thread`.
    pub(crate) fn share(&self, total: u64, thread: usize) -> u64 {
        let threads = self.cpus.len() as u64;
        total / threads + u64::from((thread as u64) < total % threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_load_has_slices_of_a_second_without_gaps() {
        for (ramp_ms, sustain_ms) in [(0, 10_000), (500, 2_300), (0, 400), (1000, 1_600)] {
            let (ramp, sustain) = (
                Duration::from_millis(ramp_ms),
                Duration::from_millis(sustain_ms),
            );
            let slices = Plan::seconds(ramp, sustain);
            assert_eq!(slices[0].start, 0);
            assert!(slices.windows(2).all(|pair| pair[0].end == pair[1].start));
            let measured: u64 = slices
                .iter()
                .map(|slice| slice.end - slice.measure_from)
                .sum();
            assert_eq!(measured, sustain.as_nanos() as u64);
        }
    }
}
