//! The proposer of a study that asks how much its arms carry within an objective: a search for each arm, whose trials
//! take turns, so that what changes on the machine in the meantime meets all of them.

use std::time::Duration;

use weir_model::flow::{ArrivalsSpec, LoadSpec};
use weir_model::limit::Limit;
use weir_model::record::{
    BurstRecord, CapacityEnd, CapacityRecord, CeilingOf, CeilingRecord, Phase, Record, TrialRecord,
};
use weir_model::study::Study;
use weir_search::{Answer, Bound, Closed, Goal, Search, Seen, Trial, Why};

use crate::cell::{Block, Cell, Outcome, Rates};
use crate::history::History;
use crate::proposer::{Proposer, Step};
use crate::{Event, LabError};

/// The closed loop before a search: slices of half a second.
const CLOSED: (Duration, u32) = (Duration::from_millis(500), 3);
/// Half of the interval at which a search ends, as a share.
const HALF_WIDTH: f64 = 0.03;
/// Seconds of trials before the verification, and of that: longer than TIME_WAIT, which Linux keeps for 60.
const BUDGET_S: f64 = 100.0;
const VERIFY_S: f64 = 65.0;
/// Seconds of further long trials, where the arm does not hold for long what it holds for short.
const LONG_S: f64 = 400.0;

/// Searches, in the order of the study's arms.
pub(crate) struct Capacity {
    study: Study,
    searches: Vec<State>,
    /// The arm whose turn it is.
    turn: usize,
    /// What was proposed last: the arm, and the trial; none in a closed loop.
    asked: Option<Trial>,
    /// Windows of a verification so far.
    windows: Vec<Seen>,
    told: Vec<Step>,
}

enum State {
    Fresh,
    Searching(Box<Search>),
    Done,
}

impl Capacity {
    pub(crate) fn new(study: &Study) -> Option<Capacity> {
        study.capacity.first()?;
        Some(Capacity {
            study: study.clone(),
            searches: study.arms.iter().map(|_| State::Fresh).collect(),
            turn: 0,
            asked: None,
            windows: Vec::new(),
            told: Vec::new(),
        })
    }

    fn load(&self) -> &LoadSpec {
        &self.study.loads[0]
    }

    fn cell(&self, history: &History, rates: Rates, slice: Duration, blocks: u32) -> Cell {
        let mut load = self.load().clone();
        if let Rates::Same(rate) = rates {
            load.main.arrivals = ArrivalsSpec::Constant(rate);
        }
        let first_block = history.next_block(&load.name);
        Cell {
            arms: vec![self.turn],
            load,
            rates,
            blocks,
            first_block,
            planned: 0,
            slice,
            discard: self.study.blocks.discard,
            phase: Phase::Measurement,
            renew: false,
            seed: self.study.blocks.seed ^ u64::from(first_block),
        }
    }

    /// The two slices of a block are one trial: each has half of what is measured, and all of what is not.
    fn trial(&self, history: &History, trial: &Trial) -> Cell {
        let window_s = trial.measure_s / trial.windows as f64;
        let unmeasured = match trial.windows {
            1 => trial.settle_s,
            // The load stays where it is.
            _ => 0.05 * window_s,
        };
        let slice = window_s / 2.0 + unmeasured;
        Cell {
            discard: unmeasured / slice,
            renew: trial.is_fresh,
            ..self.cell(
                history,
                Rates::Same(trial.rate),
                Duration::from_secs_f64(slice),
                trial.windows as u32,
            )
        }
    }

    fn answered(&mut self, answer: &Answer) -> Step {
        let arm = self.study.arms[self.turn].name.clone();
        self.searches[self.turn] = State::Done;
        let end = match answer.why {
            Why::Found => CapacityEnd::Found,
            Why::Budget => CapacityEnd::Budget,
            Why::TooShort(suffices_s) => CapacityEnd::TooShort(suffices_s),
            Why::Never | Why::NotSent(_) => CapacityEnd::Never,
            Why::Broken(above) => CapacityEnd::Broken(above),
            Why::Unsteady => CapacityEnd::Unsteady,
        };
        let record = CapacityRecord {
            arm,
            load: self.load().name.clone(),
            limits: self.study.capacity.clone(),
            decides: answer.decides,
            confidence: self.study.objective.confidence,
            low: answer.interval.0,
            high: answer.interval.1,
            verified: answer.verified,
            fresh: answer.fresh,
            burst: answer.burst.map(|burst| BurstRecord {
                seconds: 0.0,
                low: burst.low,
                high: burst.high,
            }),
            saturated: answer.saturated,
            floor: answer.floor.get(answer.decides).copied().unwrap_or(0.0),
            ceiling: answer.is_ceiling.then_some(CeilingRecord {
                of: CeilingOf::Generator,
                rate: answer.interval.1,
            }),
            seconds: answer.seconds,
            end,
        };
        self.told.push(Step::Tell(Event::Capacity(record.clone())));
        Step::Record(Box::new(Record::Capacity(record)))
    }
}

/// What a block of the search showed.
fn seen(trial: &TrialRecord) -> Seen {
    let sum = |of: fn(&weir_model::record::SliceRecord) -> u64| -> f64 {
        trial.slices.iter().map(of).sum::<u64>() as f64
    };
    let seconds = sum(|slice| slice.measured_ns) / 1e9;
    Seen {
        bad: trial.bad.clone(),
        value: Vec::new(),
        due: sum(|slice| slice.due) / seconds,
        sent: 1.0,
        completed: sum(|slice| slice.completed) / seconds,
    }
}

impl Proposer for Capacity {
    fn next(&mut self, history: &History) -> Step {
        if let Some(step) = self.told.pop() {
            return step;
        }
        let arms = self.searches.len();
        for _ in 0..arms {
            match &mut self.searches[self.turn] {
                State::Done => self.turn = (self.turn + 1) % arms,
                State::Fresh => {
                    self.asked = None;
                    let cell = self.cell(history, Rates::Closed, CLOSED.0, CLOSED.1);
                    return Step::Measure(Box::new(cell));
                }
                State::Searching(search) => match search.propose() {
                    Ok(trial) => {
                        self.asked = Some(trial);
                        self.windows.clear();
                        return Step::Measure(Box::new(self.trial(history, &trial)));
                    }
                    Err(answer) => return self.answered(&answer),
                },
            }
        }
        Step::Done
    }

    fn go_on(&mut self, block: &Block) -> bool {
        let (Some(trial), State::Searching(search)) = (&self.asked, &self.searches[self.turn])
        else {
            return true;
        };
        self.windows.extend(block.iter().map(seen));
        search.go_on(trial, &self.windows)
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), LabError> {
        if let crate::cell::CellEnd::Broken(error) = outcome.end {
            return Err(*error);
        }
        let trials = || outcome.blocks.iter().flatten();
        match (&mut self.searches[self.turn], self.asked) {
            (State::Searching(search), Some(trial)) => {
                let windows: Vec<Seen> = trials().map(seen).collect();
                search.seen(&trial, &windows);
            }
            (state, _) => {
                let slices = trials().flat_map(|trial| &trial.slices);
                let windows: Vec<(u64, f64)> = slices
                    .map(|slice| (slice.completed, slice.measured_ns as f64 / 1e9))
                    .collect();
                let Some(closed) = Closed::of(&windows) else {
                    return Ok(());
                };
                let bound = |limit: &Limit| match limit {
                    Limit::Quantile(quantile, time) => {
                        Bound::quantile(*quantile, time.as_secs_f64())
                    }
                    Limit::Mean(time) => Bound::mean(time.as_secs_f64()),
                    Limit::Errors(share) => Bound::errors(*share),
                };
                *state = State::Searching(Box::new(Search::new(Goal {
                    bounds: self.study.capacity.iter().map(bound).collect(),
                    confidence: self.study.objective.confidence,
                    half_width: HALF_WIDTH,
                    budget_s: BUDGET_S,
                    verify_s: VERIFY_S,
                    long_s: LONG_S,
                    burst_s: None,
                    ceiling: None,
                    closed,
                    seed: self.study.blocks.seed,
                })));
            }
        }
        self.turn = (self.turn + 1) % self.searches.len();
        Ok(())
    }
}
