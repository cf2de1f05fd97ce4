//! The proposer of `weir run`: all arms under each load of the study, in its order. A pilot chooses the slice,
//! then the load's blocks are spread over a few instances of the proxies.

use std::collections::VecDeque;
use std::time::Duration;

use weir_model::flow::ArrivalsSpec;
use weir_model::record::{LoadEndRecord, Phase, PilotRecord, Record, Residue};
use weir_model::study::{LoadSpec, Study};

use crate::cell::{Cell, CellEnd, Outcome, Rates};
use crate::history::History;
use crate::pilot;
use crate::proposer::{Proposer, Step};
use crate::timeline::Timeline;
use crate::{Event, LabError, arrivals, preflight};

/// A fixed plan.
pub(crate) struct Plan {
    study: Study,
    session: u32,
    /// Loads that are not done with, the first of which it is the turn of.
    loads: VecDeque<LoadSpec>,
    /// What was thought out already and is to be done before anything else.
    steps: VecDeque<Step>,
    stage: Stage,
}

/// Where the plan stands with the first of its loads.
enum Stage {
    /// At the begin.
    Fresh,
    /// A pilot was proposed, and has come to this.
    Pilot(Vec<Residue>),
    /// Its cells have been proposed.
    Measured { planned: u32 },
}

impl Plan {
    /// All loads of a study.
    pub(crate) fn new(study: &Study, session: u32) -> Plan {
        Plan {
            study: study.clone(),
            session,
            loads: study.loads.iter().cloned().collect(),
            steps: VecDeque::from([Step::Arms((0..study.arms.len()).collect())]),
            stage: Stage::Fresh,
        }
    }

    /// Thinks out the next steps for a load.
    fn think(&mut self, load: &LoadSpec, history: &History) {
        if let Some(pilot) = history.pilots.get(&load.name) {
            return self.after_pilot(load, pilot, history);
        }
        let rate = self.rate(load, history);
        if let Some(slice) = self.study.blocks.slice {
            return self.choose(load, slice, (rate, Vec::new()));
        }
        if let Some(alike) = self.alike(load, history) {
            let (slice, residues) = (Duration::from_nanos(alike.slice_ns), alike.residues.clone());
            return self.choose(load, slice, (rate, residues));
        }
        match std::mem::replace(&mut self.stage, Stage::Fresh) {
            Stage::Pilot(residues) if !residues.is_empty() => {
                let slice = pilot::choose(&residues, self.study.blocks.discard);
                self.choose(load, slice, (rate, residues));
            }
            _ => {
                self.stage = Stage::Pilot(Vec::new());
                let begun = Event::PilotBegun {
                    load: load.name.clone(),
                };
                let cell = self.pilot_cell(load, history);
                self.steps.push_back(Step::Tell(begun));
                self.steps.push_back(Step::Measure(Box::new(cell)));
            }
        }
    }

    /// The pilot of a load that differs from this one in nothing but its rate.
    fn alike<'h>(&self, load: &LoadSpec, history: &'h History) -> Option<&'h PilotRecord> {
        let mut others = self
            .study
            .loads
            .iter()
            .filter(|other| are_alike(other, load));
        others.find_map(|other| history.pilots.get(&other.name))
    }

    /// Writes the choice of the slice down.
    fn choose(&mut self, load: &LoadSpec, slice: Duration, (rate, residues): Chosen) {
        let pilot = PilotRecord {
            load: load.name.clone(),
            slice_ns: slice.as_nanos() as u64,
            rate,
            residues,
        };
        let was_tried = self.study.blocks.slice.is_none();
        let told = was_tried.then(|| Step::Tell(Event::PilotEnded(pilot.clone())));
        self.steps
            .push_back(Step::Record(Box::new(Record::Pilot(pilot))));
        self.steps.extend(told);
    }

    /// Proposes what earlier sessions have left of a load; ends it when that is measured.
    fn after_pilot(&mut self, load: &LoadSpec, pilot: &PilotRecord, history: &History) {
        if let Stage::Measured { planned } = self.stage {
            let end = LoadEndRecord {
                load: load.name.clone(),
                blocks: planned,
            };
            let ended = Event::TrialEnded {
                load: load.name.clone(),
            };
            self.steps.push_back(Step::Tell(ended));
            self.steps
                .push_back(Step::Record(Box::new(Record::LoadEnd(end))));
            self.loads.pop_front();
            self.stage = Stage::Fresh;
            return;
        }
        let slice = Duration::from_nanos(pilot.slice_ns);
        let planned = preflight::blocks(&self.study, load, slice);
        let left = planned.saturating_sub(history.whole_blocks(&load.name));
        self.stage = Stage::Measured { planned };
        if left == 0 {
            return;
        }
        let first = history.next_block(&load.name);
        let cell = |blocks, first_block| Cell {
            blocks,
            first_block,
            planned,
            renew: first_block > first,
            // Each session and part has an order of its own, and the same again for the same seed.
            seed: self.study.blocks.seed ^ (u64::from(self.session) << 32) ^ u64::from(first_block),
            ..self.cell(load, slice, pilot.rate)
        };
        let mut next = first;
        let cells: Vec<Cell> = parts(left, self.study.blocks.instances)
            .map(|blocks| {
                let cell = cell(blocks, next);
                next += blocks;
                cell
            })
            .collect();
        self.steps.push_back(Step::Tell(Event::TrialBegun {
            load: load.name.clone(),
            blocks: left,
            length: cells.iter().map(|cell| Timeline::of(cell).length()).sum(),
            rate: pilot.rate,
        }));
        let cells = cells.into_iter();
        self.steps
            .extend(cells.map(|cell| Step::Measure(Box::new(cell))));
    }

    /// All arms under a load.
    fn cell(&self, load: &LoadSpec, slice: Duration, rate: Option<f64>) -> Cell {
        let study = &self.study;
        Cell {
            arms: (0..study.arms.len()).collect(),
            load: load.clone(),
            rates: rate.map_or(Rates::Closed, Rates::Same),
            blocks: 0,
            first_block: 0,
            planned: 0,
            slice,
            discard: study.blocks.discard,
            phase: Phase::Measurement,
            renew: false,
            seed: study.blocks.seed,
        }
    }

    /// All arms for a moment, at the highest rate among the loads that the pilot is for.
    fn pilot_cell(&self, load: &LoadSpec, history: &History) -> Cell {
        let loads = self
            .study
            .loads
            .iter()
            .filter(|other| are_alike(other, load));
        let rates = loads.filter_map(|other| self.rate(other, history));
        let rate = rates.max_by(f64::total_cmp);
        Cell {
            blocks: pilot::blocks(&self.study, load),
            phase: Phase::Pilot,
            ..self.cell(load, pilot::OF_PILOT, rate)
        }
    }

    /// Rate of the open loop; `None` for a closed one.
    fn rate(&self, load: &LoadSpec, history: &History) -> Option<f64> {
        let closed = |load: &&LoadSpec| !load.is_open();
        let first = self.study.loads.iter().find(closed);
        let slowest = first.and_then(|first| history.slowest(&first.name));
        // A trace that cannot be read any more is an error where it is read to be sent.
        arrivals::rate(load, &self.study.blocks, slowest).ok()?
    }
}

impl Proposer for Plan {
    fn next(&mut self, history: &History) -> Step {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return step;
            }
            match self.loads.front().cloned() {
                Some(load) => self.think(&load, history),
                None => return Step::Done,
            }
        }
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), LabError> {
        if let CellEnd::Broken(error) = outcome.end {
            // A slice that is chosen by the figures of a dead proxy would be chosen in vain.
            return Err(*error);
        }
        if let Stage::Pilot(residues) = &mut self.stage {
            *residues = pilot::residues(&outcome.blocks);
        }
        Ok(())
    }
}

/// Rate and residues that go with the choice of a slice.
type Chosen = (Option<f64>, Vec<Residue>);

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

/// `blocks` in as many parts of nearly the same size as there are instances.
pub(crate) fn parts(blocks: u32, instances: u32) -> impl Iterator<Item = u32> {
    let count = instances.clamp(1, blocks.max(1));
    (0..count).map(move |part| blocks / count + u32::from(part < blocks % count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_spread_evenly_over_instances() {
        let split = |blocks, instances| parts(blocks, instances).collect::<Vec<_>>();
        assert_eq!(split(93, 4), [24, 23, 23, 23]);
        assert_eq!(split(12, 1), [12]);
        assert_eq!(
            split(2, 4),
            [1, 1],
            "an instance without a block is not started"
        );
    }
}
