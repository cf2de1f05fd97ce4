//! Loads that are measured until everything is decided: the numbers of blocks after which they are evaluated (looks),
//! the error level of each look, and estimates of the remaining time.
//!
//! The numbers of blocks are fixed before a load begins, and an arm that is decided leaves its part of the error
//! unused, so the results of other arms change nothing for the arms that go on.

use std::time::Duration;

use weir_model::record::LookRecord;
use weir_model::study::{LoadSpec, Study};
use weir_stats::{critical_values, least_replicates, level_of};

use crate::budget;
use crate::history::History;
use crate::proposer::MeasureError;

/// Evaluates a look: fills in the decisions, the arms that go on, and the expected number of blocks.
pub type TakeLook = Box<dyn Fn(&LoadSpec, LookRecord) -> Result<LookRecord, MeasureError>>;

/// Ratio of the blocks at a look to those at the look before. It is larger if there would be more than [`MOST_LOOKS`].
const GROWTH: f64 = 1.35;
/// Maximum number of looks.
const MOST_LOOKS: u32 = 10;
/// Number of replicates that the first look has beyond the least that could show a difference in a study with one look.
/// Each of them halves the smallest p, and the first look has between a fifth and a tenth of the level.
const BEYOND_LEAST: u32 = 3;
/// Number of blocks with one instance of the proxies. It is small because the number of instances determines how well
/// differences between instances are known.
const OF_INSTANCE: u32 = 2;

/// Returns the number of comparisons that share the error of a load's looks: those under all loads of a matrix, because
/// each of them ends by itself.
fn count_family(study: &Study, load: &LoadSpec) -> usize {
    study.questions().len() * weir_analysis::cells(study, load)
}

/// Returns the number of blocks at the first look at a load.
pub(crate) fn first(study: &Study) -> u32 {
    let most = study
        .loads
        .iter()
        .map(|load| count_family(study, load))
        .max()
        .unwrap_or(study.questions().len());
    let least = least_replicates(most, study.objective.confidence) as u32;
    study.blocks.at_least.max(least + BEYOND_LEAST)
}

/// Returns the numbers of blocks after which a load with at most `blocks` blocks is evaluated.
pub fn planned(study: &Study, blocks: u32) -> Vec<u32> {
    let (first, last) = (f64::from(first(study)), f64::from(blocks));
    let growth = (last / first).powf(1.0 / f64::from(MOST_LOOKS - 1)).max(GROWTH);
    let mut planned = Vec::new();
    let mut next = first;
    // A look shortly before the last would cost it more than it gains.
    while next * growth.sqrt() < last {
        planned.push((next / 2.0).round() as u32 * OF_INSTANCE);
        next *= growth;
    }
    planned.push(blocks);
    planned
}

/// Returns the remaining blocks of each instance of the proxies before each look, for a load with `whole` complete
/// blocks.
pub(crate) fn parts(study: &Study, planned: &[u32], whole: u32) -> Vec<Vec<u32>> {
    let mut begun = whole;
    let stages = planned.iter().filter(|end| **end > whole).map(|end| {
        let blocks = end - begun;
        let instances = study.blocks.instances.min(blocks.div_ceil(OF_INSTANCE));
        begun = *end;
        let parts = budget::parts_of(&[blocks], instances);
        parts.iter().map(|part| part.len() as u32).collect()
    });
    stages.collect()
}

/// Makes the record of a look to be taken now, with its error level.
pub(crate) fn look(
    study: &Study,
    load: &LoadSpec,
    history: &History,
    planned: &[u32],
    is_last: bool,
) -> LookRecord {
    let looks = history.looks(&load.name);
    let blocks = history.whole_blocks(&load.name);
    let mut looked: Vec<u32> = looks.iter().map(|look| look.blocks).collect();
    looked.push(blocks);
    let most = planned.last().copied().unwrap_or(blocks);
    let later = planned.iter().copied().filter(|end| *end > blocks);
    let all: Vec<u32> = looked.iter().copied().chain(later).collect();
    let family = count_family(study, load).max(1) as u32;
    let spending = Spending { most, family, error: 1.0 - study.objective.confidence };
    let (confidence, own_level) = spending.levels(&looked, is_last);
    LookRecord {
        load: load.name.clone(),
        look: looked.len() as u32,
        planned: planned.to_vec(),
        blocks,
        next_block: history.next_block(&load.name),
        is_last,
        family,
        confidence,
        level: own_level,
        at_end: spending.levels(&all, true),
        ..LookRecord::default()
    }
}

/// Spending of the error probability on looks.
struct Spending {
    /// Number of blocks at the last possible look.
    most: u32,
    /// Number of comparisons that share the error.
    family: u32,
    error: f64,
}

impl Spending {
    /// Returns the confidence and the level of the last of these looks.
    fn levels(&self, looks: &[u32], is_last: bool) -> (f64, f64) {
        let level = self.level(looks, is_last, self.error);
        let shared = match self.family {
            1 => level,
            family => self.level(looks, is_last, self.error / f64::from(family)),
        };
        (1.0 - level, shared)
    }

    fn level(&self, looks: &[u32], is_last: bool, error: f64) -> f64 {
        let critical = critical_values(looks, self.most, is_last, error);
        level_of(critical.last().copied().unwrap_or(f64::INFINITY))
    }
}

/// Estimates the time until a load has `up_to` blocks, if the arms that were open after a look take turns.
pub(crate) fn takes(
    study: &Study,
    load: &LoadSpec,
    history: &History,
    look: &LookRecord,
    up_to: u32,
) -> Duration {
    if look.is_done() {
        return Duration::ZERO;
    }
    let slice = budget::choose_slice(study, history, load);
    let ends = look.planned.iter().copied().filter(|end| *end <= up_to);
    let arms = look.open.len() as u32;
    parts(study, &ends.collect::<Vec<u32>>(), look.blocks)
        .iter()
        .flatten()
        .map(|blocks| budget::length(study, load, (slice, *blocks), arms) + budget::RENEWAL * arms)
        .sum()
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::study::ArmRole;

    use super::*;

    fn study(changes: usize) -> Study {
        let mut arms = vec![fixture::arm("stock", ArmRole::Baseline, &[])];
        arms.extend(
            (0..changes).map(|number| fixture::arm(&format!("c{number}"), ArmRole::Change, &[])),
        );
        fixture::study(arms)
    }

    #[test]
    fn looks_are_few_and_the_first_can_claim_something() {
        for (changes, blocks, wanted) in [
            (1, 12, &[12][..]),
            (1, 13, &[13]),
            (1, 40, &[12, 16, 22, 30, 40]),
            (1, 100, &[12, 16, 22, 30, 40, 54, 72, 100]),
            (28, 40, &[14, 18, 26, 40]),
        ] {
            let looks = planned(&study(changes), blocks);
            assert_eq!(looks, wanted, "{changes} {blocks}");
        }
        assert_eq!(planned(&study(1), 100_000).len(), MOST_LOOKS as usize);
    }

    fn part_counts(whole: u32) -> Vec<usize> {
        parts(&study(1), &[12, 18, 40], whole).iter().map(Vec::len).collect()
    }

    #[test]
    fn instances_are_new_for_every_two_blocks_as_far_as_there_are_to_be_so_many() {
        assert_eq!(part_counts(0), [6, 3, 8]);
        assert_eq!(parts(&study(1), &[12, 18, 40], 0)[1], [2, 2, 2]);
        assert_eq!(part_counts(15), [2, 8], "what a session that was stopped has left");
        assert_eq!(part_counts(40), Vec::<usize>::new());
    }
}
