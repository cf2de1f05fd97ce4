//! Early ends of the plan: a load that is measured until everything is decided, and a budget that is used up.

use std::time::Duration;

use weir_model::record::{DecisionRecord, LoadEndRecord, LookRecord, Phase, Record};
use weir_model::study::{LoadSpec, Until};
use weir_stats::verdict::LEAST_REPLICATES;

use super::{Plan, Stage};
use crate::cell::{ArmId, Cell, Renewal};
use crate::history::History;
use crate::proposer::Step;
use crate::until;
use crate::{Announcement, budget};

impl Plan {
    /// Queues the next steps for a load that is measured until everything is decided: blocks up to its next look, or
    /// the look.
    pub(super) fn until_decided(&mut self, load: &LoadSpec, slice: Duration, history: &History) {
        let looks = history.looks(&load.name);
        let (whole, last) = (history.whole_blocks(&load.name), looks.last());
        let last_blocks = last.map_or(0, |look| look.blocks);
        let planned = match last {
            Some(look) => look.planned.clone(),
            None => until::planned(&self.study, self.blocks_at_most(load, slice, history)),
        };
        let next = planned.iter().copied().find(|end| *end > last_blocks);
        let Some(next) = next.filter(|_| !last.is_some_and(LookRecord::is_done)) else {
            return self.end_load(load, history);
        };
        let is_time_up = self.is_late && whole < next;
        match () {
            () if is_time_up && (whole == last_blocks || whole < LEAST_REPLICATES as u32) => {
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

    /// Takes a look, and ends the arms that are decided.
    fn look(&mut self, load: &LoadSpec, look: LookRecord, history: &History) {
        let session = self.session;
        self.looked.0 = Some(history.passed);
        let look = match (self.take_look)(load, LookRecord { session, ..look }) {
            Ok(look) => look,
            Err(error) => return self.steps.push_back(Step::Fail(error)),
        };
        let most = look.planned.last().copied().unwrap_or(look.blocks);
        let looked = Announcement::Looked {
            left: until::takes(&self.study, load, history, &look, look.expected),
            at_most: until::takes(&self.study, load, history, &look, most),
            look: Box::new(look.clone()),
        };
        self.steps.push_back(Step::Record(Box::new(Record::Look(Box::new(look.clone())))));
        self.steps.push_back(Step::Tell(looked));
        if !look.is_done() {
            self.steps.push_back(Step::Arms(self.arms_of(&look)));
        }
    }

    fn arms_of(&self, look: &LookRecord) -> Vec<ArmId> {
        let arms = 0..self.study.arms.len();
        arms.filter(|arm| look.open.contains(&self.study.arms[*arm].name)).collect()
    }

    /// Proposes the remaining blocks before a load's next look.
    fn stage_of(&mut self, load: &LoadSpec, slice: Duration, planned: &[u32], history: &History) {
        let loads = std::slice::from_ref(load);
        let last = history.looks(&load.name).last();
        let arms =
            last.map_or_else(|| (0..self.study.arms.len()).collect(), |look| self.arms_of(look));
        let whole_blocks = history.whole_blocks(&load.name);
        let parts = until::parts(&self.study, planned, whole_blocks);
        let most = planned.last().copied().unwrap_or(0);
        if !self.is_begun {
            let all = parts.iter().flatten();
            let count = arms.len() as u32;
            self.steps.push_back(Step::Tell(Announcement::TrialBegun {
                loads: vec![load.name.clone()],
                blocks: most - whole_blocks,
                length: all
                    .map(|blocks| budget::length(&self.study, load, (slice, *blocks), count))
                    .sum(),
                rate: self.rate(load, history),
                looks: planned.iter().copied().filter(|end| *end > whole_blocks).collect(),
            }));
        }
        let mut before = 0;
        for blocks in parts.into_iter().next().unwrap_or_default() {
            let numbers = (before..before + blocks).map(|number| (0, number)).collect();
            before += blocks;
            let cell = Cell {
                arms: arms.clone(),
                planned: most,
                renew: if std::mem::replace(&mut self.is_begun, true) {
                    Renewal::Instance
                } else {
                    Renewal::Nothing
                },
                ..self.part(loads, slice, numbers, history)
            };
            self.steps.push_back(Step::Measure(Box::new(cell)));
        }
    }

    /// Returns the maximum number of blocks of the current load. If earlier loads took less than their time, the others
    /// share the rest of the budget.
    fn blocks_at_most(&self, load: &LoadSpec, slice: Duration, history: &History) -> u32 {
        let blocks = budget::count_blocks(&self.study, load, slice);
        let Some(budget) = self.study.budget else {
            return blocks;
        };
        let renewal = budget::RENEWAL * self.study.arms.len() as u32;
        let needs = budget::takes(&self.study, history, renewal).as_secs_f64();
        let remaining = budget.saturating_sub(history.passed).as_secs_f64();
        let more = (budget::KEPT_FREE * remaining / needs.max(1e-9)).max(1.0);
        (f64::from(blocks) * more) as u32
    }

    fn end_load(&mut self, load: &LoadSpec, history: &History) {
        let end =
            LoadEndRecord { load: load.name.clone(), blocks: history.whole_blocks(&load.name) };
        self.steps
            .push_back(Step::Tell(Announcement::TrialEnded { loads: vec![load.name.clone()] }));
        self.steps.push_back(Step::Record(Box::new(Record::LoadEnd(end))));
        self.groups.pop_front();
        self.is_begun = false;
        if !self.groups.is_empty() && !self.is_late {
            let all = (0..self.study.arms.len()).collect();
            self.steps.push_back(Step::Arms(all));
        }
    }

    /// Drops measurements for which the budget has no time, except as many blocks of the next cell as fit.
    pub(super) fn drop_late(&mut self, late: &Cell, history: &History) {
        let is_new = !std::mem::replace(&mut self.is_late, true);
        self.steps.retain(|step| !matches!(step, Step::Measure(_)));
        if late.phase != Phase::Pilot {
            let fits = (1..late.blocks)
                .rev()
                .map(|blocks| Cell { blocks, ..late.clone() })
                .into_iter()
                .find(|cell| !self.is_too_late(std::slice::from_ref(cell), history));
            fits.map(|cell| Step::Measure(Box::new(cell)))
                .into_iter()
                .for_each(|cell| self.steps.push_front(cell));
        }
        if !is_new {
            return;
        }
        let left_out =
            self.groups.iter().flatten().map(|load| &*load.name).collect::<Vec<_>>().join(", ");
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
        let announcement = Step::Tell(Announcement::TimeIsUp { left_out });
        self.steps.push_front(announcement);
        self.steps.push_front(Step::Record(Box::new(Record::Decision(decision))));
    }

    /// Returns true if the current load has been measured and still has to be ended.
    pub(super) fn is_under_way(&self, history: &History) -> bool {
        let first = self.groups.front().and_then(|loads| loads.first());
        let has_blocks = first.is_some_and(|load| history.whole_blocks(&load.name) > 0);
        has_blocks
            && (self.study.until == Until::Decided || matches!(self.stage, Stage::Measured(_)))
    }

    /// Returns true if the budget has no time for these cells.
    pub(super) fn is_too_late(&self, cells: &[Cell], history: &History) -> bool {
        let takes = cells
            .iter()
            .map(|cell| {
                let arms = cell.arms.len() as u32;
                let blocks = (cell.slice, cell.blocks);
                budget::length(&self.study, &cell.load, blocks, arms) + budget::RENEWAL * arms
            })
            .sum::<Duration>()
            + budget::ENDING
            + self.looked.1 * 2;
        let budget = self.study.budget;
        budget.is_some_and(|budget| history.passed + takes > budget.mul_f64(budget::KEPT_FREE))
    }
}
