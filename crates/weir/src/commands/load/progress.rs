//! Live progress beside a trial.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_load::Control;
use weir_load::plan::Plan;
use weir_model::load::Arrivals;

use crate::terminal::StatusLine;

/// How often a terminal's line is rewritten.
const REWRITE: Duration = Duration::from_millis(500);
/// How often a plain line is written where lines stay.
const PLAIN: Duration = Duration::from_secs(5);
/// How often the end of the trial is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work` and shows how far it is on standard error.
pub(crate) fn beside<T: Send>(control: &Control, plan: &Plan, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| show(control, plan, &done));
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn show(control: &Control, plan: &Plan, done: &AtomicBool) {
    let mut line = StatusLine::new();
    let every = if line.rewrites() { REWRITE } else { PLAIN };
    let total = plan.slices.last().map_or(0, |slice| slice.end) as f64 / 1e9;
    let mut begun = None;
    let mut shown = Instant::now();
    let mut before = 0;
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
        if control.started_at.load(Ordering::Relaxed) > 0 {
            begun.get_or_insert_with(Instant::now);
        }
        let Some(begun) = begun.filter(|_| shown.elapsed() >= every) else {
            continue;
        };
        let completed = sum(control, |progress| &progress.completed);
        let rate = (completed - before) as f64 / shown.elapsed().as_secs_f64();
        shown = Instant::now();
        before = completed;
        let errors = sum(control, |progress| &progress.errors);
        let time = match plan.flows[0].limit.filter(|_| plan.flows.len() == 1) {
            Some(requests) => format!("{completed} of {requests} requests"),
            None => format!(
                "{:.0} of {total:.0} s",
                begun.elapsed().as_secs_f64().min(total)
            ),
        };
        let rates = plan.flows.iter().map(|flow| match &flow.arrivals {
            Arrivals::Constant { rate } => *rate,
            _ => f64::NAN,
        });
        let asked = match rates.sum::<f64>() {
            rate if rate.is_nan() => String::new(),
            rate => format!(" of {rate:.0}"),
        };
        let in_flight = sum(control, |progress| &progress.in_flight);
        line.show(&format!(
            "{time} · {rate:.0}{asked} responses/s · {in_flight} in flight · {errors} errors"
        ));
    }
    line.clear();
}

fn sum(control: &Control, figure: impl Fn(&weir_load::engine::Progress) -> &AtomicU64) -> u64 {
    control
        .progress
        .iter()
        .map(|progress| figure(progress).load(Ordering::Relaxed))
        .sum()
}
