//! Proposer of a study that searches the highest rate each arm carries within an objective. Each arm has a search of
//! its own; their trials take turns, so that changes of the machine affect all arms. If one controller configures one
//! proxy, no two arms can run at the same time: each search runs to its end before the next arm has the proxy.
//!
//! A search depends only on the records. A resumed run therefore replays its records, and continues where it was.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::Duration;

use weir_model::record::{BracketRecord, Phase, Record, RunHeader, SearchStage};
use weir_model::study::ArmRole;
use weir_search::{Stage, Trial};

use crate::Announcement;
use crate::cell::{ArmId, Block, Cell, CellEnd, Outcome, Rates, Renewal, StepBlock, Steps};
use crate::history::History;
use crate::proposer::MeasureError;
use crate::proposer::{Proposer, Step};

mod answer;
mod arm;
mod closed;
mod seen;
pub(crate) mod time;

use arm::Searched;
use seen::Frame;
pub(crate) use time::takes;
pub use time::{at_most, claiming, least};

/// Closed loop before a search: the length of its slices, and its number of blocks of two slices each. These are enough
/// windows to show whether the speed drifts.
pub const CLOSED: (Duration, u32) = (Duration::from_millis(100), 15);
/// Searches of all arms, in the order of the study's arms.
pub struct Capacity {
    frame: Frame,
    arms: Vec<Searched>,
    /// True if arms use the one proxy in turn. `turn` is the arm whose turn it is, and `turn_begun` the run's working
    /// time when its turn began.
    is_in_turn: bool,
    turn: Option<ArmId>,
    turn_begun: Duration,
    asked: Option<ProposedCell>,
    /// Last proposed cell, if it is not recorded yet, and its number of blocks.
    untold: Option<(ProposedCell, u32)>,
    /// Working time of the run, according to the records.
    passed: Duration,
    steps: VecDeque<Step>,
    is_replayed: bool,
}

/// The last proposed cell.
struct ProposedCell {
    arms: Vec<ArmId>,
    stage: SearchStage,
    first_block: u32,
}

impl Capacity {
    /// Creates the searches of a run. `most` is the highest rate that the generator can send, requests per second, if
    /// known.
    pub fn new(header: &RunHeader, most: Option<f64>) -> Capacity {
        let arms = header.study.arms.iter();
        let study = &header.study;
        let connections = (study.loads[0].main.connections, study.search.most_connections);
        let all = (0..header.study.arms.len()).collect();
        Capacity {
            arms: arms.map(|arm| Searched::new(&arm.name, connections)).collect(),
            frame: Frame::new(header, most),
            is_in_turn: false,
            turn: None,
            turn_begun: Duration::ZERO,
            asked: None,
            untold: None,
            passed: Duration::ZERO,
            steps: VecDeque::from([Step::Arms(all)]),
            is_replayed: false,
        }
    }

    /// Has each search run to its end before the next arm runs.
    pub fn in_turn(mut self) -> Capacity {
        self.is_in_turn = true;
        self.steps.clear();
        self
    }

    /// Has the first unanswered arm run alone, if arms use the proxy in turn. The previous arm ends, and this arm
    /// replaces its settings. The A/A arm comes last, so that it shows drift over the whole time.
    fn take_turn(&mut self) {
        let turn = self.first_open(false).or_else(|| self.first_open(true));
        let Some(arm) = turn.filter(|_| self.is_in_turn && turn != self.turn) else {
            return;
        };
        self.turn = turn;
        self.steps.push_back(Step::Arms(Vec::new()));
        self.steps.push_back(Step::Tell(Announcement::AloneTurn {
            arm: self.arms[arm].name.clone(),
            stretch: self.arms.iter().filter(|arm| !arm.is_open()).count() as u32 + 1,
            of: self.arms.len() as u32,
        }));
    }

    /// Replays the measurements of earlier sessions.
    fn replay(&mut self, history: &History) {
        for record in &history.searched {
            match record {
                Record::Trial(trial) => {
                    let arm = self.arms.iter_mut().find(|arm| arm.name == trial.arm);
                    arm.into_iter().for_each(|arm| arm.take(trial, &self.frame));
                }
                Record::Capacity(found) => {
                    let arm = self.arms.iter().position(|arm| arm.name == found.answer.arm);
                    arm.into_iter().for_each(|arm| self.done(arm));
                }
                Record::Bracket(known) => {
                    let passed = known.passed_s.map(Duration::from_secs_f64);
                    // Arms that share a step have the same.
                    if let Some(passed) = passed.filter(|passed| *passed != self.passed) {
                        self.arms.iter_mut().for_each(Searched::cut);
                        self.has_passed(passed);
                    }
                }
                _ => {}
            }
        }
        self.arms.iter_mut().for_each(Searched::cut);
    }

    /// Sets the run's working time, and divides the rest of the budget among the open arms in proportion to the unused
    /// part of each arm's share, so that a long trial of one arm takes nothing from another. Of arms in turn, each
    /// keeps the share that it had when its turn began.
    fn has_passed(&mut self, passed: Duration) {
        self.passed = passed;
        let study = &self.frame.header.study;
        let shared = if self.is_in_turn { self.turn_begun } else { passed };
        let open = self.arms.iter().filter(|arm| arm.is_open()).count();
        let Some(share) = time::share_of_budget(study, shared, open) else {
            return;
        };
        if self.is_in_turn {
            let remaining = share.saturating_sub(passed.saturating_sub(shared));
            let left_s = time::of_trials_s(remaining);
            self.arms.iter_mut().for_each(|arm| arm.has_left(left_s));
            return;
        }
        let left_s = time::of_trials_s(share) * open as f64;
        let usual_s = time::trials_s(study, 0.0);
        let unused_s: Vec<f64> = (self.arms.iter()).map(|arm| arm.unused_s(usual_s)).collect();
        let parts_s = time::parts_s(left_s, &unused_s, self.first_served(left_s));
        for (arm, part_s) in self.arms.iter_mut().zip(parts_s) {
            arm.has_left(part_s);
        }
    }

    /// Returns the arm whose next hold is provided for before the others share the remaining time, and the seconds of
    /// that hold: an arm that needs a hold while all others have a claim.
    fn first_served(&self, left_s: f64) -> Option<(ArmId, f64)> {
        let without_claim = self.those(|arm| arm.is_open() && arm.held().is_none());
        self.arms
            .iter()
            .map(Searched::hold_needed_s)
            .enumerate()
            .filter_map(|(arm, hold_s)| Some((arm, hold_s?)))
            .filter(|(arm, _)| without_claim.iter().all(|other| other == arm))
            .find(|(_, hold_s)| *hold_s <= left_s)
    }

    /// Marks an arm as answered; its remaining time is shared among the others.
    fn done(&mut self, arm: ArmId) {
        self.arms[arm].done();
        self.turn_begun = self.passed;
        if !self.is_in_turn {
            self.has_passed(self.passed);
        }
    }

    /// Returns the first arm with an open search that is, or is not, the A/A arm.
    fn first_open(&self, is_same: bool) -> Option<ArmId> {
        let mut arms = self.arms.iter().zip(&self.frame.header.study.arms);
        arms.position(|(arm, spec)| {
            arm.is_open() && (spec.role == ArmRole::SameAsBaseline) == is_same
        })
    }

    /// Queues the next steps.
    fn think(&mut self, history: &History) {
        self.take_turn();
        let new = self.those(|arm| arm.closed_loop().is_some()).into_iter();
        let loops = new.filter_map(|id| self.arms[id].closed_loop());
        if let Some((connections, blocks)) = loops.min() {
            let closed = self.those(|arm| arm.closed_loop() == Some((connections, blocks)));
            let length = (CLOSED.0, blocks);
            let mut cell = self.cell(history, closed, Rates::Closed, length);
            cell.load.main.connections = connections;
            return self.measure(cell, SearchStage::Closed);
        }
        let next = self
            .those(Searched::is_searching)
            .into_iter()
            .min_by(|a, b| turn_order(&self.arms[*a], &self.arms[*b]));
        let Some(first) = next else {
            self.steps.push_back(Step::Done);
            return;
        };
        match self.arms[first].planned() {
            Ok(trial) => self.measure_trial(history, first, &trial),
            Err(answer) => {
                self.done(first);
                let record = self.frame.answer(&self.arms[first], &answer, self.passed);
                let announcement = Announcement::Capacity(Box::new(record.clone()));
                self.steps.push_back(Step::Tell(announcement));
                let record = Record::Capacity(record);
                self.steps.push_back(Step::Record(Box::new(record)));
            }
        }
    }

    /// Returns the arms that may run and satisfy the condition.
    fn those(&self, is_one: impl Fn(&Searched) -> bool) -> Vec<ArmId> {
        self.arms
            .iter()
            .enumerate()
            .filter(|(id, arm)| self.turn.is_none_or(|turn| turn == *id) && is_one(arm))
            .map(|(id, _)| id)
            .collect()
    }

    /// Queues a trial of one arm: the load stays with the arm, window after window.
    fn measure_trial(&mut self, history: &History, arm: ArmId, trial: &Trial) {
        let window = StepBlock {
            rates: vec![trial.rate],
            measure: Duration::from_secs_f64(trial.window_s),
            ..StepBlock::default()
        };
        let length = (window.slice(), trial.windows as u32);
        let steps = Steps {
            rest: Duration::from_secs_f64(trial.rest_s),
            warm_up: Duration::from_secs_f64(trial.settle_s),
            blocks: vec![window; trial.windows],
        };
        let renew = if trial.is_fresh { Renewal::Network } else { Renewal::Nothing };
        let cell = Cell { renew, ..self.cell(history, vec![arm], Rates::Steps(steps), length) };
        let stage = match trial.stage {
            Stage::Ramp | Stage::Look => SearchStage::Ramp,
            Stage::Dwell => SearchStage::Dwell,
            Stage::Hold => SearchStage::Hold,
            Stage::Burst => SearchStage::Burst,
        };
        self.measure(cell, stage);
    }

    fn cell(
        &self,
        history: &History,
        arms: Vec<ArmId>,
        rates: Rates,
        (slice, blocks): (Duration, u32),
    ) -> Cell {
        let study = &self.frame.header.study;
        let mut load = study.loads[0].clone();
        // All arms are asked over as many: those that the one has that needs most.
        let most = self.arms.iter().map(|arm| arm.connections).max();
        load.main.connections = most.unwrap_or(load.main.connections);
        let first_block = history.next_block(&load.name);
        Cell {
            arms,
            load,
            rates,
            blocks,
            first_block,
            planned: 0,
            slice,
            discard: study.blocks.discard,
            phase: Phase::Measurement,
            renew: Renewal::Nothing,
            seed: study.blocks.seed ^ u64::from(first_block),
        }
    }

    fn measure(&mut self, cell: Cell, stage: SearchStage) {
        self.asked =
            Some(ProposedCell { arms: cell.arms.clone(), stage, first_block: cell.first_block });
        self.steps.push_back(Step::Measure(Box::new(cell)));
    }

    /// Queues records of the state of each search after a cell.
    fn tell(&mut self, asked: &ProposedCell, blocks: u32) {
        let remaining = time::left(&self.frame, &self.arms, self.passed);
        for id in &asked.arms {
            let arm = &self.arms[*id];
            let record = BracketRecord {
                arm: arm.name.clone(),
                load: self.frame.header.study.loads[0].name.clone(),
                stage: asked.stage,
                first_block: asked.first_block,
                blocks,
                seconds: arm.seconds(),
                between: arm.between(),
                held: arm.held(),
                passed_s: Some(self.passed.as_secs_f64()),
            };
            let announcement = Announcement::Bracket { bracket: record.clone(), left: remaining };
            self.steps.push_back(Step::Tell(announcement));
            let record = Record::Bracket(record);
            self.steps.push_back(Step::Record(Box::new(record)));
        }
    }
}

impl Proposer for Capacity {
    fn next(&mut self, history: &History) -> Step {
        if !std::mem::replace(&mut self.is_replayed, true) {
            self.replay(history);
        }
        if let Some((asked, blocks)) = self.untold.take() {
            // As it is written and read again.
            let passed = Duration::from_secs_f64(history.passed.as_secs_f64());
            self.has_passed(passed.max(self.passed));
            self.tell(&asked, blocks);
        }
        loop {
            if let Some(step) = self.steps.pop_front() {
                return step;
            }
            self.think(history);
        }
    }

    fn go_on(&mut self, block: &Block) -> bool {
        let mut go_on = true;
        for trial in block {
            let arm = self.arms.iter_mut().find(|arm| arm.name == trial.arm);
            let Some(arm) = arm else { continue };
            arm.take(trial, &self.frame);
            go_on &= arm.goes_on();
        }
        go_on
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError> {
        let Some(asked) = self.asked.take() else {
            return outcome.end.checked();
        };
        let is_dead = match outcome.end {
            // One that carried something before does not now: that is an answer too.
            CellEnd::Unreachable(_) if asked.stage != SearchStage::Closed => true,
            end => {
                end.checked()?;
                false
            }
        };
        for id in &asked.arms {
            let arm = &mut self.arms[*id];
            arm.cut();
            if is_dead {
                arm.is_gone(&self.frame);
            }
        }
        self.untold = Some((asked, outcome.blocks.len() as u32));
        Ok(())
    }
}

/// Orders arms by whose trial is next: the arm with less time so far comes first. An arm whose time is over waits for
/// time that others leave. Among such arms, those with a claim come first, narrower claims before wider ones, because
/// the time that they leave narrows the others' claims.
fn turn_order(a: &Searched, b: &Searched) -> Ordering {
    let by_time = a.seconds().total_cmp(&b.seconds());
    match (a.is_out_of_time(), b.is_out_of_time()) {
        (false, false) => by_time,
        (true, true) => {
            let by_claim = a.held().is_none().cmp(&b.held().is_none());
            by_claim.then(a.width().total_cmp(&b.width())).then(by_time)
        }
        (a_waits, b_waits) => a_waits.cmp(&b_waits),
    }
}
