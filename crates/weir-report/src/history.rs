//! Runs of one study over time.

use weir_history::{
    ChangeFindings, ChangedFigure, HistoryFindings, LeftOutRun, Quantity, RunName, Segment, Series,
};
use weir_model::record::Validity;
use weir_sentences::history::{
    describe_breaks, describe_change, describe_drift, describe_history, explain_left_out, rule,
};
use weir_sentences::runs::describe_figure;

use crate::number;
use crate::render;
use crate::runs::format_value;
use crate::tree::{
    Block, Callout, Cell, Chart, Column, Document, Heading, Kind, Outputs, Role, Row, RunMark,
    RunSeries, Style, Table, Text, figure, list, text,
};

/// Formats the findings for a terminal of `width` columns, with colours if `color` says so.
pub fn terminal(found: &HistoryFindings, color: bool, width: usize) -> String {
    render::terminal(&document(found), color, width)
}

/// Formats the findings as Markdown.
pub fn markdown(found: &HistoryFindings) -> String {
    render::markdown(&document(found))
}

/// Formats the findings as one self-contained HTML page.
pub fn html(found: &HistoryFindings) -> String {
    render::html(&document(found))
}

fn document(found: &HistoryFindings) -> Document {
    let is_judged = found.series.iter().any(|series| series.is_judged);
    let mut blocks = vec![Block::Callout(Callout {
        label: "Answer",
        badge: if is_judged { Validity::Valid } else { Validity::Suspect },
        paragraphs: vec![describe_history(found)],
        basis: rule(found.level),
    })];
    blocks.push(Block::Heading(Heading::section("figures", "Figures")));
    blocks.push(Block::Table(figures(found)));
    blocks.push(Block::Only(Outputs::HTML, charts(found)));
    if !found.changes.is_empty() {
        blocks.push(Block::Heading(Heading::section("changes", "Changes")));
        blocks.extend(found.changes.iter().rev().flat_map(|change| show_change(found, change)));
    }
    let drifts = found.series.iter().filter_map(describe_drift);
    blocks.extend(list(drifts.map(Text::from), false));
    blocks.extend(list(describe_breaks(found).into_iter().map(Text::from), false));
    if !found.left_out.is_empty() {
        blocks.push(Block::Heading(Heading::section("left-out", "Left out")));
        blocks.extend(list(found.left_out.iter().map(left_out), false));
    }
    Document {
        title: format!("{} over time", found.study),
        source: String::new(),
        footer: format!("{} runs", found.runs.len()),
        blocks,
    }
}

/// Returns the table of figures: a line for each, with a small picture of its course.
fn figures(found: &HistoryFindings) -> Table {
    let rows = found.series.iter().map(|series| {
        let last = series.segments.last();
        let metric = series.key.metric;
        let cells = [
            Cell::from(Text::of(Role::Picture, sparkline(series))),
            Cell::from(format_value(metric, series.values.iter().flatten().last().copied())),
            Cell::from(format_value(metric, last.map(|segment| segment.level))),
            Cell::from(last.and_then(|one| one.spread).map_or_else(no_figure, number::percent)),
            Cell::from(last.map_or_else(no_figure, |segment| segment.runs.to_string())),
            Cell::from(state(series)),
        ];
        Row::new(describe_figure(&series.key), cells)
    });
    let columns = vec![
        Column::left("over time"),
        Column::new("newest"),
        Column::new("level"),
        Column::new("between runs").spare(),
        Column::new("runs since"),
        Column::left("last change"),
    ];
    Table::new(Kind::Compare, "Figures over time", "figure").columns(columns).rows(rows)
}

fn no_figure() -> String {
    number::NONE.to_owned()
}

/// Describes what is known of a figure's last change.
fn state(series: &Series) -> String {
    let drifts = series.segments.last().and_then(|segment| segment.drift);
    match (series.changes.last(), drifts) {
        _ if !series.is_judged => "○ too few runs".to_owned(),
        (_, Some(drift)) => format!("{} drifts", mark(drift.is_worse)),
        (Some(change), None) => {
            format!("{} {}", mark(change.is_worse), number::change(change.ratio))
        }
        (None, None) => "none".to_owned(),
    }
}

fn mark(is_worse: bool) -> &'static str {
    if is_worse { "▼" } else { "▲" }
}

/// Draws a figure's course from its lowest to its highest value.
fn sparkline(series: &Series) -> String {
    let values = series.values.iter().map(|value| value.unwrap_or(f64::NAN));
    let finite = values.clone().filter(|value| value.is_finite());
    let low = finite.clone().fold(f64::INFINITY, f64::min);
    let high = finite.fold(f64::NEG_INFINITY, f64::max);
    // A little above nothing, so that the lowest is drawn too.
    let bottom = low - 0.1 * (high - low).max(1e-9 * high.abs());
    let shifted: Vec<f64> = values.map(|value| value - bottom).collect();
    number::sparkline(&shifted, high - bottom)
}

/// Returns a chart for each figure.
fn charts(found: &HistoryFindings) -> Vec<Block> {
    let charts = found.series.iter().map(|series| {
        let name = describe_figure(&series.key);
        let caption =
            format!("{name}: a dot for each run, lines for levels; upright: changes and machines.");
        figure(caption, Chart::RunSeries(chart(found, series, name)))
    });
    charts.collect()
}

fn chart(found: &HistoryFindings, series: &Series, title: String) -> RunSeries {
    let changes = series.changes.iter().map(|change| RunMark {
        before: change.at,
        class: if change.is_worse { "level" } else { "at" },
        label: number::change(change.ratio),
        tooltip: format!("since {}: {}", found.runs[change.at].name, number::change(change.ratio)),
    });
    let breaks = found.breaks.iter().map(|one| RunMark {
        before: one.at,
        class: "one",
        label: "machine".to_owned(),
        tooltip: format!("another machine since {}", found.runs[one.at].name),
    });
    let dots = series.values.iter().enumerate().map(|(run, value)| {
        let tooltip =
            format!("{}: {}", found.runs[run].name, format_value(series.key.metric, *value));
        (run, value.unwrap_or(f64::NAN), tooltip)
    });
    RunSeries {
        title,
        said: format!("{} changes in {} runs", series.changes.len(), found.runs.len()),
        is_time: matches!(series.key.metric, Quantity::ResponseP50 | Quantity::ResponseP99),
        runs: found.runs.len(),
        dots: dots.collect(),
        levels: series.segments.iter().map(level).collect(),
        marks: breaks.chain(changes).collect(),
        ends: [found.runs.first(), found.runs.last()].map(day_of),
    }
}

fn day_of(run: Option<&RunName>) -> String {
    run.map_or_else(String::new, |run| run.started_at.chars().take(10).collect())
}

fn level(segment: &Segment) -> (usize, usize, f64) {
    (segment.first, segment.last, segment.level)
}

/// Shows a change: its figures, and what else differs there.
fn show_change(found: &HistoryFindings, change: &ChangeFindings) -> Vec<Block> {
    let rows = change.figures.iter().map(|one| Row::new(describe_figure(&one.key), sizes(one)));
    let columns = [Column::new("change"), Column::new("interval"), Column::left("")].into_iter();
    let table = Table::new(Kind::Compare, "What changed", "figure").columns(columns).rows(rows);
    let differences = change.differences.iter().map(|one| {
        let [old, new] = [&one.old, &one.new].map(|value| match value.as_str() {
            "" => "nothing",
            value => value,
        });
        Text::from(format!("{}: {old} → {new}", one.what))
    });
    let sentence = describe_change(found, change);
    [text(Style::Strong, sentence), Block::Table(table)]
        .into_iter()
        .chain(list(differences, true))
        .collect()
}

fn sizes(one: &ChangedFigure) -> [Cell; 3] {
    let (low, high) = one.change.interval;
    let interval = format!("{} to {}", number::change(low), number::change(high));
    let word = if one.change.is_worse { "▼ worse" } else { "▲ better" };
    [
        Cell::from(number::change(one.change.ratio)),
        Cell::from(interval),
        Cell::from(word.to_owned()),
    ]
}

fn left_out(one: &LeftOutRun) -> Text {
    Text::from(format!("{}: {}", one.name, explain_left_out(&one.why)))
}
