//! What is measured, and what came of it: the two types that everybody who asks for figures speaks in.

use std::time::Duration;

use weir_model::record::{LoadBlocks, Phase, TrialRecord};
use weir_model::study::{BlockSpec, LoadSpec};

use crate::LabError;

/// A place among the arms of a run: those of its study in the study's order, then those that were added.
pub type ArmId = usize;

/// One thing to measure: a set of arms under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The arms that take turns, each once; at least one. Those that do not run are started.
    pub arms: Vec<ArmId>,
    /// What is sent.
    pub load: LoadSpec,
    /// How much of it.
    pub rates: Rates,
    /// Blocks at most; the stopping rule may end it sooner.
    pub blocks: u32,
    /// Number of the first block within the load.
    pub first_block: u32,
    /// Blocks that the load is to have in all its cells, for whoever shows how far it is.
    pub planned: u32,
    /// How long the load stays with an arm.
    pub slice: Duration,
    /// First part of each slice that is not to be measured, as a share of the slice, 0..1; of a load with
    /// bursts only whole periods of it.
    pub discard: f64,
    /// What it is for; it stands in the records.
    pub phase: Phase,
    /// What the arms get new before.
    pub renew: Renewal,
    /// Seed of the order of the arms.
    pub seed: u64,
}

impl Cell {
    /// First part of each slice that is not measured, as a share of the slice.
    pub(crate) fn unmeasured(&self) -> f64 {
        self.load.discard(&BlockSpec {
            slice: Some(self.slice),
            discard: self.discard,
            ..BlockSpec::default()
        })
    }

    /// The load that the `place`-th block of this cell is one of, and its number within the load.
    pub(crate) fn block_of(&self, place: usize) -> (&str, u32) {
        let own = match &self.rates {
            Rates::Shared(shared) => shared.blocks.get(place).and_then(|(load, number)| {
                let (name, _) = shared.loads.get(*load)?;
                Some((name.as_str(), *number))
            }),
            _ => None,
        };
        own.unwrap_or((&self.load.name, self.first_block + place as u32))
    }

    /// The names of all loads that it measures.
    pub(crate) fn loads(&self) -> Vec<&str> {
        match &self.rates {
            Rates::Shared(shared) => shared.loads.iter().map(|(name, _)| &**name).collect(),
            _ => vec![&self.load.name],
        }
    }

    /// Which of its blocks belong to each load: number of the first, and how many of the first `whole` that it
    /// has measured.
    pub(crate) fn measured(&self, whole: usize) -> Vec<LoadBlocks> {
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

/// What arms get new before a cell, as far as weir has started them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Renewal {
    /// Nothing.
    #[default]
    Nothing,
    /// Instances of their proxies.
    Instance,
    /// Besides that their network namespaces, where they have such: what the kernel remembered of connections that have
    /// ended is forgotten.
    Network,
}

/// How much load there is.
#[derive(Debug, Clone, PartialEq)]
pub enum Rates {
    /// A closed loop.
    Closed,
    /// An open loop at one rate, requests per second, whoever has the load.
    Same(f64),
    /// An open loop with a rate for each block and arm. What differs in rate alone can so share one trial.
    Steps(Steps),
    /// An open loop for several loads that differ in their rate alone: each block is one of theirs.
    Shared(Shared),
}

/// Blocks that have their own rates and lengths. An arm has one slice in each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Steps {
    /// How long nothing is sent before all of them.
    pub rest: Duration,
    /// How long each arm is loaded then as in its first block, not measured.
    pub warm_up: Duration,
    /// As many as the cell has.
    pub blocks: Vec<StepBlock>,
}

/// A block of [`Steps`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepBlock {
    /// Requests per second of each arm, in the order of [`Cell::arms`].
    pub rates: Vec<f64>,
    /// How long nothing is sent when the load comes to an arm.
    pub pause: Duration,
    /// How long it is not measured after that.
    pub settle: Duration,
    /// And then measured.
    pub measure: Duration,
}

impl StepBlock {
    /// Length of the first part of each slice, which is not measured.
    pub(crate) fn lead(&self) -> Duration {
        self.pause + self.settle
    }

    /// Length of each slice.
    pub(crate) fn slice(&self) -> Duration {
        self.lead() + self.measure
    }
}

/// The loads of a shared trial. [`Cell::load`] is what they have in common, and the name of it the first one's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shared {
    /// Name and rate, requests per second, of each load.
    pub loads: Vec<(String, f64)>,
    /// For each block of the cell the place of its load among these, and its number within the load.
    pub blocks: Vec<(usize, u32)>,
}

impl Rates {
    /// Requests per second of a slice: of the `block`-th block of the cell and the arm at a place. `None`: a closed loop,
    /// or nobody has said.
    pub(crate) fn of(&self, block: usize, place: usize) -> Option<f64> {
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

/// What came of a cell.
#[derive(Debug)]
pub struct Outcome {
    /// The blocks that are whole and recorded, in order.
    pub blocks: Vec<Block>,
    /// Why there are no more.
    pub end: CellEnd,
}

/// Why a cell has ended.
#[derive(Debug)]
pub enum CellEnd {
    /// It has all its blocks.
    Whole,
    /// Whoever was asked after each block had seen enough.
    Decided,
    /// The user stopped the run.
    Interrupted,
    /// An arm does not run any more as it was started, or does not answer.
    Broken(Box<LabError>),
    /// No connection to any arm could be opened.
    Unreachable(Box<LabError>),
}

impl CellEnd {
    /// Whether the run can go on as it was planned.
    ///
    /// # Errors
    /// It cannot, because of this.
    pub fn checked(self) -> Result<(), LabError> {
        match self {
            CellEnd::Broken(error) | CellEnd::Unreachable(error) => Err(*error),
            CellEnd::Whole | CellEnd::Decided | CellEnd::Interrupted => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use weir_model::fixture;
    use weir_model::study::StudyArrivals;

    use super::*;

    /// A closed loop over the first `arms` arms, a fifth of each slice not measured.
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
        let block = |rates: [f64; 2]| StepBlock {
            rates: rates.into(),
            ..StepBlock::default()
        };
        let rates = Rates::Steps(Steps {
            blocks: vec![block([1.0, 3.0]), block([7.0, 9.0])],
            ..Steps::default()
        });
        let of = |block, place| rates.of(block, place);
        assert_eq!(
            (of(0, 0), of(0, 1), of(1, 1)),
            (Some(1.0), Some(3.0), Some(9.0))
        );
        assert_eq!((of(2, 0), of(0, 2)), (None, None));
        assert_eq!(Rates::Closed.of(0, 0), None);
        assert_eq!(Rates::Same(4.0).of(9, 9), Some(4.0));
    }
}
