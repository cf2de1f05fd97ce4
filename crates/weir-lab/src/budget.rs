//! How long a run takes, and which loads share a trial.

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

/// What a study without a slice is planned with.
const PLANNED_SLICE: Duration = Duration::from_millis(100);

/// What it takes until an arm's settings are in force, where nobody has seen it yet.
pub(crate) const SWITCH: Duration = Duration::from_secs(3);
/// How many times as long an arm in turn works, where the study has the loads for it.
const TURN: u32 = 4;

/// What a continuous trial takes beside its slices: counters are read, threads are started, answers waited for.
const PER_TRIAL: Duration = Duration::from_millis(12);
/// And for each connection that it opens.
const PER_CONNECTION: Duration = Duration::from_micros(30);
/// The share of a budget that is planned with: not everything takes what it is thought to take.
pub(crate) const KEPT_FREE: f64 = 0.95;
/// What a run needs after its last block: processes are ended, settings put back, and the report is written.
pub(crate) const ENDING: Duration = Duration::from_secs(2);
/// What a run needs before its proxies start: its network and its hosts are looked at.
pub const LOOK: Duration = Duration::from_millis(1500);
/// What becomes of a run's records in its report, for each arm and block.
const REPORTED: Duration = Duration::from_micros(300);

/// Loads by the trials that they are measured in, in the study's order: cells of a matrix that differ in nothing
/// but their rate share one. Loads that are measured until everything is decided do not: each has arms of its own that leave.
pub(crate) fn groups(study: &Study) -> Vec<Vec<LoadSpec>> {
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

/// Whether two loads are cells of one matrix that differ in nothing but their rate. Bursts are fitted to one rate.
fn share(one: &LoadSpec, other: &LoadSpec) -> bool {
    let matrix = |load: &LoadSpec| {
        let cell = load.cell.as_ref().filter(|cell| cell.rate.is_some());
        cell.map(|cell| cell.matrix.clone())
    };
    matrix(one).is_some()
        && matrix(one) == matrix(other)
        && Bursts::of(one).is_none()
        && are_alike(one, other)
}

/// Whether two loads differ in nothing but their rate.
pub(crate) fn are_alike(one: &LoadSpec, other: &LoadSpec) -> bool {
    if one.is_open() != other.is_open() || one.main.changes() || other.main.changes() {
        return one.name == other.name;
    }
    let without_rate = |load: &LoadSpec| {
        let mut same = load.clone();
        same.name.clear();
        same.cell = None;
        same.duration = Duration::ZERO;
        same.main.arrivals = ArrivalsSpec::Closed;
        same
    };
    without_rate(one) == without_rate(other)
}

/// Whether what is due depends on where in a slice one is: then whole slices are to pass before the first block.
pub fn repeats(load: &LoadSpec) -> bool {
    Bursts::of(load).is_some() || load.flows().any(FlowSpec::changes)
}

/// The time of a block when a slice lasts `slice`: every arm has two.
fn block(study: &Study, slice: Duration) -> Duration {
    slice * 2 * study.arms.len() as u32
}

/// The budget that a run needs which is thought to take so long.
pub fn budget_of(takes: Duration) -> Duration {
    takes.div_f64(KEPT_FREE) + ENDING
}

/// The fewest blocks with which every load of a study can claim anything.
pub fn least_blocks(study: &Study) -> u32 {
    let family = study.questions().len();
    let least = least_replicates(family, study.objective.confidence) as u32;
    match study.until {
        Until::Planned => least.max(study.blocks.at_least),
        Until::Decided => until::first(study),
    }
}

/// Blocks of one load when a slice lasts `slice`.
pub(crate) fn blocks(study: &Study, load: &LoadSpec, slice: Duration) -> u32 {
    let fit = load.duration.as_nanos() / block(study, slice).as_nanos().max(1);
    let least = match study.until {
        Until::Planned => study.blocks.at_least,
        Until::Decided => until::first(study),
    };
    (fit.min(u128::from(u32::MAX)) as u32).max(least)
}

/// The longest slice with which a load has the blocks that the study wants at least in its own time.
pub fn longest_slice(study: &Study, load: &LoadSpec) -> Duration {
    load.duration / (2 * study.arms.len() as u32 * study.blocks.at_least).max(1)
}

/// How long a load stays with an arm: half of what a stretch has, so that a load has as many rounds as the study wants
/// blocks at least.
pub(crate) fn slice_in_turn(study: &Study, loads: &[LoadSpec]) -> Duration {
    let each = loads.iter().map(|load| longest_slice(study, load));
    each.min()
        .unwrap_or_default()
        .max(Duration::from_millis(10))
}

/// How many of the first groups of loads an arm has in one turn: until it has worked far longer than putting it into force
/// takes, and no more, because the arms that it is compared with wait meanwhile.
pub(crate) fn in_one_turn(study: &Study, groups: &[Vec<LoadSpec>]) -> usize {
    let mut turn = Duration::ZERO;
    let fits = groups.iter().take_while(|loads| {
        let is_short = turn < SWITCH * TURN;
        let slice = study.blocks.slice;
        let slice = slice.unwrap_or_else(|| slice_in_turn(study, loads));
        turn += slice * 2 * loads.len() as u32;
        is_short
    });
    fits.count()
}

/// The groups of loads that an arm has in a turn, turn by turn.
fn groups_by_turn<'g>(
    study: &Study,
    mut groups: &'g [Vec<LoadSpec>],
) -> impl Iterator<Item = &'g [Vec<LoadSpec>]> {
    std::iter::from_fn(move || {
        let turn = groups.split_off(..in_one_turn(study, groups))?;
        (!turn.is_empty()).then_some(turn)
    })
}

/// What putting arms into force by a controller takes in all, about. Where they have one proxy in turn, the last arm of a
/// round stays for the next one; else each instance has each arm.
fn switching(study: &Study, groups: &[Vec<LoadSpec>], reported: u32) -> Duration {
    let arms = study.arms.len() as u32;
    let times = match (study.controlled(), study.is_in_turn()) {
        (None, _) => 0,
        (Some(_), true) => {
            let turns = groups_by_turn(study, groups);
            let rounds = |loads: &[Vec<LoadSpec>]| {
                let planned = |load| blocks(study, load, planned_slice(study, load));
                loads.iter().flatten().map(planned).max().unwrap_or(0)
            };
            turns.map(|turn| 1 + rounds(turn) * (arms - 1)).sum()
        }
        (Some(_), false) => parts_count(reported, study.blocks.instances) * arms,
    };
    SWITCH * times
}

/// How many blocks each load is planned to have, and how long they take; the pilot may change the number, and
/// nearly never the length.
pub fn plan_of(study: &Study) -> Vec<(String, u32, Duration)> {
    let plan = study.loads.iter().map(|load| {
        let slice = planned_slice(study, load);
        let blocks = blocks(study, load, slice);
        (load.name.clone(), blocks, block(study, slice) * blocks)
    });
    plan.collect()
}

/// What a new instance of an arm is taken to need: as much as nginx.
pub(crate) const RENEWAL: Duration = Duration::from_millis(15);

/// How long a run of a study takes, about, everything included but for a check of its arms one at a time.
pub fn length_of(study: &Study) -> Duration {
    let arms = study.arms.len() as u32;
    Duration::from_millis(100 + 50 * u64::from(arms))
        + takes(study, &History::default(), RENEWAL * arms)
}

/// How long everything takes that earlier sessions have left, once all arms run. New instances of all of them
/// take `renewal`.
pub(crate) fn takes(study: &Study, history: &History, renewal: Duration) -> Duration {
    if !study.capacity.is_empty() {
        return capacity::takes(study);
    }
    let mut piloted: Vec<&LoadSpec> = Vec::new();
    let groups = groups(study);
    let mut whole = Duration::ZERO;
    for group in &groups {
        let first = &group[0];
        let pilot = history.pilots.get(&first.name);
        let is_known = piloted.iter().any(|other| are_alike(other, first));
        piloted.push(first);
        let is_in_turn = study.is_in_turn();
        if pilot.is_none() && study.blocks.slice.is_none() && !is_known && !is_in_turn {
            let pilot = (pilot::OF_PILOT, pilot::blocks(study, first));
            whole += length(study, first, pilot, study.arms.len() as u32);
        }
        let slice = slice(study, history, first);
        if study.until == Until::Decided {
            let (parts, arms) = parts_until(study, history, first, slice);
            let measured = parts
                .iter()
                .map(|part| length(study, first, (slice, *part), arms));
            whole += measured.sum::<Duration>();
            whole += renewal * arms / study.arms.len().max(1) as u32 * parts.len() as u32;
            continue;
        }
        let left = group.iter().map(|load| {
            blocks(study, load, slice).saturating_sub(history.whole_blocks(&load.name))
        });
        let left: Vec<u32> = left.collect();
        let parts = parts_of(&left, study.blocks.instances);
        let measured = parts.iter().map(|part| part.len() as u32);
        whole += measured
            .map(|blocks| length(study, first, (slice, blocks), study.arms.len() as u32))
            .sum::<Duration>();
        whole += renewal * (parts.len() as u32).saturating_sub(1);
    }
    let reported: u32 = plan_of(study).iter().map(|(_, blocks, _)| blocks).sum();
    whole += switching(study, &groups, reported);
    whole + REPORTED * reported * study.arms.len() as u32
}

/// The slice of a load, as far as it is known.
pub(crate) fn slice(study: &Study, history: &History, load: &LoadSpec) -> Duration {
    let pilot = history.pilots.get(&load.name);
    let chosen = pilot.map(|pilot| Duration::from_nanos(pilot.slice_ns));
    chosen.unwrap_or_else(|| planned_slice(study, load))
}

/// The slice of a load that nothing has been tried of.
pub(crate) fn planned_slice(study: &Study, load: &LoadSpec) -> Duration {
    match study.blocks.slice {
        Some(slice) => slice,
        None if study.is_in_turn() => slice_in_turn(study, std::slice::from_ref(load)),
        None => PLANNED_SLICE,
    }
}

/// The blocks of each instance of the proxies that is left of a load which is measured until everything is decided, if it
/// needs all of them, and how many arms go on.
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
        None => (until::planned(study, blocks(study, load, slice)), all),
    };
    let whole = history.whole_blocks(&load.name);
    let parts = until::parts(study, &planned, whole).concat();
    (parts, arms as u32)
}

/// A continuous trial of so many arms: how long a slice lasts, and blocks.
pub(crate) fn length(
    study: &Study,
    load: &LoadSpec,
    (slice, blocks): (Duration, u32),
    arms: u32,
) -> Duration {
    let (discard, repeats) = (study.blocks.discard, repeats(load));
    let (warm_up, rest) = around(slice, blocks, discard, (repeats, Phase::Measurement));
    let connections = (load.asking() + load.held()) as u32 * arms;
    let opening = opening(load).max(PER_CONNECTION * connections);
    warm_up * arms + slice * 2 * arms * blocks + rest + PER_TRIAL + opening
}

/// A continuous trial of one arm that runs alone.
pub(crate) fn alone(study: &Study, load: &LoadSpec, slice: Duration, blocks: u32) -> Duration {
    let (discard, repeats) = (study.blocks.discard, repeats(load));
    let (warm_up, rest) = around(slice, blocks, discard, (repeats, Phase::Alone));
    warm_up + slice * 2 * blocks + rest + PER_TRIAL + opening(load)
}

/// The least that a load's connections take to open, of all arms at the same time.
fn opening(load: &LoadSpec) -> Duration {
    let paced = load.flows().filter_map(|flow| {
        let rate = flow.connect_rate?;
        Some(Duration::from_secs_f64(f64::from(flow.connections) / rate))
    });
    paced.max().unwrap_or_default()
}

/// The blocks of loads that share a trial, by the instances of the proxies that they are measured with: for each
/// block the place of its load, and how many blocks of that load came before. `left` has the blocks of each load.
/// Each is spread evenly over the instances; within one they come in rounds, in which a load has a block at most.
pub(crate) fn parts_of(left: &[u32], instances: u32) -> Vec<Vec<(usize, u32)>> {
    let most = left.iter().copied().max().unwrap_or(0);
    let mut parts: Vec<Vec<(usize, u32)>> = Vec::new();
    let mut before = vec![0; left.len()];
    let count = parts_count(most, instances);
    for part in (0..count).filter(|_| most > 0) {
        let own: Vec<u32> = left
            .iter()
            .map(|left| part_of(*left, count, part))
            .collect();
        let rounds = own.iter().copied().max().unwrap_or(0);
        let blocks = (0..rounds).flat_map(|round| {
            let (own, before) = (&own, &before);
            let loads = (0..own.len()).filter(move |load| round < own[*load]);
            loads.map(move |load| (load, before[load] + round))
        });
        parts.push(blocks.collect());
        before
            .iter_mut()
            .zip(own)
            .for_each(|(before, own)| *before += own);
    }
    parts
}

/// As many parts as there are instances, none of them empty.
fn parts_count(blocks: u32, instances: u32) -> u32 {
    instances.clamp(1, blocks.max(1))
}

/// The blocks of one of `count` parts of nearly the same size.
fn part_of(blocks: u32, count: u32, part: u32) -> u32 {
    blocks / count + u32::from(part < blocks % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_spread_evenly_over_instances() {
        let split = |blocks, instances| -> Vec<usize> {
            let parts = parts_of(&[blocks], instances);
            parts.iter().map(Vec::len).collect()
        };
        assert_eq!(split(93, 4), [24, 23, 23, 23]);
        assert_eq!(split(12, 1), [12]);
        assert_eq!(
            split(2, 4),
            [1, 1],
            "an instance without a block is not started"
        );
    }

    #[test]
    fn each_load_is_spread_over_the_instances_and_comes_once_in_a_round() {
        let parts = parts_of(&[3, 1, 2], 2);
        assert_eq!(parts[0], [(0, 0), (1, 0), (2, 0), (0, 1)]);
        assert_eq!(parts[1], [(0, 2), (2, 1)]);
        assert_eq!(parts_of(&[0, 0], 4), Vec::<Vec<_>>::new());
    }
}
