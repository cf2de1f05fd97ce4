//! Plan of a study whose arms cannot run side by side: one controller configures one proxy, so the arms have it in
//! turn.
//!
//! A cell of all arms in the plan becomes a *round*: a stretch of each arm, one after the other. Rounds come in
//! mirrored order, A B, B A, A B, so that a linear drift cancels over two of them. A stretch is one block, and all
//! stretches of a round have the same number: so a round is a replicate. Drift between its stretches is noise between
//! rounds, which intervals include. The stretches of a round are never taken for more than that.
//!
//! Putting an arm into force can take far longer than a stretch (a roll-out of pods). Therefore an arm has the
//! stretches of several loads in one turn, and the rounds of those loads are interleaved.

use std::collections::VecDeque;

use weir_model::record::Remark;
use weir_model::study::Study;

use crate::Announcement;
use crate::cell::{Cell, Outcome, Rates, Renewal};
use crate::history::History;
use crate::plan::Plan;
use crate::proposer::MeasureError;
use crate::proposer::{Proposer, Step};

/// Proposer of arms in turn.
pub struct Turns {
    plan: Plan,
    /// Names of the arms.
    arms: Vec<String>,
    /// Remaining steps of a round.
    steps: VecDeque<Step>,
}

impl Turns {
    pub fn new(study: &Study, plan: Plan) -> Turns {
        Turns {
            plan: plan.in_turn(),
            arms: study.arms.iter().map(|arm| arm.name.clone()).collect(),
            steps: VecDeque::new(),
        }
    }

    /// Queues a turn of each arm, in which it has a stretch of each cell.
    fn round(&mut self, cells: &[Cell]) {
        let Some(first) = cells.first() else { return };
        let number = match &first.rates {
            Rates::Shared(shared) => shared.blocks.first().map_or(0, |(_, number)| *number),
            _ => first.first_block,
        };
        let mut arms = first.arms.clone();
        if number % 2 == 1 {
            arms.reverse();
        }
        let all = arms.len() as u32;
        let rounds = first.planned / (first.loads().len() as u32).max(1);
        for (place, arm) in (1..).zip(arms) {
            self.steps.push_back(Step::Tell(Announcement::AloneTurn {
                arm: self.arms.get(arm).cloned().unwrap_or_default(),
                stretch: number * all + place,
                of: rounds.max(number + 1) * all,
            }));
            // The one before it leaves; what it has set, the next one sets anew.
            self.steps.push_back(Step::Arms(Vec::new()));
            let stretches = cells
                .iter()
                .map(|cell| Cell { arms: vec![arm], renew: Renewal::Nothing, ..cell.clone() })
                .map(|stretch| Step::Measure(Box::new(stretch)));
            self.steps.extend(stretches);
        }
    }
}

impl Proposer for Turns {
    fn next(&mut self, history: &History) -> Step {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return step;
            }
            match self.plan.next(history) {
                Step::Arms(_) => return Step::Arms(Vec::new()),
                Step::Measure(cell) => {
                    let mut turn = vec![*cell];
                    self.plan.fill(&mut turn, history);
                    self.round(&turn);
                }
                step => return step,
            }
        }
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError> {
        self.plan.outcome(outcome)
    }
}

/// Returns remarks for the reader about arms that a controller configures.
pub fn remarks(study: &Study) -> Vec<Remark> {
    let in_turn = "the arms were measured in turn (A B, B A, ...), not side by side, because one controller configures one \
                   proxy: each interval rests on as many replicates as there were rounds, and what drifts between the \
                   stretches of a round widens it; the A/A arm shows how large a difference is seen where there is none";
    let beside = "the arms ran side by side, each on an instance of the controller, and changed places several times: what one \
                  instance is slower by (its node, its CPUs) is shared by all arms, and widens their intervals";
    let searched = "the capacities of the arms were searched one after the other, because one controller configures one proxy: \
                    their ratios are unpaired, and what drifts from one search to the next is in a ratio and not in its interval; \
                    the A/A arm (`a/a: true`) shows how large a difference is seen where there is none";
    let words = match (study.controlled(), study.is_in_turn()) {
        (None, _) => return Vec::new(),
        (Some(_), true) if study.arms.len() < 2 => return Vec::new(),
        (Some(_), true) if !study.capacity.is_empty() => searched,
        (Some(_), true) => in_turn,
        (Some(_), false) => beside,
    };
    vec![Remark::of_run(words)]
}
