//! Sentences about a run that is held against earlier ones.

use weir_history::{FigureKey, FigureVerdict, Quantity, RunVerdict, RunsFindings, WhyOpen};

use crate::names::join_names;
use crate::numbers;

/// Returns the answer: what is worse or better, and by which noise.
pub fn describe_runs(found: &RunsFindings) -> String {
    let RunsFindings { old, new, history, .. } = found;
    let changed = found.figures.iter().filter(|figure| figure.verdict == found.verdict);
    let changes = join_names(&changed.map(describe_change).collect::<Vec<_>>());
    let noise = format!("by the spread of {} earlier runs", history.len());
    match found.verdict {
        RunVerdict::Worse => {
            format!("{new} is worse than {old}, {noise}: {changes}.")
        }
        RunVerdict::Better => {
            format!("{new} is better than {old}, {noise}: {changes}.")
        }
        RunVerdict::Usual => format!("{new} is as the runs before it are, {noise}."),
        RunVerdict::Open => {
            let open = found.figures.iter().find_map(|figure| figure.why);
            let why = open.map_or_else(
                || "the runs have no figure in common".to_owned(),
                |why| explain_open(&why),
            );
            format!("Whether {new} is worse than {old} cannot be said: {why}.")
        }
    }
}

/// Returns "p99 of stock under the load open 1.12 times that of earlier runs (0.96 to 1.04 would be usual)".
fn describe_change(figure: &FigureVerdict) -> String {
    let name = describe_figure(&figure.key);
    match (figure.ratio, figure.usual) {
        (Some(ratio), Some(usual)) => format!(
            "{name} is {} times that of earlier runs ({} would be usual)",
            numbers::ratio(ratio),
            numbers::interval(usual)
        ),
        _ => name,
    }
}

/// Names a figure: "p99 of stock under the load open".
pub fn describe_figure(key: &FigureKey) -> String {
    let metric = match key.metric {
        Quantity::ResponseP50 => "p50",
        Quantity::ResponseP99 => "p99",
        Quantity::Rate => "rate",
        Quantity::Capacity => "capacity",
    };
    format!("{metric} of {} under the load {}", key.arm, key.load)
}

/// Explains why nothing can be said of a figure.
pub fn explain_open(why: &WhyOpen) -> String {
    match why {
        WhyOpen::FewRuns { runs, needed } => format!(
            "{needed} earlier runs of the same study are needed to know how much runs differ here, and there {}",
            if *runs == 1 { "is 1".to_owned() } else { format!("are {runs}") }
        ),
        WhyOpen::NoSpread => {
            "the earlier runs do not differ at all, so they do not show how much runs differ"
                .to_owned()
        }
        WhyOpen::Machine => "they were measured on different machines".to_owned(),
        WhyOpen::Rates { completed: [old, new] } => format!(
            "response times at different rates cannot be compared ({} and {} requests/s)",
            numbers::rate(*old),
            numbers::rate(*new)
        ),
        WhyOpen::Invalid => "one of the runs has no valid figure".to_owned(),
    }
}
