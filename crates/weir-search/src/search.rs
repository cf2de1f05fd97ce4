//! Which trials to make, until the edge is known and a fresh trial below it has held.

use weir_stats::SplitMix64;

use crate::burst::Bursts;
use crate::edge::WANDERS;
use crate::goal::{Answer, Goal, Seen, Stage, Trial, Why};
use crate::known::{Known, half_width};
use crate::long::{self, Bracket, Long};
use above::Above;
use kept::Kept;

mod above;
mod ends;
mod faults;
mod kept;
mod progress;
mod trials;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Rates far apart, until one holds and one does not that is near it.
    Ramp(Bracket),
    /// Trials around the edge.
    Ladder,
    /// A long one at this rate.
    Hold(f64),
    /// Short ones above the interval, which must break, now that this rate has held.
    Above(Above),
    /// Long ones, because one has broken what short ones held.
    Lasting(Long),
    /// After the answer.
    Burst(Bursts),
    Done,
}

/// Whether the target has come back after it broke.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Doubt {
    /// What it is asked for, requests per second, after so many seconds of rest.
    rate: f64,
    rest_s: f64,
    /// It broke above this.
    above: f64,
}

/// Rungs of a ladder, in margins of the edge to saturation. At the first some six in a hundred are bad where one may be:
/// the more are bad, the better is known how many. The last says that below there are none.
const RUNGS: [f64; 4] = [0.6, 0.85, 1.1, 1.7];
/// Ladders at least, and without which nothing is claimed.
const LEAST: usize = 3;
const LEAST_WANDERING: usize = 8;
const CLAIM: usize = 2;
/// How far apart the rates of a ramp may be at its end, and the first of them as a share of what a closed loop carries.
const BRACKET: f64 = 1.3;
const FIRST: f64 = 0.8;
/// The least margin of a ladder, as a share of the rate, and that which a ramp's end is thought to have at least.
const NARROW: f64 = 0.01;
const LIKELY: f64 = 0.05;
/// The lowest rate that is tried, requests per second, and as a share of what a closed loop carries.
const LOWEST: (f64, f64) = (1.0, 0.01);
/// How often a verification may fail before the rate that lasts is looked for.
const FAILURES: usize = 3;
/// A rate that is higher by this has to be verified again.
const AS_GOOD: f64 = 1.01;
/// Seconds that a queue is given to forget, at least and at most.
const FORGETS_S: (f64, f64) = (0.2, 0.7);
/// The same of a target whose speed wanders, at most.
const WANDERS_S: f64 = 1.5;
/// A trial is so long that so many bad responses would be allowed, but not longer than that.
const COUNTED: (f64, f64) = (5.0, 5.0);
/// A rate that is lower by this than one that has held does not break, unless the target has changed.
const BELOW: f64 = 0.97;
/// What a target that may be broken is asked for, as a share of what it has held, after so many seconds of rest.
const GENTLY: f64 = 0.25;
const REST_S: f64 = 5.0;
/// It is alive if it completes this share of what is due.
const ALIVE: f64 = 0.1;
/// An interval whose half is wider than this is closed by long trials, where short ones have not done so in their time.
const WIDE: f64 = 0.12;
/// How often the target may change.
const CHANGES: usize = 3;
/// A trial that is lower by this than one that was not sent in time may be.
const LESS: f64 = 0.95;
/// An answer is marked that comes so near to a ceiling.
const NEAR: f64 = 0.9;

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    goal: Goal,
    state: State,
    known: Known,
    /// Rates of the ladder that are left, and whether one of it has not broken clearly.
    left: Vec<f64>,
    has_held: bool,
    /// Whether none of it has been tried.
    is_new: bool,
    /// Margin of the edge to saturation, as a logarithm, that the ladder is made for.
    margin: f64,
    /// The highest rate that a short trial has held.
    held: Option<f64>,
    doubt: Option<Doubt>,
    /// The highest rate that can be tried, and a rate that was not sent in time once.
    ceiling: f64,
    unsent: Option<f64>,
    /// How often the target has changed, and how often of these for the worse.
    changes: (usize, usize),
    /// The lower end of the interval before the latest of them.
    before: Option<f64>,
    /// Short trials in which the machine stood still and that were left out, and the others.
    held_up: (usize, usize),
    spent_s: f64,
    /// The budget, or more where the target has changed.
    until_s: f64,
    long_s: f64,
    /// How many verifications have failed, and whether the last did without a collapse.
    failures: usize,
    is_slight: bool,
    /// Whether long trials go on only because short ones have left the interval wide: nothing has changed.
    is_wide: bool,
    /// Whether it broke for good in the latest of them: there is a memory.
    has_collapsed: bool,
    /// The rate that a verification has held.
    verified: Option<f64>,
    /// The same of before the search started over from a higher one.
    kept: Option<Kept>,
    /// The interval before the first verification.
    fresh: Option<(f64, f64)>,
    answer: Option<Answer>,
    rng: SplitMix64,
}

impl Search {
    /// A search that has seen nothing but a closed loop. What it does follows from the goal and from what it is told:
    /// told the same again, it is where it was.
    pub fn new(goal: Goal) -> Search {
        Search {
            state: State::Ramp(Bracket::default()),
            known: Known::new(&goal),
            left: Vec::new(),
            has_held: false,
            is_new: true,
            margin: LIKELY,
            held: None,
            doubt: None,
            ceiling: goal.ceiling.unwrap_or(f64::INFINITY),
            unsent: None,
            changes: (0, 0),
            before: None,
            held_up: (0, 0),
            spent_s: 0.0,
            until_s: goal.budget_s,
            long_s: 0.0,
            failures: 0,
            is_slight: false,
            is_wide: false,
            has_collapsed: false,
            verified: None,
            kept: None,
            fresh: None,
            answer: None,
            rng: SplitMix64::new(goal.seed),
            goal,
        }
    }

    /// What is to be tried next.
    ///
    /// # Errors
    /// Nothing: this is the answer.
    pub fn propose(&mut self) -> Result<Trial, Box<Answer>> {
        if let Some(doubt) = self.doubt {
            return Ok(Trial {
                rest_s: doubt.rest_s,
                measure_s: REST_S,
                ..self.trial(Stage::Ramp, doubt.rate)
            });
        }
        match &self.state {
            State::Ramp(bracket) => Ok(self.trial(Stage::Ramp, self.ramp_rate(*bracket))),
            State::Ladder => {
                if self.left.is_empty() {
                    self.make_ladder();
                }
                let is_fresh = self.is_new;
                let rate = self.left.last().copied().unwrap_or(LOWEST.0);
                Ok(Trial {
                    is_fresh,
                    ..self.trial(Stage::Ladder, rate)
                })
            }
            State::Hold(rate) => Ok(self.long_trial(*rate)),
            State::Above(above) => Ok(self.above_trial(above)),
            State::Lasting(long) => Ok(self.long_trial(long.rate)),
            State::Burst(bursts) => Ok(self.burst_trial(bursts.rate())),
            State::Done => {
                let answer = self.answer.clone();
                Err(Box::new(answer.unwrap_or_else(|| self.nothing(Why::Never))))
            }
        }
    }

    fn ramp_rate(&self, Bracket { held, broke }: Bracket) -> f64 {
        let rate = match (held, broke) {
            (None, None) => self.goal.closed.rate * FIRST,
            (Some(held), None) => held * BRACKET.sqrt(),
            // One that broke may be a little too high; two say that the edge may be anywhere.
            (None, Some(broke)) if broke > self.goal.closed.rate / 2.0 => broke / 2.0,
            (None, Some(broke)) => broke / 4.0,
            (Some(held), Some(broke)) => (held * broke).sqrt(),
        };
        rate.min(self.ceiling)
    }

    fn make_ladder(&mut self) {
        let saturated = self.known.saturated();
        // All would be bad that far above the edge.
        let reach = self.margin / self.known.first.map_or(1.0, |first| first.edge.steep());
        let edge = saturated * (-self.margin).exp();
        let rates = RUNGS.map(|rung| edge * ((1.0 - rung) * reach).exp());
        self.left = rates.map(|rate| rate.min(self.ceiling)).into();
        self.rng.shuffle(&mut self.left);
        (self.has_held, self.is_new) = (false, true);
        let (low, high) = self.known.between;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        self.known.between = (low.min(least / 2.0).max(self.lowest()), high.max(saturated));
    }

    /// Whether a trial goes on after the windows of it that were seen: its stopping rule. A trial of one window is not
    /// asked about.
    pub fn go_on(&self, trial: &Trial, windows: &[Seen]) -> bool {
        let is_over = windows.len() >= long::HOLDS
            && self.long_s + trial.window_s() * windows.len() as f64 >= self.long_most_s();
        let windows = long::judged(windows);
        trial.windows == 1
            || (!is_over && long::goes_on(&windows, &self.goal.bounds, self.failures > 0))
    }

    /// Seconds of all long trials together, at most.
    fn long_most_s(&self) -> f64 {
        self.goal.long_s + self.goal.verify_s
    }

    /// Takes in what the trial has shown that was proposed last: all its windows, or as many as there were when
    /// [`Search::go_on`] ended it. Without any window the trial counts as not made.
    pub fn seen(&mut self, trial: &Trial, windows: &[Seen]) {
        if windows.is_empty() {
            return;
        }
        let spent = trial.rest_s + trial.settle_s + trial.window_s() * windows.len() as f64;
        let doubt = self.doubt.filter(|doubt| trial.rest_s == doubt.rest_s);
        // The rest of a doubt is long.
        match trial.stage {
            _ if matches!(self.state, State::Above(_)) => self.long_s += spent,
            Stage::Ramp | Stage::Ladder if doubt.is_none() => self.spent_s += spent,
            _ => self.long_s += spent,
        }
        if long::is_unsent(windows) {
            let sent = windows.iter().map(|seen| seen.sent).fold(1.0, f64::min);
            return self.not_sent(trial.rate, sent);
        }
        // What was late once was a moment's doing.
        self.unsent = self.unsent.filter(|unsent| trial.rate < *unsent);
        if doubt.is_none() && self.is_held_up(trial, windows) {
            return;
        }
        let windows = &long::judged(windows)[..];
        let telling = &match trial.windows {
            1 => windows.to_vec(),
            _ => long::telling(windows),
        }[..];
        let is_model = match self.state {
            State::Lasting(_) => doubt.is_none() && (self.is_slight || self.is_wide),
            State::Burst(_) => false,
            _ => doubt.is_none(),
        };
        self.known.put(trial, &long::joined(telling), is_model);
        let worst = long::worst(telling, &self.goal.bounds);
        let is_swamped = long::is_swamped(telling, &self.goal.bounds);
        if let Some(doubt) = doubt {
            self.doubt = None;
            return self.after_doubt(doubt, telling);
        }
        let has_failed = match trial.stage {
            Stage::Hold => !self.holds(windows),
            _ => is_swamped,
        };
        if has_failed || worst <= 1.0 {
            self.look_at_kept(trial.rate, !has_failed);
        }
        match (std::mem::replace(&mut self.state, State::Done), trial.stage) {
            (State::Ramp(bracket), Stage::Ramp) => {
                self.after_ramp(bracket.with(trial.rate, worst <= 1.0), windows);
            }
            (State::Ladder, Stage::Ladder) => self.after_rung(trial.rate, is_swamped),
            (State::Hold(rate), Stage::Hold) => self.after_hold(rate, windows),
            (State::Above(above), Stage::Ramp) => self.after_above(above, worst <= 1.0),
            (State::Lasting(long), Stage::Hold) => self.after_long(long, windows),
            (State::Burst(bursts), Stage::Burst) => self.after_burst(bursts, worst <= 1.0),
            // The rest of a ladder that was measured at a stretch, of which a rung has made another step of it.
            (state, _) => self.state = state,
        }
        self.look_after(trial, worst <= 1.0, is_swamped);
    }

    /// Whether the machine stood still in a short trial, which is made again, after the others of its ladder. Where
    /// most trials are like that they count: it is how this machine is.
    fn is_held_up(&mut self, trial: &Trial, windows: &[Seen]) -> bool {
        if !matches!(trial.stage, Stage::Ramp | Stage::Ladder) {
            return false;
        }
        let is_left_out = windows[0].is_held_up && self.held_up.0 <= self.held_up.1;
        match is_left_out {
            true => self.held_up.0 += 1,
            false => self.held_up.1 += 1,
        }
        let place = self.left.iter().rposition(|left| *left == trial.rate);
        if let (true, State::Ladder, Some(place)) = (is_left_out, &self.state, place) {
            let rate = self.left.remove(place);
            self.left.insert(0, rate);
        }
        is_left_out
    }

    /// After a short trial: whether one has broken that cannot have, and whether there is time for another.
    fn look_after(&mut self, trial: &Trial, holds: bool, is_swamped: bool) {
        if !matches!(trial.stage, Stage::Ramp | Stage::Ladder) || self.answer.is_some() {
            return;
        }
        match self.held {
            Some(held) if is_swamped && trial.rate < held * BELOW => {
                self.doubt = Some(Doubt {
                    rate: trial.rate.min(held * GENTLY),
                    rest_s: REST_S,
                    above: held,
                });
            }
            held if holds => self.held = Some(held.unwrap_or(0.0).max(trial.rate)),
            _ => {}
        }
        let is_early = matches!(self.state, State::Ramp(_)) || self.known.ladders() < CLAIM;
        if is_early && !matches!(self.state, State::Hold(_)) && self.spent_s >= self.until_s {
            // One that has become slower since an interval was known is used up by the trials.
            match self
                .before
                .filter(|_| self.changes.1 > 0 && self.failures == 0)
            {
                Some(low) => self.state = State::Hold(low.min(self.ceiling)),
                None => self.give_up(self.too_long()),
            }
        }
    }

    /// Below it a trial has too few requests for a single one to be allowed to be bad: that it holds says nothing.
    fn lowest(&self) -> f64 {
        let bounds = self.goal.bounds.iter();
        let allowed = bounds.map(|bound| bound.allowed).fold(1.0, f64::min);
        let telling = 1.0 / (allowed * COUNTED.1);
        let carried = self.goal.closed.rate;
        LOWEST
            .0
            .max(LOWEST.1 * carried)
            .max(telling.min(carried / 10.0))
    }

    fn after_ramp(&mut self, bracket: Bracket, windows: &[Seen]) {
        self.state = State::Ramp(bracket);
        match (bracket.held, bracket.broke) {
            // Nothing higher can be tried.
            (Some(held), _) if held >= self.ceiling * 0.99 => {
                self.state = State::Hold(held.min(self.ceiling));
            }
            (Some(held), Some(broke)) if broke / held <= BRACKET => {
                self.known.between = (held / 2.0, broke * 1.2);
                let middle = (held * broke).sqrt();
                self.margin = (self.known.saturated() / middle).ln().max(LIKELY);
                self.state = State::Ladder;
            }
            (None, Some(broke)) if broke <= self.lowest() => {
                // It did carry a closed loop.
                match windows.iter().any(|seen| seen.completed > ALIVE * seen.due) {
                    true => self.end(self.nothing(Why::Never)),
                    false => self.broken(self.goal.closed.rate * FIRST),
                }
            }
            _ => {}
        }
    }

    fn after_rung(&mut self, rate: f64, is_swamped: bool) {
        self.state = State::Ladder;
        if let Some(place) = self.left.iter().rposition(|left| *left == rate) {
            self.left.remove(place);
        }
        self.is_new = false;
        self.has_held |= !is_swamped;
        if !self.left.is_empty() {
            return;
        }
        if !self.has_held && self.known.ladders() > 1 {
            self.start_over(rate, false);
            return self.changed(true);
        }
        if let Some(is_less) = self.known.leave_out_old(&self.goal) {
            self.changed(is_less);
        }
        if matches!(self.state, State::Ladder) {
            self.after_ladder();
        }
    }

    fn after_ladder(&mut self) {
        self.known.estimate(&self.goal);
        let Some(first) = self
            .known
            .first
            .filter(|_| !self.known.is_hopeless(&self.goal))
        else {
            return self.end(self.nothing(Why::Never));
        };
        // Half as near, or twice as far, as before at most: a single ladder may err.
        let margin = (first.edge.saturated / first.edge.rate).ln();
        let (nearest, farthest) = (self.margin / 2.0, self.margin * 2.0);
        self.margin = margin.clamp(nearest, farthest).max(NARROW);
        let least = match self.goal.closed.wander > WANDERS {
            true => LEAST_WANDERING,
            false => LEAST,
        };
        let is_narrow = half_width(self.interval(first.interval)) <= self.goal.half_width;
        let is_known = self.known.ladders() >= least && is_narrow;
        // A target that carries less and less is used up by the trials: only a long one says what lasts.
        let is_used_up = self.changes.1 >= 2 && self.verified.is_none();
        if !is_known && !is_used_up && self.spent_s < self.until_s {
            return self.after_clean();
        }
        // What has held long ago holds still, unless more is to be claimed now.
        let low = first.interval.0;
        match self.verified.filter(|held| low <= held * AS_GOOD) {
            Some(held) => self.found(&first, held),
            None if self.known.ladders() >= CLAIM || is_used_up => {
                self.state = State::Hold(low.min(self.ceiling));
            }
            None => {}
        }
    }

    fn after_hold(&mut self, rate: f64, windows: &[Seen]) {
        let first = self.known.first;
        if self.failures == 0 {
            self.fresh = first.map(|first| first.interval);
        }
        if self.holds(windows) {
            self.verified = Some(rate);
            self.known.estimate(&self.goal);
            let Some(first) = self.known.first else {
                let interval = (rate, self.ceiling.max(rate));
                return self.finish(interval, rate, Why::Found);
            };
            if rate * AS_GOOD >= self.ceiling {
                // Nothing above it can be tried.
                return self.finish((rate, self.ceiling.max(rate)), rate, Why::Found);
            }
            let interval = self.interval(ends::with(&first, rate));
            let (half, is_over) = (half_width(interval), self.spent_s >= self.until_s);
            let is_wide = is_over && half > WIDE && self.long_s <= self.goal.long_s;
            self.is_wide = is_wide && self.changes.0 == 0;
            if self.changes.0 >= CHANGES || is_wide {
                // Short trials would only use it up, or say one thing now and another one then.
                return self.look_long(Long::between(rate, interval.1));
            }
            return match is_over || half <= self.goal.half_width {
                true => self.found(&first, rate),
                // What it has shown has made the interval wider.
                false => self.state = State::Ladder,
            };
        }
        self.failures += 1;
        self.has_collapsed = long::has_collapsed(windows, &self.goal.bounds);
        self.is_slight = !self.has_collapsed && long::is_slight(windows, &self.goal.bounds);
        if self.has_collapsed || self.failures >= FAILURES {
            let held = self.verified.filter(|held| *held < rate);
            let broke_s = self.broke_s(windows);
            let long = Long::new(held, rate, broke_s, self.goal.verify_s);
            return self.look_long(long);
        }
        self.known.estimate(&self.goal);
        if self.long_s > self.goal.long_s {
            return self.give_up(self.too_long());
        }
        let low = self.known.first.map_or(rate, |first| first.interval.0);
        self.state = State::Hold(low.min(rate * 0.98));
    }
}
