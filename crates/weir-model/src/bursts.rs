//! Bursts of an open loop, and their positions in the slices of a trial.
//!
//! One schedule covers the whole trial and the arms take turns in slices, so bursts must come at the same positions of
//! every slice; otherwise one arm gets more requests than another. A slice is therefore a whole number of burst periods
//! long, and its unmeasured part contains whole bursts too, or none. The rate offered in the measured parts is then
//! exactly the mean rate.

use std::time::Duration;

use crate::load::Spacing;
use crate::study::{BlockSpec, LoadSpec};

const NS_PER_S: f64 = 1e9;

/// Maximum distance of a slice from a whole number of periods, in periods; rounding of a rate leaves as much. Over a
/// hundred thousand slices it adds up to a thousandth of a period.
const ROUNDING: f64 = 1e-8;

/// Minimum distance of bursts from the ends of a slice, in periods: a nanosecond of rounding must not move a burst to
/// another arm.
const EDGE: f64 = 0.1;

/// Bursts of an open loop: `size` requests at the same moment, then none until the rate calls for the next `size`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Requests in a burst; at least 1.
    pub size: u32,
    /// Mean rate in requests per second; above 0.
    pub rate: f64,
}

impl Bursts {
    /// Returns the bursts of `load`; `None` if its arrivals are not in bursts, or its rate is not constant.
    pub fn of(load: &LoadSpec) -> Option<Bursts> {
        match (load.spacing, load.main.rate()) {
            (Spacing::Burst { size }, Some(rate)) => Some(Bursts { size, rate }),
            _ => None,
        }
    }

    /// Time from one burst to the next, rounded to nanoseconds.
    pub fn period(self) -> Duration {
        Duration::from_nanos(self.period_ns().round() as u64)
    }

    /// Number of bursts in each slice; `None` if the slice is not a whole number of periods, or shorter than one.
    pub fn in_slice(self, slice: Duration) -> Option<u64> {
        let periods = slice.as_nanos() as f64 / self.period_ns();
        let count = periods.round();
        ((periods - count).abs() <= ROUNDING && count >= 1.0).then_some(count as u64)
    }

    /// Time from the start of a slice to its first burst. `discard` is the share of the slice, at its start, that
    /// should not be measured: a burst comes exactly at the end of that share, unless that is at the edge of a period.
    pub fn first(self, slice: Duration, discard: f64) -> Duration {
        let period = self.period_ns();
        let unmeasured = slice.as_nanos() as f64 * discard;
        let remainder = unmeasured - self.unmeasured(slice, discard) * period;
        Duration::from_nanos(remainder.clamp(EDGE * period, (1.0 - EDGE) * period) as u64)
    }

    /// Number of whole periods at the start of a slice that are not measured.
    fn unmeasured(self, slice: Duration, discard: f64) -> f64 {
        let periods = slice.as_nanos() as f64 / self.period_ns();
        (periods * discard + ROUNDING).floor()
    }

    fn period_ns(self) -> f64 {
        f64::from(self.size) / self.rate * NS_PER_S
    }
}

impl LoadSpec {
    /// Share (0..1) of each slice, at its start, that is not measured. This is the study's own, but for bursts it is
    /// rounded down to whole periods. If a period is longer than that share, the whole slice is measured, and no burst
    /// comes in its first part.
    pub fn discard(&self, blocks: &BlockSpec) -> f64 {
        match (Bursts::of(self), blocks.slice) {
            (Some(bursts), Some(slice)) => {
                let periods = bursts.unmeasured(slice, blocks.discard);
                periods * bursts.period_ns() / slice.as_nanos() as f64
            }
            _ => blocks.discard,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bursts(size: u32, rate: f64) -> Bursts {
        Bursts { size, rate }
    }

    #[test]
    fn slices_hold_whole_bursts_or_are_refused() {
        assert_eq!(bursts(500, 100.0).in_slice(5 * SECOND), Some(1));
        assert_eq!(bursts(500, 100.0).in_slice(15 * SECOND), Some(3));
        assert_eq!(bursts(500, 100.0).in_slice(SECOND), None, "shorter");
        assert_eq!(bursts(500, 100.0).in_slice(6 * SECOND), None);
        // A period of a third of a second has no whole nanoseconds.
        assert_eq!(bursts(100, 300.0).in_slice(SECOND), Some(3));
        assert_eq!(bursts(100, 300.001).in_slice(SECOND), None);
        assert_eq!(bursts(100, 300.0).period().as_nanos(), 333_333_333);
    }

    #[test]
    fn the_first_burst_comes_when_measuring_begins_and_never_at_an_edge() {
        let single = bursts(500, 100.0);
        assert_eq!(single.first(5 * SECOND, 0.2), SECOND);
        assert_eq!(single.first(5 * SECOND, 0.0), SECOND / 2);
        // Ten in a slice, two of them before measuring begins: on the edge of a period.
        let ten = bursts(10, 100.0);
        assert_eq!(ten.first(SECOND, 0.2), SECOND / 100);
        assert_eq!(ten.first(SECOND, 0.25), SECOND / 20);
    }
}
