//! Cells to measure and their outcomes: the two types through which proposers request measurements and get results.

use std::time::Duration;

use weir_model::record::{LoadBlocks, Phase, TrialRecord};
use weir_model::study::{BlockSpec, LoadSpec};

use crate::proposer::MeasureError;

/// Index of an arm in a run: the study's arms in the study's order, then arms that were added.
pub type ArmId = usize;

/// One measurement: a set of arms under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Arms that take turns, each once; at least one. Arms that do not run are started.
    pub arms: Vec<ArmId>,
    /// Load that is sent.
    pub load: LoadSpec,
    /// Rate of the load.
    pub rates: Rates,
    /// Maximum number of blocks; the stopping rule may end the cell sooner.
    pub blocks: u32,
    /// Number of the first block within the load.
    pub first_block: u32,
    /// Number of blocks that the load is to have in all its cells, for progress displays.
    pub planned: u32,
    /// Time that the load stays with an arm.
    pub slice: Duration,
    /// Unmeasured first part of each slice, as a share of the slice, 0..1; of a load with bursts, only whole periods of
    /// it.
    pub discard: f64,
    /// Purpose of the cell, as in the records.
    pub phase: Phase,
    /// Parts of the arms that are renewed before the cell.
    pub renew: Renewal,
    /// Seed of the order of the arms.
    pub seed: u64,
}

impl Cell {
    /// Returns the unmeasured first part of each slice, as a share of the slice.
    pub fn unmeasured(&self) -> f64 {
        self.load.discard(&BlockSpec {
            slice: Some(self.slice),
            discard: self.discard,
            ..BlockSpec::default()
        })
    }

    /// Returns the load to which the `place`-th block of this cell belongs, and the block's number within the load.
    pub fn block_of(&self, place: usize) -> (&str, u32) {
        let shared_block = match &self.rates {
            Rates::Shared(shared) => shared.blocks.get(place).and_then(|(load, number)| {
                let (name, _) = shared.loads.get(*load)?;
                Some((name.as_str(), *number))
            }),
            _ => None,
        };
        shared_block.unwrap_or((&self.load.name, self.first_block + place as u32))
    }

    /// Returns the names of all loads that the cell measures.
    pub fn loads(&self) -> Vec<&str> {
        match &self.rates {
            Rates::Shared(shared) => shared.loads.iter().map(|(name, _)| &**name).collect(),
            _ => vec![&self.load.name],
        }
    }

    /// Assigns the cell's blocks to loads: for each load, the number of its first block, and how many of the cell's
    /// first `whole` blocks belong to it.
    pub fn measured(&self, whole: usize) -> Vec<LoadBlocks> {
        let mut measured: Vec<LoadBlocks> = Vec::new();
        let planned = (0..self.blocks as usize).map(|place| (place, self.block_of(place)));
        for (place, (load, number)) in planned {
            let is_whole = u32::from(place < whole);
            match measured.iter_mut().find(|known| known.load == load) {
                Some(known) => known.blocks += is_whole,
                None => measured.push(LoadBlocks {
                    load: load.to_owned(),
                    first_block: number,
                    blocks: is_whole,
                }),
            }
        }
        measured
    }
}

/// Parts of the arms that are renewed before a cell, of arms that weir has started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Renewal {
    /// Nothing is renewed.
    #[default]
    Nothing,
    /// The proxies get new instances.
    Instance,
    /// The proxies get new instances, and new network namespaces if they have any: the kernel forgets connections that
    /// have ended.
    Network,
}

/// Rate of a cell's load.
#[derive(Debug, Clone, PartialEq)]
pub enum Rates {
    /// A closed loop.
    Closed,
    /// An open loop at one rate, requests per second, for every arm.
    Same(f64),
    /// An open loop with a rate for each block and arm, so that measurements that differ only in the rate can share one
    /// trial.
    Steps(Steps),
    /// An open loop for several loads that differ only in their rate: each block belongs to one of them.
    Shared(Shared),
}

/// Blocks with their own rates and lengths. An arm has one slice in each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Steps {
    /// Time before all blocks in which nothing is sent.
    pub rest: Duration,
    /// Time after `rest` in which each arm is loaded as in its first block, unmeasured.
    pub warm_up: Duration,
    /// The cell's blocks.
    pub blocks: Vec<StepBlock>,
}

/// A block of [`Steps`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepBlock {
    /// Requests per second of each arm, in the order of [`Cell::arms`].
    pub rates: Vec<f64>,
    /// Time in which nothing is sent when the load comes to an arm.
    pub pause: Duration,
    /// Unmeasured time after `pause`.
    pub settle: Duration,
    /// Measured time after `settle`.
    pub measure: Duration,
}

impl StepBlock {
    /// Returns the length of the unmeasured first part of each slice.
    pub fn lead(&self) -> Duration {
        self.pause + self.settle
    }

    /// Returns the length of each slice.
    pub fn slice(&self) -> Duration {
        self.lead() + self.measure
    }
}

/// Loads of a shared trial. [`Cell::load`] has what they have in common, and the name of the first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shared {
    /// Name and rate, requests per second, of each load.
    pub loads: Vec<(String, f64)>,
    /// For each block of the cell, the index of its load in `loads`, and its number within the load.
    pub blocks: Vec<(usize, u32)>,
}

impl Rates {
    /// Returns the requests per second of a slice, which is in the cell's `block`-th block and belongs to the arm at
    /// `place`. `None` in a closed loop, or if no rate is given.
    pub fn of(&self, block: usize, place: usize) -> Option<f64> {
        match self {
            Rates::Closed => None,
            Rates::Same(rate) => Some(*rate),
            Rates::Steps(steps) => steps.blocks.get(block)?.rates.get(place).copied(),
            Rates::Shared(shared) => {
                let (load, _) = shared.blocks.get(block).or(shared.blocks.last())?;
                shared.loads.get(*load).map(|(_, rate)| *rate)
            }
        }
    }
}

/// A block: one record for each arm, in the order of [`Cell::arms`].
pub type Block = Vec<TrialRecord>;

/// Result of a cell.
#[derive(Debug)]
pub struct Outcome {
    /// Complete and recorded blocks, in order.
    pub blocks: Vec<Block>,
    /// Reason why the cell has ended.
    pub end: CellEnd,
}

/// Reason why a cell has ended.
#[derive(Debug)]
pub enum CellEnd {
    /// All its blocks are measured.
    Whole,
    /// The stopping rule, which is consulted after each block, ended it.
    Decided,
    /// The user stopped the run.
    Interrupted,
    /// An arm no longer runs as it was started, or does not answer.
    Broken(MeasureError),
    /// No connection to any arm could be opened.
    Unreachable(MeasureError),
}

impl CellEnd {
    /// Checks that the run can go on as planned.
    ///
    /// # Errors
    /// The reason why it cannot: an arm is broken or unreachable.
    pub fn checked(self) -> Result<(), MeasureError> {
        match self {
            CellEnd::Broken(error) | CellEnd::Unreachable(error) => Err(error),
            CellEnd::Whole | CellEnd::Decided | CellEnd::Interrupted => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use weir_model::fixture;
    use weir_model::study::StudyArrivals;

    use super::*;

    /// Makes a closed loop over the first `arms` arms, with a fifth of each slice unmeasured.
    pub(crate) fn cell(arms: usize, blocks: u32, slice: Duration) -> Cell {
        Cell {
            arms: (0..arms).collect(),
            load: fixture::load("l", StudyArrivals::Closed),
            rates: Rates::Closed,
            blocks,
            first_block: 0,
            planned: blocks,
            slice,
            discard: 0.2,
            phase: Phase::Measurement,
            renew: Renewal::Nothing,
            seed: arms as u64,
        }
    }

    #[test]
    fn a_rate_belongs_to_a_block_and_an_arm() {
        let [first, second] = [[1.0, 3.0], [7.0, 9.0]]
            .map(|rates| StepBlock { rates: rates.into(), ..StepBlock::default() });
        let rates = Rates::Steps(Steps { blocks: vec![first, second], ..Steps::default() });
        assert_eq!(
            (rates.of(0, 0), rates.of(0, 1), rates.of(1, 1)),
            (Some(1.0), Some(3.0), Some(9.0))
        );
        assert_eq!((rates.of(2, 0), rates.of(0, 2)), (None, None));
        assert_eq!(Rates::Closed.of(0, 0), None);
        assert_eq!(Rates::Same(4.0).of(9, 9), Some(4.0));
    }
}
