//! What the trials so far say about the target.

use crate::edge::{self, Closed, Edge, Frame, Rung};
use crate::goal::{Bound, Goal, Seen, Stage, Trial};
use crate::long;

/// Confidence at which ladders before and after must disagree, and how far: what is less is noise, which the interval has
/// in it.
const SURELY: f64 = 0.99;
const CLEARLY: f64 = 1.1;

/// A change is looked for before the newest two ladders, and before each of some more.
const NEWEST: usize = 8;
/// No rate holds if so many times what is allowed is bad at low ones.
const HOPELESS: f64 = 1.5;

/// A window of a trial.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    rung: Rung,
    stage: Stage,
    /// Share that broke each bound.
    bad: Vec<f64>,
}

/// The edge of the bound that breaks first, and the interval in which it lies whichever that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct First {
    pub(crate) edge: Edge,
    pub(crate) decides: usize,
    pub(crate) interval: (f64, f64),
}

impl First {
    pub(crate) fn half_width(&self) -> f64 {
        half_width(self.interval)
    }
}

/// Half of an interval as a share.
pub(crate) fn half_width((low, high): (f64, f64)) -> f64 {
    (high / low).ln() / 2.0
}

/// What is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    looks: Vec<Look>,
    /// Trials of one group were made in the same minute on the same instance.
    group: usize,
    /// What a closed loop has completed, or would now.
    closed: Closed,
    /// The edge is thought to be between these, requests per second.
    pub(crate) between: (f64, f64),
    pub(crate) first: Option<First>,
    /// The least value of each bound in a trial.
    pub(crate) least: Vec<f64>,
    pub(crate) left_out: usize,
}

impl Known {
    pub(crate) fn new(goal: &Goal) -> Known {
        Known {
            looks: Vec::new(),
            group: 0,
            closed: goal.closed,
            between: (0.0, 0.0),
            first: None,
            least: vec![f64::NAN; goal.bounds.len()],
            left_out: 0,
        }
    }

    /// Takes in what a trial showed. One of its own (`is_model` false) only counts for what is so at any rate.
    pub(crate) fn put(&mut self, trial: &Trial, windows: &[Seen], is_model: bool) {
        for (place, least) in self.least.iter_mut().enumerate() {
            let values = windows.iter().filter_map(|seen| seen.value.get(place));
            let worst = values.fold(f64::NAN, |worst, value| worst.max(*value));
            *least = least.min(worst);
        }
        self.group += usize::from(trial.is_fresh);
        let seconds = long::joined_s(trial);
        for seen in windows {
            self.closed.raise(seen.completed, seconds);
        }
        if is_model {
            let group = self.group;
            self.looks.extend(windows.iter().map(|seen| Look {
                rung: Rung {
                    rate: trial.rate,
                    bad: 0.0,
                    due: seen.due,
                    completed: seen.completed,
                    seconds,
                    group,
                },
                stage: trial.stage,
                bad: seen.bad.clone(),
            }));
        }
    }

    /// Responses per second of the saturated target.
    pub(crate) fn saturated(&self) -> f64 {
        self.first
            .map_or(self.closed.rate, |first| first.edge.saturated)
    }

    /// Estimates the edge by all looks.
    pub(crate) fn estimate(&mut self, goal: &Goal) {
        let looks: Vec<&Look> = self.looks.iter().collect();
        self.first = self.first_of(&looks, goal, goal.confidence);
    }

    /// The bound that breaks first decides. Both ends are the least of theirs: the lower one is no higher than that of
    /// the bound which truly decides, and no bound is claimed to hold beyond the upper end of any.
    fn first_of(&self, looks: &[&Look], goal: &Goal, confidence: f64) -> Option<First> {
        let edge = |place: usize| {
            let rungs: Vec<Rung> = looks
                .iter()
                .map(|look| Rung {
                    bad: look.bad[place],
                    ..look.rung
                })
                .collect();
            let bound = goal.bounds[place];
            let frame = Frame {
                allowed: bound.allowed,
                confidence,
                limit_s: bound.limit_s,
                closed: self.closed,
                between: self.between,
            };
            Edge::of(&rungs, &frame)
        };
        // One that no response has broken, where others were broken, is not what breaks first; and the long trial asks it too.
        let is_broken = |place: &usize| looks.iter().any(|look| look.bad[*place] > 0.0);
        let any_is_broken = (0..goal.bounds.len()).any(|place| is_broken(&place));
        let places = (0..goal.bounds.len()).filter(|place| !any_is_broken || is_broken(place));
        let edges: Option<Vec<(usize, Edge)>> =
            places.map(|place| Some((place, edge(place)?))).collect();
        let edges = edges?;
        let least = |of: fn(&Edge) -> f64| {
            edges
                .iter()
                .map(|(_, edge)| of(edge))
                .fold(f64::INFINITY, f64::min)
        };
        let (decides, first) = edges.iter().min_by(|a, b| a.1.rate.total_cmp(&b.1.rate))?;
        Some(First {
            edge: *first,
            decides: *decides,
            interval: (least(|edge| edge.low), least(|edge| edge.high)),
        })
    }

    /// The newest ladder at which the target has changed: the ladders before and those from it on disagree by more than
    /// they can. Says whether it carries less now, and leaves out the older ones.
    pub(crate) fn leave_out_old(&mut self, goal: &Goal) -> Option<bool> {
        let is_ladder = |look: &&Look| look.stage == Stage::Ladder;
        let mut groups: Vec<usize> = self
            .looks
            .iter()
            .filter(is_ladder)
            .map(|look| look.rung.group)
            .collect();
        groups.dedup();
        let part = |keep: &dyn Fn(usize) -> bool| -> Vec<&Look> {
            let kept = self.looks.iter().filter(|look| keep(look.rung.group));
            kept.filter(is_ladder).collect()
        };
        let edge = |looks: &[&Look]| self.first_of(looks, goal, SURELY);
        // A single ladder may err.
        let splits = groups.len().saturating_sub(3);
        let newest = groups.iter().skip(2).take(splits).rev().take(NEWEST);
        let changed = newest.into_iter().find_map(|&group| {
            let (old, new) = (part(&|of| of < group), part(&|of| of >= group));
            let (old_ends, new_ends) = (ends(&old, goal), ends(&new, goal));
            // Of a ladder that lies all above the edge, or all below, nobody knows where it is.
            let is_bracket = |(held, broke): (f64, f64)| held > 0.0 && broke.is_finite();
            let contradicts = old_ends.0 > new_ends.1 || new_ends.0 > old_ends.1;
            if !is_bracket(old_ends) || !is_bracket(new_ends) || !contradicts {
                return None;
            }
            let (before, after) = (edge(&old)?, edge(&new)?);
            let ratio = after.edge.rate / before.edge.rate;
            let is_less = ratio < 1.0;
            // By the model, and by what single trials showed: the model may be wrong.
            let is_apart = match is_less {
                true => after.interval.1 < before.interval.0 && old_ends.0 > new_ends.1,
                false => after.interval.0 > before.interval.1 && new_ends.0 > old_ends.1,
            };
            (is_apart && ratio.max(1.0 / ratio) > CLEARLY).then_some((group, is_less))
        });
        let (group, is_less) = changed?;
        self.left_out += groups.iter().filter(|of| **of < group).count();
        self.looks.retain(|look| look.rung.group >= group);
        Some(is_less)
    }

    /// Leaves out all of them, the last of which was more than the target can do: what it completed then is what it does.
    pub(crate) fn leave_out_all(&mut self) {
        self.left_out += self.ladders();
        let last = self
            .looks
            .iter()
            .filter(|look| look.rung.group == self.group);
        let completed = last.map(|look| look.rung.completed).fold(0.0, f64::max);
        if completed > 0.0 {
            self.closed.rate = self.closed.rate.min(completed);
        }
        self.looks.clear();
        self.first = None;
    }

    /// Share that broke each bound at the lowest rates: those of a third of the time. And the highest of them.
    pub(crate) fn floor(&self, goal: &Goal) -> (Vec<f64>, f64) {
        let mut looks: Vec<&Look> = self.looks.iter().collect();
        looks.sort_by(|a, b| a.rung.rate.total_cmp(&b.rung.rate));
        let all: f64 = looks.iter().map(|look| look.rung.seconds).sum();
        let mut seconds = 0.0;
        let mut bad = vec![0.0; goal.bounds.len()];
        let mut highest = 0.0;
        for look in looks {
            if seconds >= all / 3.0 && look.rung.rate > highest {
                break;
            }
            seconds += look.rung.seconds;
            highest = look.rung.rate;
            let parts = bad.iter_mut().zip(&look.bad);
            parts.for_each(|(sum, bad)| *sum += bad * look.rung.seconds);
        }
        let share = |sum: f64| if seconds > 0.0 { sum / seconds } else { 1.0 };
        (bad.into_iter().map(share).collect(), highest)
    }

    /// Whether no rate holds: at rates far below others more are bad than is allowed.
    pub(crate) fn is_hopeless(&self, goal: &Goal) -> bool {
        let (floor, highest) = self.floor(goal);
        let most = self
            .looks
            .iter()
            .map(|look| look.rung.rate)
            .fold(0.0, f64::max);
        let breaks = |(floor, bound): (&f64, &Bound)| *floor > HOPELESS * bound.allowed;
        let half = most.min(self.saturated()) / 2.0;
        highest < half && floor.iter().zip(&goal.bounds).any(breaks)
    }

    /// Whether more is bad at the lowest rates together than is allowed: what holds there then had a lucky minute.
    pub(crate) fn is_lucky(&self, goal: &Goal) -> bool {
        let (floor, _) = self.floor(goal);
        let mut shares = floor.iter().zip(&goal.bounds);
        shares.any(|(share, bound)| *share > bound.allowed)
    }

    /// The bound that is farthest from holding at the lowest rates.
    pub(crate) fn least_held(&self, goal: &Goal) -> usize {
        let (floor, _) = self.floor(goal);
        let times = |place: &usize| floor[*place] / goal.bounds[*place].allowed;
        let worst = (0..floor.len()).max_by(|a, b| times(a).total_cmp(&times(b)));
        worst.unwrap_or(0)
    }

    /// Whether all of the newest ladders have held, so many of them, or more. What the target completes at most may be
    /// more then than was thought, where that is known badly.
    pub(crate) fn is_clean(&mut self, goal: &Goal, count: usize) -> bool {
        let is_ladder = |look: &&Look| look.stage == Stage::Ladder;
        let newest = |look: &&Look| look.rung.group == self.group;
        let holds = |look: &Look| times(look, goal) <= 1.0;
        if !self.looks.iter().filter(newest).all(holds) {
            return false;
        }
        self.closed.guess();
        let broken = self.looks.iter().filter(is_ladder);
        let broken = broken.filter(|look| !holds(look));
        let last = broken.map(|look| look.rung.group).max().unwrap_or(0);
        let mut since: Vec<usize> = self
            .looks
            .iter()
            .filter(is_ladder)
            .map(|look| look.rung.group)
            .collect();
        since.dedup();
        since.iter().filter(|group| **group > last).count() % count == 0
    }

    /// Ladders that count.
    pub(crate) fn ladders(&self) -> usize {
        let mut groups: Vec<usize> = self
            .looks
            .iter()
            .filter(|look| look.stage == Stage::Ladder)
            .map(|look| look.rung.group)
            .collect();
        groups.dedup();
        groups.len()
    }
}

/// The highest rate of which a trial held, and the lowest of which one broke clearly.
fn ends(looks: &[&Look], goal: &Goal) -> (f64, f64) {
    let holds = looks.iter().filter(|look| times(look, goal) <= 1.0);
    let breaks = looks
        .iter()
        .filter(|look| times(look, goal) > edge::CLEARLY);
    let highest = holds.map(|look| look.rung.rate).fold(0.0, f64::max);
    let lowest = breaks
        .map(|look| look.rung.rate)
        .fold(f64::INFINITY, f64::min);
    (highest, lowest)
}

/// How many times what is allowed a window has of the bound that it breaks most.
fn times(look: &Look, goal: &Goal) -> f64 {
    let times = look.bad.iter().zip(&goal.bounds);
    times
        .map(|(bad, bound)| bad / bound.allowed)
        .fold(0.0, f64::max)
}
