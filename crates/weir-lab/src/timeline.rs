//! Blocks as slices of one continuous trial: who has the load when.

use std::time::Duration;

use weir_load::Slice;
use weir_model::record::Phase;
use weir_stats::{SplitMix64, block_order};

use crate::budget::repeats;
use crate::cell::{Cell, Rates, StepBlock, Steps};

/// Each arm is loaded once, unmeasured, for about this long before the first block: connections
/// are warm, caches filled, processes scheduled.
const WARM_UP: Duration = Duration::from_millis(250);
/// Where that is more than this share of its measured slices it is less,
const WARM_UP_SHARE: f64 = 0.05;
/// but as long as this: some requests on each of a few dozen connections.
const SHORTEST_WARM_UP: Duration = Duration::from_millis(50);
/// The least that an arm rests before its counters are read for the last time.
const SHORTEST_REST: Duration = Duration::from_millis(10);

/// What a trial of so many blocks has around them: how long each arm is loaded before the first, and how long the
/// last one's arm rests before its counters are read for the last time, as long as what is not measured of a slice.
/// Where what is due repeats with the slices both are whole ones: bursts then come in the same places of all. An arm that
/// runs alone is new, whatever its blocks, so it has all of the warm-up.
pub(crate) fn around(
    slice: Duration,
    blocks: u32,
    discard: f64,
    (repeats, phase): (bool, Phase),
) -> (Duration, Duration) {
    let share = (slice * 2 * blocks).mul_f64(WARM_UP_SHARE);
    let warm_up = match phase.is_alone() {
        true => WARM_UP,
        false => share.clamp(SHORTEST_WARM_UP, WARM_UP),
    };
    let whole = warm_up.as_secs_f64() / slice.as_secs_f64().max(1e-9);
    match repeats {
        true => (slice * (whole.ceil() as u32).max(1), slice),
        // A study that discards nothing has said nothing of what stays behind.
        false if discard > 0.0 => (
            warm_up,
            slice.mul_f64(discard).max(SHORTEST_REST).min(slice),
        ),
        false => (warm_up, slice),
    }
}

/// What one slice is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The arm that has the load.
    pub(crate) arm: usize,
    /// The block it counts for; `None` before the first and after the last.
    pub(crate) block: Option<u32>,
    /// Whether it is the arm's first or second in the block: 0 or 1.
    pub(crate) turn: usize,
}

impl Turn {
    /// One that counts for no block.
    fn unmeasured(arm: usize) -> Turn {
        Turn {
            arm,
            block: None,
            turn: 0,
        }
    }
}

/// The slices of a trial and what each is for.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    pub(crate) slices: Vec<Slice>,
    pub(crate) turns: Vec<Turn>,
    /// For each slice the next one of the same arm, or the number of slices.
    pub(crate) next_of_arm: Vec<usize>,
    pub(crate) arms: usize,
    /// Whether each slice has a length of its own ([`Rates::Steps`]).
    pub(crate) is_stepped: bool,
}

impl Timeline {
    /// The blocks of a cell: every arm twice in a block, in a random order and its mirror image. The first
    /// part of each slice is not measured. Arms are places in [`Cell::arms`].
    pub(crate) fn of(cell: &Cell) -> Timeline {
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
        let (warm_up, rest) = around(
            cell.slice,
            blocks,
            cell.discard,
            (repeats(&cell.load), cell.phase),
        );
        let length = |place: usize| match place {
            place if place < arms => warm_up,
            place if place + 1 == turns.len() => rest,
            _ => cell.slice,
        };
        let lead = cell.slice.mul_f64(cell.unmeasured());
        let slices = slices(&turns, length, |_| lead);
        let next_of_arm = next_of_arm(&turns, arms);
        Timeline {
            slices,
            turns,
            next_of_arm,
            arms,
            is_stepped: false,
        }
    }

    /// Blocks of their own lengths, in which each arm comes once.
    fn of_steps(cell: &Cell, steps: &Steps) -> Timeline {
        let (arms, first) = (cell.arms.len(), cell.first_block);
        let mut rng = SplitMix64::new(cell.seed);
        let mut turns: Vec<Turn> = (0..arms).map(Turn::unmeasured).collect();
        for block in first..first + steps.blocks.len() as u32 {
            let order = order_after(turns.last().map(|turn| turn.arm), arms, &mut rng);
            turns.extend(order.into_iter().take(arms).map(|arm| Turn {
                block: Some(block),
                ..Turn::unmeasured(arm)
            }));
        }
        let last = turns.last().map_or(0, |turn| turn.arm);
        turns.push(Turn::unmeasured((last + 1) % arms));
        let block = |place: usize| {
            let turn: &Turn = turns.get(place)?;
            steps.blocks.get((turn.block? - first) as usize)
        };
        let length = |place: usize| match block(place) {
            Some(block) => block.slice(),
            None if place == 0 => (steps.rest + steps.warm_up).max(SHORTEST_REST),
            None if place < arms => steps.warm_up.max(SHORTEST_REST),
            None => SHORTEST_REST,
        };
        let lead = |place: usize| block(place).map_or(Duration::ZERO, StepBlock::lead);
        let slices = slices(&turns, length, lead);
        let next_of_arm = next_of_arm(&turns, arms);
        Timeline {
            slices,
            turns,
            next_of_arm,
            arms,
            is_stepped: true,
        }
    }

    /// How long it lasts.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_nanos(self.slices.last().map_or(0, |slice| slice.end))
    }
}

/// A block's order whose first arm is not the one that had the load before: an arm's counters are
/// read at the begin of its slices, and exact only when it rested. Of two arms that would leave no choice, and an
/// order that is always the same may beat with something else; there what a counter lags behind goes to
/// the same arm's next block.
fn order_after(before: Option<usize>, arms: usize, rng: &mut SplitMix64) -> Vec<usize> {
    loop {
        let order = block_order(arms, rng);
        if arms <= 2 || order.first().copied() != before {
            return order;
        }
    }
}

/// The turns as slices in time, without gaps, each as long as its place says; the first part of those in blocks, `lead`
/// of the place, is not measured.
fn slices(
    turns: &[Turn],
    length: impl Fn(usize) -> Duration,
    lead: impl Fn(usize) -> Duration,
) -> Vec<Slice> {
    let mut start = 0;
    let one = |(place, turn): (usize, &Turn)| {
        let end = start + length(place).as_nanos() as u64;
        let measure_from = match turn.block {
            Some(_) => start + lead(place).as_nanos() as u64,
            None => end,
        };
        let slice = Slice {
            arm: turn.arm,
            start,
            measure_from,
            end,
        };
        start = end;
        slice
    };
    turns.iter().enumerate().map(one).collect()
}

fn next_of_arm(turns: &[Turn], arms: usize) -> Vec<usize> {
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
                let mut seen = vec![0; arms];
                let turns = timeline
                    .turns
                    .iter()
                    .filter(|turn| turn.block == Some(block));
                turns.for_each(|turn| seen[turn.arm] += 1);
                assert_eq!(seen, vec![2; arms]);
            }
            let alike =
                |pair: &&[Turn]| pair[0].block != pair[1].block && pair[0].arm == pair[1].arm;
            let repeated = timeline.turns[arms..].windows(2).filter(alike).count();
            match arms {
                2 => assert!(
                    (3..=17).contains(&repeated),
                    "the order of two is left to chance"
                ),
                _ => assert_eq!(repeated, 0),
            }
            assert!(
                timeline
                    .slices
                    .windows(2)
                    .all(|pair| pair[0].end == pair[1].start)
            );
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
