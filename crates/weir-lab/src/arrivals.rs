//! When the requests of a load are due, in the engine's words.

use weir_model::bursts::Bursts;
use weir_model::load::{Arrivals, Segment, Spacing};
use weir_model::study::{BlockSpec, LoadSpec};

/// Any length will do: the last rate stays for ever.
const ON: u64 = 1_000_000_000;

/// Arrivals at `rate` requests per second, or of a closed loop without one. Bursts begin so late after
/// the trial that they come in the same places of every slice.
pub(crate) fn of(load: &LoadSpec, rate: Option<f64>, blocks: &BlockSpec) -> Arrivals {
    let Some(rate) = rate else {
        return Arrivals::Closed;
    };
    let (Some(bursts), Some(slice)) = (Bursts::of(load), blocks.slice) else {
        return Arrivals::Constant { rate };
    };
    let quiet = Segment {
        from: 0.0,
        to: 0.0,
        ns: bursts.first(slice, blocks.discard).as_nanos() as u64,
    };
    let on = Segment {
        from: rate,
        to: rate,
        ns: ON,
    };
    Arrivals::Varied {
        segments: vec![quiet, on],
        spacing: Spacing::Burst { size: bursts.size },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_load::schedule::Schedule;
    use weir_model::load::Lifetime;
    use weir_model::study::StudyArrivals;
    use weir_stats::SplitMix64;

    use super::*;
    use crate::timeline::Timeline;

    fn load(size: u32, rate: f64) -> LoadSpec {
        LoadSpec {
            burst: Some(size),
            connections: size,
            lifetime: Lifetime::Request,
            ..weir_model::fixture::load("l", StudyArrivals::Constant(rate))
        }
    }

    /// Arrivals due in every measured part, of trials of many blocks.
    fn measured(load: &LoadSpec, blocks: &BlockSpec) -> Vec<u64> {
        let StudyArrivals::Constant(rate) = load.arrivals else {
            panic!("an open loop");
        };
        let mut schedule = Schedule::new(&of(load, Some(rate), blocks), 0).unwrap();
        let slice = blocks.slice.unwrap();
        let discard = load.discard(blocks);
        let timeline = Timeline::new(3, 2000, 0, slice, discard, &mut SplitMix64::new(1));
        let slices = timeline.slices.iter().zip(&timeline.turns);
        slices
            .filter(|(_, turn)| turn.block.is_some())
            .map(|(slice, _)| {
                schedule.count_before(slice.end) - schedule.count_before(slice.measure_from)
            })
            .collect()
    }

    #[test]
    fn every_measured_part_has_the_same_bursts_at_the_mean_rate() {
        for (size, rate, slice_ms, discard) in [
            (500, 100.0, 5000, 0.2),
            (500, 100.0, 5000, 0.0),
            (100, 300.0, 1000, 0.2),
            (7, 700.0, 50, 0.2),
            (10, 100.0, 1000, 0.2),
            (10, 100.0, 1000, 0.25),
            (3, 9.0, 1000, 0.89),
        ] {
            let load = load(size, rate);
            let blocks = BlockSpec {
                slice: Some(Duration::from_millis(slice_ms)),
                discard,
                ..BlockSpec::default()
            };
            let each = measured(&load, &blocks);
            let seconds = slice_ms as f64 / 1e3 * (1.0 - load.discard(&blocks));
            let wanted = (rate * seconds).round() as u64;
            assert!(wanted >= u64::from(size), "at least a burst");
            assert!(each.iter().all(|count| *count == wanted), "{each:?}");
        }
    }

    #[test]
    fn the_first_burst_of_a_slice_comes_when_measuring_begins() {
        let blocks = BlockSpec {
            slice: Some(Duration::from_secs(5)),
            ..BlockSpec::default()
        };
        let arrivals = of(&load(500, 100.0), Some(100.0), &blocks);
        let mut schedule = Schedule::new(&arrivals, 0).unwrap();
        let due = [0, 499, 500].map(|k| schedule.time_of(k) / 1_000_000);
        assert_eq!(due, [1000, 1000, 6000]);
    }

    #[test]
    fn without_bursts_nothing_changes() {
        let even = LoadSpec {
            burst: None,
            ..load(1, 100.0)
        };
        let blocks = BlockSpec::default();
        assert_eq!(of(&even, None, &blocks), Arrivals::Closed);
        let constant = Arrivals::Constant { rate: 100.0 };
        assert_eq!(of(&even, Some(100.0), &blocks), constant);
        assert_eq!(even.discard(&blocks), blocks.discard);
    }
}
