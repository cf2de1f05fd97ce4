//! A run beside earlier ones of its study.

use weir_history::{FigureVerdict, Quantity, RunVerdict, RunsFindings};
use weir_model::record::Validity;
use weir_sentences::runs::{describe_figure, describe_runs, explain_open};

use crate::number;
use crate::render;
use crate::tree::{Block, Callout, Cell, Column, Document, Heading, Kind, Row, Table};

/// Formats the findings for a terminal of `width` columns, with colours if `color` says so.
pub fn terminal(found: &RunsFindings, color: bool, width: usize) -> String {
    render::terminal(&document(found), color, width)
}

/// Formats the findings as Markdown.
pub fn markdown(found: &RunsFindings) -> String {
    render::markdown(&document(found))
}

/// Formats the findings as one self-contained HTML page.
pub fn html(found: &RunsFindings) -> String {
    render::html(&document(found))
}

fn document(found: &RunsFindings) -> Document {
    let mut blocks = vec![Block::Callout(Callout {
        label: "Answer",
        badge: match found.verdict {
            RunVerdict::Open => Validity::Suspect,
            _ => Validity::Valid,
        },
        paragraphs: vec![describe_runs(found)],
        basis: "judged by the rate of closed loops, p50 and p99 of open ones".to_owned(),
    })];
    if !found.differences.is_empty() {
        blocks.push(Block::Heading(Heading::section("environment", "What differs around them")));
        blocks.push(Block::Table(differences(found)));
    }
    blocks.push(Block::Heading(Heading::section("figures", "Figures")));
    blocks.push(Block::Table(figures(found)));
    Document {
        title: format!("{} and {}", found.old, found.new),
        source: String::new(),
        footer: format!("earlier runs: {}", found.history.join(", ")),
        blocks,
    }
}

/// Returns the table of what differs in the environment.
fn differences(found: &RunsFindings) -> Table {
    let rows = found.differences.iter().map(|one| {
        let effect = if one.is_of_machine { "figures cannot be compared" } else { "" };
        let cells = [one.old.as_str(), one.new.as_str(), effect];
        Row::new(one.what.clone(), cells.map(|text| Cell::from(text.to_owned())).to_vec())
    });
    let columns = [found.old.as_str(), found.new.as_str(), ""].map(Column::left);
    Table::new(Kind::Prose, "Differences between the environments", "property")
        .columns(columns)
        .rows(rows)
}

/// Returns the table of figures.
fn figures(found: &RunsFindings) -> Table {
    let rows = found.figures.iter().map(|figure| {
        let [old, new] = figure.values.map(|value| format_value(figure.key.metric, value));
        let ratio = figure.ratio.map_or_else(|| "–".to_owned(), number::ratio);
        let usual = figure.usual.map_or_else(
            || "not known".to_owned(),
            |(low, high)| format!("{} to {}", number::ratio(low), number::ratio(high)),
        );
        let cells = [old, new, ratio, usual, describe_verdict(figure)];
        Row::new(describe_figure(&figure.key), cells.map(Cell::from).to_vec())
    });
    let columns = vec![
        Column::new(&*found.old),
        Column::new(&*found.new),
        Column::new("ratio to earlier runs"),
        Column::new("usual"),
        Column::left("verdict"),
    ];
    Table::new(Kind::Compare, "Figures of both runs", "figure").columns(columns).rows(rows)
}

pub(crate) fn format_value(metric: Quantity, value: Option<f64>) -> String {
    match value {
        None => number::NONE.to_owned(),
        Some(rate) if metric.higher_is_better() => format!("{}/s", number::rate(rate)),
        Some(ns) => number::time(ns),
    }
}

fn describe_verdict(figure: &FigureVerdict) -> String {
    match figure.verdict {
        RunVerdict::Worse => "▼ worse".to_owned(),
        RunVerdict::Better => "▲ better".to_owned(),
        RunVerdict::Usual => "as usual".to_owned(),
        RunVerdict::Open => figure
            .why
            .as_ref()
            .map_or_else(|| "open".to_owned(), |why| format!("○ {}", explain_open(why))),
    }
}
