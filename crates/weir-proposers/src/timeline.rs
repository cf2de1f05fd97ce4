//! Division of a continuous trial into slices: which arm has the load when, and for which block.

use std::time::Duration;

use weir_load::Slice;
use weir_model::record::Phase;
use weir_stats::{SplitMix64, block_order};

use crate::budget::repeats;
use crate::cell::{Cell, Rates, StepBlock, Steps};

/// Time for which each arm is loaded once, unmeasured, before the first block: connections are warm, caches filled,
/// processes scheduled.
const WARM_UP: Duration = Duration::from_millis(250);
/// Maximum warm-up as a share of the arm's measured slices; a longer one is shortened to it.
const WARM_UP_SHARE: f64 = 0.05;
/// Minimum warm-up: enough for some requests on each of a few dozen connections.
const SHORTEST_WARM_UP: Duration = Duration::from_millis(50);
/// Minimum time that an arm rests before its counters are read for the last time.
const SHORTEST_REST: Duration = Duration::from_millis(10);

/// Returns the warm-up and the final rest of a trial of so many blocks. The warm-up is the time for which each arm is
/// loaded before the first block. The rest is the time before the last arm's counters are read for the last time, as
/// long as the unmeasured part of a slice. If the due requests repeat with the slices, both are whole slices, so that
/// bursts come at the same places of all. An arm that runs alone is new, whatever its blocks, so it has the full
/// warm-up.
pub(crate) fn around(
    slice: Duration,
    blocks: u32,
    discard: f64,
    (repeats, phase): (bool, Phase),
) -> (Duration, Duration) {
    let share = (slice * 2 * blocks).mul_f64(WARM_UP_SHARE);
    let warm_up = if phase.is_alone() { WARM_UP } else { share.clamp(SHORTEST_WARM_UP, WARM_UP) };
    if repeats {
        let slices = warm_up.as_secs_f64() / slice.as_secs_f64().max(1e-9);
        (slice * (slices.ceil() as u32).max(1), slice)
    } else if discard > 0.0 {
        (warm_up, slice.mul_f64(discard).max(SHORTEST_REST).min(slice))
    } else {
        // A study that discards nothing has said nothing of what stays behind.
        (warm_up, slice)
    }
}

/// Arm and block of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Index of the arm that has the load.
    pub arm: usize,
    /// Number of the block that the slice counts for; `None` before the first and after the last.
    pub block: Option<u32>,
    /// Index of the slice among the arm's slices in the block: 0 or 1.
    pub turn: usize,
}

impl Turn {
    /// Makes a turn that counts for no block.
    fn unmeasured(arm: usize) -> Turn {
        Turn { arm, block: None, turn: 0 }
    }
}

/// Slices of a trial, with arm and block of each.
#[derive(Debug, Clone)]
pub struct Timeline {
    pub slices: Vec<Slice>,
    pub turns: Vec<Turn>,
    /// For each slice, the index of the next slice of the same arm, or the number of slices if there is none.
    pub next_of_arm: Vec<usize>,
    pub arms: usize,
    /// True if each slice has a length of its own ([`Rates::Steps`]).
    pub is_stepped: bool,
}

impl Timeline {
    /// Divides the blocks of a cell into slices: each block has every arm twice, in a random order and its mirror
    /// image. The first part of each slice is not measured. Arms are indexes in [`Cell::arms`].
    pub fn of(cell: &Cell) -> Timeline {
        if let Rates::Steps(steps) = &cell.rates {
            return Timeline::of_steps(cell, steps);
        }
        let (arms, blocks, first) = (cell.arms.len(), cell.blocks, cell.first_block);
        let mut rng = SplitMix64::new(cell.seed);
        let mut turns: Vec<Turn> = (0..arms).map(Turn::unmeasured).collect();
        for block in first..first + blocks {
            let order = order_after(turns.last().map(|turn| turn.arm), arms, &mut rng);
            turns.extend(order.into_iter().enumerate().map(|(place, arm)| Turn {
                arm,
                block: Some(block),
                turn: place / arms,
            }));
        }
        // The last block's arms rest before the counters are read for the last time.
        let last = turns.last().map_or(0, |turn| turn.arm);
        turns.push(Turn::unmeasured((last + 1) % arms));
        let (warm_up, rest) =
            around(cell.slice, blocks, cell.discard, (repeats(&cell.load), cell.phase));
        let lead = cell.slice.mul_f64(cell.unmeasured());
        let slices = lay_out_slices(
            &turns,
            |place| match place {
                place if place < arms => warm_up,
                place if place + 1 == turns.len() => rest,
                _ => cell.slice,
            },
            |_| lead,
        );
        let next_of_arm = find_next_of_arm(&turns, arms);
        Timeline { slices, turns, next_of_arm, arms, is_stepped: false }
    }

    /// Divides blocks of their own lengths into slices; each arm comes once in a block.
    fn of_steps(cell: &Cell, steps: &Steps) -> Timeline {
        let (arms, first) = (cell.arms.len(), cell.first_block);
        let mut rng = SplitMix64::new(cell.seed);
        let mut turns: Vec<Turn> = (0..arms).map(Turn::unmeasured).collect();
        for block in first..first + steps.blocks.len() as u32 {
            let order = order_after(turns.last().map(|turn| turn.arm), arms, &mut rng);
            turns.extend(
                order
                    .into_iter()
                    .take(arms)
                    .map(|arm| Turn { block: Some(block), ..Turn::unmeasured(arm) }),
            );
        }
        let last = turns.last().map_or(0, |turn| turn.arm);
        turns.push(Turn::unmeasured((last + 1) % arms));
        let blocks: Vec<Option<&StepBlock>> =
            turns.iter().map(|turn| steps.blocks.get((turn.block? - first) as usize)).collect();
        let slices = lay_out_slices(
            &turns,
            |place| match blocks[place] {
                Some(block) => block.slice(),
                None if place == 0 => (steps.rest + steps.warm_up).max(SHORTEST_REST),
                None if place < arms => steps.warm_up.max(SHORTEST_REST),
                None => SHORTEST_REST,
            },
            |place| blocks[place].map_or(Duration::ZERO, StepBlock::lead),
        );
        let next_of_arm = find_next_of_arm(&turns, arms);
        Timeline { slices, turns, next_of_arm, arms, is_stepped: true }
    }

    /// Returns the length of the trial.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.slices.last().map_or(0, |slice| slice.end))
    }
}

/// Returns the order of a block such that its first arm is not the one that had the load before, because an arm's
/// counters are read at the start of its slices, and are exact only if it has rested. Two arms would have no choice,
/// and an order that is always the same may beat with something else; there the counts that come late go to the same
/// arm's next block.
fn order_after(before: Option<usize>, arms: usize, rng: &mut SplitMix64) -> Vec<usize> {
    loop {
        let order = block_order(arms, rng);
        if arms <= 2 || order.first().copied() != before {
            return order;
        }
    }
}

/// Lays out the turns as slices in time, without gaps, with the given lengths by index. In slices of blocks, the first
/// part of length `lead` is not measured.
fn lay_out_slices(
    turns: &[Turn],
    length: impl Fn(usize) -> Duration,
    lead: impl Fn(usize) -> Duration,
) -> Vec<Slice> {
    let mut start = 0;
    turns
        .iter()
        .enumerate()
        .map(|(place, turn)| {
            let end = start + length(place).as_nanos() as u64;
            let measure_from = match turn.block {
                Some(_) => start + lead(place).as_nanos() as u64,
                None => end,
            };
            let slice = Slice { arm: turn.arm, start, measure_from, end };
            start = end;
            slice
        })
        .collect()
}

fn find_next_of_arm(turns: &[Turn], arms: usize) -> Vec<usize> {
    let mut next = vec![turns.len(); arms];
    let mut places = vec![turns.len(); turns.len()];
    for (place, turn) in turns.iter().enumerate().rev() {
        places[place] = std::mem::replace(&mut next[turn.arm], place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    #[test]
    fn every_arm_comes_twice_in_a_block_and_rests_before_the_next() {
        for arms in 2..9 {
            let timeline = Timeline::of(&Cell {
                first_block: 3,
                ..cell(arms, 20, Duration::from_millis(100))
            });
            for block in 3..23 {
                let mut counts = vec![0; arms];
                timeline
                    .turns
                    .iter()
                    .filter(|turn| turn.block == Some(block))
                    .for_each(|turn| counts[turn.arm] += 1);
                assert_eq!(counts, vec![2; arms]);
            }
            let repeated = timeline.turns[arms..]
                .windows(2)
                .filter(|pair| pair[0].block != pair[1].block && pair[0].arm == pair[1].arm)
                .count();
            match arms {
                2 => assert!((3..=17).contains(&repeated), "the order of two is left to chance"),
                _ => assert_eq!(repeated, 0),
            }
            assert!(timeline.slices.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }

    #[test]
    fn the_next_slice_of_an_arm_is_found() {
        let timeline = Timeline::of(&cell(3, 2, Duration::from_millis(50)));
        for (place, &next) in timeline.next_of_arm.iter().enumerate() {
            let arm = timeline.turns[place].arm;
            let between = place + 1..next.min(timeline.turns.len());
            assert!(timeline.turns[between].iter().all(|turn| turn.arm != arm));
            assert!(timeline.turns.get(next).is_none_or(|turn| turn.arm == arm));
        }
    }
}
