//! Bursts of an open loop, and where they fall in the slices of a trial.
//!
//! The schedule is one for the whole trial and the arms take turns in slices, so bursts must come in the
//! same places of every slice: else one arm is asked more than another. Slices are therefore whole
//! numbers of burst periods long, and the part of a slice that is not measured has whole bursts too,
//! or none. Then what is offered in the measured parts is the mean rate, exactly.

use std::time::Duration;

use crate::load::Spacing;
use crate::study::{BlockSpec, LoadSpec};

const NS_PER_S: f64 = 1e9;

/// How far from a whole number of periods a slice may be, in periods: what rounding of a rate leaves. Over
/// a hundred thousand slices it adds up to a thousandth of a period.
const ROUNDING: f64 = 1e-8;

/// Bursts keep this far from the ends of a slice, in periods: a nanosecond of rounding must not move one
/// to another arm.
const EDGE: f64 = 0.1;

/// So many requests at the same moment, then none until the rate asks for as many again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Requests in a burst; at least 1.
    pub size: u32,
    /// Mean rate in requests per second; above 0.
    pub rate: f64,
}

impl Bursts {
    /// The bursts of `load`; `None`: its arrivals are evenly spread, or wait for responses.
    pub fn of(load: &LoadSpec) -> Option<Bursts> {
        match (load.spacing, load.main.rate()) {
            (Spacing::Burst { size }, Some(rate)) => Some(Bursts { size, rate }),
            _ => None,
        }
    }

    /// From one burst to the next, rounded to nanoseconds.
    pub fn period(self) -> Duration {
        Duration::from_nanos(self.period_ns().round() as u64)
    }

    /// How many bursts each slice has; `None`: not a whole number, or none.
    pub fn in_slice(self, slice: Duration) -> Option<u64> {
        let periods = slice.as_nanos() as f64 / self.period_ns();
        let whole = periods.round();
        ((periods - whole).abs() <= ROUNDING && whole >= 1.0).then_some(whole as u64)
    }

    /// When the first burst of a slice comes after its begin, where the first part of a slice, `discard`
    /// of it, should not be measured: just when measuring begins, if that is not at the edge of
    /// a period.
    pub fn first(self, slice: Duration, discard: f64) -> Duration {
        let period = self.period_ns();
        let unmeasured = slice.as_nanos() as f64 * discard;
        let rest = unmeasured - self.unmeasured(slice, discard) * period;
        Duration::from_nanos(rest.clamp(EDGE * period, (1.0 - EDGE) * period) as u64)
    }

    /// Whole periods at the begin of a slice that are not measured.
    fn unmeasured(self, slice: Duration, discard: f64) -> f64 {
        let periods = slice.as_nanos() as f64 / self.period_ns();
        (periods * discard + ROUNDING).floor()
    }

    fn period_ns(self) -> f64 {
        f64::from(self.size) / self.rate * NS_PER_S
    }
}

impl LoadSpec {
    /// First part of each slice that is not measured, as a share of the slice, 0..1. That of the
    /// study, but for bursts: the whole periods in it. Where a period is longer, all of a slice
    /// counts, and its first part is quiet.
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
        let one = bursts(500, 100.0);
        assert_eq!(one.first(5 * SECOND, 0.2), SECOND);
        assert_eq!(one.first(5 * SECOND, 0.0), SECOND / 2);
        // Ten in a slice, two of them before measuring begins: on the edge of a period.
        let ten = bursts(10, 100.0);
        assert_eq!(ten.first(SECOND, 0.2), SECOND / 100);
        assert_eq!(ten.first(SECOND, 0.25), SECOND / 20);
    }
}
