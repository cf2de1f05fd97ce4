//! What is known while a search goes on, and how long it will take.

use super::ends::with;
use super::{CLAIM, LEAST, REST_S, RUNGS, Search, State};
use crate::burst::Bursts;
use crate::goal::{Answer, Progress, Stage, Trial, Why};
use crate::long::Bracket;

/// Seconds of the last ladder, or of trials above the interval, which are kept free.
const LAST_S: f64 = 16.0;

impl Search {
    /// Seconds of trials until something can be claimed.
    pub(super) fn claim_s(&self) -> f64 {
        let rate = self.known.saturated() * (-self.margin).exp();
        let trial = self.trial(Stage::Ladder, rate);
        let ladders = CLAIM.saturating_sub(self.known.ladders()) as f64;
        let ramp = match self.state {
            State::Ramp(_) => 4.0,
            _ => 0.0,
        };
        (trial.settle_s + trial.measure_s) * (ladders * RUNGS.len() as f64 + ramp)
    }

    /// What is to be tried next, as [`Search::propose`] says, and what comes after it as long as nothing that is seen
    /// changes that: the rest of a ladder.
    ///
    /// # Errors
    /// Nothing: this is the answer.
    pub fn ahead(&mut self) -> Result<Vec<Trial>, Box<Answer>> {
        let mut trials = vec![self.propose()?];
        if self.doubt.is_none() && matches!(self.state, State::Ladder) {
            let rest = self.left.iter().rev().skip(1);
            trials.extend(rest.map(|rate| self.trial(Stage::Ladder, *rate)));
        }
        Ok(trials)
    }

    /// So many seconds are left for trials, by the clock: whatever went into rests, new instances and trials that were
    /// made again is over. Where what is next does not fit into them, the search ends with what it knows.
    pub fn has_left(&mut self, left_s: f64) {
        // A trial that holds is kept free, and what is begun before the time is over.
        let hold_s = match self.verified {
            Some(_) => 0.0,
            None => self.goal.verify_s,
        };
        let short_s = (left_s - hold_s - LAST_S).max(0.0);
        self.until_s = self.until_s.min(self.spent_s + short_s);
        let long_s = self.long_s + left_s - self.goal.verify_s;
        self.goal.long_s = self.goal.long_s.min(long_s.max(0.0));
        while let Ok(next) = self.clone().ahead() {
            if next.iter().map(|trial| self.least_s(trial)).sum::<f64>() <= left_s {
                return;
            }
            self.stop();
        }
    }

    /// Seconds of a trial that goes well: a long one ends as soon as it has held.
    fn least_s(&self, trial: &Trial) -> f64 {
        let measure_s = match trial.stage {
            Stage::Hold => self.goal.verify_s,
            _ => trial.measure_s,
        };
        trial.rest_s + trial.settle_s + measure_s
    }

    /// No time is left for what would be next.
    fn stop(&mut self) {
        if self.doubt.take().is_some() {
            // Whether it has broken for good is not known.
            return self.give_up(self.too_long());
        }
        match std::mem::replace(&mut self.state, State::Done) {
            State::Burst(bursts) => self.end_burst(bursts.so_far()),
            State::Lasting(long) => match (long.bracket.held, long.bracket.broke) {
                (Some(held), broke) => {
                    self.finish((held, broke.unwrap_or(long.above)), held, Why::Budget);
                }
                (None, _) => self.give_up(self.too_long()),
            },
            State::Above(above) => self.stop_with(above.held().or(self.verified)),
            _ => self.stop_with(self.verified),
        }
    }

    /// Answers with what a long trial has held, if one has.
    fn stop_with(&mut self, held: Option<f64>) {
        self.known.estimate(&self.goal);
        match (held, self.known.first) {
            (Some(held), Some(first)) => {
                let interval = self.interval(with(&first, held));
                self.finish(interval, held, Why::Budget);
            }
            _ => self.give_up(self.too_long()),
        }
    }

    /// What is known so far.
    pub fn progress(&self) -> Progress {
        let stage = match &self.state {
            _ if self.doubt.is_some() => Some(Stage::Ramp),
            State::Ramp(_) | State::Above(_) => Some(Stage::Ramp),
            State::Ladder => Some(Stage::Ladder),
            State::Hold(_) | State::Lasting(_) => Some(Stage::Hold),
            State::Burst(_) => Some(Stage::Burst),
            State::Done => None,
        };
        let between = match (&self.state, self.known.first, &self.answer) {
            (_, _, Some(answer)) => Some(answer.interval).filter(|(low, _)| *low > 0.0),
            (State::Lasting(long), ..) => ends(long.bracket),
            (_, Some(first), _) => Some(first.interval),
            (State::Ramp(bracket), ..) => ends(*bracket),
            _ => Some(self.known.between),
        };
        Progress {
            stage,
            between,
            seconds: self.spent_s + self.long_s,
            left_s: self.left_s(),
        }
    }

    /// Seconds of trials that are left, about: the interval closes with the root of the time, and one verification of
    /// several fails.
    pub fn left_s(&self) -> f64 {
        let left = (self.until_s - self.spent_s).max(0.0);
        let doubt = self.doubt.map_or(0.0, |doubt| doubt.rest_s + REST_S);
        let burst = match self.goal.burst_s {
            Some(seconds) => {
                let trials = match &self.state {
                    State::Burst(bursts) => bursts.left(),
                    State::Done => 0.0,
                    _ => Bursts::new(0.0).left(),
                };
                trials * (seconds + self.burst_rest_s())
            }
            None => 0.0,
        };
        let verify = self.goal.verify_s * f64::from(u8::from(self.verified.is_none()));
        burst
            + doubt
            + match (&self.state, self.known.first) {
                (State::Ramp(_), _) | (State::Ladder, None) => {
                    left.min(6.0 * self.claim_s()) + verify
                }
                (State::Ladder, Some(first)) => {
                    let times = (first.half_width() / self.goal.half_width).powi(2);
                    let least = LEAST.saturating_sub(self.known.ladders()) as f64;
                    let each = self.spent_s / self.known.ladders().max(1) as f64;
                    (self.spent_s * (times - 1.0))
                        .max(each * least)
                        .clamp(0.0, left)
                        + verify
                }
                (State::Hold(_), _) => self.goal.verify_s,
                (State::Lasting(long), _) => long.left() * self.goal.verify_s,
                (State::Above(_) | State::Burst(_) | State::Done, _) => 0.0,
            }
    }
}

fn ends(bracket: Bracket) -> Option<(f64, f64)> {
    bracket.held.zip(bracket.broke)
}
