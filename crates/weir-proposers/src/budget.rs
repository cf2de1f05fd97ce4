//! Estimates how long a run takes, and decides which loads share a trial.

use std::time::Duration;

use weir_model::bursts::Bursts;
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::record::{LookRecord, Phase};
use weir_model::study::{LoadSpec, Study, Until};
use weir_stats::least_replicates;

use crate::capacity;
use crate::history::History;
use crate::pilot;
use crate::timeline::around;
use crate::until;

/// Slice length assumed for a study without one.
const PLANNED_SLICE: Duration = Duration::from_millis(100);

/// Time assumed until an arm's settings are in force, as long as it has not been measured.
pub const SWITCH: Duration = Duration::from_secs(3);
/// Minimum working time of an arm in one turn, as a multiple of [`SWITCH`], if the study has enough loads.
const TURN: u32 = 4;

/// Time that a continuous trial takes beside its slices: counters are read, threads started, answers waited for.
const PER_TRIAL: Duration = Duration::from_millis(12);
/// Time that a continuous trial takes for each connection that it opens.
const PER_CONNECTION: Duration = Duration::from_micros(30);
/// Share of a budget that is planned with, since estimates may be too low.
pub const KEPT_FREE: f64 = 0.95;
/// Time that a run needs after its last block to end processes, put settings back and write the report.
pub const ENDING: Duration = Duration::from_secs(2);
/// Time that a run needs before its proxies start, to look at its network and its hosts.
pub const LOOK: Duration = Duration::from_millis(1500);
/// Time that the report takes for the records of each arm and block.
const REPORTED: Duration = Duration::from_micros(300);

/// Groups loads by the trials that they are measured in, in the study's order: cells of a matrix that differ only in
/// their rate share one. Loads that are measured until everything is decided share none, since different arms leave
/// each of them.
pub fn group_loads(study: &Study) -> Vec<Vec<LoadSpec>> {
    if study.until == Until::Decided {
        return study.loads.iter().map(|load| vec![load.clone()]).collect();
    }
    let mut groups: Vec<Vec<LoadSpec>> = Vec::new();
    for load in &study.loads {
        match groups.iter_mut().find(|group| share(&group[0], load)) {
            Some(group) => group.push(load.clone()),
            None => groups.push(vec![load.clone()]),
        }
    }
    groups
}

/// Returns true if two loads are cells of one matrix that differ only in their rate. Bursts never share, since they are
/// fitted to one rate.
fn share(one: &LoadSpec, other: &LoadSpec) -> bool {
    matrix_of_rates(one).is_some()
        && matrix_of_rates(one) == matrix_of_rates(other)
        && Bursts::of(one).is_none()
        && are_alike(one, other)
}

/// Returns the name of the matrix that a load belongs to, if the matrix has an axis of rates.
fn matrix_of_rates(load: &LoadSpec) -> Option<&str> {
    load.cell.as_ref().filter(|cell| cell.rate.is_some()).map(|cell| &*cell.matrix)
}

/// Returns true if two loads differ only in their rate.
pub fn are_alike(one: &LoadSpec, other: &LoadSpec) -> bool {
    if one.is_open() != other.is_open() || one.main.changes() || other.main.changes() {
        return one.name == other.name;
    }
    without_rate(one) == without_rate(other)
}

fn without_rate(load: &LoadSpec) -> LoadSpec {
    let mut same = load.clone();
    same.name.clear();
    same.cell = None;
    same.duration = Duration::ZERO;
    same.main.arrivals = ArrivalsSpec::Closed;
    same
}

/// Returns true if the due requests depend on the position within a slice; then only whole slices may pass before the
/// first block.
pub fn repeats(load: &LoadSpec) -> bool {
    Bursts::of(load).is_some() || load.flows().any(FlowSpec::changes)
}

/// Returns the length of a block with slices of length `slice`: every arm has two.
fn block(study: &Study, slice: Duration) -> Duration {
    slice * 2 * study.arms.len() as u32
}

/// Returns the budget that a run of estimated length `takes` needs.
pub fn budget_of(takes: Duration) -> Duration {
    takes.div_f64(KEPT_FREE) + ENDING
}

/// Returns the smallest number of blocks with which every load of a study allows a verdict.
pub fn least_blocks(study: &Study) -> u32 {
    let family = study.questions().len();
    let least = least_replicates(family, study.objective.confidence) as u32;
    match study.until {
        Until::Planned => least.max(study.blocks.at_least),
        Until::Decided => until::first(study),
    }
}

/// Returns the number of blocks of one load with slices of length `slice`.
pub fn count_blocks(study: &Study, load: &LoadSpec, slice: Duration) -> u32 {
    let fit = load.duration.as_nanos() / block(study, slice).as_nanos().max(1);
    let least = match study.until {
        Until::Planned => study.blocks.at_least,
        Until::Decided => until::first(study),
    };
    (fit.min(u128::from(u32::MAX)) as u32).max(least)
}

/// Returns the longest slice with which a load reaches the study's minimum number of blocks in its own time.
pub fn longest_slice(study: &Study, load: &LoadSpec) -> Duration {
    load.duration / (2 * study.arms.len() as u32 * study.blocks.at_least).max(1)
}

/// Returns how long a load stays with an arm: half of a stretch's time, so that a load has as many rounds as the study
/// wants blocks at least.
pub fn slice_in_turn(study: &Study, loads: &[LoadSpec]) -> Duration {
    loads
        .iter()
        .map(|load| longest_slice(study, load))
        .min()
        .unwrap_or_default()
        .max(Duration::from_millis(10))
}

/// Returns how many of the first load groups an arm gets in one turn: enough that it works far longer than putting it
/// into force takes, and no more, because the arms that it is compared with wait meanwhile.
pub fn in_one_turn(study: &Study, groups: &[Vec<LoadSpec>]) -> usize {
    let mut turn = Duration::ZERO;
    let fits = groups.iter().take_while(|loads| {
        let is_short = turn < SWITCH * TURN;
        let slice = study.blocks.slice.unwrap_or_else(|| slice_in_turn(study, loads));
        turn += slice * 2 * loads.len() as u32;
        is_short
    });
    fits.count()
}

/// Returns the load groups that an arm gets in a turn, turn by turn.
fn groups_by_turn<'g>(
    study: &Study,
    mut groups: &'g [Vec<LoadSpec>],
) -> impl Iterator<Item = &'g [Vec<LoadSpec>]> {
    std::iter::from_fn(move || {
        let turn = groups.split_off(..in_one_turn(study, groups))?;
        (!turn.is_empty()).then_some(turn)
    })
}

/// Estimates the total time that a controller takes to put arms into force. If arms have one proxy in turn, the last
/// arm of a round stays for the next round; otherwise each instance runs each arm.
fn switching(study: &Study, groups: &[Vec<LoadSpec>], reported: u32) -> Duration {
    let arms = study.arms.len() as u32;
    let times = match (study.controlled(), study.is_in_turn()) {
        (None, _) => 0,
        (Some(_), true) => {
            let turns = groups_by_turn(study, groups);
            turns
                .map(|turn| {
                    let blocks = turn
                        .iter()
                        .flatten()
                        .map(|load| count_blocks(study, load, planned_slice(study, load)));
                    1 + blocks.max().unwrap_or(0) * (arms - 1)
                })
                .sum()
        }
        (Some(_), false) => parts_count(reported, study.blocks.instances) * arms,
    };
    SWITCH * times
}

/// Returns name, planned number of blocks and their total length for each load. The pilot may change the number, and
/// nearly never the length.
pub fn plan_of(study: &Study) -> Vec<(String, u32, Duration)> {
    let plan = study.loads.iter().map(|load| {
        let slice = planned_slice(study, load);
        let blocks = count_blocks(study, load, slice);
        (load.name.clone(), blocks, block(study, slice) * blocks)
    });
    plan.collect()
}

/// Time assumed for a new instance of an arm: as much as nginx takes.
pub const RENEWAL: Duration = Duration::from_millis(15);

/// Estimates the length of a run of a study, everything included except a check of its arms one at a time.
pub fn length_of(study: &Study) -> Duration {
    let arms = study.arms.len() as u32;
    Duration::from_millis(100 + 50 * u64::from(arms))
        + takes(study, &History::default(), RENEWAL * arms)
}

/// Estimates how long the rest of a run takes after earlier sessions, once all arms run. New instances of all arms take
/// `renewal`.
pub fn takes(study: &Study, history: &History, renewal: Duration) -> Duration {
    if !study.capacity.is_empty() {
        return capacity::takes(study);
    }
    let mut piloted: Vec<&LoadSpec> = Vec::new();
    let groups = group_loads(study);
    let mut total = Duration::ZERO;
    for group in &groups {
        let first = &group[0];
        let pilot = history.pilots.get(&first.name);
        let is_known = piloted.iter().any(|other| are_alike(other, first));
        piloted.push(first);
        let is_in_turn = study.is_in_turn();
        if pilot.is_none() && study.blocks.slice.is_none() && !is_known && !is_in_turn {
            let pilot = (pilot::OF_PILOT, pilot::blocks(study, first));
            total += length(study, first, pilot, study.arms.len() as u32);
        }
        let slice = choose_slice(study, history, first);
        if study.until == Until::Decided {
            let (parts, arms) = parts_until(study, history, first, slice);
            let measured = parts.iter().map(|part| length(study, first, (slice, *part), arms));
            total += measured.sum::<Duration>();
            total += renewal * arms / study.arms.len().max(1) as u32 * parts.len() as u32;
            continue;
        }
        let remaining = group.iter().map(|load| {
            count_blocks(study, load, slice).saturating_sub(history.whole_blocks(&load.name))
        });
        let parts = parts_of(&remaining.collect::<Vec<u32>>(), study.blocks.instances);
        let measured = parts.iter().map(|part| part.len() as u32);
        total += measured
            .map(|blocks| length(study, first, (slice, blocks), study.arms.len() as u32))
            .sum::<Duration>();
        total += renewal * (parts.len() as u32).saturating_sub(1);
    }
    let reported: u32 = plan_of(study).iter().map(|(_, blocks, _)| blocks).sum();
    total += switching(study, &groups, reported);
    total + REPORTED * reported * study.arms.len() as u32
}

/// Returns the slice length of a load: the pilot's, or the planned one before a pilot.
pub fn choose_slice(study: &Study, history: &History, load: &LoadSpec) -> Duration {
    let pilot = history.pilots.get(&load.name);
    pilot
        .map(|pilot| Duration::from_nanos(pilot.slice_ns))
        .unwrap_or_else(|| planned_slice(study, load))
}

/// Returns the planned slice length of a load that has had no pilot.
pub fn planned_slice(study: &Study, load: &LoadSpec) -> Duration {
    match study.blocks.slice {
        Some(slice) => slice,
        None if study.is_in_turn() => slice_in_turn(study, std::slice::from_ref(load)),
        None => PLANNED_SLICE,
    }
}

/// Returns the remaining blocks of a load that is measured until everything is decided, for each instance of the
/// proxies and as if all were needed, and the number of arms that go on.
fn parts_until(
    study: &Study,
    history: &History,
    load: &LoadSpec,
    slice: Duration,
) -> (Vec<u32>, u32) {
    let last = history.looks(&load.name).last();
    if last.is_some_and(LookRecord::is_done) {
        return (Vec::new(), 0);
    }
    let all = study.arms.len();
    let (planned, arms) = match last {
        Some(look) => (look.planned.clone(), look.open.len()),
        None => (until::planned(study, count_blocks(study, load, slice)), all),
    };
    let whole_blocks = history.whole_blocks(&load.name);
    let parts = until::parts(study, &planned, whole_blocks).concat();
    (parts, arms as u32)
}

/// Estimates the length of a continuous trial of `arms` arms with slices of length `slice` and `blocks` blocks.
pub fn length(
    study: &Study,
    load: &LoadSpec,
    (slice, blocks): (Duration, u32),
    arms: u32,
) -> Duration {
    let (discard, repeats) = (study.blocks.discard, repeats(load));
    let (warm_up, rest) = around(slice, blocks, discard, (repeats, Phase::Measurement));
    let connections = (load.asking() + load.held()) as u32 * arms;
    let opening_time = estimate_opening(load).max(PER_CONNECTION * connections);
    warm_up * arms + slice * 2 * arms * blocks + rest + PER_TRIAL + opening_time
}

/// Estimates the length of a continuous trial of one arm that runs alone.
pub fn alone(study: &Study, load: &LoadSpec, slice: Duration, blocks: u32) -> Duration {
    let (discard, repeats) = (study.blocks.discard, repeats(load));
    let (warm_up, rest) = around(slice, blocks, discard, (repeats, Phase::Alone));
    warm_up + slice * 2 * blocks + rest + PER_TRIAL + estimate_opening(load)
}

/// Returns the minimum time to open a load's connections, for all arms at the same time.
fn estimate_opening(load: &LoadSpec) -> Duration {
    load.flows()
        .filter_map(|flow| {
            let rate = flow.connect_rate?;
            Some(Duration::from_secs_f64(f64::from(flow.connections) / rate))
        })
        .max()
        .unwrap_or_default()
}

/// Divides the blocks of loads that share a trial among the instances of the proxies. Each block has the index of its
/// load, and the number of earlier blocks of that load. `left` has the number of blocks of each load. Each load is
/// spread evenly over the instances; within an instance, blocks come in rounds with at most one block of each load.
pub fn parts_of(left: &[u32], instances: u32) -> Vec<Vec<(usize, u32)>> {
    let most = left.iter().copied().max().unwrap_or(0);
    let mut parts: Vec<Vec<(usize, u32)>> = Vec::new();
    let mut before = vec![0; left.len()];
    let count = parts_count(most, instances);
    for part in (0..count).filter(|_| most > 0) {
        let part_blocks: Vec<u32> = left.iter().map(|left| part_of(*left, count, part)).collect();
        let rounds = part_blocks.iter().copied().max().unwrap_or(0);
        let blocks = (0..rounds).flat_map(|round| {
            let (part_blocks, before) = (&part_blocks, &before);
            (0..part_blocks.len())
                .filter(move |load| round < part_blocks[*load])
                .map(move |load| (load, before[load] + round))
        });
        parts.push(blocks.collect());
        before.iter_mut().zip(part_blocks).for_each(|(before, blocks)| *before += blocks);
    }
    parts
}

/// Returns the number of parts: one for each instance, but no empty ones.
fn parts_count(blocks: u32, instances: u32) -> u32 {
    instances.clamp(1, blocks.max(1))
}

/// Returns the number of blocks in one of `count` parts of nearly equal size.
fn part_of(blocks: u32, count: u32, part: u32) -> u32 {
    blocks / count + u32::from(part < blocks % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_lengths(blocks: u32, instances: u32) -> Vec<usize> {
        parts_of(&[blocks], instances).iter().map(Vec::len).collect()
    }

    #[test]
    fn blocks_are_spread_evenly_over_instances() {
        assert_eq!(part_lengths(93, 4), [24, 23, 23, 23]);
        assert_eq!(part_lengths(12, 1), [12]);
        assert_eq!(part_lengths(2, 4), [1, 1], "an instance without a block is not started");
    }

    #[test]
    fn each_load_is_spread_over_the_instances_and_comes_once_in_a_round() {
        let parts = parts_of(&[3, 1, 2], 2);
        assert_eq!(parts[0], [(0, 0), (1, 0), (2, 0), (0, 1)]);
        assert_eq!(parts[1], [(0, 2), (2, 1)]);
        assert_eq!(parts_of(&[0, 0], 4), Vec::<Vec<_>>::new());
    }
}
