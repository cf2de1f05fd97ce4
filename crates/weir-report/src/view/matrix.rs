//! A matrix of loads: what all cells come to, then the response times of each arm over all of them.
//!
//! In a matrix an arm is called a *suite*, as in published ones: all loads under one configuration.

mod heat;

use std::collections::BTreeMap;

use weir_analysis::findings::{
    ArmFindings, Comparison, InertArm, LoadFindings, MatrixFindings, Verdict,
};
use weir_model::record::Validity;
use weir_model::study::{ArmRole, LoadSpec, Metric};

use super::charts;
use super::compare::{Compared, changes, compared};
use super::load::manner;
use crate::input::ReportInput;
use crate::tree::{
    Axis, Block, Cell as TableCell, Chart, Column, Extent, Heading, Kind, Line, Lines, Outputs,
    Part, Role, Row, Style, Table, Text, Tone, clause, figure, fold, list, text,
};
use crate::{number, words};

/// Colours of a scale from few to many, as the style sheet has them.
const COLOURS: f64 = 10.0;

/// A load of the matrix with what was found under it.
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

/// The loads of one matrix.
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
        Matrix {
            found,
            cells: cells.collect(),
        }
    }

    /// Metrics of its cells but for the CPU's.
    fn metrics(&self) -> Vec<Metric> {
        let first = self
            .cells
            .first()
            .map_or(&[][..], |cell| &cell.found.metrics);
        let own = first
            .iter()
            .filter(|metric| **metric != Metric::CpuPerRequest);
        own.copied().collect()
    }
}

/// A section for each matrix.
pub(super) fn sections(input: &ReportInput<'_>) -> Vec<Block> {
    let matrices = input.findings.matrices.iter().zip(1..);
    matrices
        .flat_map(|(matrix, number)| section(input, &Matrix::new(matrix, input), number))
        .collect()
}

/// The verdicts on the study's own metric over all loads, for each matrix.
pub(super) fn summary(input: &ReportInput<'_>) -> Vec<Block> {
    let objective = input.header.study.objective.metric;
    let matrices = input.findings.matrices.iter();
    matrices
        .flat_map(|found| {
            let matrix = Matrix::new(found, input);
            let metrics = matrix.metrics();
            let is_objective = |metric: &&Metric| **metric == objective;
            let own = metrics.iter().find(is_objective).or(metrics.first());
            let loads = clause(Style::Soft, summed_up(&matrix.cells));
            let table = own.map(|metric| {
                let caption = words::capital(words::metric(*metric)) + ": verdicts over all loads";
                Block::Table(Table {
                    caption,
                    ..tallies(input, &matrix.cells, *metric)
                })
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
    let mut blocks = vec![
        Block::Heading(heading.remark(&measured)),
        clause(Style::Soft, summed_up(cells)),
    ];
    blocks.extend(list(reasons(cells), false));
    for metric in matrix.metrics() {
        let name = words::capital(words::metric(metric));
        let heading = Heading::part(format!("{name}: verdicts over all loads")).badge(validity);
        blocks.extend([
            Block::Heading(heading),
            Block::Table(tallies(input, cells, metric)),
        ]);
    }
    let arms = input.findings.inert.iter().filter(|inert| inert.whole);
    let inert = arms.map(|inert| {
        let sign = format!("{} {}", words::INERT_SIGN, words::INERT);
        let text = Text::of(Role::Tone(Tone::Inert), sign);
        text.plain(format!(": {} ({})", inert.why(), inert.arm))
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
    let each = vec![Block::Table(each(input, matrix))];
    let each = fold("Each of the loads by itself", each);
    blocks.push(Block::Only(Outputs::HTML, vec![each]));
    blocks
}

/// Numbers of connections and rates, ascending, as they were sent.
fn axes(cells: &[Cell<'_>]) -> (Vec<u32>, Vec<Option<f64>>) {
    let mut connections: Vec<u32> = cells.iter().map(|cell| cell.spec.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    let mut rates: Vec<Option<f64>> = cells.iter().map(Cell::rate).collect();
    rates.sort_by(|a, b| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
    rates.dedup();
    (connections, rates)
}

/// `100 to 1,000 connections`.
fn span(values: &[f64], noun: &str) -> String {
    match values {
        [] => String::new(),
        [one] => format!("{} {noun}", number::asked(*one)),
        [first, .., last] => format!(
            "{} to {} {noun}",
            number::asked(*first),
            number::asked(*last)
        ),
    }
}

fn summed_up(cells: &[Cell<'_>]) -> String {
    let (connections, rates) = axes(cells);
    let connections: Vec<f64> = connections.into_iter().map(f64::from).collect();
    let rates: Vec<f64> = rates.into_iter().flatten().collect();
    let mut parts = vec![span(&connections, "connections to each arm")];
    parts.push(match rates.is_empty() {
        true => "closed loop or a rate of its own".to_owned(),
        false => format!("open loop at {}", span(&rates, "requests/s")),
    });
    parts.extend(
        cells
            .first()
            .map(|cell| manner(cell.spec))
            .unwrap_or_default(),
    );
    format!(
        "{}: {}",
        number::plural(cells.len() as u64, "load"),
        parts.join(", ")
    )
}

/// Reasons by rule and gravity, the gravest first, each with the cell in which most trials had it.
fn reasons(cells: &[Cell<'_>]) -> Vec<Text> {
    type Seen<'a> = (usize, u32, String);
    let mut all: BTreeMap<(std::cmp::Reverse<Validity>, &str), Seen<'_>> = BTreeMap::new();
    for cell in cells {
        for counted in &cell.found.reasons {
            let key = (
                std::cmp::Reverse(counted.reason.validity),
                &*counted.reason.rule,
            );
            let (loads, most, example) = all.entry(key).or_default();
            *loads += 1;
            if counted.trials > *most {
                *most = counted.trials;
                *example = format!("{}: {}", cell.spec.name, counted.reason.seen);
            }
        }
    }
    let of = number::plural(cells.len() as u64, "load");
    let each = all.into_iter();
    each.map(|((validity, rule), (loads, _, example))| {
        Text::validity(validity.0)
            .plain(" ")
            .and(Role::Strong, rule)
            .plain(format!(": trials of {loads} of {of}; "))
            .and(Role::Soft, example)
    })
    .collect()
}

/// Why an arm is inert as a whole; empty when it is not.
fn inert_words(inert: &[InertArm], arm: &str) -> String {
    let found = inert.iter().find(|inert| inert.arm == arm && inert.whole);
    found.map_or_else(String::new, InertArm::why)
}

/// How often each arm came out how, on one metric.
fn tallies(input: &ReportInput<'_>, cells: &[Cell<'_>], metric: Metric) -> Table {
    let study = &input.header.study;
    let arms = study
        .arms
        .iter()
        .filter(|arm| arm.role != ArmRole::Baseline);
    let rows = arms.map(|arm| {
        let changes = Text::from(changes(study, Some(arm), arm.role));
        let about = match inert_words(&input.findings.inert, &arm.name).as_str() {
            "" => changes,
            why => changes.plain("; ").and(
                Role::Tone(Tone::Inert),
                format!("{} {}: {why}", words::INERT_SIGN, words::INERT),
            ),
        };
        Row::new(
            &*arm.name,
            tally(cells, &arm.name, metric).map(TableCell::from),
        )
        .about(about)
    });
    let short = |head: &str, short: &str| Column::new(head).short(short);
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
        short("equivalent", "equal"),
        short("inconclusive", "open"),
        Column::new("invalid"),
        Column::new("ratios"),
    ])
    .rows(rows)
}

/// Better, worse, equivalent, inconclusive, invalid, and the ratios of the cells that are better or worse.
fn tally(cells: &[Cell<'_>], arm: &str, metric: Metric) -> [String; 6] {
    // A load that is INVALID as a whole has no verdict, whatever single blocks say.
    let (usable, unusable): (Vec<&Cell<'_>>, Vec<_>) = cells.iter().partition(|cell| cell.usable());
    let found = usable.iter().flat_map(|cell| &cell.found.comparisons);
    let found: Vec<_> = found
        .filter(|c| c.arm == arm && c.metric == metric)
        .collect();
    let count = |verdict, more: usize| {
        let such = found.iter().filter(|c| c.verdict == verdict).count();
        number::count((such + more) as u64)
    };
    let shown = |c: &&&Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
    let mut ratios: Vec<f64> = found.iter().filter(shown).map(|c| c.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    [
        count(Verdict::Better, 0),
        count(Verdict::Worse, 0),
        count(Verdict::Equivalent, 0),
        count(Verdict::Inconclusive, 0),
        count(Verdict::Invalid, unusable.len()),
        match &ratios[..] {
            [] => number::NONE.to_owned(),
            [one] => number::ratio(*one),
            [low, .., high] => format!("{}–{}", number::ratio(*low), number::ratio(*high)),
        },
    ]
}

/// Response times of each arm over all cells. All suites have the same axes and shades, so that they can be compared by
/// eye.
fn suites(input: &ReportInput<'_>, cells: &[Cell<'_>], validity: Validity) -> Vec<Block> {
    let study = &input.header.study;
    let rate = rate_of_lines(cells);
    let all: Vec<Vec<Line>> = study
        .arms
        .iter()
        .map(|arm| lines(cells, &arm.name, rate))
        .collect();
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
                    .and(
                        Role::Tone(Tone::Inert),
                        format!("{} {}", words::INERT_SIGN, words::INERT),
                    )
                    .plain(format!(": {why}")),
            };
            let at = rate.map(|rate| format!("at {} requests/s", number::asked(rate)));
            let at = at.unwrap_or_default();
            let table = match lines.is_empty() {
                true => clause(Style::Plain, "no load of it can be used"),
                false => Block::Table(quantile_table(cells, &arm.name, rate, &at)),
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
    let log = if extent.is_log() {
        ", both logarithmic"
    } else {
        ""
    };
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

/// The rate at which most numbers of connections have figures; the highest of several.
fn rate_of_lines(cells: &[Cell<'_>]) -> Option<f64> {
    let (_, rates) = axes(cells);
    let usable = |rate: &Option<f64>| {
        let such = cells
            .iter()
            .filter(|cell| cell.rate() == *rate && cell.usable());
        such.count()
    };
    // Of equal ones max_by_key takes the last, which is the highest.
    rates.into_iter().max_by_key(usable).flatten()
}

/// Cells at one rate that can be used, few connections to many.
fn row_at<'a>(cells: &'a [Cell<'_>], rate: Option<f64>) -> Vec<&'a Cell<'a>> {
    let is_here = |cell: &&Cell<'_>| cell.rate() == rate && cell.usable();
    let mut row: Vec<&Cell<'_>> = cells.iter().filter(is_here).collect();
    row.sort_by_key(|cell| cell.spec.connections);
    row
}

/// `300 connections`, and its validity where it is not VALID.
fn cell_name(cell: &Cell<'_>) -> String {
    let name = number::plural(u64::from(cell.spec.connections), "connection");
    match cell.found.validity {
        Validity::Valid => name,
        doubtful => format!("{name}, {}", words::validity(doubtful)),
    }
}

/// The percentile curves of an arm, few connections to many in the colours of a scale. Every other one is dashed, for
/// those to whom the colours look alike and for print.
fn lines(cells: &[Cell<'_>], arm: &str, rate: Option<f64>) -> Vec<Line> {
    let (all, _) = axes(cells);
    let colour = |connections: u32| {
        let place = all.iter().position(|other| *other == connections);
        let share = place.unwrap_or(0) as f64 / (all.len().max(2) - 1) as f64;
        (share * (COLOURS - 1.0)).round()
    };
    let row = row_at(cells, rate).into_iter();
    let drawn = row.filter_map(|cell| Some((cell, cell.arm(arm)?)));
    let drawn = drawn.enumerate().map(|(series, (cell, found))| {
        let name = cell_name(cell);
        Line {
            tooltip: charts::tooltip(&name, found),
            class: format!("q{} d{}", colour(cell.spec.connections), series % 2),
            series,
            front: false,
            points: charts::curve(found),
            name,
        }
    });
    drawn.collect()
}

/// The quantiles of an arm, a row for each number of connections.
fn quantile_table(cells: &[Cell<'_>], arm: &str, rate: Option<f64>, at: &str) -> Table {
    let row = row_at(cells, rate).into_iter();
    let rows = row.filter_map(|cell| {
        let found = cell.arm(arm)?;
        let times = number::quantiles(&found.response_ns, found.samples);
        Some(Row::new(cell_name(cell), times.map(TableCell::from)))
    });
    Table::new(Kind::Figures, format!("Response times of {arm}"), at)
        .columns(["p50", "p90", "p99", "p99.9", "max"].map(Column::new))
        .rows(rows)
}

/// Each cell by itself.
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
        let compared: Vec<_> = metrics
            .iter()
            .map(|metric| compared(input, cell.found, *metric))
            .collect();
        for arm in &cell.found.arms {
            let mut cells = vec![TableCell::from(number::rate(arm.rate_completed))];
            let of_arm = compared
                .iter()
                .flatten()
                .filter(|row| row.arm.arm == arm.arm);
            cells.extend(of_arm.flat_map(Compared::short));
            cells.push(number::count(arm.failures).into());
            cells.push(number::count(arm.censored).into());
            rows.push(Row::new(&*arm.arm, cells));
        }
    }
    Table::new(Kind::Figures, "Each load of the matrix", "load and arm")
        .columns(columns)
        .rows(rows)
}
