//! Published results beside measured ones: figures, response times by quantile, gains.

use std::time::Duration;

use weir_analysis::findings::{
    Comparison, FigureFindings, FiguresFindings, Findings, GainFindings, Measured,
    PublishedVerdict, TimeFindings,
};
use weir_model::study::GainOf;
use weir_sentences::{explain_published_figure, explain_published_gain, explain_published_time};

use super::tones;
use crate::input::ReportInput;
use crate::tree::{
    Block, Cell, Column, Heading, Kind, Outputs, Row, Style, Table, Text, clause, labelled, list,
    text,
};
use crate::{number, words};

/// Returns the section. Empty if the study has no published results.
pub(super) fn section(input: &ReportInput<'_>) -> Vec<Block> {
    let findings = input.findings;
    let published = input.header.study.published.as_ref();
    let (Some(published), Some(found)) = (published, &findings.published) else {
        return Vec::new();
    };
    let source = match published.metric.as_str() {
        "" => published.source.clone(),
        metric => format!("{} ({metric})", published.source),
    };
    let heading = Heading::section("published", "Published beside measured");
    let mut blocks = vec![
        Block::Heading(heading.badge(findings.headline.validity)),
        labelled("published", Style::Soft, source),
    ];
    for table in &found.figures {
        blocks.push(labelled("measured", Style::Soft, ours(table, findings)));
        blocks.push(Block::Table(figures(input, table)));
        let caution =
            "figures of different machines cannot be compared; ratios between the same steps can";
        let caution = clause(Style::Soft, caution);
        blocks.push(Block::Only(Outputs::FILES, vec![caution]));
    }
    if !found.times.is_empty() {
        blocks.extend(times(input, &found.times));
    }
    if !found.gains.is_empty() {
        blocks.extend(gains(&found.gains, findings));
    }
    blocks
}

/// Formats a load with its validity: `closed (VALID)`. A dash for no load.
fn load_words(load: Option<&str>, findings: &Findings) -> String {
    let mut loads = findings.loads.iter();
    match load.and_then(|name| loads.find(|load| load.load == name)) {
        Some(load) => format!("{} ({})", load.load, words::validity(load.validity)),
        None => none(),
    }
}

fn none() -> String {
    number::NONE.to_owned()
}

/// Formats a verdict, with its reason if there is one.
fn said(verdict: Option<PublishedVerdict>, because: String) -> Cell {
    let cell = verdict.map_or(Cell::from(Text::default()), |verdict| {
        Cell::tone(tones::published(verdict), words::published(verdict))
    });
    cell.detail(because)
}

fn ours(found: &FiguresFindings, findings: &Findings) -> String {
    match (found.metric.map(words::metric), found.load.as_deref()) {
        (None, _) => "nothing was measured".to_owned(),
        (Some(metric), None) => format!("{metric} under each load"),
        (Some(metric), load) => format!("{metric} under load {}", load_words(load, findings)),
    }
}

fn figures(input: &ReportInput<'_>, found: &FiguresFindings) -> Table {
    let columns = [
        Column::new("published"),
        Column::new("published ratio").short("ratio"),
        Column::new("measured ratio").short("here").small("interval"),
        Column::left("verdict"),
        Column::left("against").only(Outputs::FILES),
    ];
    // Where an arm is alone, ours is a time and no ratio.
    let is_time = found.load.is_none();
    Table::new(Kind::Plain, "Published figures beside measured ones", "arm").columns(columns).rows(
        found.rows.iter().map(|row| {
            let because =
                explain_published_figure(&input.header.study, input.findings, (found, row));
            figure_row(row, because, is_time)
        }),
    )
}

fn figure_row(row: &FigureFindings, because: String, is_time: bool) -> Row {
    let measured = match row.measured {
        None => none().into(),
        Some(Measured { value, interval }) if is_time => {
            Cell::from(number::time(value)).small(number::time_interval(interval))
        }
        Some(Measured { value, interval }) => {
            Cell::from(number::ratio(value)).small(number::ratio_interval(value, interval))
        }
    };
    let cells = [
        Cell::from(number::rate(row.figure)),
        Cell::from(row.ratio.map_or_else(none, number::ratio)),
        measured,
        said(row.verdict, because),
        Cell::from(row.against.clone().unwrap_or_default()),
    ];
    Row::new(&*row.arm, cells)
}

fn times(input: &ReportInput<'_>, all: &[TimeFindings]) -> [Block; 2] {
    let ours = "ours are of one load each; where several are meant, of the one with most connections and the highest rate \
                in which the arm could be compared";
    let columns = [
        Column::new("quantile"),
        Column::new("published"),
        Column::new("published ratio").short("ratio"),
        Column::new("here"),
        Column::new("ratio here").small("interval").whole(),
        Column::left("load here").below(),
        Column::left("verdict").below(),
    ];
    let label = "Published response times beside measured ones";
    let table = Table { about: "published for", ..Table::new(Kind::Plain, label, "arm") };
    let rows = all.iter().map(|found| time_row(input, found));
    [
        Block::Only(Outputs::FILES, vec![clause(Style::Soft, ours)]),
        Block::Table(table.columns(columns).rows(rows)),
    ]
}

fn time_row(input: &ReportInput<'_>, found: &TimeFindings) -> Row {
    let findings = input.findings;
    let measured = found.measured.map_or(Cell::default(), |ours| {
        let ratio = number::ratio(ours.value);
        let interval = if ratio == number::NONE {
            String::new()
        } else {
            number::ratio_interval(ours.value, ours.interval)
        };
        Cell::from(ratio).small(interval)
    });
    let cells = [
        Cell::from(quantile_name(found.quantile)),
        Cell::from(found.published_ns.map_or("unchanged".to_owned(), durations)),
        Cell::from(found.ratio.map_or_else(none, ratios)),
        Cell::from(found.measured_ns.map_or_else(none, number::time)),
        measured,
        Cell::from(load_words(found.load.as_deref(), findings)),
        said(found.verdict, explain_published_time(&input.header.study, findings, found)),
    ];
    Row::new(&*found.arm, cells).about(published_for(found))
}

fn quantile_name(quantile: f64) -> String {
    match quantile {
        1.0 => "max".to_owned(),
        // Multiplication by 100 leaves digits behind: 99.9 is not 99.90000000000001.
        q => format!("p{}", (q * 1e5).round() / 1e3),
    }
}

/// Formats the conditions of a published time: `900 to 1000 connections`. Empty if there are none.
fn published_for(found: &TimeFindings) -> String {
    let connections = found
        .connections
        .map(|(low, high)| format_span(f64::from(low), f64::from(high), "connections"));
    let rate = found.rate.map(|(low, high)| format_span(low, high, "requests/s"));
    let parts = [found.published_load.clone(), connections, rate];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn format_span(low: f64, high: f64, noun: &str) -> String {
    if low == high {
        format!("{} {noun}", number::rate(low))
    } else {
        format!("{} to {} {noun}", number::rate(low), number::rate(high))
    }
}

/// Formats published times without rounding, which is for measured figures only.
fn durations((low, high): (u64, u64)) -> String {
    let [low_time, high_time] =
        [low, high].map(|ns| weir_model::quantity::format_duration(Duration::from_nanos(ns)));
    if low == high { low_time } else { format!("{low_time} to {high_time}") }
}

fn ratios((low, high): (f64, f64)) -> String {
    if low == high {
        number::ratio(low)
    } else {
        format!("{} to {}", number::ratio(low), number::ratio(high))
    }
}

/// A gain as text.
struct Gain<'a> {
    found: &'a GainFindings,
    /// Arms or level that cause the gain.
    of: String,
    /// Published mean and peak. `here` has the measured ones.
    published: [String; 2],
    here: [String; 2],
}

impl Gain<'_> {
    fn new(found: &GainFindings) -> Gain<'_> {
        Gain {
            found,
            of: match &found.of {
                GainOf::Arms(arms) => arms.join(", "),
                GainOf::Level { id, level } => format!("{id}={level}"),
            },
            published: [found.mean, found.peak]
                .map(|change| number::change(1.0 + change.unwrap_or(f64::NAN))),
            here: [found.mean_here, found.peak_here]
                .map(|ratio| number::change(ratio.unwrap_or(f64::NAN))),
        }
    }

    /// Formats the metric and the load of the measured figures, with its validity.
    fn about(&self, findings: &Findings) -> String {
        let metric = words::metric(self.found.metric);
        match self.found.load.as_deref() {
            None => metric.to_owned(),
            load => format!("{metric} under load {}", load_words(load, findings)),
        }
    }

    /// Formats the measured gain of each arm.
    fn arms(&self) -> impl Iterator<Item = String> {
        self.found.arms.iter().map(|own: &Comparison| {
            let [low, high] = [own.interval.0, own.interval.1].map(number::change);
            let gain = number::change(own.ratio);
            format!("{} against {}: {gain} ({low} to {high})", own.arm, own.against)
        })
    }

    /// Formats a gain and then its arms: `transport=sockmap, completed rate under load closed (VALID): published mean
    /// +280 %, peak +366 %; here mean +41 %, peak +52 %: confirmed`.
    fn lines(&self, findings: &Findings) -> impl Iterator<Item = Text> {
        let because = match explain_published_gain(self.found).as_str() {
            "" => String::new(),
            because => format!(", {because}"),
        };
        let head = format!(
            "{}, {}: published {}; here {}: {}{because}",
            self.of,
            self.about(findings),
            describe_gain(&self.published),
            describe_gain(&self.here),
            words::published(self.found.verdict)
        );
        let arms = self.arms().map(|arm| format!("  {arm}"));
        std::iter::once(head).chain(arms).map(Text::from)
    }

    fn row(&self, findings: &Findings) -> Row {
        let [published, here] =
            [&self.published, &self.here].map(|[mean, peak]| Cell::from(&**mean).small(&**peak));
        let cells = [
            published,
            here,
            Cell::lines(self.arms()),
            said(Some(self.found.verdict), explain_published_gain(self.found)),
        ];
        Row::new(&*self.of, cells).about(self.about(findings))
    }
}

fn describe_gain([mean, peak]: &[String; 2]) -> String {
    let figures: Vec<String> = [("mean", mean), ("peak", peak)]
        .iter()
        .filter(|(_, figure)| *figure != number::NONE)
        .map(|(name, figure)| format!("{name} {figure}"))
        .collect();
    if figures.is_empty() { "nothing".to_owned() } else { figures.join(", ") }
}

fn gains(all: &[GainFindings], findings: &Findings) -> Vec<Block> {
    let caveat = "Published gains are from other hardware: directions can be compared, sizes cannot. Ours are the ratio of \
                  each arm less 1, their mean is geometric.";
    let gains: Vec<Gain<'_>> = all.iter().map(Gain::new).collect();
    let columns = [
        Column::new("published").small("mean, peak"),
        Column::new("here").small("mean, peak"),
        Column::left("each arm here"),
        Column::left("verdict"),
    ];
    let label = "Published gains beside measured ones";
    let table = Table { about: "metric", ..Table::new(Kind::Prose, label, "gained by") };
    let rows = gains.iter().map(|gain| gain.row(findings));
    let lines = gains.iter().flat_map(|gain| gain.lines(findings));
    vec![
        text(Style::Soft, caveat),
        Block::Only(Outputs::TERMINAL, list(lines, true).into_iter().collect()),
        Block::Only(Outputs::FILES, vec![Block::Table(table.columns(columns).rows(rows))]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_their_usual_names() {
        let names = [0.5, 0.75, 0.95, 0.99, 0.999, 1.0].map(quantile_name);
        assert_eq!(names, ["p50", "p75", "p95", "p99", "p99.9", "max"]);
    }
}
