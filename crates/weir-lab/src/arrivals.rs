//! When the requests of a load are due, in the engine's words.
//!
//! Arms take turns in slices, and all must be asked the same. Closed loops, constant rates and
//! Poisson processes are the same at any time. A rate that changes, and a trace, begin anew in every
//! slice; bursts come in the same places of every slice.

use std::path::Path;
use std::time::Duration;

use weir_load::schedule::Schedule;
use weir_load::{Trace, TraceError};
use weir_model::bursts::Bursts;
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::load::{Arrivals, Segment, Spacing};
use weir_model::study::{BlockSpec, LoadSpec};

/// When a flow asks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct When {
    pub(crate) arrivals: Arrivals,
    /// They begin anew each time so many nanoseconds have passed.
    pub(crate) every_ns: Option<u64>,
}

/// The arrivals of a flow's trace, if it has one.
pub(crate) fn trace(flow: &FlowSpec) -> Result<Option<Trace>, TraceError> {
    match &flow.arrivals {
        ArrivalsSpec::Trace(trace) => Trace::read(Path::new(&trace.file), trace.speed).map(Some),
        _ => Ok(None),
    }
}

/// When each flow of a load asks. `rate` is that of all of them together, in requests per second, which
/// the main flow gets what the others leave of; `None` in a closed loop.
pub(crate) fn of(load: &LoadSpec, rate: Option<f64>, blocks: &BlockSpec) -> Vec<When> {
    let others: Option<f64> = load
        .beside
        .iter()
        .filter(|flow| !flow.is_held())
        .map(FlowSpec::rate)
        .sum();
    let own = rate
        .zip(others)
        .map(|(rate, others)| (rate - others).max(0.0));
    let every = blocks.slice.map(|slice| slice.as_nanos() as u64);
    let when = |flow: &FlowSpec, rate| When {
        arrivals: flow.resolved(rate),
        every_ns: every.filter(|_| flow.changes()),
    };
    let mut main = when(&load.main, own);
    if let (Some(bursts), Some(slice)) = (Bursts::of(load), blocks.slice) {
        main.arrivals = bursting(bursts, slice, blocks.discard);
    }
    std::iter::once(main)
        .chain(load.beside.iter().map(|flow| when(flow, None)))
        .collect()
}

/// Bursts begin so late after the trial that they come in the same places of every slice.
fn bursting(bursts: Bursts, slice: Duration, discard: f64) -> Arrivals {
    let quiet = Segment {
        ns: bursts.first(slice, discard).as_nanos() as u64,
        ..Segment::flat(0.0)
    };
    Arrivals::Varied {
        segments: vec![quiet, Segment::flat(bursts.rate)],
        spacing: Spacing::Burst { size: bursts.size },
    }
}

/// Requests per second of a load in the measured parts of its slices; `None` in a closed loop, and where
/// that is a share of what nobody has measured. `slowest` is what the slowest arm has carried.
pub(crate) fn rate(
    load: &LoadSpec,
    blocks: &BlockSpec,
    slowest: Option<f64>,
) -> Result<Option<f64>, TraceError> {
    let asking = load.flows().filter(|flow| !flow.is_held());
    let each = asking.map(|flow| flow_rate(flow, blocks, slowest));
    each.collect::<Result<Vec<_>, _>>()
        .map(|rates| rates.into_iter().sum())
}

fn flow_rate(
    flow: &FlowSpec,
    blocks: &BlockSpec,
    slowest: Option<f64>,
) -> Result<Option<f64>, TraceError> {
    if let ArrivalsSpec::ShareOfSlowest(share) = flow.arrivals {
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
    use weir_stats::SplitMix64;

    use super::*;
    use crate::timeline::Timeline;

    fn load(size: u32, rate: f64) -> LoadSpec {
        let main = FlowSpec {
            spacing: Spacing::Burst { size },
            lifetime: Lifetime::Request,
            ..FlowSpec::new(size, ArrivalsSpec::Constant(rate))
        };
        LoadSpec::new("l", main, Duration::from_secs(60))
    }

    /// Arrivals due in every measured part, of trials of many blocks.
    fn measured(load: &LoadSpec, blocks: &BlockSpec) -> Vec<u64> {
        let main = of(load, load.rate(), blocks).remove(0);
        let mut schedule = Schedule::new(&main.arrivals, 0).unwrap();
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
        let main = of(&load(500, 100.0), Some(100.0), &blocks).remove(0);
        let mut schedule = Schedule::new(&main.arrivals, 0).unwrap();
        let due = [0, 499, 500].map(|k| schedule.time_of(k) / 1_000_000);
        assert_eq!(due, [1000, 1000, 6000]);
    }

    #[test]
    fn flows_share_a_rate_and_what_changes_begins_anew() {
        let blocks = BlockSpec {
            slice: Some(Duration::from_secs(4)),
            discard: 0.25,
            ..BlockSpec::default()
        };
        let minute = Duration::from_secs(60);
        let open = |arrivals| FlowSpec::new(1, arrivals);
        let load = |main, beside| LoadSpec {
            beside,
            ..LoadSpec::new("l", open(main), minute)
        };
        let whole = |load: &LoadSpec| rate(load, &blocks, Some(1000.0)).unwrap();
        let arrivals = |load: &LoadSpec| of(load, whole(load), &blocks);

        let closed = load(ArrivalsSpec::Closed, vec![FlowSpec::held(9)]);
        assert_eq!(whole(&closed), None);
        let each = arrivals(&closed);
        assert_eq!(each[0].arrivals, Arrivals::Closed);
        assert_eq!(each[1].arrivals, Arrivals::Held);
        assert_eq!(closed.discard(&blocks), blocks.discard);

        let poisson = FlowSpec {
            spacing: Spacing::Poisson { seed: 7 },
            ..open(ArrivalsSpec::Constant(50.0))
        };
        let share = load(ArrivalsSpec::ShareOfSlowest(0.6), vec![poisson]);
        assert_eq!(whole(&share), Some(650.0));
        let each = arrivals(&share);
        assert_eq!(each[0].arrivals, Arrivals::Constant { rate: 600.0 });
        let spacing = Spacing::Poisson { seed: 7 };
        let segments = vec![Segment::flat(50.0)];
        assert_eq!(each[1].arrivals, Arrivals::Varied { segments, spacing });
        assert_eq!((each[0].every_ns, each[1].every_ns), (None, None));

        let (from, to, ns) = (0.0, 400.0, 2_000_000_000);
        let ramp = vec![Segment { from, to, ns }];
        let ramp = load(ArrivalsSpec::Varied(ramp), Vec::new());
        // From 200/s at 1 s to 400/s at 2 s, which then stays.
        let mean = whole(&ramp).unwrap();
        assert!((mean - (300.0 + 2.0 * 400.0) / 3.0).abs() < 1e-6, "{mean}");
        let main = arrivals(&ramp).remove(0);
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
        let blocks = BlockSpec {
            slice: Some(Duration::from_secs(2)),
            discard: 0.5,
            ..BlockSpec::default()
        };
        assert_eq!(rate(&load, &blocks, None).unwrap(), Some(2.0));
        let main = of(&load, Some(2.0), &blocks).remove(0);
        assert_eq!(main.every_ns, Some(2_000_000_000));
    }
}
