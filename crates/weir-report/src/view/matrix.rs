//! A matrix of loads: the verdicts over all cells, then the response times of each arm over all cells.
//!
//! In a matrix an arm is called a *suite*, as in published ones: all loads under one configuration.

mod heat;

use std::collections::BTreeMap;

use weir_analysis::findings::{ArmFindings, InertArm, LoadFindings, MatrixFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{ArmRole, LoadSpec, Metric};
use weir_sentences::validity::describe;

use super::charts;
use super::compare::{Compared, changes, compared};
use super::load::manner;
use crate::input::ReportInput;
use crate::tree::{
    Axis, Block, Cell as TableCell, Chart, Column, Extent, Heading, Kind, Line, Lines, Outputs,
    Part, Role, Row, Style, Table, Text, Tone, clause, figure, fold, list, text,
};
use crate::{number, words};

/// Number of colours in the style sheet's scale from few to many.
const COLOURS: f64 = 10.0;

/// A load of the matrix with its findings.
#[derive(Clone, Copy)]
struct Cell<'a> {
    spec: &'a LoadSpec,
    found: &'a LoadFindings,
}

impl Cell<'_> {
    fn rate(&self) -> Option<f64> {
        self.found.rate_intended
    }

    fn usable(&self) -> bool {
        self.found.is_usable()
    }

    fn arm(&self, name: &str) -> Option<&ArmFindings> {
        self.found.arms.iter().find(|arm| arm.arm == name)
    }
}

/// A matrix with its cells.
struct Matrix<'a> {
    found: &'a MatrixFindings,
    cells: Vec<Cell<'a>>,
}

impl<'a> Matrix<'a> {
    fn new(found: &'a MatrixFindings, input: &'a ReportInput<'_>) -> Matrix<'a> {
        let (study, loads) = (&input.header.study, input.findings.loads.iter());
        let cells = loads.filter_map(|load| {
            let spec = study.loads.iter().find(|spec| spec.name == load.load)?;
            let is_own = spec.cell.as_ref()?.matrix == found.name;
            is_own.then_some(Cell { spec, found: load })
        });
        Matrix { found, cells: cells.collect() }
    }

    /// Returns the metrics of the cells, without the CPU time.
    fn metrics(&self) -> Vec<Metric> {
        let first = self.cells.first().map_or(&[][..], |cell| &cell.found.metrics);
        first.iter().filter(|metric| **metric != Metric::CpuPerRequest).copied().collect()
    }
}

/// Returns a section for each matrix.
pub(super) fn sections(input: &ReportInput<'_>) -> Vec<Block> {
    input
        .findings
        .matrices
        .iter()
        .zip(1..)
        .flat_map(|(matrix, number)| section(input, &Matrix::new(matrix, input), number))
        .collect()
}

/// Returns the verdicts on the study's main metric over all loads, for each matrix.
pub(super) fn summary(input: &ReportInput<'_>) -> Vec<Block> {
    let objective = input.header.study.objective.metric;
    input
        .findings
        .matrices
        .iter()
        .flat_map(|found| {
            let matrix = Matrix::new(found, input);
            let metrics = matrix.metrics();
            let metric = metrics.iter().find(|metric| **metric == objective).or(metrics.first());
            let loads = clause(Style::Soft, summed_up(&matrix.cells));
            let table = metric.map(|metric| {
                let caption = words::capital(words::metric(*metric)) + ": verdicts over all loads";
                Block::Table(Table { caption, ..tallies(input, &matrix.cells, *metric) })
            });
            std::iter::once(loads).chain(table)
        })
        .collect()
}

fn section(input: &ReportInput<'_>, matrix: &Matrix<'_>, number: usize) -> Vec<Block> {
    let (study, cells) = (&input.header.study, &matrix.cells);
    let (validity, used) = (matrix.found.validity, matrix.found.used);
    let loads = number::plural(u64::from(matrix.found.loads), "load");
    let title = match matrix.found.name.as_str() {
        "" => "Matrix".to_owned(),
        name => format!("Matrix {name}"),
    };
    let heading = Heading::section(&format!("matrix-{number}"), title).badge(validity);
    let measured = format!("{used} of {loads} can be used");
    let mut blocks =
        vec![Block::Heading(heading.remark(&measured)), clause(Style::Soft, summed_up(cells))];
    blocks.extend(list(reasons(cells), false));
    for metric in matrix.metrics() {
        let name = words::capital(words::metric(metric));
        let heading = Heading::part(format!("{name}: verdicts over all loads")).badge(validity);
        blocks.extend([Block::Heading(heading), Block::Table(tallies(input, cells, metric))]);
    }
    let inert = input.findings.inert.iter().filter(|inert| inert.whole).map(|inert| {
        let sign = format!("{} {}", words::INERT_SIGN, words::INERT);
        let text = Text::of(Role::Tone(Tone::Inert), sign);
        text.plain(format!(": {} ({})", weir_sentences::explain_inert(inert), inert.arm))
    });
    let inert = list(inert, true).into_iter().collect();
    blocks.push(Block::Only(Outputs::TERMINAL, inert));
    let wrong = ((1.0 - study.objective.confidence) * cells.len() as f64).ceil();
    let caveat = format!(
        "every p is corrected for the arms of its load, not for all {loads}: where nothing differs, up to {wrong} of them \
         may still seem to"
    );
    blocks.push(clause(Style::Soft, caveat));
    let signs = "In tables of times, × marks a load that is INVALID and ? one that is SUSPECT; a shade is the same time in \
                 all suites.";
    blocks.push(Block::Only(Outputs::FILES, vec![text(Style::Soft, signs)]));
    blocks.extend(suites(input, cells, validity));
    let loads = fold("Each of the loads by itself", vec![Block::Table(each(input, matrix))]);
    blocks.push(Block::Only(Outputs::HTML, vec![loads]));
    blocks
}

/// Returns the numbers of connections and the intended rates, ascending.
fn axes(cells: &[Cell<'_>]) -> (Vec<u32>, Vec<Option<f64>>) {
    let mut connections: Vec<u32> = cells.iter().map(|cell| cell.spec.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    let mut rates: Vec<Option<f64>> = cells.iter().map(Cell::rate).collect();
    rates.sort_by(|a, b| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
    rates.dedup();
    (connections, rates)
}

/// Formats a range: `100 to 1,000 connections`.
fn span(values: &[f64], noun: &str) -> String {
    match values {
        [] => String::new(),
        [one] => format!("{} {noun}", number::asked(*one)),
        [first, .., last] => {
            format!("{} to {} {noun}", number::asked(*first), number::asked(*last))
        }
    }
}

fn summed_up(cells: &[Cell<'_>]) -> String {
    let (connections, rates) = axes(cells);
    let connections: Vec<f64> = connections.into_iter().map(f64::from).collect();
    let rates: Vec<f64> = rates.into_iter().flatten().collect();
    let mut parts = vec![span(&connections, "connections to each arm")];
    parts.push(if rates.is_empty() {
        "closed loop or a rate of its own".to_owned()
    } else {
        format!("open loop at {}", span(&rates, "requests/s"))
    });
    parts.extend(cells.first().map(|cell| manner(cell.spec)).unwrap_or_default());
    format!("{}: {}", number::plural(cells.len() as u64, "load"), parts.join(", "))
}

/// Lists reasons by rule and severity, the most severe first, each with the cell in which most trials had it.
fn reasons(cells: &[Cell<'_>]) -> Vec<Text> {
    /// Number of loads, most trials of one load, and the example from it.
    type ReasonCount = (usize, u32, String);
    let mut all: BTreeMap<(std::cmp::Reverse<Validity>, &str), ReasonCount> = BTreeMap::new();
    for cell in cells {
        for counted in &cell.found.reasons {
            let key = (std::cmp::Reverse(counted.reason.validity), counted.reason.rule());
            let (loads, most, example) = all.entry(key).or_default();
            *loads += 1;
            if counted.trials > *most {
                *most = counted.trials;
                *example = format!("{}: {}", cell.spec.name, describe(&counted.reason));
            }
        }
    }
    let all_loads = number::plural(cells.len() as u64, "load");
    all.into_iter()
        .map(|((validity, rule), (loads, _, example))| {
            Text::validity(validity.0)
                .plain(" ")
                .and(Role::Strong, rule)
                .plain(format!(": trials of {loads} of {all_loads}; "))
                .and(Role::Soft, example)
        })
        .collect()
}

/// Returns why an arm is inert as a whole. Empty if it is not.
fn inert_words(inert: &[InertArm], arm: &str) -> String {
    inert
        .iter()
        .find(|inert| inert.arm == arm && inert.whole)
        .map_or_else(String::new, weir_sentences::explain_inert)
}

/// Counts the verdicts of each arm on one metric.
fn tallies(input: &ReportInput<'_>, cells: &[Cell<'_>], metric: Metric) -> Table {
    let study = &input.header.study;
    let rows = study.arms.iter().filter(|arm| arm.role != ArmRole::Baseline).map(|arm| {
        let changes = Text::from(changes(study, Some(arm), arm.role));
        let about = match inert_words(&input.findings.inert, &arm.name).as_str() {
            "" => changes,
            why => changes.plain("; ").and(
                Role::Tone(Tone::Inert),
                format!("{} {}: {why}", words::INERT_SIGN, words::INERT),
            ),
        };
        Row::new(&*arm.name, tally(cells, &arm.name, metric).map(TableCell::from)).about(about)
    });
    Table {
        about: "changes",
        about_again: true,
        ..Table::new(
            Kind::Plain,
            format!("Verdicts over all loads: {}", words::metric(metric)),
            "arm",
        )
    }
    .columns([
        Column::new("better"),
        Column::new("worse"),
        Column::new("equivalent").short("equal"),
        Column::new("inconclusive").short("open"),
        Column::new("invalid"),
        Column::new("ratios"),
    ])
    .rows(rows)
}

/// Counts the verdicts better, worse, equivalent, inconclusive and invalid, and formats the ratios of the cells that
/// are better or worse.
fn tally(cells: &[Cell<'_>], arm: &str, metric: Metric) -> [String; 6] {
    // A load that is INVALID as a whole has no verdict, whatever single blocks say.
    let (usable, unusable): (Vec<&Cell<'_>>, Vec<_>) = cells.iter().partition(|cell| cell.usable());
    let comparisons: Vec<_> = usable
        .iter()
        .flat_map(|cell| &cell.found.comparisons)
        .filter(|c| c.arm == arm && c.metric == metric)
        .collect();
    let [better, worse, equivalent, inconclusive, invalid] = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::Equivalent,
        Verdict::Inconclusive,
        Verdict::Invalid,
    ]
    .map(|verdict| comparisons.iter().filter(|c| c.verdict == verdict).count() as u64);
    let mut ratios: Vec<f64> = comparisons
        .iter()
        .filter(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse))
        .map(|c| c.ratio)
        .collect();
    ratios.sort_by(f64::total_cmp);
    [
        number::count(better),
        number::count(worse),
        number::count(equivalent),
        number::count(inconclusive),
        number::count(invalid + unusable.len() as u64),
        match &ratios[..] {
            [] => number::NONE.to_owned(),
            [one] => number::ratio(*one),
            [low, .., high] => format!("{}–{}", number::ratio(*low), number::ratio(*high)),
        },
    ]
}

/// Draws the response times of each arm over all cells. All suites have the same axes and shades, so that they can be
/// compared by eye.
fn suites(input: &ReportInput<'_>, cells: &[Cell<'_>], validity: Validity) -> Vec<Block> {
    let study = &input.header.study;
    let rate = rate_of_lines(cells);
    let all: Vec<Vec<Line>> = study.arms.iter().map(|arm| lines(cells, &arm.name, rate)).collect();
    let extent = Extent::of(all.iter().flatten());
    let suites = study.arms.iter().zip(all);
    suites
        .flat_map(|(arm, lines)| {
            let heading = Heading::part(format!("Suite {}", arm.name)).badge(validity);
            let changes = Text::from("changes: ").plain(changes(study, Some(arm), arm.role));
            let changes = match inert_words(&input.findings.inert, &arm.name).as_str() {
                "" => changes,
                why => changes
                    .plain(". ")
                    .and(Role::Tone(Tone::Inert), format!("{} {}", words::INERT_SIGN, words::INERT))
                    .plain(format!(": {why}")),
            };
            let at = rate
                .map(|rate| format!("at {} requests/s", number::asked(rate)))
                .unwrap_or_default();
            let table = if lines.is_empty() {
                clause(Style::Plain, "no load of it can be used")
            } else {
                Block::Table(quantile_table(cells, &arm.name, rate, &at))
            };
            let mut blocks = vec![
                Block::Heading(heading),
                Block::Only(Outputs::FILES, vec![clause(Style::Soft, changes)]),
                Block::Only(Outputs::TERMINAL, vec![table]),
            ];
            blocks.push(plot(lines, extent, &at));
            blocks.extend(heat::blocks(cells, &arm.name));
            blocks
        })
        .collect()
}

fn plot(lines: Vec<Line>, extent: Extent, at: &str) -> Block {
    if lines.iter().all(|line| line.points.is_empty()) {
        let none = clause(Style::Soft, "no load of this suite can be drawn");
        return Block::Only(Outputs::HTML, vec![none]);
    }
    let log = if extent.is_log() { ", both logarithmic" } else { "" };
    let caption = format!(
        "Response time by percentile {at}, a line for each number of connections. All suites have the same axes{log}."
    );
    let chart = Chart::Lines(Lines {
        title: "Response time by percentile".to_owned(),
        each: "number of connections",
        axis: Axis::Nines,
        lines,
        extent,
        marks: None,
    });
    figure(caption.replace(" ,", ","), chart)
}

/// Returns the rate at which most numbers of connections have usable figures, or the highest such rate.
fn rate_of_lines(cells: &[Cell<'_>]) -> Option<f64> {
    let (_, rates) = axes(cells);
    // Of equal ones max_by_key takes the last, which is the highest.
    rates
        .into_iter()
        .max_by_key(|rate| {
            cells.iter().filter(|cell| cell.rate() == *rate && cell.usable()).count()
        })
        .flatten()
}

/// Returns the usable cells at one rate, from few connections to many.
fn row_at<'a>(cells: &'a [Cell<'_>], rate: Option<f64>) -> Vec<&'a Cell<'a>> {
    let mut row: Vec<&Cell<'_>> =
        cells.iter().filter(|cell| cell.rate() == rate && cell.usable()).collect();
    row.sort_by_key(|cell| cell.spec.connections);
    row
}

/// Formats the name of a cell: `300 connections`, with the validity if it is not VALID.
fn cell_name(cell: &Cell<'_>) -> String {
    let name = number::plural(u64::from(cell.spec.connections), "connection");
    match cell.found.validity {
        Validity::Valid => name,
        doubtful => format!("{name}, {}", words::validity(doubtful)),
    }
}

/// Returns the percentile curves of an arm, from few connections to many in the colours of a scale. Every other one is
/// dashed, for readers who cannot distinguish the colours and for print.
fn lines(cells: &[Cell<'_>], arm: &str, rate: Option<f64>) -> Vec<Line> {
    let (all, _) = axes(cells);
    let drawn = row_at(cells, rate)
        .into_iter()
        .filter_map(|cell| Some((cell, cell.arm(arm)?)))
        .enumerate()
        .map(|(series, (cell, found))| {
            let name = cell_name(cell);
            let position = all.iter().position(|other| *other == cell.spec.connections);
            let share = position.unwrap_or(0) as f64 / (all.len().max(2) - 1) as f64;
            let colour = (share * (COLOURS - 1.0)).round();
            Line {
                tooltip: charts::tooltip(&name, found),
                class: format!("q{colour} d{}", series % 2),
                series,
                front: false,
                points: charts::curve(found),
                name,
            }
        });
    drawn.collect()
}

/// Returns a table of the quantiles of an arm, with a row for each number of connections.
fn quantile_table(cells: &[Cell<'_>], arm: &str, rate: Option<f64>, at: &str) -> Table {
    let rows = row_at(cells, rate).into_iter().filter_map(|cell| {
        let findings = cell.arm(arm)?;
        let times = number::quantiles(&findings.response_ns, findings.samples);
        Some(Row::new(cell_name(cell), times.map(TableCell::from)))
    });
    Table::new(Kind::Figures, format!("Response times of {arm}"), at)
        .columns(["p50", "p90", "p99", "p99.9", "max"].map(Column::new))
        .rows(rows)
}

/// Returns a table of all cells.
fn each(input: &ReportInput<'_>, matrix: &Matrix<'_>) -> Table {
    let metrics = matrix.metrics();
    let mut columns = vec![Column::new("completed/s")];
    for metric in &metrics {
        columns.push(Column::new(words::metric_head(*metric)));
        columns.push(Column::new("ratio and interval"));
        columns.push(Column::left("verdict"));
    }
    columns.extend(["failures", "never ended"].map(Column::new));
    let mut rows = Vec::new();
    for cell in &matrix.cells {
        rows.push(Row {
            badge: Some(cell.found.validity),
            ..Row::new(&*cell.spec.name, []).part(Part::Group)
        });
        let compared: Vec<_> =
            metrics.iter().map(|metric| compared(input, cell.found, *metric)).collect();
        for arm in &cell.found.arms {
            let mut cells = vec![TableCell::from(number::rate(arm.rate_completed))];
            let of_arm = compared.iter().flatten().filter(|row| row.arm.arm == arm.arm);
            cells.extend(of_arm.flat_map(Compared::short));
            cells.push(number::count(arm.failures).into());
            cells.push(number::count(arm.censored).into());
            rows.push(Row::new(&*arm.arm, cells));
        }
    }
    Table::new(Kind::Figures, "Each load of the matrix", "load and arm").columns(columns).rows(rows)
}
