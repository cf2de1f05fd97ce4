//! Proposer of `weir run`: all arms under each load of the study, in its order; loads that differ only in their rate
//! share a trial. A pilot chooses the slice, then the blocks are spread over a few instances of the proxies.

use std::collections::VecDeque;
use std::time::Duration;

use weir_model::flow::ArrivalsSpec;
use weir_model::record::{LoadEndRecord, Phase, PilotRecord, Record, Residue};
use weir_model::study::{LoadSpec, Study, Until};
use weir_stats::SplitMix64;

use crate::budget::{self, are_alike};
use crate::cell::{Cell, Outcome, Rates, Renewal, Shared};
use crate::history::History;
use crate::pilot;
use crate::proposer::MeasureError;
use crate::proposer::{Proposer, Step};
use crate::timeline::Timeline;
use crate::until::TakeLook;
use crate::{Announcement, arrivals};

mod early;

/// A fixed plan, or one that ends as soon as everything is decided.
pub struct Plan {
    study: Study,
    session: u32,
    /// Unfinished loads, grouped by the trials that they share; the first group is measured now.
    groups: VecDeque<Vec<LoadSpec>>,
    /// Queued steps, which come before anything else.
    steps: VecDeque<Step>,
    stage: Stage,
    /// Rates at which the pilot of the current load found the generator late, requests per second.
    late_rates: Vec<f64>,
    /// Evaluates the results at a look.
    take_look: TakeLook,
    /// True if this session has measured something of the current load; its proxies are then renewed.
    is_begun: bool,
    /// True if arms are measured one after the other, so that a pilot could observe no residue of another arm.
    is_in_turn: bool,
    /// True if the budget is used up.
    is_late: bool,
    /// Working time of the run when a look was taken, and the time that the look took; the report evaluates once more.
    looked: (Option<Duration>, Duration),
}

/// State of the plan for the first of its groups.
enum Stage {
    /// Nothing is proposed yet.
    Fresh,
    /// A pilot was proposed, with these measurements as its result.
    Pilot(pilot::Observed),
    /// The cells were proposed, with these numbers of blocks planned for each load.
    Measured(Vec<u32>),
}

impl Plan {
    /// Creates the plan for all loads of a study.
    pub fn new(study: &Study, session: u32, take_look: TakeLook) -> Plan {
        Plan {
            study: study.clone(),
            session,
            groups: budget::group_loads(study).into(),
            steps: VecDeque::from([Step::Arms((0..study.arms.len()).collect())]),
            stage: Stage::Fresh,
            late_rates: Vec::new(),
            take_look,
            is_begun: false,
            is_in_turn: false,
            is_late: false,
            looked: (None, Duration::ZERO),
        }
    }

    /// Changes the plan for arms that are measured one after the other: each block is a cell by itself.
    pub fn in_turn(mut self) -> Plan {
        self.is_in_turn = true;
        self.study.blocks.instances = u32::MAX;
        self
    }

    /// Queues the next steps for the loads of a trial.
    fn think(&mut self, loads: &[LoadSpec], history: &History) {
        let load = &loads[0];
        if history.pilots.contains_key(&load.name) {
            return self.after_pilot(&[loads.to_vec()], history);
        }
        if let Some(slice) = self.study.blocks.slice {
            return self.choose(loads, history, slice, Vec::new());
        }
        if let Some(alike) = self.alike(load, history) {
            let slice = Duration::from_nanos(alike.wanted_ns.unwrap_or(alike.slice_ns));
            let residues = alike.residues.clone();
            return self.choose(loads, history, slice, residues);
        }
        match std::mem::replace(&mut self.stage, Stage::Fresh) {
            Stage::Pilot(found) if found.is_late && self.can_fall(load) => {
                self.late_rates.extend(self.rate(load, history));
                self.try_load(load, history);
            }
            Stage::Pilot(found) if !found.residues.is_empty() => {
                let discard = self.study.blocks.discard;
                let least = pilot::least_slice(self.lowest_rate(load, history), discard);
                let slice = pilot::choose(&found.residues, discard, least);
                self.choose(loads, history, slice, found.residues);
            }
            _ => self.try_load(load, history),
        }
    }

    /// Queues a pilot.
    fn try_load(&mut self, load: &LoadSpec, history: &History) {
        self.stage = Stage::Pilot(pilot::Observed::default());
        let begun = Announcement::PilotBegun { load: load.name.clone() };
        let cell = self.pilot_cell(load, history);
        self.steps.push_back(Step::Tell(begun));
        self.steps.push_back(Step::Measure(Box::new(cell)));
    }

    /// Returns true if the load may be tried at a lower rate.
    fn can_fall(&self, load: &LoadSpec) -> bool {
        matches!(load.arrivals, ArrivalsSpec::UpToShareOfSlowest(_))
            && self.late_rates.len() < pilot::MOST_FALLS
    }

    /// Queues the next steps for the loads that an arm has in one turn.
    fn think_of_turn(&mut self, history: &History) {
        let groups = self.groups.make_contiguous();
        let together = groups[..budget::in_one_turn(&self.study, groups)].to_vec();
        match together.iter().find(|loads| !history.pilots.contains_key(&loads[0].name)) {
            Some(loads) => {
                let slice = self
                    .study
                    .blocks
                    .slice
                    .unwrap_or_else(|| budget::slice_in_turn(&self.study, loads));
                self.choose(loads, history, slice, Vec::new());
            }
            None => self.after_pilot(&together, history),
        }
    }

    /// Adds to `turn` the next cells that an arm has in the same turn, as far as there is time.
    pub fn fill(&mut self, turn: &mut Vec<Cell>, history: &History) {
        while let Some(Step::Measure(next)) = self.steps.front() {
            let is_new = turn.iter().all(|cell| cell.load.name != next.load.name);
            turn.push(Cell::clone(next));
            if !is_new || self.is_too_late(turn, history) {
                turn.pop();
                return;
            }
            self.steps.pop_front();
        }
    }

    /// Returns the pilot of a load that differs from this one only in its rate.
    fn alike<'h>(&self, load: &LoadSpec, history: &'h History) -> Option<&'h PilotRecord> {
        let mut alike = self.study.loads.iter().filter(|other| are_alike(other, load));
        alike.find_map(|other| history.pilots.get(&other.name))
    }

    /// Queues the record of the chosen slice. A slice chosen by a pilot is limited so that the loads keep their blocks,
    /// because they must end when planned.
    fn choose(
        &mut self,
        loads: &[LoadSpec],
        history: &History,
        wanted: Duration,
        residues: Vec<Residue>,
    ) {
        let was_tried = self.study.blocks.slice.is_none() && !self.is_in_turn;
        let longest = loads
            .iter()
            .map(|load| budget::longest_slice(&self.study, load))
            .min()
            .filter(|_| was_tried)
            .unwrap_or(wanted);
        let slice = wanted.min(longest.max(pilot::OF_PILOT));
        for (place, load) in loads.iter().enumerate() {
            let pilot = PilotRecord {
                load: load.name.clone(),
                slice_ns: slice.as_nanos() as u64,
                wanted_ns: (slice < wanted).then_some(wanted.as_nanos() as u64),
                rate: self.rate(load, history),
                late_rates: self.late_rates.clone(),
                residues: residues.clone(),
            };
            let is_told = was_tried && place == 0;
            let announcement = is_told.then(|| Step::Tell(Announcement::PilotEnded(pilot.clone())));
            self.steps.push_back(Step::Record(Box::new(Record::Pilot(pilot))));
            self.steps.extend(announcement);
        }
        self.late_rates.clear();
    }

    /// Proposes the cells that earlier sessions have left of loads, of which each group shares its trials; ends the
    /// loads when these are measured. Several groups have their trials in turn.
    fn after_pilot(&mut self, together: &[Vec<LoadSpec>], history: &History) {
        let first = &together[0][0];
        if self.study.until == Until::Decided {
            let slice = budget::choose_slice(&self.study, history, first);
            return self.until_decided(first, slice, history);
        }
        let names: Vec<String> = together.iter().flatten().map(|load| load.name.clone()).collect();
        if let Stage::Measured(planned) = std::mem::replace(&mut self.stage, Stage::Fresh) {
            self.steps.push_back(Step::Tell(Announcement::TrialEnded { loads: names.clone() }));
            self.steps.extend(names.into_iter().zip(planned).map(|(load, planned)| {
                let blocks = if self.is_late { history.whole_blocks(&load) } else { planned };
                Step::Record(Box::new(Record::LoadEnd(LoadEndRecord { blocks, load })))
            }));
            self.groups.drain(..together.len());
            return;
        }
        let (mut planned, mut of_groups) = (Vec::new(), Vec::new());
        for loads in together {
            let slice = budget::choose_slice(&self.study, history, &loads[0]);
            let (blocks, cells) = self.parts(loads, slice, history);
            planned.extend(blocks);
            of_groups.push(cells.into_iter());
        }
        // A part of each group, and then the next of each.
        let longest = of_groups.iter().map(ExactSizeIterator::len).max();
        let mut cells = Vec::new();
        for _ in 0..longest.unwrap_or(0) {
            cells.extend(of_groups.iter_mut().filter_map(Iterator::next));
        }
        self.stage = Stage::Measured(planned);
        if cells.is_empty() {
            return;
        }
        let is_single = together.concat().len() == 1;
        let rate = Some(first).filter(|_| is_single);
        self.steps.push_back(Step::Tell(Announcement::TrialBegun {
            loads: names,
            blocks: cells.iter().map(|cell| cell.blocks).sum(),
            length: cells.iter().map(|cell| Timeline::of(cell).length()).sum(),
            rate: rate.and_then(|load| self.rate(load, history)),
            looks: Vec::new(),
        }));
        self.steps.extend(cells.into_iter().map(|cell| Step::Measure(Box::new(cell))));
    }

    /// Returns the planned number of blocks of each load that shares a trial, and the cells that earlier sessions have
    /// left.
    fn parts(
        &self,
        loads: &[LoadSpec],
        slice: Duration,
        history: &History,
    ) -> (Vec<u32>, Vec<Cell>) {
        let planned: Vec<u32> =
            loads.iter().map(|load| budget::count_blocks(&self.study, load, slice)).collect();
        let remaining: Vec<u32> = loads
            .iter()
            .zip(&planned)
            .map(|(load, planned)| planned.saturating_sub(history.whole_blocks(&load.name)))
            .collect();
        let parts = budget::parts_of(&remaining, self.study.blocks.instances);
        let cells = parts
            .into_iter()
            .enumerate()
            .map(|(part, blocks)| Cell {
                planned: planned.iter().sum(),
                renew: match part {
                    0 => Renewal::Nothing,
                    _ => Renewal::Instance,
                },
                ..self.part(loads, slice, blocks, history)
            })
            .collect();
        (planned, cells)
    }

    /// Builds the cell that is measured with one instance of each proxy. `blocks` has for each block the index of its
    /// load, and the number of the load's earlier blocks in this session.
    fn part(
        &self,
        loads: &[LoadSpec],
        slice: Duration,
        mut blocks: Vec<(usize, u32)>,
        history: &History,
    ) -> Cell {
        for (load, number) in &mut blocks {
            *number += history.next_block(&loads[*load].name);
        }
        let first_block = blocks.first().map_or(0, |(_, number)| *number);
        // Each session and part has an order of its own, and the same again for the same seed.
        let seed =
            self.study.blocks.seed ^ (u64::from(self.session) << 32) ^ u64::from(first_block);
        let cell = Cell {
            blocks: blocks.len() as u32,
            first_block,
            seed,
            ..self.cell(&loads[0], slice, self.rate(&loads[0], history))
        };
        if loads.len() == 1 {
            return cell;
        }
        let mut rng = SplitMix64::new(!seed);
        for round in blocks.chunk_by_mut(|(load, _), (next, _)| load < next) {
            rng.shuffle(round);
        }
        let rates = loads
            .iter()
            .map(|load| (load.name.clone(), self.rate(load, history).unwrap_or_default()));
        let shared = Shared { loads: rates.collect(), blocks };
        Cell { first_block: 0, rates: Rates::Shared(shared), ..cell }
    }

    /// Makes a cell of all arms under a load.
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
            renew: Renewal::Nothing,
            seed: study.blocks.seed,
        }
    }

    /// Makes the cell of a pilot: all arms for a moment, at the highest rate among the pilot's loads.
    fn pilot_cell(&self, load: &LoadSpec, history: &History) -> Cell {
        let rate = self.alike_rates(load, history).max_by(f64::total_cmp);
        Cell {
            blocks: pilot::blocks(&self.study, load),
            phase: Phase::Pilot,
            ..self.cell(load, pilot::OF_PILOT, rate)
        }
    }

    /// Returns the rates of all loads that differ from this one only in their rate, requests per second.
    fn alike_rates(&self, load: &LoadSpec, history: &History) -> impl Iterator<Item = f64> {
        self.study
            .loads
            .iter()
            .filter(|other| are_alike(other, load))
            .filter_map(|other| self.rate(other, history))
    }

    /// Returns the lowest rate of the loads for which a slice is chosen; `None` for a closed loop.
    fn lowest_rate(&self, load: &LoadSpec, history: &History) -> Option<f64> {
        self.alike_rates(load, history).min_by(f64::total_cmp)
    }

    /// Returns the rate of an open loop; `None` for a closed one.
    fn rate(&self, load: &LoadSpec, history: &History) -> Option<f64> {
        if let Some(known) = history.pilots.get(&load.name) {
            return known.rate;
        }
        let first = self.study.loads.iter().find(|load| !load.is_open());
        let slowest = first.and_then(|first| history.slowest(&first.name));
        // A trace that cannot be read any more is an error where it is read to be sent.
        let rate = arrivals::rate(load, &self.study.blocks, slowest).ok()??;
        if matches!(load.arrivals, ArrivalsSpec::UpToShareOfSlowest(_)) {
            let falls = self.late_rates.len() as i32;
            return Some((rate * pilot::FALL.powi(falls)).round().max(1.0));
        }
        Some(rate)
    }
}

impl Proposer for Plan {
    fn next(&mut self, history: &History) -> Step {
        if let (Some(at), _) = self.looked {
            self.looked = (None, history.passed.saturating_sub(at));
        }
        loop {
            if let Some(step) = self.steps.pop_front() {
                match step {
                    Step::Measure(cell)
                        if self.is_too_late(std::slice::from_ref(&*cell), history) =>
                    {
                        self.drop_late(&cell, history);
                    }
                    step => return step,
                }
                continue;
            }
            if self.is_late && !self.is_under_way(history) {
                return Step::Done;
            }
            match self.groups.front().cloned() {
                Some(_) if self.is_in_turn => self.think_of_turn(history),
                Some(loads) => self.think(&loads, history),
                None => return Step::Done,
            }
        }
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError> {
        // A slice that is chosen by the figures of a dead proxy would be chosen in vain.
        outcome.end.checked()?;
        if let Stage::Pilot(observed) = &mut self.stage {
            *observed = pilot::Observed::in_blocks(&outcome.blocks);
        }
        Ok(())
    }
}
