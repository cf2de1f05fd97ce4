//! Judgement of a trial by its windows.

use crate::goal::{Bound, Trial, Window};

/// Minimum share sent in time; a window below it says nothing about the target.
const SENT_IN_TIME: f64 = 0.99;
/// Seconds after a spoilt window in which bad windows are attributed to it: the backlog takes that long near the limit.
const AFTERMATH_S: f64 = 3.0;
/// Share of the needed windows above which bad and spoilt ones count.
const THROTTLED: f64 = 0.75;
/// Number of windows below which it is unknown how many a trial loses to hold-ups.
const FEW: usize = 4;
/// Number of windows after a trial's break in which the target may recover, and number of consecutive good ones that
/// prove it.
const WATCHED: usize = 6;
const RECOVERED: usize = 3;
/// Maximum share of a trial's bad responses before its last run of bad windows for the break to be sudden.
const BEFORE_SUDDEN: f64 = 0.2;

/// Verdict on a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// More windows are needed.
    Open,
    /// All windows together kept every bound, for this many seconds.
    Held { seconds: f64 },
    /// More responses were bad than the whole trial allows.
    Broke(Break),
    /// The generator did not send in time. Contains the smallest share that it sent.
    Unsent(f64),
    /// The machine spoilt most of the trial.
    Spoilt,
}

/// A break of the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Break {
    /// Seconds after which the break was certain.
    pub(crate) after_s: f64,
    /// Seconds before the first bad window, or before the last run of bad windows if that alone broke the trial.
    pub(crate) clean_s: f64,
    /// True if the target answered hardly anything but errors when the trial broke.
    pub(crate) is_dead: bool,
    /// True if the target completed a small part of the due requests in the last window. A target slightly above its
    /// limit goes on at full speed, and one that loses speed under backlog at most of it.
    pub(crate) has_collapsed: bool,
    /// Share of the due requests that the target answered without an error, from the window of the break on.
    pub(crate) completes: f64,
    /// True if the trial was good again soon after the break: a momentary stall recovers, an exhausted resource does
    /// not.
    pub(crate) recovers: bool,
}

/// Share of due requests below which a target has stopped answering.
const ALIVE: f64 = 0.1;
/// Share of due requests below which a target has collapsed.
const COLLAPSED: f64 = 0.35;

fn breaks(window: &Window, bounds: &[Bound]) -> bool {
    window.bad.iter().zip(bounds).any(|(bad, bound)| *bad > bound.allowed)
}

/// Returns the windows of a trial that count, with their index.
fn select_counted<'w>(
    trial: &Trial,
    windows: &'w [Window],
    bounds: &[Bound],
    spoilt_count: bool,
) -> Vec<(usize, &'w Window)> {
    let aftermath = (AFTERMATH_S / trial.window_s).round() as usize;
    let counted = counted_after(trial, windows, bounds, spoilt_count, aftermath);
    // Of a target that is bad all the time, frequent hold-ups would leave nothing.
    if windows.len() >= FEW && 2 * counted.len() < windows.len() {
        return counted_after(trial, windows, bounds, spoilt_count, 0);
    }
    counted
}

/// Returns the windows that count, with their index. Excluded are: bad windows spoilt by the machine, and up to
/// `aftermath` bad ones after them, unless it spoils most windows (`spoilt_count`); windows that were not sent in time;
/// and bad windows at the beginning while the target may still recover from the previous trial. Spoilt windows that are
/// good count: they would have been good anyway.
fn counted_after<'w>(
    trial: &Trial,
    windows: &'w [Window],
    bounds: &[Bound],
    spoilt_count: bool,
    aftermath: usize,
) -> Vec<(usize, &'w Window)> {
    // Bad windows since a spoilt one, without a good one in between.
    let mut suffering = None;
    let mut is_recovering = trial.lead > 0;
    let mut counted = Vec::with_capacity(windows.len());
    for (index, window) in windows.iter().enumerate() {
        let is_bad = breaks(window, bounds);
        is_recovering &= is_bad && index < trial.lead;
        if window.sent < SENT_IN_TIME || is_recovering {
            continue;
        }
        suffering = if window.is_held_up {
            Some(0)
        } else {
            suffering.map(|count| count + 1).filter(|count| is_bad && *count <= aftermath)
        };
        let is_spoilt = is_bad && suffering.is_some();
        if spoilt_count || !is_spoilt {
            counted.push((index, window));
        }
    }
    counted
}

/// Returns true if so many windows are bad and spoilt that they count: a throttled machine is held up by the target's
/// own work.
fn is_throttled(trial: &Trial, windows: &[Window], bounds: &[Bound]) -> bool {
    windows.iter().filter(|window| window.is_held_up && breaks(window, bounds)).count() as f64
        > THROTTLED * trial.needed as f64
}

/// Judges the windows of a trial so far. With `spoilt_count`, windows that the machine spoilt count like others. With
/// `is_watched`, a trial that breaks goes on until it is known whether the target recovers.
pub(crate) fn judge(
    trial: &Trial,
    windows: &[Window],
    bounds: &[Bound],
    spoilt_count: bool,
    is_watched: bool,
) -> Verdict {
    let unsent = windows.iter().filter(|window| window.sent < SENT_IN_TIME);
    let needed = trial.needed as f64;
    if 2 * unsent.clone().count() > trial.needed {
        return Verdict::Unsent(unsent.map(|window| window.sent).fold(1.0, f64::min));
    }
    let spoilt_count = spoilt_count || is_throttled(trial, windows, bounds);
    let counted = select_counted(trial, windows, bounds, spoilt_count);
    let mut bad = vec![0.0; bounds.len()];
    let mut clean_until = None;
    let mut last_run = Run::default();
    for (place, (index, window)) in counted.iter().enumerate() {
        last_run.take(*index, breaks(window, bounds), &bad);
        // By requests: a window in which few were due counts for little.
        let weight = window.due / trial.rate;
        for (sum, share) in bad.iter_mut().zip(&window.bad) {
            *sum += share * weight;
        }
        if breaks(window, bounds) {
            clean_until.get_or_insert(*index);
        }
        if exceeds(&bad, bounds, needed) {
            let clean_count = last_run.sudden_from(&bad).or(clean_until).unwrap_or(*index);
            let recovers = recovery(&windows[index + 1..], bounds);
            let may_go_on = is_watched && clean_count > 0 && windows.len() < trial.windows;
            if recovers.is_none() && may_go_on {
                return Verdict::Open;
            }
            let recovers = recovers == Some(true);
            return Verdict::Broke(Break {
                after_s: trial.window_s * (index + 1) as f64,
                clean_s: trial.window_s * clean_count as f64,
                is_dead: !recovers && answered(window, bounds) < ALIVE * window.due,
                has_collapsed: !recovers && has_collapsed(windows, bounds),
                completes: completes(&windows[*index..], bounds),
                recovers,
            });
        }
        if place + 1 >= trial.needed {
            let seconds = trial.window_s * needed;
            return Verdict::Held { seconds };
        }
    }
    if windows.len() < trial.windows {
        return Verdict::Open;
    }
    let share = counted.len() as f64;
    if 2 * counted.len() < trial.needed {
        Verdict::Spoilt
    } else if !exceeds(&bad, bounds, share) {
        Verdict::Held { seconds: trial.window_s * share }
    } else {
        Verdict::Broke(Break {
            after_s: trial.window_s * windows.len() as f64,
            clean_s: trial.window_s * clean_until.unwrap_or(0) as f64,
            is_dead: false,
            has_collapsed: has_collapsed(windows, bounds),
            completes: completes(windows, bounds),
            recovers: false,
        })
    }
}

/// Returns the responses per second without an error, if a bound limits errors; otherwise all responses.
fn answered(window: &Window, bounds: &[Bound]) -> f64 {
    let errors = window.bad.iter().zip(bounds).filter(|(_, bound)| bound.limit_s == 0.0);
    window.completed * (1.0 - errors.map(|(bad, _)| *bad).fold(0.0, f64::max))
}

fn has_collapsed(windows: &[Window], bounds: &[Bound]) -> bool {
    windows.last().is_some_and(|last| answered(last, bounds) < COLLAPSED * last.due)
}

/// Returns the share of the due requests in these windows that were answered without an error.
fn completes(windows: &[Window], bounds: &[Bound]) -> f64 {
    let answers = windows.iter().map(|window| answered(window, bounds));
    let due = windows.iter().map(|window| window.due);
    answers.sum::<f64>() / due.sum::<f64>().max(1e-9)
}

/// A run of consecutive bad windows.
#[derive(Default)]
struct Run {
    /// Index of the first window of the run, and the sums of bad shares before it, for each bound; None after a good
    /// window.
    begin: Option<(usize, Vec<f64>)>,
}

impl Run {
    /// Adds a window. `before` contains the sums of bad shares before it.
    fn take(&mut self, index: usize, is_bad: bool, before: &[f64]) {
        if !is_bad {
            self.begin = None;
        } else if self.begin.is_none() {
            self.begin = Some((index, before.to_vec()));
        }
    }

    /// Returns the index of the run's first window if hardly any part of these sums came before it.
    fn sudden_from(&self, sums: &[f64]) -> Option<usize> {
        let (index, before) = self.begin.as_ref()?;
        before
            .iter()
            .copied()
            .all(|before| before <= BEFORE_SUDDEN * sums.iter().copied().fold(0.0, f64::max))
            .then_some(*index)
    }
}

/// Returns true if these sums of bad shares exceed any bound over this many windows.
fn exceeds(bad: &[f64], bounds: &[Bound], windows: f64) -> bool {
    bad.iter().zip(bounds).any(|(bad, bound)| *bad > bound.allowed * windows)
}

/// Returns true if a target recovers in these windows after a break; None if more of them are needed.
fn recovery(after: &[Window], bounds: &[Bound]) -> Option<bool> {
    if after.windows(RECOVERED).any(|run| run.iter().all(|window| !breaks(window, bounds))) {
        Some(true)
    } else if after.len() >= WATCHED {
        Some(false)
    } else {
        None
    }
}

/// Returns the index of the bound that a trial came closest to or exceeded most, and the ratio of bad responses to
/// those allowed.
pub(crate) fn worst(windows: &[Window], bounds: &[Bound]) -> (usize, f64) {
    bounds
        .iter()
        .enumerate()
        .map(|(index, bound)| {
            let bad: f64 = windows.iter().map(|window| window.bad[index]).sum();
            (index, bad / windows.len().max(1) as f64 / bound.allowed)
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((0, 0.0))
}
