//! Stretches at the end of `weir run`: each arm has the load alone for some seconds, so that samples show its limiter.
//!
//! Side by side, a slice is shorter than the interval of samples, and all arms use the CPUs of a host. Nothing is
//! renewed before a stretch, since the state that has built up during the plan is the limiter. Before the stretch, the
//! same arm gets a part of that rate, because many limiters show in the quantities that grow from there. State that
//! builds up under the high load (connections in TIME_WAIT) would still be there if the low load came afterwards.
//!
//! Arms that a controller runs in turn are sampled in their blocks, and have such stretches only if the blocks are too
//! short.

use std::collections::VecDeque;
use std::time::Duration;

use weir_model::flow::ArrivalsSpec;
use weir_model::record::{Phase, RunHeader};
use weir_model::study::{Arm, ArmRole, LoadSpec, Study};

use crate::Announcement;
use crate::budget;
use crate::cell::{ArmId, Block, Cell, Outcome, Rates, Renewal};
use crate::history::History;
use crate::proposer::MeasureError;
use crate::proposer::{Proposer, Step};

/// Maximum time of all stretches, as a share of the plan's time.
const SHARE: f64 = 0.3;
/// Length of the shortest stretch, in which two samples a second apart lie. One longer than [`LONGEST`] shows nothing
/// more.
const SHORTEST: Duration = Duration::from_millis(2500);
const LONGEST: Duration = Duration::from_secs(5);
/// Length of a slice in a stretch.
const SLICE: Duration = Duration::from_millis(500);
/// Rate of the low load, as a share of the rate that the arm has completed.
const LOW: f64 = 0.4;
/// Role of the object that owns a proxy's pods, as in `controllers/`.
const WORKLOAD: &str = "workload";
/// Time that a stretch takes beside its slices.
const BESIDE: Duration = Duration::from_millis(300);

/// Proposer that adds stretches after those of another proposer.
pub struct Observe {
    inner: Box<dyn Proposer>,
    study: Study,
    session: u32,
    /// Remaining stretches; `None` until `inner` is done.
    steps: Option<VecDeque<Step>>,
}

impl Observe {
    pub fn new(header: &RunHeader, session: u32, inner: Box<dyn Proposer>) -> Observe {
        Observe { inner, study: header.study.clone(), session, steps: None }
    }

    fn stretches(&self, history: &History) -> VecDeque<Step> {
        let mut stretches = Vec::new();
        let Some(planned) = Planned::of(&self.study) else {
            return VecDeque::new();
        };
        let length = planned.length(observed(&self.study).count() as u32);
        let budget = self.study.budget;
        if budget.is_some_and(|budget| history.passed + length + budget::ENDING > budget) {
            return VecDeque::new();
        }
        for &load in &planned.loads {
            let pilot = history.pilots.get(&load.name);
            let pilot_rate = pilot.and_then(|pilot| pilot.rate).or(load.rate());
            let mut first_block = history.next_block(&load.name);
            // What begins anew in every slice takes the study's.
            let slice = self.study.blocks.slice.filter(|_| budget::repeats(load)).unwrap_or(SLICE);
            for (arm, spec) in observed(&self.study) {
                if history.is_observed(&load.name, &spec.name, pilot_rate) {
                    continue;
                }
                let is_even = matches!(
                    load.arrivals,
                    ArrivalsSpec::Closed
                        | ArrivalsSpec::Constant(_)
                        | ArrivalsSpec::ShareOfSlowest(_)
                        | ArrivalsSpec::UpToShareOfSlowest(_)
                );
                let completed = history.completed(&load.name, &spec.name);
                let low =
                    completed.filter(|_| is_even && !budget::repeats(load)).map(|rate| LOW * rate);
                let stages = [
                    (planned.low.filter(|_| low.is_some()), low),
                    (Some(planned.most), pilot_rate),
                ]
                .into_iter()
                .filter_map(|(length, rate)| Some((length?, rate)));
                for (length, rate) in stages {
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
        announce(stretches, is_in_turn)
    }
}

/// Converts stretches to steps, with an event before each. If arms have a proxy in turn, each arm ends before the next
/// begins.
fn announce(stretches: Vec<(String, Cell)>, is_in_turn: bool) -> VecDeque<Step> {
    let count = stretches.len() as u32;
    let mut last = None;
    let steps = (1..)
        .zip(stretches)
        .flat_map(|(stretch, (arm, cell))| {
            let before = last.replace(arm.clone());
            let leaves = is_in_turn && before.as_ref() != Some(&arm);
            let begun = Announcement::StretchBegun {
                arm,
                load: cell.load.name.clone(),
                stretch,
                of: count,
                length: cell.slice * 2 * cell.blocks + BESIDE,
            };
            let leave = leaves.then(|| Step::Arms(Vec::new()));
            [Some(Step::Tell(begun)), leave, Some(Step::Measure(Box::new(cell)))]
        })
        .flatten();
    steps.collect()
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

    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError> {
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

/// Loads that have stretches, and the lengths of these.
struct Planned<'s> {
    loads: Vec<&'s LoadSpec>,
    most: Duration,
    low: Option<Duration>,
    is_in_turn: bool,
}

impl<'s> Planned<'s> {
    /// Plans the stretches of a study; `None` if it needs none or is too short.
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
        let time_of_arm = time / (arms * loads.len() as u32);
        let remaining = time_of_arm.saturating_sub(BESIDE * 2);
        let (most, low) = if remaining >= SHORTEST * 2 {
            ((remaining / 2).min(LONGEST), Some(SHORTEST))
        } else {
            (time_of_arm.saturating_sub(BESIDE).clamp(SHORTEST, LONGEST), None)
        };
        Some(Planned { loads, most, low, is_in_turn: study.is_in_turn() })
    }

    fn length(&self, arms: u32) -> Duration {
        let low = self.low.map_or(Duration::ZERO, |low| low + BESIDE);
        let switch = if self.is_in_turn { budget::SWITCH } else { Duration::ZERO };
        ((self.most + BESIDE + low) * self.loads.len() as u32 + switch) * arms
    }
}

/// Returns true if arms that have a proxy in turn need no stretches: their blocks are as long, or nothing of the proxy
/// can be sampled.
fn is_seen_in_turn(study: &Study) -> bool {
    let block = budget::slice_in_turn(study, &study.loads) * 2;
    study.is_in_turn() && (block >= SHORTEST || !names_a_workload(study))
}

/// Returns true if a controller's instances name the workloads of their pods.
fn names_a_workload(study: &Study) -> bool {
    let controller = study.proxy.controller.iter();
    controller
        .flat_map(|spec| spec.beside.iter().map(|beside| &beside.instance).chain([&spec.first]))
        .any(|instance| instance.objects.contains_key(WORKLOAD))
}

/// Returns all arms except the one that repeats the baseline.
fn observed(study: &Study) -> impl Iterator<Item = (ArmId, &Arm)> {
    study.arms.iter().enumerate().filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline)
}

/// Returns the loads that belong to no matrix, and of each matrix the load with the highest rate.
fn telling(study: &Study) -> Vec<&LoadSpec> {
    study
        .loads
        .iter()
        .filter(|load| {
            let mut rivals = study.loads.iter().filter(|other| matrix_of(other) == matrix_of(load));
            matrix_of(load).is_none()
                || rivals.all(|other| other.name == load.name || demand(other) < demand(load))
        })
        .collect()
}

fn matrix_of(load: &LoadSpec) -> Option<&str> {
    load.cell.as_ref().map(|cell| &*cell.matrix)
}

/// Returns the rate and the active connections that a load asks for.
fn demand(load: &LoadSpec) -> (f64, u64) {
    (load.rate().unwrap_or(f64::INFINITY), load.asking())
}

/// Estimates the length of a run's stretches; zero if the run is too short for any, or has none.
pub fn length_of_stretches(study: &Study) -> Duration {
    Planned::of(study)
        .map_or(Duration::ZERO, |planned| planned.length(observed(study).count() as u32))
}
