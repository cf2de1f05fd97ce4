//! The proposer of `weir run`: all arms under each load of the study, in its order; loads that differ in their rate
//! alone share a trial. A pilot chooses the slice, then the blocks are spread over a few instances of the proxies.

use std::collections::VecDeque;
use std::time::Duration;

use weir_model::record::{
    DecisionRecord, LoadEndRecord, LookRecord, Phase, PilotRecord, Record, Residue,
};
use weir_model::study::{LoadSpec, Study, Until};
use weir_stats::SplitMix64;
use weir_stats::verdict::LEAST_REPLICATES;

use crate::budget::{self, are_alike};
use crate::cell::{ArmId, Cell, CellEnd, Outcome, Rates, Shared};
use crate::history::History;
use crate::pilot;
use crate::proposer::{Proposer, Step};
use crate::timeline::Timeline;
use crate::until::{self, TakeLook};
use crate::{Event, LabError, arrivals};

/// A fixed plan.
pub(crate) struct Plan {
    study: Study,
    session: u32,
    /// Loads that are not done with, by the trials that they share; it is the first ones' turn.
    groups: VecDeque<Vec<LoadSpec>>,
    /// What was thought out already and is to be done before anything else.
    steps: VecDeque<Step>,
    stage: Stage,
    /// Says what a look has found.
    take_look: TakeLook,
    /// Whether this session has measured something of the load whose turn it is: then its proxies are to be new.
    is_begun: bool,
    /// Whether the budget is used up.
    is_late: bool,
}

/// Where the plan stands with the first of its groups.
enum Stage {
    /// At the begin.
    Fresh,
    /// A pilot was proposed, and has come to this.
    Pilot(Vec<Residue>),
    /// Its cells have been proposed: so many blocks of each load are planned.
    Measured(Vec<u32>),
}

impl Plan {
    /// All loads of a study.
    pub(crate) fn new(study: &Study, session: u32, take_look: TakeLook) -> Plan {
        Plan {
            study: study.clone(),
            session,
            groups: budget::groups(study).into(),
            steps: VecDeque::from([Step::Arms((0..study.arms.len()).collect())]),
            stage: Stage::Fresh,
            take_look,
            is_begun: false,
            is_late: false,
        }
    }

    /// Thinks out the next steps for the loads of a trial.
    fn think(&mut self, loads: &[LoadSpec], history: &History) {
        let load = &loads[0];
        if let Some(pilot) = history.pilots.get(&load.name) {
            let slice = Duration::from_nanos(pilot.slice_ns);
            return self.after_pilot(loads, slice, history);
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
            Stage::Pilot(residues) if !residues.is_empty() => {
                let slice = pilot::choose(&residues, self.study.blocks.discard, load.is_open());
                self.choose(loads, history, slice, residues);
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

    /// Writes the choice of the slice down. One that was piloted for is no longer than leaves the loads their
    /// blocks: they end when they were said to.
    fn choose(
        &mut self,
        loads: &[LoadSpec],
        history: &History,
        wanted: Duration,
        residues: Vec<Residue>,
    ) {
        let was_tried = self.study.blocks.slice.is_none();
        let longest = loads
            .iter()
            .map(|load| budget::longest_slice(&self.study, load));
        let longest = longest.min().filter(|_| was_tried).unwrap_or(wanted);
        let slice = wanted.min(longest.max(pilot::OF_PILOT));
        for (place, load) in loads.iter().enumerate() {
            let pilot = PilotRecord {
                load: load.name.clone(),
                slice_ns: slice.as_nanos() as u64,
                wanted_ns: (slice < wanted).then_some(wanted.as_nanos() as u64),
                rate: self.rate(load, history),
                residues: residues.clone(),
            };
            let is_told = was_tried && place == 0;
            let told = is_told.then(|| Step::Tell(Event::PilotEnded(pilot.clone())));
            self.steps
                .push_back(Step::Record(Box::new(Record::Pilot(pilot))));
            self.steps.extend(told);
        }
    }

    /// The next steps for a load that is measured until everything is decided: blocks up to its next look, or the look.
    fn until_decided(&mut self, load: &LoadSpec, slice: Duration, history: &History) {
        let looks = history.looks(&load.name);
        let (whole, last) = (history.whole_blocks(&load.name), looks.last());
        let seen = last.map_or(0, |look| look.blocks);
        let planned = match last {
            Some(look) => look.planned.clone(),
            None => until::planned(&self.study, self.blocks_at_most(load, slice, history)),
        };
        let next = planned.iter().copied().find(|end| *end > seen);
        let Some(next) = next.filter(|_| !last.is_some_and(LookRecord::is_done)) else {
            return self.end_load(load, history);
        };
        let is_time_up = self.is_late && whole < next;
        match () {
            () if is_time_up && (whole == seen || whole < LEAST_REPLICATES as u32) => {
                self.end_load(load, history);
            }
            () if whole >= next || is_time_up => {
                let is_last = is_time_up || planned.last() == Some(&next);
                let look = until::look(&self.study, load, history, &planned, is_last);
                self.look(load, look, history);
            }
            () => self.stage_of(load, slice, &planned, history),
        }
    }

    /// Takes a look, and has the arms end that are decided.
    fn look(&mut self, load: &LoadSpec, look: LookRecord, history: &History) {
        let session = self.session;
        let look = match (self.take_look)(load, LookRecord { session, ..look }) {
            Ok(look) => look,
            Err(error) => return self.steps.push_back(Step::Fail(Box::new(error))),
        };
        let takes = |up_to| until::takes(&self.study, load, history, &look, up_to);
        let most = look.planned.last().copied().unwrap_or(look.blocks);
        let looked = Event::Looked {
            left: takes(look.expected),
            at_most: takes(most),
            look: Box::new(look.clone()),
        };
        self.steps
            .push_back(Step::Record(Box::new(Record::Look(Box::new(look.clone())))));
        self.steps.push_back(Step::Tell(looked));
        if !look.is_done() {
            self.steps.push_back(Step::Arms(self.arms_of(&look)));
        }
    }

    fn arms_of(&self, look: &LookRecord) -> Vec<ArmId> {
        let arms = 0..self.study.arms.len();
        arms.filter(|arm| look.open.contains(&self.study.arms[*arm].name))
            .collect()
    }

    /// Proposes what is left before a load's next look.
    fn stage_of(&mut self, load: &LoadSpec, slice: Duration, planned: &[u32], history: &History) {
        let loads = std::slice::from_ref(load);
        let last = history.looks(&load.name).last();
        let arms = last.map_or_else(
            || (0..self.study.arms.len()).collect(),
            |look| self.arms_of(look),
        );
        let whole = history.whole_blocks(&load.name);
        let parts = until::parts(&self.study, planned, whole);
        let most = planned.last().copied().unwrap_or(0);
        if !self.is_begun {
            let all = parts.iter().flatten();
            let count = arms.len() as u32;
            let length = |blocks: &u32| budget::length(&self.study, load, (slice, *blocks), count);
            self.steps.push_back(Step::Tell(Event::TrialBegun {
                loads: vec![load.name.clone()],
                blocks: most - whole,
                length: all.map(length).sum(),
                rate: self.rate(load, history),
                looks: planned.iter().copied().filter(|end| *end > whole).collect(),
            }));
        }
        let mut before = 0;
        for blocks in parts.into_iter().next().unwrap_or_default() {
            let own = (before..before + blocks)
                .map(|number| (0, number))
                .collect();
            before += blocks;
            let cell = Cell {
                arms: arms.clone(),
                planned: most,
                renew: std::mem::replace(&mut self.is_begun, true),
                ..self.part(loads, slice, own, history)
            };
            self.steps.push_back(Step::Measure(Box::new(cell)));
        }
    }

    /// The blocks of a load whose turn has come, if it needs all: where loads before it took less than their time, the
    /// others share what is left of the budget.
    fn blocks_at_most(&self, load: &LoadSpec, slice: Duration, history: &History) -> u32 {
        let blocks = budget::blocks(&self.study, load, slice);
        let Some(budget) = self.study.budget else {
            return blocks;
        };
        let renewal = budget::RENEWAL * self.study.arms.len() as u32;
        let needs = budget::takes(&self.study, history, renewal).as_secs_f64();
        let left = budget.saturating_sub(history.passed).as_secs_f64();
        let more = (budget::KEPT_FREE * left / needs.max(1e-9)).max(1.0);
        (f64::from(blocks) * more) as u32
    }

    fn end_load(&mut self, load: &LoadSpec, history: &History) {
        let end = LoadEndRecord {
            load: load.name.clone(),
            blocks: history.whole_blocks(&load.name),
        };
        self.steps.push_back(Step::Tell(Event::TrialEnded {
            loads: vec![load.name.clone()],
        }));
        self.steps
            .push_back(Step::Record(Box::new(Record::LoadEnd(end))));
        self.groups.pop_front();
        self.is_begun = false;
        if !self.groups.is_empty() && !self.is_late {
            let all = (0..self.study.arms.len()).collect();
            self.steps.push_back(Step::Arms(all));
        }
    }

    /// Drops what the budget has no time for. The rest of the run ends what was begun.
    fn drop_late(&mut self, history: &History) {
        self.is_late = true;
        let loads = self.groups.iter().flatten().map(|load| &*load.name);
        let left_out = loads.collect::<Vec<_>>().join(", ");
        self.steps.retain(|step| !matches!(step, Step::Measure(_)));
        let budget = self.study.budget.unwrap_or_default().as_secs_f64();
        let decision = DecisionRecord {
            session: self.session,
            load: String::new(),
            phase: Phase::Measurement,
            decision: "stop".to_owned(),
            because: format!(
                "{:.1} s of the budget of {budget:.1} s are used up",
                history.passed.as_secs_f64()
            ),
        };
        self.steps
            .push_front(Step::Tell(Event::TimeIsUp { left_out }));
        self.steps
            .push_front(Step::Record(Box::new(Record::Decision(decision))));
    }

    /// Whether there is something of the load whose turn it is that has yet to be ended.
    fn is_under_way(&self, history: &History) -> bool {
        let first = self.groups.front().and_then(|loads| loads.first());
        let has_blocks = first.is_some_and(|load| history.whole_blocks(&load.name) > 0);
        has_blocks
            && (self.study.until == Until::Decided || matches!(self.stage, Stage::Measured(_)))
    }

    /// Whether the budget has no time for a step any more.
    fn is_too_late(&self, step: &Step, history: &History) -> bool {
        let (Step::Measure(cell), Some(budget)) = (step, self.study.budget) else {
            return false;
        };
        let length = budget::length(
            &self.study,
            &cell.load,
            (cell.slice, cell.blocks),
            cell.arms.len() as u32,
        );
        let renewal = budget::RENEWAL * cell.arms.len() as u32;
        history.passed + length + renewal + budget::ENDING > budget
    }

    /// Proposes what earlier sessions have left of loads that share a trial; ends them when that is measured.
    fn after_pilot(&mut self, loads: &[LoadSpec], slice: Duration, history: &History) {
        if self.study.until == Until::Decided {
            return self.until_decided(&loads[0], slice, history);
        }
        let names = || loads.iter().map(|load| load.name.clone());
        if let Stage::Measured(planned) = std::mem::replace(&mut self.stage, Stage::Fresh) {
            let loads = names().collect();
            self.steps
                .push_back(Step::Tell(Event::TrialEnded { loads }));
            let whole = |load: &String, planned| match self.is_late {
                true => history.whole_blocks(load),
                false => planned,
            };
            let ends = names().zip(planned).map(|(load, planned)| LoadEndRecord {
                blocks: whole(&load, planned),
                load,
            });
            let ends = ends.map(|end| Step::Record(Box::new(Record::LoadEnd(end))));
            self.steps.extend(ends);
            self.groups.pop_front();
            return;
        }
        let blocks = |load| budget::blocks(&self.study, load, slice);
        let planned: Vec<u32> = loads.iter().map(blocks).collect();
        let left: Vec<u32> = loads
            .iter()
            .zip(&planned)
            .map(|(load, planned)| planned.saturating_sub(history.whole_blocks(&load.name)))
            .collect();
        let parts = budget::parts_of(&left, self.study.blocks.instances);
        let cells: Vec<Cell> = parts
            .into_iter()
            .enumerate()
            .map(|(part, blocks)| Cell {
                planned: planned.iter().sum(),
                renew: part > 0,
                ..self.part(loads, slice, blocks, history)
            })
            .collect();
        self.stage = Stage::Measured(planned);
        if cells.is_empty() {
            return;
        }
        let rate = loads
            .first()
            .filter(|_| loads.len() == 1)
            .and_then(|load| self.rate(load, history));
        self.steps.push_back(Step::Tell(Event::TrialBegun {
            loads: names().collect(),
            blocks: left.iter().sum(),
            length: cells.iter().map(|cell| Timeline::of(cell).length()).sum(),
            rate,
            looks: Vec::new(),
        }));
        let cells = cells.into_iter();
        self.steps
            .extend(cells.map(|cell| Step::Measure(Box::new(cell))));
    }

    /// What is measured with one instance of each proxy: for each block the place of its load, and how many blocks
    /// of that load came before in this session.
    fn part(
        &self,
        loads: &[LoadSpec],
        slice: Duration,
        mut blocks: Vec<(usize, u32)>,
        history: &History,
    ) -> Cell {
        let next = |load: usize| history.next_block(&loads[load].name);
        blocks
            .iter_mut()
            .for_each(|(load, number)| *number += next(*load));
        let first_block = blocks.first().map_or(0, |(_, number)| *number);
        // Each session and part has an order of its own, and the same again for the same seed.
        let seed =
            self.study.blocks.seed ^ (u64::from(self.session) << 32) ^ u64::from(first_block);
        let one = Cell {
            blocks: blocks.len() as u32,
            first_block,
            seed,
            ..self.cell(&loads[0], slice, self.rate(&loads[0], history))
        };
        if loads.len() == 1 {
            return one;
        }
        let mut rng = SplitMix64::new(!seed);
        for round in blocks.chunk_by_mut(|(one, _), (next, _)| one < next) {
            rng.shuffle(round);
        }
        let rate = |load: &LoadSpec| self.rate(load, history).unwrap_or_default();
        let shared = Shared {
            loads: loads
                .iter()
                .map(|load| (load.name.clone(), rate(load)))
                .collect(),
            blocks,
        };
        Cell {
            first_block: 0,
            rates: Rates::Shared(shared),
            ..one
        }
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
        if let Some(known) = history.pilots.get(&load.name) {
            return known.rate;
        }
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
                if self.is_too_late(&step, history) {
                    self.drop_late(history);
                    continue;
                }
                return step;
            }
            if self.is_late && !self.is_under_way(history) {
                return Step::Done;
            }
            match self.groups.front().cloned() {
                Some(loads) => self.think(&loads, history),
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
