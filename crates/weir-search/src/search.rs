//! The order of trials: a ramp, dwells, the first hold, and then those that narrow the answer.

use crate::burst::Bursts;
use crate::goal::{Answer, Ending, Goal, Progress, Stage, Trial, Window};
use crate::judge::{Break, Verdict, judge, worst};
use crate::threshold::{Datum, Kind, Stalls, Threshold};

mod answer;
mod faults;
mod plan;
mod trials;

#[cfg(test)]
mod tests;

/// Number of windows from which on it is known whether the machine spoils most of them.
const WINDOWS_TO_KNOW: usize = 8;
/// Chance to hold above which an immediate break of a dwell is a surprise.
const SURPRISE: f64 = 0.9;
/// Seconds in which a threshold moves by its scatter, as a random walk.
const MOVES_S: f64 = 50.0;
/// Logarithm of the ratio of the ends below which a bracket of holds is narrow enough, unless less precision was
/// requested.
const NARROW_BRACKET: f64 = 0.1;
/// Factor between rates that exceeds the scatter of most targets.
const CLEARLY: f64 = 1.05;
/// Share of the ceiling above which a rate counts as the ceiling.
const AT_CEILING: f64 = 0.98;

/// Next thing to do.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Ramp(f64),
    Dwell(f64),
    Hold(f64),
    /// Checks a target that stopped answering at this rate, after this many seconds of rest.
    Look {
        rate: f64,
        rest_s: f64,
    },
    Burst(Bursts),
    Done,
}

/// A completed and judged trial.
#[derive(Debug, Clone, PartialEq)]
struct Tried {
    rate: f64,
    stage: Stage,
    /// Seconds for which the trial held, or details of its break.
    result: Result<f64, Break>,
    /// Index of the worst bound, and its ratio of bad responses to those allowed.
    worst: (usize, f64),
    /// Requests due and responses completed per second, and share of bad responses for each bound, over all windows.
    due: f64,
    completed: f64,
    bad: Vec<f64>,
    seconds: f64,
    /// Factor by which its rate may exceed the sustainable one: see [`Search::lag`].
    lag: f64,
    /// True if the trial was expected to hold.
    was_expected: bool,
    /// True if the target stalled: it stood still for a moment, and only that broke the trial.
    has_stalled: bool,
    /// Seconds of all trials up to the end of this one.
    until_s: f64,
}

impl Tried {
    fn is_hold(&self) -> bool {
        self.stage == Stage::Hold
    }

    fn held(&self) -> bool {
        self.result.is_ok()
    }

    fn is_dead(&self) -> bool {
        self.result.is_err_and(|how| how.is_dead)
    }

    /// Returns true for a hold at whose beginning the target answered well, and at whose end only a small part of the
    /// due requests.
    fn has_collapsed_late(&self) -> bool {
        self.is_hold() && matches!(&self.result, Err(how) if how.has_collapsed && how.clean_s > 0.0)
    }

    /// Returns true if a dwell would have shown the same: a hold that became bad as early says nothing about build-up.
    fn is_as_short_as_a_dwell(&self) -> bool {
        match &self.result {
            Ok(_) => !self.is_hold(),
            Err(how) => !self.is_hold() || how.clean_s < trials::DWELL_S,
        }
    }
}

/// A search. Its state depends only on the goal and on the observed trials: observing the same ones again leads to the
/// same state.
#[derive(Debug, Clone)]
pub struct Search {
    goal: Goal,
    step: Step,
    tried: Vec<Tried>,
    threshold: Option<Threshold>,
    /// The highest rate that can be tried, and a rate that was once not sent in time.
    ceiling: f64,
    unsent: Option<f64>,
    /// Number of windows of all trials that the machine spoilt, and of all windows.
    spoilt: (usize, usize),
    /// True if a dwell that should have held broke at once: earlier trials may have exhausted a resource.
    has_surprised: bool,
    /// True if load builds up or exhausts a resource, so that only holds show the sustainable rate.
    builds_up: bool,
    /// Smallest value of each bound's quantity in any window.
    least: Vec<f64>,
    /// Seconds of dwells and of all trials so far, and the limit of the latter.
    spent_s: (f64, f64),
    end_s: f64,
    answer: Option<Answer>,
}

impl Search {
    /// Starts a search, with only a closed loop known.
    pub fn new(goal: Goal) -> Search {
        let mut search = Search {
            step: Step::Done,
            tried: Vec::new(),
            threshold: None,
            ceiling: goal.ceiling.unwrap_or(f64::INFINITY),
            unsent: None,
            spoilt: (0, 0),
            has_surprised: false,
            builds_up: false,
            least: vec![f64::NAN; goal.bounds.len()],
            spent_s: (0.0, 0.0),
            end_s: goal.time_s,
            answer: None,
            goal,
        };
        search.plan();
        search
    }

    /// Returns the next trial.
    ///
    /// # Errors
    /// Returns the answer once the search has ended.
    pub fn propose(&self) -> Result<Trial, Box<Answer>> {
        match &self.step {
            Step::Ramp(rate) => Ok(self.dwell(Stage::Ramp, *rate)),
            Step::Dwell(rate) => Ok(self.dwell(Stage::Dwell, *rate)),
            Step::Hold(rate) => Ok(self.hold(*rate)),
            Step::Look { rate, rest_s } => Ok(self.look(*rate, *rest_s)),
            Step::Burst(bursts) => Ok(self.burst(bursts.rate())),
            Step::Done => {
                let answer = self.answer.clone();
                Err(Box::new(answer.unwrap_or_else(|| self.nothing(Ending::Never))))
            }
        }
    }

    /// Returns true if a trial goes on after these windows of it: the stopping rule.
    pub fn go_on(&self, trial: &Trial, windows: &[Window]) -> bool {
        windows.len() < trial.windows
            && (trial.stage == Stage::Burst || self.judge(trial, windows) == Verdict::Open)
    }

    fn judge(&self, trial: &Trial, windows: &[Window]) -> Verdict {
        let spoilt_count = self.is_mostly_spoilt(windows);
        // Of others it would not be believed that the target stalled.
        let is_watched = trial.stage == Stage::Hold || self.should_hold(trial);
        judge(trial, windows, &self.goal.bounds, spoilt_count, is_watched)
    }

    /// Returns true if the machine spoils most windows, including these: then they count, because this is normal for
    /// the machine.
    fn is_mostly_spoilt(&self, windows: &[Window]) -> bool {
        let (spoilt, all) = self.spoilt;
        let spoilt = spoilt + windows.iter().filter(|window| window.is_held_up).count();
        let all = all + windows.len();
        all >= WINDOWS_TO_KNOW && 2 * spoilt > all
    }

    /// Evaluates the windows of the last proposed trial: all of them, or those before [`Search::go_on`] ended it. A
    /// trial without windows, or with too few for a verdict, counts as not made.
    pub fn observe(&mut self, trial: &Trial, windows: &[Window]) {
        if windows.is_empty() || matches!(self.step, Step::Done) {
            return;
        }
        let seconds = trial.rest_s + trial.settle_s + trial.window_s * windows.len() as f64;
        self.spent_s.1 += seconds;
        if let Step::Burst(bursts) = &self.step {
            let bursts = *bursts;
            let holds = worst(windows, &self.goal.bounds).1 <= 1.0;
            return self.after_burst(bursts, holds);
        }
        if !matches!(trial.stage, Stage::Hold | Stage::Look) {
            self.spent_s.0 += seconds;
        }
        self.keep_least(windows);
        let verdict = self.judge(trial, windows);
        self.spoilt.0 += windows.iter().filter(|window| window.is_held_up).count();
        self.spoilt.1 += windows.len();
        if let Verdict::Unsent(share) = verdict {
            self.not_sent(trial.rate, share);
            if self.answer.is_none() {
                self.plan();
            }
            return;
        }
        // A generator that was late once was held up for a moment.
        self.unsent = self.unsent.filter(|unsent| trial.rate < *unsent);
        let result = match verdict {
            Verdict::Held { seconds } => Ok(seconds),
            Verdict::Broke(how) => Err(how),
            Verdict::Spoilt => return self.plan(),
            Verdict::Open | Verdict::Unsent(_) => return,
        };
        if let Step::Look { rest_s, .. } = self.step {
            return self.after_look(rest_s, windows, result.is_ok());
        }
        self.has_surprised |= self.is_surprise(trial, &result);
        self.builds_up |= self.exhausts(trial, &result);
        self.keep(trial, windows, result);
        self.threshold = Threshold::estimate(&self.data(), self.stalls());
        if self.is_silent() {
            return;
        }
        self.plan();
    }

    fn keep_least(&mut self, windows: &[Window]) {
        for (place, least) in self.least.iter_mut().enumerate() {
            let values = windows.iter().filter_map(|window| window.value.get(place));
            *least = values.copied().fold(*least, f64::min);
        }
    }

    fn keep(&mut self, trial: &Trial, windows: &[Window], result: Result<f64, Break>) {
        let count = windows.len() as f64;
        let due = mean(windows, |window| window.due);
        let lag = self.lag(trial.settle_s + trial.window_s * trial.needed as f64);
        let threshold = self.threshold.as_ref();
        let was_expected = threshold.is_some_and(|known| (trial.rate / lag).ln() < known.mean());
        self.tried.push(Tried {
            rate: trial.rate,
            stage: trial.stage,
            has_stalled: self.is_stall(trial, &result),
            result,
            worst: worst(windows, &self.goal.bounds),
            due,
            completed: mean(windows, |window| window.completed),
            bad: (0..self.goal.bounds.len())
                .map(|bound| mean(windows, |window| window.bad[bound] * window.due) / due.max(1e-9))
                .collect(),
            seconds: trial.window_s * count,
            lag,
            was_expected,
            until_s: self.spent_s.1,
        });
    }

    /// Returns true if a dwell broke from its first window on although it should have held.
    fn is_surprise(&self, trial: &Trial, result: &Result<f64, Break>) -> bool {
        matches!(result, Err(how) if how.clean_s == 0.0) && self.should_hold(trial)
    }

    /// Returns true for a dwell at a rate that should hold.
    fn should_hold(&self, trial: &Trial) -> bool {
        trial.stage == Stage::Dwell
            && self
                .threshold
                .as_ref()
                .is_some_and(|threshold| threshold.chance(Kind::Dwell, trial.rate) > SURPRISE)
    }

    /// Returns true if a trial that should have held broke after it had been good, and was good again soon afterwards.
    fn is_stall(&self, trial: &Trial, result: &Result<f64, Break>) -> bool {
        let Err(how) = result else {
            return false;
        };
        let is_late = match trial.stage {
            Stage::Hold => how.clean_s >= trials::DWELL_S,
            _ => how.clean_s > 0.0 && self.should_hold(trial),
        };
        how.recovers && is_late
    }

    /// Returns true if a hold ended with a target that answered hardly anything, later than dwells of the same or
    /// higher rates which held; or with one that had collapsed, later than dwells of clearly higher rates.
    fn exhausts(&self, trial: &Trial, result: &Result<f64, Break>) -> bool {
        let (factor, after_s) = match result {
            Err(how) if how.is_dead => (1.0, how.after_s),
            Err(how) if how.has_collapsed => (CLEARLY, how.after_s),
            _ => return false,
        };
        let mut dwells = self.dwells().filter(|dwell| dwell.rate >= factor * trial.rate);
        trial.stage == Stage::Hold
            && dwells.any(|dwell| dwell.result.is_ok_and(|held_s| after_s >= held_s))
    }

    /// Returns the factor by which a rate may exceed the capacity and still hold for this many seconds: that is how
    /// long its backlog takes to reach the limit of the response time (a fluid queue: Newell, Applications of Queueing
    /// Theory, 1982, chapter 2).
    fn lag(&self, seconds: f64) -> f64 {
        1.0 + self.goal.longest_limit_s() / seconds
    }

    /// Returns true if the target has stalled in any trial.
    fn has_stalled(&self) -> bool {
        self.stalls().count > 0
    }

    fn stalls(&self) -> Stalls {
        Stalls {
            count: self.tried.iter().filter(|tried| tried.has_stalled).count(),
            holds: self.tried.iter().map(|tried| tried.seconds).sum::<f64>() / self.goal.hold_s,
        }
    }

    fn data(&self) -> Vec<Datum> {
        self.tried
            .iter()
            .map(|tried| Datum {
                rate: tried.rate / tried.lag,
                is_hold: !tried.is_as_short_as_a_dwell(),
                held: tried.held(),
                has_stalled: tried.has_stalled,
                spread: (1.0 + (self.spent_s.1 - tried.until_s) / MOVES_S).sqrt(),
            })
            .collect()
    }

    /// Returns the seconds that are left for trials.
    fn left_s(&self) -> f64 {
        let has_failed = self.held().is_none() && self.holds().next().is_some();
        // Whether the next hold meets a stall is chance.
        let times =
            if self.holds().any(|hold| hold.has_stalled) { Goal::MOST_FURTHER } else { 1.0 };
        let further_s = if has_failed { times * self.goal.until_held_s } else { 0.0 };
        self.end_s + further_s - self.spent_s.1
    }

    fn dwells(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(|tried| !tried.is_hold())
    }

    fn holds(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(|tried| tried.is_hold())
    }

    /// Returns the highest rate at which a trial of any length held, requests/s.
    fn highest_held(&self) -> Option<f64> {
        self.tried.iter().filter(|tried| tried.held()).map(|tried| tried.rate).reduce(f64::max)
    }

    /// Returns the highest rate at which a hold succeeded, requests/s.
    fn held(&self) -> Option<f64> {
        self.holds().filter(|tried| tried.held()).map(|tried| tried.rate).reduce(f64::max)
    }

    /// Sets the remaining time for trials, by the clock: less than before, or more if others did not use theirs. If the
    /// next trial does not fit, another is planned, or the search ends with its present knowledge; one that ended for
    /// lack of time is resumed.
    pub fn limit_time(&mut self, left_s: f64) {
        self.end_s = self.spent_s.1 + left_s;
        if self.is_out_of_time() {
            self.answer = None;
            self.plan();
        }
        while let Ok(trial) = self.propose() {
            if trial.seconds() <= left_s {
                return;
            }
            if let Step::Burst(bursts) = &self.step {
                let burst = bursts.so_far();
                self.end_burst(burst);
            } else {
                let before = self.step.clone();
                self.plan();
                if self.step == before {
                    self.stop();
                }
            }
        }
    }

    /// Returns true if the search has ended only because its time was over.
    pub fn is_out_of_time(&self) -> bool {
        let ending = self.answer.as_ref().map(|answer| answer.ending);
        self.step == Step::Done && matches!(ending, Some(Ending::Time | Ending::TooShort(_)))
    }

    /// Returns the state of the search.
    pub fn progress(&self) -> Progress {
        let stage = self.propose().ok().map(|trial| trial.stage);
        Progress {
            stage,
            between: self.between(),
            held: self.longest_held(),
            seconds: self.spent_s.1,
            left_s: self.remaining_s(),
        }
    }
}

fn mean(windows: &[Window], value: impl Fn(&Window) -> f64) -> f64 {
    windows.iter().map(value).sum::<f64>() / windows.len() as f64
}
