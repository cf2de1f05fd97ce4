//! The stretches at the end of `weir run`: each arm has the load alone for some seconds, so that samples tell what limits
//! it.
//!
//! Side by side a slice is shorter than the time from one sample to the next, and the CPUs of a host are everybody's. Nothing
//! is renewed before a stretch: what has built up during the plan is what limits it. Before it the same arm is asked for a part of
//! that rate, because much of what limits shows by what grows from there: what builds up under the high load (connections in
//! TIME_WAIT) would still be there at a low one after it.
//!
//! Arms that a controller has in turn are looked at in their blocks, and have such stretches only where those are too short.

use std::collections::VecDeque;
use std::time::Duration;

use weir_model::flow::ArrivalsSpec;
use weir_model::record::{Phase, RunHeader};
use weir_model::study::{Arm, ArmRole, LoadSpec, Study};

use crate::budget;
use crate::cell::{ArmId, Block, Cell, Outcome, Rates, Renewal};
use crate::controlled::workloads_of;
use crate::history::History;
use crate::proposer::{Proposer, Step};
use crate::{Event, LabError};

/// Stretches take at most this share of what the plan takes.
const SHARE: f64 = 0.3;
/// Two samples a second apart lie within the shortest one; a longer one than this tells nothing more.
const SHORTEST: Duration = Duration::from_millis(2500);
const LONGEST: Duration = Duration::from_secs(5);
/// How long the load stays with the arm in one block.
const SLICE: Duration = Duration::from_millis(500);
/// The low load, as a share of what the arm has completed.
const LOW: f64 = 0.4;
/// What a stretch takes beside its slices.
const BESIDE: Duration = Duration::from_millis(300);

/// Whoever proposes what is measured, and the stretches after it.
pub(crate) struct Observe {
    inner: Box<dyn Proposer>,
    study: Study,
    session: u32,
    /// What is left of the stretches, once `inner` is done.
    steps: Option<VecDeque<Step>>,
}

impl Observe {
    pub(crate) fn new(header: &RunHeader, session: u32, inner: Box<dyn Proposer>) -> Observe {
        Observe {
            inner,
            study: header.study.clone(),
            session,
            steps: None,
        }
    }

    fn stretches(&self, history: &History) -> VecDeque<Step> {
        let mut stretches = Vec::new();
        let fits = |planned: &Planned<'_>| {
            let length = planned.length(observed(&self.study).count() as u32);
            let budget = self.study.budget;
            budget.is_none_or(|budget| history.passed + length + budget::ENDING <= budget)
        };
        let Some(planned) = Planned::of(&self.study).filter(fits) else {
            return VecDeque::new();
        };
        for &load in &planned.loads {
            let pilot = history.pilots.get(&load.name);
            let own = pilot.and_then(|pilot| pilot.rate).or(load.rate());
            let mut first_block = history.next_block(&load.name);
            // What begins anew in every slice takes the study's.
            let slice = self.study.blocks.slice.filter(|_| budget::repeats(load));
            let slice = slice.unwrap_or(SLICE);
            for (arm, spec) in observed(&self.study) {
                if history.is_observed(&load.name, &spec.name, own) {
                    continue;
                }
                let is_even = matches!(
                    load.arrivals,
                    ArrivalsSpec::Closed
                        | ArrivalsSpec::Constant(_)
                        | ArrivalsSpec::ShareOfSlowest(_)
                );
                let completed = history.completed(&load.name, &spec.name);
                let low = completed.filter(|_| is_even && !budget::repeats(load));
                let low = low.map(|rate| LOW * rate);
                let each = [
                    (planned.low.filter(|_| low.is_some()), low),
                    (Some(planned.most), own),
                ];
                let each = each
                    .into_iter()
                    .filter_map(|(length, rate)| Some((length?, rate)));
                for (length, rate) in each {
                    // An arm has two slices in each block.
                    let blocks = (length.as_secs_f64() / (2.0 * slice.as_secs_f64())).ceil() as u32;
                    let cell = Cell {
                        arms: vec![arm],
                        load: load.clone(),
                        rates: rate.map_or(Rates::Closed, Rates::Same),
                        blocks,
                        first_block,
                        planned: 0,
                        slice,
                        discard: 0.0,
                        phase: Phase::Observation,
                        renew: Renewal::Nothing,
                        seed: self.study.blocks.seed
                            ^ (u64::from(self.session) << 32)
                            ^ u64::from(first_block),
                    };
                    stretches.push((spec.name.clone(), cell));
                    first_block += blocks;
                }
            }
        }
        let is_in_turn = self.study.is_in_turn();
        if is_in_turn {
            stretches.sort_by_key(|(_, cell)| cell.arms.clone());
        }
        told(stretches, is_in_turn)
    }
}

/// The stretches, each with word of its begin before it. Arms that have a proxy in turn leave before the next one.
fn told(stretches: Vec<(String, Cell)>, is_in_turn: bool) -> VecDeque<Step> {
    let of = stretches.len() as u32;
    let mut last = None;
    let each = (1..).zip(stretches).flat_map(|(stretch, (arm, cell))| {
        let before = last.replace(arm.clone());
        let leaves = is_in_turn && before.as_ref() != Some(&arm);
        let begun = Event::StretchBegun {
            arm,
            load: cell.load.name.clone(),
            stretch,
            of,
            length: cell.slice * 2 * cell.blocks + BESIDE,
        };
        let leave = leaves.then(|| Step::Arms(Vec::new()));
        [
            Some(Step::Tell(begun)),
            leave,
            Some(Step::Measure(Box::new(cell))),
        ]
    });
    let each = each.flatten();
    each.collect()
}

impl Proposer for Observe {
    fn next(&mut self, history: &History) -> Step {
        if self.steps.is_none() {
            match self.inner.next(history) {
                Step::Done => self.steps = Some(self.stretches(history)),
                step => return step,
            }
        }
        let steps = self.steps.as_mut();
        steps.and_then(VecDeque::pop_front).unwrap_or(Step::Done)
    }

    fn go_on(&mut self, block: &Block) -> bool {
        self.steps.is_some() || self.inner.go_on(block)
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), LabError> {
        match &mut self.steps {
            None => self.inner.outcome(outcome),
            // The study's question is answered by then, whatever becomes of an arm.
            Some(steps) => {
                if outcome.end.checked().is_err() {
                    steps.clear();
                }
                Ok(())
            }
        }
    }
}

/// Which loads have stretches, and how long they are.
struct Planned<'s> {
    loads: Vec<&'s LoadSpec>,
    most: Duration,
    low: Option<Duration>,
    is_in_turn: bool,
}

impl<'s> Planned<'s> {
    /// `None`: the study is too short.
    fn of(study: &'s Study) -> Option<Planned<'s>> {
        if !study.capacity.is_empty() || is_seen_in_turn(study) {
            return None;
        }
        let time = budget::length_of(study).mul_f64(SHARE);
        let arms = observed(study).count() as u32;
        let mut loads = telling(study);
        let fit = time.as_secs_f64() / ((SHORTEST + BESIDE) * arms).as_secs_f64();
        loads.truncate(fit as usize);
        if loads.is_empty() {
            return None;
        }
        let each = time / (arms * loads.len() as u32);
        let rest = each.saturating_sub(BESIDE * 2);
        let (most, low) = match rest >= SHORTEST * 2 {
            true => ((rest / 2).min(LONGEST), Some(SHORTEST)),
            false => (each.saturating_sub(BESIDE).clamp(SHORTEST, LONGEST), None),
        };
        Some(Planned {
            loads,
            most,
            low,
            is_in_turn: study.is_in_turn(),
        })
    }

    fn length(&self, arms: u32) -> Duration {
        let low = self.low.map_or(Duration::ZERO, |low| low + BESIDE);
        let switch = match self.is_in_turn {
            true => budget::SWITCH,
            false => Duration::ZERO,
        };
        ((self.most + BESIDE + low) * self.loads.len() as u32 + switch) * arms
    }
}

/// Whether arms that have a proxy in turn need no stretches: their blocks are as long, or nothing can be sampled of it.
fn is_seen_in_turn(study: &Study) -> bool {
    let block = budget::slice_in_turn(study, &study.loads) * 2;
    study.is_in_turn() && (block >= SHORTEST || workloads_of(study).is_empty())
}

/// All arms but the one that repeats the baseline.
fn observed(study: &Study) -> impl Iterator<Item = (ArmId, &Arm)> {
    let arms = study.arms.iter().enumerate();
    arms.filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline)
}

/// Loads that are no cells of a matrix, and of each matrix the one that asks for most.
fn telling(study: &Study) -> Vec<&LoadSpec> {
    let matrix = |load: &LoadSpec| load.cell.as_ref().map(|cell| cell.matrix.clone());
    let asks = |load: &LoadSpec| (load.rate().unwrap_or(f64::INFINITY), load.asking());
    let is_most = |load: &&LoadSpec| {
        let mut others = study
            .loads
            .iter()
            .filter(|other| matrix(other) == matrix(load));
        matrix(load).is_none()
            || others.all(|other| other.name == load.name || asks(other) < asks(load))
    };
    study.loads.iter().filter(is_most).collect()
}

/// How long the stretches of a run take, about; nothing where it is too short for any, or has none.
pub fn length_of_stretches(study: &Study) -> Duration {
    Planned::of(study).map_or(Duration::ZERO, |planned| {
        planned.length(observed(study).count() as u32)
    })
}
