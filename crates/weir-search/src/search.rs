//! Which trials to make, until the edge is known and a fresh trial below it has held.

use weir_stats::SplitMix64;

use crate::edge::{Closed, Edge, Frame, Rung};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Share of the responses that may break the objective, 0..1: 0.01 for a p99.
    pub allowed: f64,
    /// The limit of the response time, seconds; 0 where the objective has none.
    pub limit_s: f64,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// Half of the interval as a share of the rate at which the search ends.
    pub half_width: f64,
    /// Seconds of trials before the verification; the ladder that goes beyond is the last.
    pub budget_s: f64,
    /// Length of the verification, seconds: longer than the slowest memory of the system.
    pub verify_s: f64,
    /// What a closed loop has completed.
    pub closed: Closed,
    /// Seed of the order of the trials.
    pub seed: u64,
}

/// A trial that is to be made. The target has nothing to do before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Requests per second.
    pub rate: f64,
    /// Seconds that are not looked at, in which queues become what they are.
    pub settle_s: f64,
    /// Seconds that are.
    pub measure_s: f64,
    /// Windows of equal length that are told apart in what is seen.
    pub windows: usize,
    /// Whether the target should be a new instance: it is the first trial of a ladder, or the verification.
    pub is_fresh: bool,
}

/// What a window of a trial showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Share of the responses that broke the objective, 0..1; those that never came did.
    pub bad: f64,
    /// Requests that were due per second, as they came.
    pub due: f64,
    /// Responses per second while the load lasted.
    pub completed: f64,
}

/// Why the search has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The interval is as narrow as was asked for, and a trial near its lower end has held.
    Found,
    /// The time was over; a trial near the lower end has held.
    Budget,
    /// No rate has held that was tried.
    Never,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Lower and upper end of the interval, requests per second; both 0 where no rate has held.
    pub interval: (f64, f64),
    /// The rate that a fresh trial has held.
    pub verified: f64,
    /// Seconds of trials, without and with verifications.
    pub seconds: (f64, f64),
    /// Why it ended.
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Rates far apart, until one holds and one does not that is near it.
    Ramp {
        held: Option<f64>,
        broke: Option<f64>,
    },
    /// Trials around the edge.
    Ladder,
    /// A long one at this rate.
    Verify(f64),
    Done(Answer),
}

/// Rungs of a ladder, in margins of the edge to saturation. At the first some six in a hundred are bad where one may be:
/// the more are bad, the better is known how many. The last says that below there are none.
const RUNGS: [f64; 4] = [0.6, 0.85, 1.1, 1.7];
/// Ladders at least.
const LEAST: usize = 4;
/// How far apart the rates of a ramp may be at its end, and the first of them as a share of what a closed loop carries.
const BRACKET: f64 = 1.3;
const FIRST: f64 = 0.8;
/// The least margin of a ladder, as a share of the rate.
const NARROW: f64 = 0.01;
/// The lowest rate that is tried, requests per second.
const LOWEST: f64 = 1.0;
/// Windows of a verification, and how often it may fail.
const WINDOWS: usize = 13;
const FAILURES: usize = 3;
/// A rate that is higher by this has to be verified again.
const AS_GOOD: f64 = 1.01;
/// Seconds that a queue is given to forget, at least and at most.
const FORGETS_S: (f64, f64) = (0.2, 0.7);

/// A search.
#[derive(Debug)]
pub struct Search {
    goal: Goal,
    stage: Stage,
    rungs: Vec<Rung>,
    /// Rates of the ladder that are left.
    left: Vec<f64>,
    ladders: usize,
    group: usize,
    /// Where the edge is thought to be after the ramp.
    between: (f64, f64),
    /// Margin of the edge to saturation, as a logarithm, that the ladder is made for.
    margin: f64,
    edge: Option<Edge>,
    spent_s: f64,
    verified_s: f64,
    failures: usize,
    /// The rate that a verification has held.
    verified: Option<f64>,
    rng: SplitMix64,
}

impl Search {
    /// A search that has seen nothing but a closed loop.
    pub fn new(goal: Goal) -> Search {
        Search {
            goal,
            stage: Stage::Ramp {
                held: None,
                broke: None,
            },
            rungs: Vec::new(),
            left: Vec::new(),
            ladders: 0,
            group: 0,
            between: (0.0, 0.0),
            margin: 0.0,
            edge: None,
            spent_s: 0.0,
            verified_s: 0.0,
            failures: 0,
            verified: None,
            rng: SplitMix64::new(goal.seed),
        }
    }

    /// The edge as the trials so far have it; `None` before the first ladder.
    pub fn edge(&self) -> Option<&Edge> {
        self.edge.as_ref()
    }

    /// What is to be tried next.
    ///
    /// # Errors
    /// Nothing: this is the answer.
    pub fn propose(&mut self) -> Result<Trial, Answer> {
        match self.stage {
            Stage::Ramp { held, broke } => Ok(self.trial(match (held, broke) {
                (None, None) => self.goal.closed.rate * FIRST,
                (Some(held), None) => held * BRACKET.sqrt(),
                (None, Some(broke)) => broke / 2.0,
                (Some(held), Some(broke)) => (held * broke).sqrt(),
            })),
            Stage::Ladder => {
                let is_fresh = self.left.is_empty();
                if is_fresh {
                    let saturated = self.saturated();
                    let margin = self.margin;
                    self.left = RUNGS.map(|rung| saturated * (-rung * margin).exp()).into();
                    self.rng.shuffle(&mut self.left);
                }
                let rate = self.left.last().copied().unwrap_or(LOWEST);
                Ok(Trial {
                    is_fresh,
                    ..self.trial(rate)
                })
            }
            Stage::Verify(rate) => Ok(Trial {
                rate,
                settle_s: FORGETS_S.1,
                measure_s: self.goal.verify_s,
                windows: WINDOWS,
                is_fresh: true,
            }),
            Stage::Done(answer) => Err(answer),
        }
    }

    fn saturated(&self) -> f64 {
        self.edge
            .map_or(self.goal.closed.rate, |edge| edge.saturated)
    }

    /// A trial that is as long as the margin is narrow: the queue of M/M/1 forgets within 4 / margin² requests.
    fn trial(&self, rate: f64) -> Trial {
        let saturated = self.saturated();
        let forgets = match self.stage {
            Stage::Ladder => {
                let margin = (saturated / rate).ln().max(NARROW);
                4.0 / (margin * margin) / saturated
            }
            _ => 0.0,
        };
        let forgets = forgets
            .max(2.0 * self.goal.limit_s)
            .clamp(FORGETS_S.0, FORGETS_S.1);
        Trial {
            rate,
            settle_s: forgets,
            measure_s: (4.0 * forgets).max(1.0),
            windows: 1,
            is_fresh: false,
        }
    }

    /// Whether a trial may still hold, by the windows of it that were seen: its stopping rule.
    pub fn go_on(&self, trial: &Trial, windows: &[Seen]) -> bool {
        let bad: f64 = windows.iter().map(|seen| seen.bad).sum();
        trial.windows == 1 || bad <= self.goal.allowed * trial.windows as f64
    }

    /// Takes in what the trial has shown that was proposed last: all its windows, or as many as there were when
    /// [`Search::go_on`] ended it. Without any window the trial counts as not made.
    pub fn seen(&mut self, trial: &Trial, windows: &[Seen]) {
        let window_s = trial.measure_s / trial.windows as f64;
        let spent = trial.settle_s + window_s * windows.len() as f64;
        if windows.is_empty() {
            return;
        }
        let is_verification = matches!(self.stage, Stage::Verify(_));
        match is_verification {
            true => self.verified_s += spent,
            false => self.spent_s += spent,
        }
        if trial.is_fresh {
            self.group += 1;
        }
        let rungs = windows.iter().map(|seen| Rung {
            rate: trial.rate,
            bad: seen.bad,
            due: seen.due,
            completed: seen.completed,
            seconds: window_s,
            group: self.group,
        });
        self.rungs.extend(rungs);
        let bad: f64 = windows.iter().map(|seen| seen.bad).sum();
        let holds = bad <= self.goal.allowed * windows.len() as f64;
        match self.stage {
            Stage::Ramp { held, broke } => match holds {
                true => self.after_ramp(Some(trial.rate), broke),
                false => self.after_ramp(held, Some(trial.rate)),
            },
            Stage::Ladder => {
                self.left.pop();
                if self.left.is_empty() {
                    self.ladders += 1;
                    self.after_ladder();
                }
            }
            Stage::Verify(rate) => self.after_verification(rate, holds),
            Stage::Done(_) => {}
        }
    }

    fn after_ramp(&mut self, held: Option<f64>, broke: Option<f64>) {
        self.stage = Stage::Ramp { held, broke };
        match (held, broke) {
            (Some(held), Some(broke)) if broke / held <= BRACKET => {
                self.between = (held / 2.0, broke * 1.2);
                let middle = (held * broke).sqrt();
                self.margin = (self.goal.closed.rate / middle).ln().max(0.05);
                self.stage = Stage::Ladder;
            }
            (None, Some(broke)) if broke <= LOWEST => self.never(),
            _ => {}
        }
    }

    fn after_ladder(&mut self) {
        self.estimate();
        let Some(edge) = self.edge else {
            return self.never();
        };
        // Half as near, or twice as far, as before at most: a single ladder may err.
        let margin = (edge.saturated / edge.rate).ln();
        let (least, most) = (self.margin / 2.0, self.margin * 2.0);
        self.margin = margin.clamp(least, most).max(NARROW);
        let is_known = self.ladders >= LEAST && edge.half_width() <= self.goal.half_width;
        if !is_known && self.spent_s < self.goal.budget_s {
            return;
        }
        // What has held long ago holds still, unless more is to be claimed now.
        match self.verified.filter(|held| edge.low <= held * AS_GOOD) {
            Some(held) => self.answer(&edge, held),
            None => self.stage = Stage::Verify(edge.low),
        }
    }

    fn after_verification(&mut self, rate: f64, holds: bool) {
        self.estimate();
        let Some(edge) = self.edge else {
            return self.never();
        };
        if !holds {
            self.failures += 1;
            let next = edge.low.min(rate * 0.98);
            return match next < LOWEST || self.failures >= FAILURES {
                true => self.never(),
                false => self.stage = Stage::Verify(next),
            };
        }
        self.verified = Some(rate);
        let is_narrow = half_width(interval(&edge, rate)) <= self.goal.half_width;
        match is_narrow || self.spent_s >= self.goal.budget_s {
            true => self.answer(&edge, rate),
            // What it has shown has made the interval wider.
            false => self.stage = Stage::Ladder,
        }
    }

    fn answer(&mut self, edge: &Edge, held: f64) {
        let interval = interval(edge, held);
        let why = match half_width(interval) <= self.goal.half_width {
            true => Why::Found,
            false => Why::Budget,
        };
        self.end(interval, held, why);
    }

    fn estimate(&mut self) {
        let frame = Frame {
            allowed: self.goal.allowed,
            confidence: self.goal.confidence,
            limit_s: self.goal.limit_s,
            closed: self.goal.closed,
            between: self.between,
        };
        self.edge = Edge::of(&self.rungs, &frame);
    }

    fn never(&mut self) {
        self.end((0.0, 0.0), 0.0, Why::Never);
    }

    fn end(&mut self, interval: (f64, f64), verified: f64, why: Why) {
        self.stage = Stage::Done(Answer {
            interval,
            verified,
            seconds: (self.spent_s, self.spent_s + self.verified_s),
            why,
        });
    }
}

/// The edge's interval and what has held.
fn interval(edge: &Edge, held: f64) -> (f64, f64) {
    (edge.low.min(held), edge.high.max(held))
}

/// Half of an interval as a share.
fn half_width((low, high): (f64, f64)) -> f64 {
    (high / low).ln() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(seed: u64) -> Goal {
        Goal {
            allowed: 0.01,
            limit_s: 0.03,
            confidence: 0.95,
            half_width: 0.03,
            budget_s: 100.0,
            verify_s: 65.0,
            closed: Closed {
                rate: 2000.0,
                off: 0.015,
                wander: 0.0,
            },
            seed,
        }
    }

    /// Asks a target of which is known how many are bad at a rate, until there is an answer; how many trials that took.
    fn ask(goal: Goal, bad: &mut dyn FnMut(&Trial) -> f64) -> (Answer, usize) {
        let mut search = Search::new(goal);
        for trials in 0..500 {
            let trial = match search.propose() {
                Ok(trial) => trial,
                Err(answer) => return (answer, trials),
            };
            let mut windows = Vec::new();
            while windows.len() < trial.windows && search.go_on(&trial, &windows) {
                windows.push(Seen {
                    bad: bad(&trial),
                    due: trial.rate,
                    completed: trial.rate.min(goal.closed.rate),
                });
            }
            search.seen(&trial, &windows);
        }
        panic!("no end after 500 trials");
    }

    /// M/M/1 of 2000/s: capacity 2000 - ln(100)/0.03. What is bad comes in clusters of one memory of the queue.
    fn queue(rng: &mut SplitMix64, trial: &Trial) -> f64 {
        let share = (-(2000.0 - trial.rate) * 0.03).min(0.0).exp();
        let margin = (2000.0 / trial.rate).ln().max(0.01);
        let seconds = trial.measure_s / trial.windows as f64;
        let clusters = (trial.rate * seconds * margin * margin / 2.0)
            .ceil()
            .max(1.0);
        let bad = (0..clusters as usize)
            .filter(|_| rng.unit() < share)
            .count();
        bad as f64 / clusters
    }

    #[test]
    fn the_interval_covers_what_a_queue_carries() {
        let truth = 2000.0 - 100.0_f64.ln() / 0.03;
        let covers = |seed: &u64| {
            let mut rng = SplitMix64::new(1000 + seed);
            let (answer, _) = ask(goal(*seed), &mut |trial| queue(&mut rng, trial));
            assert!(answer.verified > 0.0, "{answer:?}");
            answer.interval.0 <= truth && truth <= answer.interval.1
        };
        let count = (0..40).filter(covers).count();
        assert!(count >= 36, "{count} of 40");
    }

    #[test]
    fn an_edge_that_is_a_cliff_is_found_to_a_per_cent() {
        let mut cliff = |trial: &Trial| f64::from(u8::from(trial.rate > 1200.0));
        let (answer, trials) = ask(goal(1), &mut cliff);
        assert!(
            answer.verified <= 1200.0 && answer.verified > 1140.0,
            "{answer:?}"
        );
        assert!(
            answer.interval.1 >= 1200.0 && trials < 60,
            "{answer:?}, {trials}"
        );
    }

    #[test]
    fn what_no_rate_avoids_ends_the_search() {
        // One that fails always as often, one that is slow from the first request on.
        for (name, always) in [("fails 3 %", 0.03), ("slow", 1.0)] {
            let (answer, trials) = ask(goal(1), &mut |_| always);
            assert_eq!(answer.why, Why::Never, "{name}");
            assert!(trials <= 12, "{name}: {trials}");
        }
    }

    #[test]
    fn what_only_a_long_trial_shows_is_not_claimed() {
        // Nothing is bad for ten seconds, then everything is above 900/s: the search is right about trials of that
        // length, and wrong.
        let mut lasting = |trial: &Trial| match trial.measure_s > 10.0 {
            true => f64::from(u8::from(trial.rate > 900.0)),
            false => f64::from(u8::from(trial.rate > 1200.0)),
        };
        let (answer, _) = ask(goal(1), &mut lasting);
        assert!(
            answer.verified > 0.0 && answer.verified <= 900.0,
            "{answer:?}"
        );
        assert!(answer.interval.0 <= 900.0, "{answer:?}");
    }

    #[test]
    fn a_hopeless_verification_ends_early() {
        let search = Search::new(goal(1));
        let trial = Trial {
            rate: 1000.0,
            settle_s: 1.0,
            measure_s: 65.0,
            windows: 13,
            is_fresh: true,
        };
        let seen = |bad: f64| Seen {
            bad,
            due: 1000.0,
            completed: 1000.0,
        };
        assert!(search.go_on(&trial, &[seen(0.1)]), "the rest may be clean");
        assert!(!search.go_on(&trial, &[seen(0.1), seen(0.1)]));
    }
}
