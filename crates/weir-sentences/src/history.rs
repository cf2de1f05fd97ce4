//! Sentences about runs of one study over time.

use weir_history::{
    ChangeFindings, ChangedFigure, HistoryFindings, Series, SeriesChange, WhyLeftOut,
};

use crate::names::join_names;
use crate::numbers;
use crate::runs::describe_figure;

/// Runs on one machine that are needed before anything is claimed.
const NEEDED: usize = weir_history::LEAST_RUNS;

/// Returns the answer: the newest change, or that there is none.
pub fn describe_history(found: &HistoryFindings) -> String {
    let runs = numbers::counted(found.runs.len() as u64, "run");
    if !found.series.iter().any(|series| series.is_judged) {
        return format!(
            "Whether {} has changed cannot be said yet: {NEEDED} runs on one machine are needed, and there {} {runs}.",
            found.study,
            if found.runs.len() == 1 { "is" } else { "are" }
        );
    }
    let drifts = found.series.iter().filter(|series| describe_drift(series).is_some()).count();
    match found.changes.last() {
        Some(change) => {
            let earlier = match found.changes.len() - 1 {
                0 => String::new(),
                count => format!(" Before that there {}.", are_changes(count)),
            };
            format!("{}{earlier}", describe_change(found, change))
        }
        None if drifts > 0 => format!("{} drifts; it has no sudden change in {runs}.", found.study),
        None => format!("No change of {} was found in {runs}.", found.study),
    }
}

fn are_changes(count: usize) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{verb} {}", numbers::counted(count as u64, "other change"))
}

/// Returns "Since nightly-12 (2026-01-12): rate of stock under the load closed is 3.1 % lower (2.0 % to 4.2 %), which is
/// worse.", and with which run it was found.
pub fn describe_change(found: &HistoryFindings, change: &ChangeFindings) -> String {
    let first = &found.runs[change.at];
    let [worse, better] = [true, false].map(|is_worse| {
        let figures = change.figures.iter().filter(|one| one.change.is_worse == is_worse);
        join_names(&figures.map(describe_size).collect::<Vec<_>>())
    });
    let clauses = match (worse.as_str(), better.as_str()) {
        (worse, "") => format!("worse: {worse}"),
        ("", better) => format!("better: {better}"),
        (worse, better) => format!("worse: {worse}; better: {better}"),
    };
    let around = if change.differences.is_empty() {
        "nothing that weir records changed around the runs then".to_owned()
    } else {
        let names: Vec<String> = change.differences.iter().map(|one| one.what.clone()).collect();
        let when = if change.differences_at == change.at {
            "with that run".to_owned()
        } else {
            format!("with {}", found.runs[change.differences_at].name)
        };
        format!("{when} also changed: {}", join_names(&names))
    };
    format!(
        "Since {} ({}), {clauses} (found with {}); {around}.",
        first.name,
        day(&first.started_at),
        found.runs[change.found].name
    )
}

fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// Returns "p99 of stock under the load open 3.1 % higher (1.9 % to 4.4 %)".
fn describe_size(one: &ChangedFigure) -> String {
    let SeriesChange { ratio, interval: (low, high), .. } = one.change;
    format!("{} {}", describe_figure(&one.key), describe_ratio(ratio, (low, high)))
}

/// Describes a ratio as a difference in percent, or as a factor if it is large.
fn describe_ratio(ratio: f64, (low, high): (f64, f64)) -> String {
    if ratio >= 2.0 {
        return format!(
            "{} times as high ({})",
            numbers::ratio(ratio),
            numbers::interval((low, high))
        );
    }
    let (side, ends) = if ratio >= 1.0 { ("higher", [low, high]) } else { ("lower", [high, low]) };
    let sign = if ratio >= 1.0 { 1.0 } else { -1.0 };
    let [from, to] = ends.map(|end| sign * 100.0 * (end - 1.0));
    format!("{:.1} % {side} ({from:.1} to {to:.1} %)", 100.0 * (ratio - 1.0).abs())
}

/// Returns the drift of a figure since its last change; `None` if there is none.
pub fn describe_drift(series: &Series) -> Option<String> {
    let segment = series.segments.last()?;
    let drift = segment.drift?;
    let ((ratio, interval), per) = match drift.per_week {
        Some(week) => (week, "week"),
        None => (drift.per_run, "run"),
    };
    let word = if drift.is_worse { "worse" } else { "better" };
    Some(format!(
        "{} drifts and becomes {word}: from each {per} to the next {}, over {} runs",
        describe_figure(&series.key),
        describe_small(ratio, interval),
        segment.runs
    ))
}

/// Describes a small change in percent with its sign.
fn describe_small(ratio: f64, (low, high): (f64, f64)) -> String {
    let [value, low, high] = [ratio, low, high].map(|ratio| 100.0 * (ratio - 1.0));
    format!("{value:+.2} % ({low:+.2} to {high:+.2} %)").replace('-', "−")
}

/// Returns a clause for each run with which another machine begins.
pub fn describe_breaks(found: &HistoryFindings) -> Vec<String> {
    let breaks = found.breaks.iter().map(|one| {
        let properties: Vec<String> = one
            .differences
            .iter()
            .map(|difference| format!("{} ({} → {})", difference.what, difference.old, difference.new))
            .collect();
        let run = &found.runs[one.at];
        format!(
            "another machine since {} ({}): {}; what came before is not compared with what came after",
            run.name,
            day(&run.started_at),
            join_names(&properties)
        )
    });
    breaks.collect()
}

/// Returns the rule by which changes are claimed.
pub fn rule(level: f64) -> String {
    format!(
        "looked at after every run; where nothing changes, anything is claimed in {} of all histories of 100 runs",
        numbers::level(level)
    )
}

/// Explains why a run is left out.
pub fn explain_left_out(why: &WhyLeftOut) -> String {
    match why {
        WhyLeftOut::Foreign => "others could have written its folder".to_owned(),
        WhyLeftOut::Damaged { problem } => format!("it cannot be read: {problem}"),
        WhyLeftOut::Incomplete => "it did not end as planned".to_owned(),
        WhyLeftOut::Invalid => "all its figures are INVALID".to_owned(),
        WhyLeftOut::OtherStudy { study } => format!("it is a run of another study ({study})"),
        WhyLeftOut::Copy => "it began at the same moment as another run: a copy".to_owned(),
    }
}
