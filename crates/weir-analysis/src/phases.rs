//! Detection of arms that change while they are measured, and of effects that a measurement was too short to show.
//!
//! A run's figures are of one arm each, so an arm must stay the same. Changes are searched in the CPU time per request
//! and in the rate of each arm, against the median of the other arms in the same block: what affects the machine
//! affects all arms. A change is a finding and no reason to leave blocks out, because users of such an arm will meet it
//! too.

use std::cmp::Ordering;
use std::ops::Range;

use weir_model::record::{Record, SliceRecord, SocketCounts, TrialRecord};
use weir_model::study::Metric;
use weir_record::Run;
use weir_stats::{change_point, excursions, hodges_lehmann, qn};

use crate::blocks::LoadData;
use crate::compare::Comparer;
use crate::figures::Clock;
use crate::findings::{FreshArms, PhaseChange, PhaseEvidence, TIME_WAIT_S};
use crate::outcomes::sum;

/// Probability of a false alarm per arm and metric. Small, because every arm is tested with two metrics.
const LEVEL: f64 = 0.001;
/// Smallest change that counts, as a share of the level before.
const SMALLEST: f64 = 0.10;
/// Smallest change that counts, in standard deviations of the blocks' log ratios within a phase.
const BEYOND_NOISE: f64 = 2.0;
/// Minimum number of blocks in a phase.
const SHORTEST: usize = 4;
/// Number of connections in TIME_WAIT from which on they are mentioned.
const LEAST_TIME_WAIT: u64 = 1_000;

/// Finds the changes of all arms under a load, in order of time.
pub(crate) fn changes(run: &Run, comparer: &mut Comparer<'_>) -> Vec<PhaseChange> {
    let data = comparer.data;
    let clock = Clock::of(data);
    let mut all_changes: Vec<PhaseChange> = Vec::new();
    for arm in 0..data.study.arms.len() {
        let blocks: Vec<usize> =
            (0..data.blocks.len()).filter(|block| data.usable(*block, arm).is_some()).collect();
        // One change has one place: the CPU time is the finer measure of it.
        let metrics = [Metric::CpuPerRequest, Metric::Rate];
        let of_metric = metrics.into_iter().find_map(|metric| {
            let changes = of_arm(comparer, arm, metric, &blocks);
            (!changes.is_empty()).then_some((metric, changes))
        });
        let Some((metric, cuts)) = of_metric else {
            continue;
        };
        let ends: Vec<usize> = cuts.iter().map(|(cut, _)| *cut).collect();
        for (number, (cut, p)) in cuts.into_iter().enumerate() {
            let first = number.checked_sub(1).map_or(0, |before| ends[before]);
            let last = ends.get(number + 1).copied().unwrap_or(blocks.len());
            let phases = [&blocks[first..cut], &blocks[cut..last]];
            all_changes.push(describe(run, comparer, (arm, metric, p), phases, &clock));
        }
    }
    all_changes.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all_changes
}

/// Finds the changes of an arm: index in `blocks`, and p.
fn of_arm(
    comparer: &Comparer<'_>,
    arm: usize,
    metric: Metric,
    blocks: &[usize],
) -> Vec<(usize, f64)> {
    let data = comparer.data;
    if metric == Metric::CpuPerRequest && !data.sees_process(&data.study.arms[arm]) {
        return Vec::new();
    }
    let logs: Vec<f64> =
        blocks.iter().map(|block| comparer.values.value(metric, arm, &[*block]).ln()).collect();
    let against: Vec<f64> = blocks
        .iter()
        .zip(&logs)
        .map(|(block, log)| {
            let other_arms = (0..data.study.arms.len())
                .filter(|other| *other != arm)
                .filter(|other| data.usable(*block, *other).is_some())
                .map(|other| comparer.values.value(metric, other, &[*block]).ln());
            log - median(other_arms.collect()).unwrap_or(0.0)
        })
        .collect();
    let mut cuts = Vec::new();
    if logs.iter().chain(&against).all(|value| value.is_finite()) {
        split(&logs, &against, 0..logs.len(), &mut cuts);
        cuts.extend(passing(&against));
    }
    cuts.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(Ordering::Equal));
    // Cuts closer than a phase can be are one change, the surer one.
    cuts.dedup_by(|later, earlier| {
        let same = later.0 - earlier.0 < SHORTEST;
        if same && later.1 < earlier.1 {
            *earlier = *later;
        }
        same
    });
    // The first cut of several may lie beside a change, and is one no more when the others are made.
    while let Some(least) = (0..cuts.len()).find(|number| {
        let first = number.checked_sub(1).map_or(0, |before| cuts[before].0);
        let last = cuts.get(number + 1).map_or(logs.len(), |(cut, _)| *cut);
        let middle = cuts[*number].0;
        !is_step(&logs, &against, [first..middle, middle..last])
    }) {
        cuts.remove(least);
    }
    cuts
}

/// Finds the clearest change in a range, then those on both sides of it.
fn split(own: &[f64], against: &[f64], range: Range<usize>, found: &mut Vec<(usize, f64)>) {
    let Some((offset, p)) = change_point(&against[range.clone()]) else {
        return;
    };
    let cut = range.start + offset;
    let (before, after) = (range.start..cut, cut..range.end);
    let phases = [before.clone(), after.clone()];
    if p > LEVEL || !is_step(own, against, phases) {
        return;
    }
    found.push((cut, p));
    split(own, against, before, found);
    split(own, against, after, found);
}

/// Returns the edges of temporary stretches on another level.
fn passing(against: &[f64]) -> Vec<(usize, f64)> {
    let limit = (BEYOND_NOISE * qn(against).unwrap_or(0.0)).max(SMALLEST.ln_1p());
    excursions(against, limit, SHORTEST)
        .into_iter()
        .filter(|(_, p)| *p <= LEVEL)
        .flat_map(|(stretch, p)| [(stretch.start, p), (stretch.end, p)])
        .filter(|(place, _)| (1..against.len()).contains(place))
        .collect()
}

/// Returns true if an arm is on another level in the second of two phases.
fn is_step(own: &[f64], against: &[f64], [before, after]: [Range<usize>; 2]) -> bool {
    if before.len() < SHORTEST || after.len() < SHORTEST {
        return false;
    }
    let [mine, theirs] = [own, against].map(|series| {
        let [level_before, level_after] =
            [&before, &after].map(|range| median(series[range.clone()].to_vec()).unwrap_or(0.0));
        level_after - level_before
    });
    let [noise_before, noise_after] =
        [&before, &after].map(|range| qn(&against[range.clone()]).unwrap_or(0.0));
    let noise = noise_before.max(noise_after);
    // Of two arms one has changed: the one whose own figures did.
    let is_own = mine * theirs > 0.0 && mine.abs() >= 0.5 * theirs.abs();
    is_own && theirs.abs() >= SMALLEST.ln_1p().max(BEYOND_NOISE * noise)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => Some(values[middle]),
        _ => Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, values[middle])),
    }
}

fn describe(
    run: &Run,
    comparer: &mut Comparer<'_>,
    (arm, metric, p): (usize, Metric, f64),
    phases: [&[usize]; 2],
    clock: &Clock,
) -> PhaseChange {
    let data = comparer.data;
    let spec = &data.study.arms[arm];
    let [before, after] = phases.map(|blocks| {
        let values = blocks.iter().map(|block| comparer.values.value(metric, arm, &[*block]));
        median(values.collect()).unwrap_or(f64::NAN)
    });
    let ratios = phases.map(|blocks| match arm {
        0 => None,
        _ => ratio(comparer, metric, (arm, spec.against), blocks),
    });
    let first = phases[1].first().copied().unwrap_or(0);
    PhaseChange {
        arm: spec.name.clone(),
        metric,
        block: first as u32,
        at_s: data.usable(first, arm).map_or(0.0, |trial| clock.seconds(trial)),
        before,
        after,
        p,
        evidence: evidence(run, data, arm, phases),
        ratios,
    }
}

/// Returns the ratio of two arms over some blocks, with its interval; `None` if there are too few blocks for the
/// confidence.
fn ratio(
    comparer: &mut Comparer<'_>,
    metric: Metric,
    (arm, against): (usize, usize),
    blocks: &[usize],
) -> Option<(f64, (f64, f64))> {
    let Comparer { data, values, tests, .. } = comparer;
    let ratios: Vec<f64> = blocks
        .iter()
        .filter(|block| data.usable(**block, against).is_some())
        .map(|block| {
            let [value, base] = [arm, against].map(|arm| values.value(metric, arm, &[*block]));
            (value / base).ln()
        })
        .filter(|ratio| ratio.is_finite())
        .collect();
    let interval = tests.interval(&ratios, data.study.objective.confidence)?;
    let enough = interval.confidence >= data.study.objective.confidence;
    enough.then_some((hodges_lehmann(&ratios)?.exp(), (interval.low.exp(), interval.high.exp())))
}

/// Returns other differences before and after a change.
fn evidence(
    run: &Run,
    data: &LoadData<'_>,
    arm: usize,
    phases: [&[usize]; 2],
) -> Vec<PhaseEvidence> {
    let trials = phases.map(|blocks| -> Vec<&TrialRecord> {
        blocks.iter().filter_map(|block| data.usable(*block, arm)).collect()
    });
    let mut differences = Vec::new();
    if let [Some(before), Some(after)] = trials.each_ref().map(|trials| typical_time_wait(trials))
        && before.max(after) >= LEAST_TIME_WAIT
        && before.abs_diff(after) * 5 > before.max(after)
    {
        let local_ports = count_local_ports(run, &data.study.arms[arm].name);
        differences.push(PhaseEvidence::TimeWait { before, after, local_ports });
    }
    let [before, after] = per_request(&trials, |slice| slice.origin_connects);
    if differs(before, after) {
        differences.push(PhaseEvidence::OriginConnections { before, after });
    }
    let [before, after] = per_request(&trials, |slice| slice.reconnects);
    if differs(before, after) {
        differences.push(PhaseEvidence::Reconnections { before, after });
    }
    differences
}

/// Returns a count of both phases, divided by the number of requests.
fn per_request(phases: &[Vec<&TrialRecord>; 2], count: fn(&SliceRecord) -> u64) -> [f64; 2] {
    phases.each_ref().map(|trials| {
        let requests = sum(trials.iter().copied(), |slice| slice.completed_whole);
        sum(trials.iter().copied(), count) / requests.max(1.0)
    })
}

/// Returns true if a number per request differs by more than a tenth.
fn differs(before: f64, after: f64) -> bool {
    (before - after).abs() > 0.1 * before.max(after).max(0.01)
}

fn typical_time_wait(trials: &[&TrialRecord]) -> Option<u64> {
    let counts =
        trials.iter().flat_map(|trial| &trial.slices).filter_map(most).map(|count| count as f64);
    median(counts.collect()).map(|count| count as u64)
}

/// Returns the larger number of connections in TIME_WAIT at the edges of a slice.
fn most(slice: &SliceRecord) -> Option<u64> {
    [slice.sockets, slice.sockets_after]
        .into_iter()
        .flatten()
        .map(|SocketCounts { time_wait, .. }| time_wait)
        .max()
}

/// Returns the number of ports that an arm's namespace has for its own connections; `None` if it is not known.
fn count_local_ports(run: &Run, arm: &str) -> Option<u64> {
    let range = run
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Proxy(proxy) if proxy.arm == arm => Some(proxy),
            _ => None,
        })
        .filter_map(|proxy| proxy.effective.get("net.ipv4.ip_local_port_range"))
        .next_back()?;
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(high.checked_sub(low)? + 1)
}

/// Returns the arm with the most connections in TIME_WAIT, if the load was too short for them to expire.
pub(crate) fn fresh(data: &LoadData<'_>) -> Option<FreshArms> {
    let lasted_s = span(data);
    let arms = (0..data.study.arms.len()).filter_map(|arm| {
        let most = data.usable_of(arm).flat_map(|trial| &trial.slices).filter_map(most).max()?;
        (most >= LEAST_TIME_WAIT).then_some((most, arm))
    });
    let (time_wait, arm) = arms.max().filter(|_| lasted_s < TIME_WAIT_S)?;
    Some(FreshArms { lasted_s, arm: data.study.arms[arm].name.clone(), time_wait })
}

/// Returns the time from the first slice to the last, seconds.
fn span(data: &LoadData<'_>) -> f64 {
    let judged = data.blocks.iter().flatten().flatten();
    let slices = judged.flat_map(|judged| &judged.trial.slices);
    let begin = slices.clone().map(|slice| slice.start_ns).min();
    let end = slices.map(|slice| slice.start_ns + slice.measured_ns).max();
    (end.unwrap_or(0) - begin.unwrap_or(0)) as f64 / 1e9
}
