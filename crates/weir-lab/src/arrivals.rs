//! When the requests of a load are due, in the engine's words.

use std::time::Duration;

use weir_model::bursts::Bursts;
use weir_model::load::{Arrivals, Segment, Spacing};
use weir_model::study::LoadSpec;

use crate::cell::{Cell, Rates};
use crate::timeline::Timeline;

/// Any length will do: the last rate stays for ever.
const ON: u64 = 1_000_000_000;

/// Arrivals of the arm at a place of a cell.
pub(crate) fn of(cell: &Cell, timeline: &Timeline, place: usize) -> Arrivals {
    match &cell.rates {
        Rates::Closed => Arrivals::Closed,
        Rates::Same(rate) => at_one_rate(&cell.load, *rate, cell.slice, cell.discard),
        Rates::ByTurn(_) => by_turn(cell, timeline, place),
    }
}

/// Arrivals at `rate` requests per second. Bursts begin so late after the trial that they come in the same
/// places of every slice.
fn at_one_rate(load: &LoadSpec, rate: f64, slice: Duration, discard: f64) -> Arrivals {
    let Some(bursts) = Bursts::of(load) else {
        return Arrivals::Constant { rate };
    };
    let quiet = Segment {
        from: 0.0,
        to: 0.0,
        ns: bursts.first(slice, discard).as_nanos() as u64,
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

/// The arm's own rate in each of its slices, and nothing due in those of the others. The unmeasured slices before
/// the first block have the first block's.
fn by_turn(cell: &Cell, timeline: &Timeline, place: usize) -> Arrivals {
    let slices = timeline.slices.iter().zip(&timeline.turns);
    let segments = slices.map(|(slice, turn)| {
        let block = turn.block.unwrap_or(cell.first_block) - cell.first_block;
        let rate = match turn.arm == place {
            true => cell.rates.of(block as usize, place, turn.turn),
            false => None,
        };
        Segment {
            from: rate.unwrap_or(0.0),
            to: rate.unwrap_or(0.0),
            ns: slice.end - slice.start,
        }
    });
    Arrivals::Varied {
        segments: segments.collect(),
        spacing: Spacing::Even,
    }
}

#[cfg(test)]
mod tests {
    use weir_load::schedule::Schedule;
    use weir_model::load::Lifetime;
    use weir_model::study::StudyArrivals;

    use super::*;
    use crate::cell::tests::cell;

    /// Bursts of so many at this mean rate, for three arms.
    fn bursts(size: u32, rate: f64, slice_ms: u64, discard: f64) -> Cell {
        Cell {
            load: LoadSpec {
                burst: Some(size),
                connections: size,
                lifetime: Lifetime::Request,
                ..weir_model::fixture::load("l", StudyArrivals::Constant(rate))
            },
            rates: Rates::Same(rate),
            discard,
            ..cell(3, 2000, Duration::from_millis(slice_ms))
        }
    }

    /// Arrivals of an arm in the measured part of each of its slices, in order: (block, turn, count).
    fn measured(cell: &Cell, place: usize) -> Vec<(u32, usize, u64)> {
        let timeline = Timeline::of(cell);
        let mut schedule = Schedule::new(&of(cell, &timeline, place), 0).unwrap();
        let slices = timeline.slices.iter().zip(&timeline.turns);
        let own = slices.filter(|(_, turn)| turn.arm == place);
        own.filter_map(|(slice, turn)| {
            let before = schedule.count_before(slice.measure_from);
            Some((
                turn.block?,
                turn.turn,
                schedule.count_before(slice.end) - before,
            ))
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
            let cell = bursts(size, rate, slice_ms, discard);
            let seconds = slice_ms as f64 / 1e3 * (1.0 - cell.unmeasured());
            let wanted = (rate * seconds).round() as u64;
            assert!(wanted >= u64::from(size), "at least a burst");
            for place in 0..3 {
                let each = measured(&cell, place);
                assert!(each.iter().all(|(.., count)| *count == wanted), "{each:?}");
            }
        }
    }

    #[test]
    fn the_first_burst_of_a_slice_comes_when_measuring_begins() {
        let cell = bursts(500, 100.0, 5000, 0.2);
        let mut schedule = Schedule::new(&of(&cell, &Timeline::of(&cell), 0), 0).unwrap();
        let due = [0, 499, 500].map(|k| schedule.time_of(k) / 1_000_000);
        assert_eq!(due, [1000, 1000, 6000]);
    }

    #[test]
    fn without_bursts_a_rate_is_even_and_a_closed_loop_has_none() {
        let closed = cell(2, 1, Duration::from_millis(100));
        let timeline = Timeline::of(&closed);
        assert_eq!(of(&closed, &timeline, 0), Arrivals::Closed);
        let rates = Rates::Same(100.0);
        let constant = Arrivals::Constant { rate: 100.0 };
        assert_eq!(of(&Cell { rates, ..closed }, &timeline, 0), constant);
    }

    #[test]
    fn each_slice_has_the_rate_of_its_block_arm_and_turn() {
        let rates = vec![
            vec![[1000.0, 3000.0], [5000.0, 5000.0]],
            vec![[0.0, 7000.0], [100.0, 100.0]],
        ];
        let cell = Cell {
            rates: Rates::ByTurn(rates.clone()),
            ..cell(2, 2, Duration::from_millis(500))
        };
        for place in 0..2 {
            for (block, turn, count) in measured(&cell, place) {
                // 400 ms of each slice are measured.
                let wanted = rates[block as usize][place][turn] * 0.4;
                assert!(
                    (count as f64 - wanted).abs() <= 1.0,
                    "{block} {place} {turn}: {count}"
                );
            }
        }
    }
}
