//! Measurements of a run so far, in this session and earlier ones. They are built from the records one by one, so that
//! a resumed run has exactly the state of the interrupted one.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::record::{DecisionRecord, LookRecord, Phase, PilotRecord, Record, TrialRecord};
use weir_model::study::Arm;
use weir_record::Run;

/// Measurements of a run so far.
#[derive(Debug, Default)]
pub struct History {
    /// Number of sessions that have begun.
    pub sessions: u32,
    /// The latest pilot of each load.
    pub pilots: BTreeMap<String, PilotRecord>,
    /// Decisions, in order of time.
    pub decisions: Vec<DecisionRecord>,
    /// Arms that were added, in order.
    pub added: Vec<Arm>,
    /// Records that are input and results of capacity searches, in order of time.
    pub searched: Vec<Record>,
    /// Measured time, the sum over slices of all arms.
    pub measured: Duration,
    /// Working time of the run so far; of earlier sessions it is an estimate.
    pub passed: Duration,
    /// Names of the study's arms.
    arms: Vec<String>,
    /// True if there is any trial, whatever its purpose.
    has_trials: bool,
    loads: BTreeMap<String, LoadHistory>,
}

/// Arm, number of responses and measured nanoseconds of a trial.
type Measured = (String, u64, u64);

/// Measurements under one load.
#[derive(Debug, Default)]
struct LoadHistory {
    /// Number of blocks in which every arm has a trial.
    whole: u32,
    /// Number of the next block. No number is used twice.
    next: u32,
    /// Trials of incomplete blocks, by session and block; a block that a kill has cut short stays here.
    open: BTreeMap<(u32, u32), Vec<Measured>>,
    /// Responses and measured nanoseconds in complete blocks, by arm.
    totals: BTreeMap<String, (u64, u64)>,
    /// Evaluations of the load's results, in order.
    looks: Vec<LookRecord>,
    /// Arm and rate of each observation of an arm's limiter.
    observed: Vec<(String, Option<f64>)>,
    /// Session and arm of each stretch in which an arm ran alone.
    alone: Vec<(u32, String)>,
}

impl History {
    /// Creates the empty history of a study with these arms.
    pub fn new(arms: &[Arm]) -> History {
        History { arms: arms.iter().map(|arm| arm.name.clone()).collect(), ..History::default() }
    }

    /// Builds the history from the records of a run's folder.
    pub fn of(run: &Run) -> History {
        let mut history = History::new(&run.header.study.arms);
        run.records.iter().for_each(|record| history.add(record));
        history
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        match record {
            Record::Session(session) => self.sessions = session.session + 1,
            Record::Pilot(pilot) => {
                self.pilots.insert(pilot.load.clone(), pilot.clone());
            }
            Record::Capacity(_) | Record::Bracket(_) => self.searched.push(record.clone()),
            Record::Decision(decision) => self.decisions.push(decision.clone()),
            Record::Look(look) => {
                let load = self.loads.entry(look.load.clone()).or_default();
                load.looks.push((**look).clone());
            }
            Record::Arm(added) => self.added.push(added.arm.clone()),
            Record::Trial(trial) => {
                self.has_trials = true;
                let ns = trial.slices.iter().map(|slice| slice.measured_ns).sum();
                self.measured += Duration::from_nanos(ns);
                let load = self.loads.entry(trial.load.clone()).or_default();
                let observed = (trial.arm.clone(), trial.rate_intended);
                if trial.phase == Phase::Observation && !load.observed.contains(&observed) {
                    load.observed.push(observed);
                }
                if trial.phase.is_numbered() {
                    load.next = load.next.max(trial.block + 1);
                }
                if trial.phase.counts() {
                    self.add_trial(trial);
                }
                if !trial.bad.is_empty() {
                    self.searched.push(record.clone());
                }
            }
            Record::Part(part) if part.phase.is_alone() && part.blocks > 0 => {
                let load = self.loads.entry(part.load.clone()).or_default();
                let arms = part.arms.iter().map(|arm| arm.arm.clone());
                load.alone.push((part.session, arms.collect()));
            }
            _ => {}
        }
    }

    fn add_trial(&mut self, trial: &TrialRecord) {
        let load = self.loads.entry(trial.load.clone()).or_default();
        let block = (trial.session, trial.block);
        let completed = trial.slices.iter().map(|slice| slice.completed).sum();
        let ns = trial.slices.iter().map(|slice| slice.measured_ns).sum();
        let open = load.open.entry(block).or_default();
        open.push((trial.arm.clone(), completed, ns));
        // Arms that are decided have left.
        let wanted = load.looks.last().map_or(&self.arms, |look| &look.open);
        if wanted.contains(&trial.arm)
            && wanted.iter().all(|arm| open.iter().any(|(open, ..)| open == arm))
        {
            load.whole += 1;
            for (arm, completed, ns) in load.open.remove(&block).unwrap_or_default() {
                let total = load.totals.entry(arm).or_default();
                *total = (total.0 + completed, total.1 + ns);
            }
        }
    }

    /// Returns the evaluations of a load's results so far.
    pub fn looks(&self, load: &str) -> &[LookRecord] {
        self.loads.get(load).map_or(&[], |load| &load.looks)
    }

    /// Returns the number of complete blocks of a load. In these, every arm of the study has a trial, except arms that
    /// had left.
    pub fn whole_blocks(&self, load: &str) -> u32 {
        self.loads.get(load).map_or(0, |load| load.whole)
    }

    /// Returns the number of a load's next block.
    pub fn next_block(&self, load: &str) -> u32 {
        self.loads.get(load).map_or(0, |load| load.next)
    }

    /// Returns the number of pairs of stretches in which two arms ran alone, one after the other.
    pub fn pairs_alone(&self, load: &str) -> u32 {
        let stretches = self.loads.get(load).map_or(&[][..], |load| &load.alone);
        let stretches: Vec<(u32, &str)> =
            stretches.iter().map(|(session, arm)| (*session, &**arm)).collect();
        weir_analysis::alone::pairs(&stretches).len() as u32
    }

    /// Returns true if nothing was measured at all.
    pub fn is_empty(&self) -> bool {
        !self.has_trials
    }

    /// Returns true if an arm has had a load alone, to find its limiter, at this rate; `None`: in a closed loop.
    pub fn is_observed(&self, load: &str, arm: &str, rate: Option<f64>) -> bool {
        let mut observed = self.loads.get(load).into_iter().flat_map(|load| &load.observed);
        observed.any(|(of, at)| {
            // As numbers are written and read again.
            let is_at =
                at.zip(rate).map_or(*at == rate, |(at, rate)| (at - rate).abs() <= 1e-9 * rate);
            of == arm && is_at
        })
    }

    /// Returns the requests per second that an arm completed under a load; `None` before its first complete block.
    pub fn completed(&self, load: &str, arm: &str) -> Option<f64> {
        let &(completed, ns) = self.loads.get(load)?.totals.get(arm)?;
        Some(completed as f64 / (ns.max(1) as f64 / 1e9))
    }

    /// Returns the requests per second that the slowest arm completed under a load; `None` before the first complete
    /// block.
    pub fn slowest(&self, load: &str) -> Option<f64> {
        self.loads
            .get(load)?
            .totals
            .values()
            .map(|&(completed, ns)| completed as f64 / (ns.max(1) as f64 / 1e9))
            .min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use weir_model::fixture::{arm, trial};
    use weir_model::study::ArmRole;

    use super::*;

    /// Makes the history after trials of these arms and blocks of one load.
    fn after(trials: &[(&str, u32, Phase)]) -> History {
        let arms = ["a", "b"].map(|name| arm(name, ArmRole::Change, &[]));
        let mut history = History::new(&arms);
        for (arm, block, phase) in trials {
            let trial = TrialRecord { phase: *phase, ..trial("l", arm, *block) };
            history.add(&Record::Trial(Box::new(trial)));
        }
        history
    }

    #[test]
    fn a_block_is_whole_when_every_arm_of_the_study_has_a_trial() {
        let (measured, screening) = (Phase::Measurement, Phase::Screening);
        #[rustfmt::skip]
        let rows = [
            (&[("a", 0, measured), ("b", 0, measured)][..], 1, 1),
            (&[("a", 0, measured), ("added", 0, measured)], 0, 1),
            (&[("a", 0, measured), ("b", 0, measured), ("added", 0, measured)], 1, 1),
            (&[("a", 0, measured), ("b", 1, measured)], 0, 2),
            (&[("a", 0, screening), ("b", 0, screening)], 0, 0),
            // In turn.
            (&[("a", 0, measured), ("b", 0, measured), ("b", 1, measured), ("a", 1, measured)], 2, 2),
            (&[("a", 0, measured), ("a", 1, measured), ("b", 0, measured)], 1, 2),
        ];
        for (trials, whole, next) in rows {
            let history = after(trials);
            assert_eq!(history.whole_blocks("l"), whole, "{trials:?}");
            assert_eq!(history.next_block("l"), next, "{trials:?}");
            assert!(!history.is_empty(), "{trials:?}: something was measured");
        }
        assert!(after(&[]).is_empty());
    }
}
