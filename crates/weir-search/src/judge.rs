//! Judgement of a trial by its windows.

use crate::goal::{Bound, Trial, Window};

/// A window of which a smaller share was sent in time says nothing about the target.
const SENT_IN_TIME: f64 = 0.99;
/// Seconds after a spoilt window in which bad ones are its doing: the backlog takes that long near the limit.
const AFTERMATH_S: f64 = 3.0;
/// If so many of the windows that a trial needs are bad and spoilt, they count.
const THROTTLED: f64 = 0.75;
/// Fewer windows do not tell how many a trial loses to hold-ups.
const FEW: usize = 4;
/// Windows of a trial after its break in which the target may recover, and good ones in a row that show it.
const WATCHED: usize = 6;
const RECOVERED: usize = 3;
/// A trial breaks suddenly if no more than this share of its bad responses came before the last bad windows in a row.
const BEFORE_SUDDEN: f64 = 0.2;

/// Verdict on a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// More windows are needed.
    Open,
    /// All windows together kept every bound, for so many seconds.
    Held { seconds: f64 },
    /// More responses were bad than the whole trial may have.
    Broke(Break),
    /// The generator did not send in time; the least share that it sent.
    Unsent(f64),
    /// The machine spoilt most of it.
    Spoilt,
}

/// A break of the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Break {
    /// Seconds after which it was certain.
    pub(crate) after_s: f64,
    /// Seconds before it without a bad window; before the last bad ones in a row, if these alone made the trial break.
    pub(crate) clean_s: f64,
    /// Whether the target answered hardly anything, but errors, when it broke.
    pub(crate) is_dead: bool,
    /// Whether it completed a small part of what was due in the last window that was seen. A queue that is a little too
    /// short goes on at full speed, and one that loses speed under backlog at most of it.
    pub(crate) has_collapsed: bool,
    /// Share of what was due that the target answered without an error, from the window in which it broke on.
    pub(crate) completes: f64,
    /// Whether the trial was good again soon after it: what stands still for a moment recovers, what is used up does not.
    pub(crate) recovers: bool,
}

/// A target that completes less than this share of what is due has stopped answering.
const ALIVE: f64 = 0.1;
/// And one that completes less than this share has collapsed.
const COLLAPSED: f64 = 0.35;

fn breaks(window: &Window, bounds: &[Bound]) -> bool {
    window
        .bad
        .iter()
        .zip(bounds)
        .any(|(bad, bound)| *bad > bound.allowed)
}

/// Windows of a trial that count, with their index.
fn counted<'w>(
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

/// Windows that count, with their index, where up to `aftermath` bad ones after a spoilt one do not. Bad windows that the
/// machine spoilt do not, unless it spoils most of them (`spoilt_count`): a good one would have been good without it too.
/// Nor do those that were not sent in time, nor bad ones at the beginning as long as the target may recover from the trial
/// before.
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
            suffering
                .map(|count| count + 1)
                .filter(|count| is_bad && *count <= aftermath)
        };
        let is_spoilt = is_bad && suffering.is_some();
        if spoilt_count || !is_spoilt {
            counted.push((index, window));
        }
    }
    counted
}

/// Whether so many windows are bad and spoilt that they count: a machine that is throttled is held up by what the target does.
fn is_throttled(trial: &Trial, windows: &[Window], bounds: &[Bound]) -> bool {
    let is_spoilt = |window: &&Window| window.is_held_up && breaks(window, bounds);
    windows.iter().filter(is_spoilt).count() as f64 > THROTTLED * trial.needed as f64
}

/// Judges what has been seen of a trial. With `spoilt_count`, windows that the machine spoilt count as others do; with
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
    let counted = counted(trial, windows, bounds, spoilt_count);
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
        Verdict::Held {
            seconds: trial.window_s * share,
        }
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

/// Responses per second without an error, as far as a bound tells of errors.
fn answered(window: &Window, bounds: &[Bound]) -> f64 {
    let shares = window.bad.iter().zip(bounds);
    let errors = shares.filter(|(_, bound)| bound.limit_s == 0.0);
    window.completed * (1.0 - errors.map(|(bad, _)| *bad).fold(0.0, f64::max))
}

fn has_collapsed(windows: &[Window], bounds: &[Bound]) -> bool {
    windows
        .last()
        .is_some_and(|last| answered(last, bounds) < COLLAPSED * last.due)
}

/// Share of what was due in these windows that was answered without an error.
fn completes(windows: &[Window], bounds: &[Bound]) -> f64 {
    let answers = windows.iter().map(|window| answered(window, bounds));
    let due = windows.iter().map(|window| window.due);
    answers.sum::<f64>() / due.sum::<f64>().max(1e-9)
}

/// Bad windows in a row.
#[derive(Default)]
struct Run {
    /// Index of the first of them, and the sums of bad shares before it, for each bound; None after a good window.
    begin: Option<(usize, Vec<f64>)>,
}

impl Run {
    /// Takes in a window, before which the sums of bad shares were these.
    fn take(&mut self, index: usize, is_bad: bool, before: &[f64]) {
        if !is_bad {
            self.begin = None;
        } else if self.begin.is_none() {
            self.begin = Some((index, before.to_vec()));
        }
    }

    /// Index of its first window, if hardly any of these sums came before it.
    fn sudden_from(&self, sums: &[f64]) -> Option<usize> {
        let (index, before) = self.begin.as_ref()?;
        let few = |before: f64| before <= BEFORE_SUDDEN * sums.iter().copied().fold(0.0, f64::max);
        before.iter().copied().all(few).then_some(*index)
    }
}

/// Whether so many windows may not have this many bad ones in sum, of any bound.
fn exceeds(bad: &[f64], bounds: &[Bound], windows: f64) -> bool {
    bad.iter()
        .zip(bounds)
        .any(|(bad, bound)| *bad > bound.allowed * windows)
}

/// Whether a target recovers in these windows after a break; None if more of them are needed.
fn recovery(after: &[Window], bounds: &[Bound]) -> Option<bool> {
    let is_good = |window: &Window| !breaks(window, bounds);
    if after
        .windows(RECOVERED)
        .any(|some| some.iter().all(is_good))
    {
        Some(true)
    } else if after.len() >= WATCHED {
        Some(false)
    } else {
        None
    }
}

/// Bound of which a trial had most of what is allowed: its index, and that share.
pub(crate) fn worst(windows: &[Window], bounds: &[Bound]) -> (usize, f64) {
    let share = |place: usize| {
        let bad: f64 = windows.iter().map(|window| window.bad[place]).sum();
        bad / windows.len().max(1) as f64 / bounds[place].allowed
    };
    (0..bounds.len())
        .map(|place| (place, share(place)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((0, 0.0))
}
