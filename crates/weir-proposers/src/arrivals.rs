//! Times at which the requests of a load are due, in the form that the engine takes.
//!
//! Arms take turns in slices, and all must get the same requests. Closed loops, constant rates and Poisson processes
//! are the same at any time. A changing rate and a trace begin anew in every slice; bursts come at the same places of
//! every slice.

use std::path::Path;
use std::time::Duration;

use weir_load::schedule::Schedule;
use weir_load::{Trace, TraceError};
use weir_model::bursts::Bursts;
use weir_model::flow::{ArrivalsSpec, FlowSpec, LoadSpec};
use weir_model::load::{Arrivals, Segment, Spacing};
use weir_model::study::BlockSpec;

use crate::cell::{Cell, Rates, Steps};
use crate::timeline::Timeline;

/// Arrivals of a flow's requests.
#[derive(Debug, Clone, PartialEq)]
pub struct When {
    pub arrivals: Arrivals,
    /// Period after which the arrivals begin anew, nanoseconds; `None`: never.
    pub every_ns: Option<u64>,
}

impl When {
    /// Returns the arrivals that a flow's description gives.
    pub fn said(flow: &FlowSpec) -> When {
        When { arrivals: flow.resolved(None), every_ns: None }
    }
}

/// Reads the trace of a flow's arrivals; `None` if it has none.
pub fn trace(flow: &FlowSpec) -> Result<Option<Trace>, TraceError> {
    match &flow.arrivals {
        ArrivalsSpec::Trace(trace) => Trace::read(Path::new(&trace.file), trace.speed).map(Some),
        _ => Ok(None),
    }
}

/// Returns the arrivals of each flow of a cell's load at the arm at `place`. The main flow gets the part of the cell's
/// rate that the other flows leave.
pub fn of(cell: &Cell, timeline: &Timeline, place: usize) -> Vec<When> {
    let load = &cell.load;
    let beside_rate: f64 =
        load.beside.iter().filter(|flow| !flow.is_held()).filter_map(FlowSpec::rate).sum();
    let arrivals = match (&cell.rates, Bursts::of(load)) {
        (Rates::Steps(_) | Rates::Shared(_), _) => by_turn(cell, timeline, place, beside_rate),
        (Rates::Same(rate), Some(bursts)) => {
            let bursts = Bursts { rate: (*rate - beside_rate).max(0.0), ..bursts };
            bursting(bursts, cell.slice, cell.discard)
        }
        (Rates::Same(rate), None) => load.main.resolved(Some((rate - beside_rate).max(0.0))),
        (Rates::Closed, _) => load.main.resolved(None),
    };
    let main = When {
        arrivals,
        every_ns: repeat_ns(&load.main, cell.slice)
            .filter(|_| !matches!(cell.rates, Rates::Steps(_))),
    };
    let beside = load
        .beside
        .iter()
        .map(|flow| When { every_ns: repeat_ns(flow, cell.slice), ..When::said(flow) });
    std::iter::once(main).chain(beside).collect()
}

/// Returns the time after which a flow begins anew, if its rate changes.
fn repeat_ns(flow: &FlowSpec, slice: Duration) -> Option<u64> {
    flow.changes().then_some(slice.as_nanos() as u64)
}

/// Returns bursts after a first pause, which is so long that they come at the same places of every slice.
fn bursting(bursts: Bursts, slice: Duration, discard: f64) -> Arrivals {
    let quiet =
        Segment { ns: bursts.first(slice, discard).as_nanos() as u64, ..Segment::flat(0.0) };
    Arrivals::Varied {
        segments: vec![quiet, Segment::flat(bursts.rate)],
        spacing: Spacing::Burst { size: bursts.size },
    }
}

/// Returns arrivals at the arm's own rate in each of its slices, and none in the slices of other arms. The unmeasured
/// slices before the first block have the first block's rate.
fn by_turn(cell: &Cell, timeline: &Timeline, place: usize, others: f64) -> Arrivals {
    let spacing = match cell.load.spacing {
        // Bursts come by one rate.
        Spacing::Burst { .. } => Spacing::Even,
        spacing => spacing,
    };
    let segments =
        timeline.slices.iter().zip(&timeline.turns).enumerate().flat_map(|(at, (slice, turn))| {
            let block = (turn.block.unwrap_or(cell.first_block) - cell.first_block) as usize;
            let rate = (turn.arm == place)
                .then(|| cell.rates.of(block, place))
                .flatten()
                .map_or(0.0, |rate| (rate - others).max(0.0));
            let length = slice.end - slice.start;
            let quiet = match &cell.rates {
                Rates::Steps(steps) => {
                    quiet(steps, (at, turn.block.map(|_| block)), timeline, length)
                }
                _ => 0,
            };
            [(quiet, 0.0), (length - quiet, rate)]
                .map(|(ns, rate)| Segment { ns, ..Segment::flat(rate) })
        });
    Arrivals::Varied { segments: segments.filter(|segment| segment.ns > 0).collect(), spacing }
}

/// Returns the length of the silent part at the start of the slice at `place`, nanoseconds. The slice has `length`, and
/// `block` is the index of its block within the cell.
fn quiet(
    steps: &Steps,
    (place, block): (usize, Option<usize>),
    timeline: &Timeline,
    length: u64,
) -> u64 {
    let quiet = match block.and_then(|block| steps.blocks.get(block)) {
        Some(block) => block.pause.as_nanos() as u64,
        None if place == 0 => steps.rest.as_nanos() as u64,
        None if place < timeline.arms && !steps.warm_up.is_zero() => 0,
        // After the last block.
        None => length,
    };
    quiet.min(length)
}

/// Computes requests per second of a load in the measured parts of its slices. `slowest` is the rate that the slowest
/// arm carried. `None` in a closed loop, and for a share of the slowest arm's rate if that is not known.
pub fn rate(
    load: &LoadSpec,
    blocks: &BlockSpec,
    slowest: Option<f64>,
) -> Result<Option<f64>, TraceError> {
    load.flows()
        .filter(|flow| !flow.is_held())
        .map(|flow| flow_rate(flow, blocks, slowest))
        .collect::<Result<Vec<_>, _>>()
        .map(|rates| rates.into_iter().sum())
}

fn flow_rate(
    flow: &FlowSpec,
    blocks: &BlockSpec,
    slowest: Option<f64>,
) -> Result<Option<f64>, TraceError> {
    if let ArrivalsSpec::ShareOfSlowest(share) | ArrivalsSpec::UpToShareOfSlowest(share) =
        flow.arrivals
    {
        // Whole requests per second read better, and nobody needs more.
        return Ok(slowest.map(|rate| (rate * share).round().max(1.0)));
    }
    let schedule = match trace(flow)? {
        Some(trace) => Some(Schedule::trace(trace.times, 0, None)),
        None if flow.changes() => Schedule::new(&flow.resolved(None), 0),
        None => return Ok(flow.rate()),
    };
    let slice = blocks.slice.unwrap_or_default().as_nanos() as f64;
    let (from, to) = ((slice * blocks.discard) as u64, slice as u64);
    let seconds = (to - from) as f64 / 1e9;
    Ok(schedule.map(|schedule| schedule.expected(from, to) / seconds))
}

#[cfg(test)]
mod tests {
    use weir_model::load::Lifetime;

    use super::*;
    use crate::cell::StepBlock;
    use crate::cell::tests::cell;

    fn main(cell: &Cell, timeline: &Timeline, place: usize) -> Arrivals {
        of(cell, timeline, place).remove(0).arrivals
    }

    /// Makes a cell of three arms with bursts of `size` requests at this mean rate.
    fn bursts(size: u32, rate: f64, slice_ms: u64, discard: f64) -> Cell {
        let main = FlowSpec {
            spacing: Spacing::Burst { size },
            lifetime: Lifetime::Request,
            ..FlowSpec::new(size, ArrivalsSpec::Constant(rate))
        };
        Cell {
            load: LoadSpec::new("l", main, Duration::from_secs(60)),
            rates: Rates::Same(rate),
            discard,
            ..cell(3, 2000, Duration::from_millis(slice_ms))
        }
    }

    /// Returns the arrivals of an arm in the measured part of each of its slices, in order, as (block, turn, count).
    fn measured(cell: &Cell, place: usize) -> Vec<(u32, usize, u64)> {
        let timeline = Timeline::of(cell);
        let mut schedule = Schedule::new(&main(cell, &timeline, place), 0).unwrap();
        timeline
            .slices
            .iter()
            .zip(&timeline.turns)
            .filter(|(_, turn)| turn.arm == place)
            .filter_map(|(slice, turn)| {
                let before = schedule.count_before(slice.measure_from);
                Some((turn.block?, turn.turn, schedule.count_before(slice.end) - before))
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
                let parts = measured(&cell, place);
                assert!(parts.iter().all(|(.., count)| *count == wanted), "{parts:?}");
            }
        }
    }

    #[test]
    fn the_first_burst_of_a_slice_comes_when_measuring_begins() {
        let cell = bursts(500, 100.0, 5000, 0.2);
        let mut schedule = Schedule::new(&main(&cell, &Timeline::of(&cell), 0), 0).unwrap();
        let due = [0, 499, 500].map(|k| schedule.time_of(k) / 1_000_000);
        assert_eq!(due, [1000, 1000, 6000]);
    }

    fn step_block(rates: [f64; 2], measure_ms: u64) -> StepBlock {
        StepBlock {
            rates: rates.into(),
            pause: Duration::from_millis(100),
            settle: Duration::from_millis(50),
            measure: Duration::from_millis(measure_ms),
        }
    }

    fn due_before(cell: &Cell, place: usize, ms: u64) -> u64 {
        let schedule = Schedule::new(&main(cell, &Timeline::of(cell), place), 0);
        schedule.unwrap().count_before(ms * 1_000_000)
    }

    #[test]
    fn each_slice_has_the_rate_and_the_length_of_its_block_and_arm() {
        let ms = Duration::from_millis;
        let steps = Steps {
            rest: ms(500),
            warm_up: ms(200),
            blocks: vec![step_block([1000.0, 3000.0], 400), step_block([0.0, 700.0], 800)],
        };
        let cell = Cell { rates: Rates::Steps(steps.clone()), ..cell(2, 2, ms(950)) };
        for place in [0, 1] {
            let counted = measured(&cell, place);
            assert_eq!(counted.len(), 2, "one slice in each block");
            for (block, _, count) in counted {
                let block = &steps.blocks[block as usize];
                let wanted = block.rates[place] * block.measure.as_secs_f64();
                assert!((count as f64 - wanted).abs() <= 1.0, "{block:?}: {count}");
            }
        }
        let timeline = Timeline::of(&cell);
        assert_eq!((due_before(&cell, 0, 500), due_before(&cell, 1, 700)), (0, 0), "it rests");
        assert_eq!(
            (due_before(&cell, 0, 700), due_before(&cell, 1, 900)),
            (200, 600),
            "and is warm then"
        );
        // Both arms in both blocks, and a pause each time.
        assert_eq!(timeline.length(), ms(700 + 200 + 2 * 550 + 2 * 950 + 10));
        let all = [0, 1].map(|place| due_before(&cell, place, 10_000));
        assert_eq!(all, [200 + 450, 600 + 1350 + 595], "nothing is due in pauses");
    }

    fn quarter_discarded() -> BlockSpec {
        BlockSpec { slice: Some(Duration::from_secs(4)), discard: 0.25, ..BlockSpec::default() }
    }

    fn open_flow(arrivals: ArrivalsSpec) -> FlowSpec {
        FlowSpec::new(1, arrivals)
    }

    fn minute_load(main: ArrivalsSpec, beside: Vec<FlowSpec>) -> LoadSpec {
        LoadSpec { beside, ..LoadSpec::new("l", open_flow(main), Duration::from_secs(60)) }
    }

    fn whole_rate(load: &LoadSpec) -> Option<f64> {
        rate(load, &quarter_discarded(), Some(1000.0)).unwrap()
    }

    fn arrivals_of(load: &LoadSpec) -> Vec<When> {
        let cell = Cell {
            load: load.clone(),
            rates: whole_rate(load).map_or(Rates::Closed, Rates::Same),
            ..cell(2, 2, Duration::from_secs(4))
        };
        of(&cell, &Timeline::of(&cell), 0)
    }

    #[test]
    fn flows_share_a_rate_and_what_changes_begins_anew() {
        let blocks = quarter_discarded();
        let closed = minute_load(ArrivalsSpec::Closed, vec![FlowSpec::held(9)]);
        assert_eq!(whole_rate(&closed), None);
        let flows = arrivals_of(&closed);
        assert_eq!(flows[0].arrivals, Arrivals::Closed);
        assert_eq!(flows[1].arrivals, Arrivals::Held);
        assert_eq!(closed.discard(&blocks), blocks.discard);

        let poisson = FlowSpec {
            spacing: Spacing::Poisson { seed: 7 },
            ..open_flow(ArrivalsSpec::Constant(50.0))
        };
        let share = minute_load(ArrivalsSpec::ShareOfSlowest(0.6), vec![poisson]);
        assert_eq!(whole_rate(&share), Some(650.0));
        let flows = arrivals_of(&share);
        assert_eq!(flows[0].arrivals, Arrivals::Constant { rate: 600.0 });
        let spacing = Spacing::Poisson { seed: 7 };
        let segments = vec![Segment::flat(50.0)];
        assert_eq!(flows[1].arrivals, Arrivals::Varied { segments, spacing });
        assert_eq!((flows[0].every_ns, flows[1].every_ns), (None, None));

        let beside = vec![open_flow(ArrivalsSpec::Constant(50.0))];
        let mut bursts = minute_load(ArrivalsSpec::Constant(100.0), beside);
        bursts.main.spacing = Spacing::Burst { size: 10 };
        assert_eq!(whole_rate(&bursts), Some(150.0));
        let main = Schedule::new(&arrivals_of(&bursts)[0].arrivals, 0).unwrap();
        let due = main.expected(4_000_000_000, 8_000_000_000);
        assert!((due - 400.0).abs() < 1e-6, "the others' are not its own: {due}");

        let (from, to, ns) = (0.0, 400.0, 2_000_000_000);
        let ramp = vec![Segment { from, to, ns }];
        let ramp = minute_load(ArrivalsSpec::Varied(ramp), Vec::new());
        // From 200/s at 1 s to 400/s at 2 s, which then stays.
        let mean = whole_rate(&ramp).unwrap();
        assert!((mean - (300.0 + 2.0 * 400.0) / 3.0).abs() < 1e-6, "{mean}");
        let main = arrivals_of(&ramp).remove(0);
        assert_eq!(main.every_ns, Some(4_000_000_000));
        let repeated = main.arrivals.repeated(4_000_000_000, 40_000_000_000);
        let schedule = Schedule::new(&repeated, 0).unwrap();
        for slice in 0..10 {
            let begin = slice * 4_000_000_000;
            let due = schedule.expected(begin + 1_000_000_000, begin + 4_000_000_000);
            assert!((due - 3.0 * mean).abs() < 1e-3, "{slice}: {due}");
        }
    }

    #[test]
    fn a_trace_has_the_rate_of_what_fits_into_a_slice() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0\n0.5\n1\n1.5\n9\n").unwrap();
        let main = FlowSpec::new(
            1,
            ArrivalsSpec::Trace(weir_model::flow::TraceSpec {
                file: file.path().display().to_string(),
                speed: 1.0,
            }),
        );
        let load = LoadSpec::new("l", main, Duration::from_secs(60));
        let blocks =
            BlockSpec { slice: Some(Duration::from_secs(2)), discard: 0.5, ..BlockSpec::default() };
        assert_eq!(rate(&load, &blocks, None).unwrap(), Some(2.0));
    }
}
