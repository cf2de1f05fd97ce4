//! Proposer of `weir run --check-alone`: runs the fixed plan, then its baseline and its winner again, one at a time.
//!
//! A stretch is a cell with one arm. All arms end before it, so the arm is the only one that runs, it is a new
//! instance, and if arms have network namespaces it is in a new one. Stretches follow each other as A B B A, so that
//! drift affects both alike; a pair of neighbours is a replicate.

use std::collections::VecDeque;
use std::time::Duration;

use weir_analysis::alone::Choice;
use weir_model::record::{DecisionRecord, Phase, Record, RunHeader};
use weir_model::study::{LoadSpec, Metric, Study};

use crate::Announcement;
use crate::budget;
use crate::cell::{Cell, Outcome, Rates, Renewal};
use crate::history::History;
use crate::plan::Plan;
use crate::proposer::MeasureError;
use crate::proposer::{Proposer, Step};

/// Maximum share of its load's time that the check takes, unless [`LEAST_PAIRS`] needs more.
const SHARE: f64 = 1.0 / 3.0;
/// Minimum number of pairs of stretches.
const LEAST_PAIRS: u32 = 8;
/// Maximum number of pairs of stretches.
const MOST_PAIRS: u32 = 24;
/// Minimum time measured of an arm in a stretch.
const STRETCH: Duration = Duration::from_secs(1);
/// Time to start an arm that is assumed when the check is divided into stretches.
const STARTING: Duration = Duration::from_millis(200);

/// Chooses the arms to measure alone from the results of the plan; the error gives the reason why none can be chosen.
pub type Choose = Box<dyn Fn() -> Result<Option<Choice>, String>>;

/// Proposer of the fixed plan and the check after it.
pub struct CheckAlone {
    plan: Plan,
    study: Study,
    session: u32,
    choose: Choose,
    /// Remaining steps of the check; `None` until the plan is done.
    steps: Option<VecDeque<Step>>,
}

impl CheckAlone {
    pub fn new(header: &RunHeader, session: u32, plan: Plan, choose: Choose) -> CheckAlone {
        CheckAlone { plan, study: header.study.clone(), session, choose, steps: None }
    }

    /// Returns the remaining steps of the check, or a step that reports why there is none.
    fn check(&self, history: &History) -> VecDeque<Step> {
        (self.choose)()
            .and_then(|chosen| {
                let choice = chosen.ok_or("no arm has a ratio side by side")?;
                let steps = self.steps(&choice, history);
                Ok(steps.ok_or("the load has no pilot")?)
            })
            .unwrap_or_else(|why| VecDeque::from([Step::Tell(Announcement::NotAlone { why })]))
    }

    fn steps(&self, choice: &Choice, history: &History) -> Option<VecDeque<Step>> {
        let arms = &self.study.arms;
        let [against, arm] = [&choice.against, &choice.arm]
            .map(|name| arms.iter().position(|arm| arm.name == *name));
        let both = [against?, arm?];
        let load = self.study.loads.iter().find(|load| load.name == choice.load)?;
        let pilot = history.pilots.get(&load.name)?;
        let slice = Duration::from_nanos(pilot.slice_ns);
        let planned = Stretches::of(&self.study, load, slice, choice.merged);
        let done = history.pairs_alone(&load.name);
        let cell = Cell {
            load: load.clone(),
            rates: pilot.rate.map_or(Rates::Closed, Rates::Same),
            blocks: planned.blocks,
            first_block: history.next_block(&load.name),
            planned: 0,
            slice,
            discard: self.study.blocks.discard,
            phase: Phase::Alone,
            arms: Vec::new(),
            renew: Renewal::Nothing,
            seed: 0,
        };
        let remaining = planned.pairs.saturating_sub(done) * 2;
        let begun = Announcement::AloneBegun {
            arms: both.map(|arm| arms[arm].name.clone()),
            why: weir_sentences::explain_choice(choice.why, self.study.objective.metric),
            stretches: remaining,
            length: stretch_length(&self.study, load, slice, planned.blocks) * remaining,
        };
        let mut steps = VecDeque::from([Step::Tell(begun)]);
        if history.decisions.iter().all(|decision| decision.phase != Phase::Alone) {
            let decision = self.decision(choice);
            steps.push_front(Step::Record(Box::new(Record::Decision(decision))));
        }
        let pairs = done..planned.pairs;
        let turns = pairs.flat_map(|pair| match pair % 2 {
            0 => both,
            _ => [both[1], both[0]],
        });
        for (turn, arm) in (0..).zip(turns) {
            let first_block = cell.first_block + turn * planned.blocks;
            let stretch = Cell {
                arms: vec![arm],
                first_block,
                seed: self.study.blocks.seed
                    ^ (u64::from(self.session) << 32)
                    ^ u64::from(first_block),
                ..cell.clone()
            };
            steps.push_back(Step::Tell(Announcement::AloneTurn {
                arm: arms[arm].name.clone(),
                stretch: done * 2 + turn + 1,
                of: planned.pairs * 2,
            }));
            steps.push_back(Step::Arms(Vec::new()));
            steps.push_back(Step::Measure(Box::new(stretch)));
        }
        Some(steps)
    }

    fn decision(&self, choice: &Choice) -> DecisionRecord {
        DecisionRecord {
            session: self.session,
            load: choice.load.clone(),
            phase: Phase::Alone,
            decision: format!("measure {} and {} one at a time", choice.against, choice.arm),
            because: weir_sentences::explain_choice(choice.why, self.study.objective.metric),
        }
    }
}

impl Proposer for CheckAlone {
    fn next(&mut self, history: &History) -> Step {
        if self.steps.is_none() {
            match self.plan.next(history) {
                Step::Done => self.steps = Some(self.check(history)),
                step => return step,
            }
        }
        let steps = self.steps.as_mut();
        steps.and_then(VecDeque::pop_front).unwrap_or(Step::Done)
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError> {
        self.plan.outcome(outcome)
    }
}

/// Division of the check's time into stretches.
struct Stretches {
    /// Blocks of each stretch.
    blocks: u32,
    pairs: u32,
}

impl Stretches {
    /// Divides the time of the check for a load whose comparisons merge `merged` blocks into each replicate.
    fn of(study: &Study, load: &LoadSpec, slice: Duration, merged: u32) -> Stretches {
        let planned = budget::count_blocks(study, load, slice);
        let share = (slice * 2 * study.arms.len() as u32 * planned).mul_f64(SHARE);
        let least = ((STRETCH.as_secs_f64() / (slice * 2).as_secs_f64()).ceil() as u32).max(1);
        // As many blocks as a replicate has, where there is time for that.
        let fit = share / (2 * LEAST_PAIRS);
        let blocks = (least..=merged.max(least))
            .rev()
            .find(|blocks| stretch_length(study, load, slice, *blocks) <= fit)
            .unwrap_or(least);
        let pair = stretch_length(study, load, slice, blocks) * 2;
        let pairs = share.as_secs_f64() / pair.as_secs_f64();
        Stretches { blocks, pairs: (pairs as u32).clamp(LEAST_PAIRS, MOST_PAIRS) }
    }
}

/// Estimates how long the check of a study's arms one at a time takes.
pub fn length_of_check(study: &Study) -> Duration {
    takes(study, &History::default(), budget::RENEWAL)
}

/// Estimates the length of a stretch of blocks, with the start of its arm.
fn stretch_length(study: &Study, load: &LoadSpec, slice: Duration, blocks: u32) -> Duration {
    budget::alone(study, load, slice, blocks) + STARTING
}

/// Estimates how long the rest of the check takes after earlier sessions; starting an arm takes `start`.
pub fn takes(study: &Study, history: &History, start: Duration) -> Duration {
    let wanted = study.objective.metric;
    let load = study.loads.iter().find(|load| match wanted {
        Metric::CpuPerRequest => true,
        metric => load.is_open() == metric.response_quantile().is_some(),
    });
    let Some(load) = load else {
        return Duration::ZERO;
    };
    let slice = budget::choose_slice(study, history, load);
    let planned = Stretches::of(study, load, slice, 1);
    let remaining = planned.pairs.saturating_sub(history.pairs_alone(&load.name));
    (budget::alone(study, load, slice, planned.blocks) + start) * remaining * 2
}
