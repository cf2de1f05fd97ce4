//! The part of a summary below the answer, for one screen: one table on the study's question, the limiters of baseline
//! and winner, and the next commands. The whole report has the rest.

use weir_analysis::findings::{LimiterFindings, LoadFindings, Verdict};
use weir_model::study::{Metric, Study};
use weir_sentences::limiter::{describe, what_to_do};

use super::compare::{self, Compared, compared};
use super::{capacity, limit, load, matrix, overall};
use crate::input::{Pointers, ReportInput};
use crate::tree::{
    Block, Cell, Code, Column, Kind, Outputs, Row, Style, Table, Text, clause, labelled, list, text,
};
use crate::{number, words};

/// Maximum number of loads besides the first one whose ratios are in the table.
const OTHER_LOADS: usize = 3;
/// Maximum number of notes.
const NOTES: usize = 3;

/// Returns the table, and the limiters of baseline and winner.
pub(super) fn blocks(input: &ReportInput<'_>) -> Vec<Block> {
    let findings = input.findings;
    let study = &input.header.study;
    let mut blocks = Vec::new();
    if let Some(found) = &findings.capacity {
        blocks.extend(capacity::summary(study, found));
        // The answer about a single arm says what limits it.
        if found.arms.len() > 1 {
            let winner = capacity::winner(found);
            blocks.extend(limiters(&findings.limiters, study, winner));
        }
        return blocks;
    }
    let metric = study.objective.metric;
    let (answering, others): (Vec<&LoadFindings>, Vec<_>) = load::single(input)
        .filter(|load| load.is_usable())
        .partition(|load| load.metrics.contains(&metric));
    let mut loads = answering.into_iter().chain(others);
    let Some(first) = loads.next() else {
        blocks.extend(matrix::summary(input));
        return blocks;
    };
    let further_loads: Vec<&LoadFindings> = loads.collect();
    if study.arms.len() == 1 {
        blocks.push(loads_of_one_arm(first, &further_loads));
        blocks.extend(limiters(&findings.limiters, study, None));
        return blocks;
    }
    let rows = compared(input, first, asked_metric(first, metric));
    match overall::table(input) {
        Some(table) => blocks.push(table),
        None => blocks.extend(comparison(input, first, &rows, &further_loads)),
    }
    let limiters_of_load: Vec<LimiterFindings> =
        findings.limiters.iter().filter(|found| found.load == first.load).cloned().collect();
    let beside = match study.overall_pair() {
        Some([_, new]) => Some(new.name.as_str()),
        None => winner(&rows),
    };
    blocks.extend(limiters(&limiters_of_load, study, beside));
    blocks
}

/// Returns as many notes on a run as fit the screen, one sentence each.
pub(super) fn notes(sentences: Vec<String>) -> Vec<Block> {
    let left_out = sentences.len().saturating_sub(NOTES);
    let more = match left_out {
        0 => None,
        left_out => {
            Some(format!("{}: --full, or the report", number::plural(left_out as u64, "more note")))
        }
    };
    sentences
        .into_iter()
        .take(NOTES)
        .chain(more)
        .map(|sentence| clause(Style::Warning, sentence))
        .collect()
}

/// Returns the next commands, and the paths of the report. No line is wrapped, so that each can be copied.
pub(crate) fn pointers(pointers: &Pointers) -> Option<Block> {
    let width = pointers.next.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    let next =
        pointers.next.iter().map(|(command, purpose)| format!("{command:width$}  # {purpose}"));
    let next = under_head("Next:", next);
    let files = under_head("Report:", pointers.files.iter().cloned());
    let lines: Vec<String> = next.chain(files).collect();
    let code = Code { language: "", text: lines.join("\n") };
    (!lines.is_empty()).then(|| Block::Only(Outputs::SCREEN, vec![Block::Code(code)]))
}

/// Puts a head before the first line and indents the others.
fn under_head(
    head: &'static str,
    lines: impl Iterator<Item = String>,
) -> impl Iterator<Item = String> {
    lines.enumerate().map(move |(place, line)| {
        let head = if place == 0 { head } else { "" };
        format!("{head:8}{line}")
    })
}

/// Returns the metric of the study's objective if the load has it, else the load's first metric.
fn asked_metric(load: &LoadFindings, objective: Metric) -> Metric {
    match load.metrics.first() {
        Some(first) if !load.metrics.contains(&objective) => *first,
        _ => objective,
    }
}

/// Compares all arms under one load, with their ratios under the others.
fn comparison(
    input: &ReportInput<'_>,
    first: &LoadFindings,
    rows: &[Compared<'_>],
    others: &[&LoadFindings],
) -> Vec<Block> {
    let study = &input.header.study;
    let objective = study.objective.metric;
    let metric = asked_metric(first, objective);
    let beside: Vec<(&LoadFindings, Metric)> = others
        .iter()
        .take(OTHER_LOADS)
        .map(|load| (*load, asked_metric(load, objective)))
        .collect();
    let level = number::level(study.objective.confidence);
    let mut columns = vec![
        Column::new(words::metric_head(metric)),
        Column::new(format!("ratio ({level})")),
        Column::left("verdict"),
    ];
    if let Some(limits) = first.limits.first() {
        let limit = number::short_time(limits.limit_ns as f64);
        columns.push(Column::left(format!("within {limit}")));
    }
    columns.extend(beside.iter().map(|(load, metric)| {
        Column::new(format!("{}, {}", words::metric_head(*metric), load.load)).spare()
    }));
    let beside: Vec<Vec<Compared<'_>>> =
        beside.into_iter().map(|(load, metric)| compared(input, load, metric)).collect();
    let table_rows = rows.iter().zip(ranks(rows)).map(|(row, rank)| {
        let mut cells = row.short().to_vec();
        if !first.limits.is_empty() {
            cells.push(limit::verdict(first, &row.arm.arm));
        }
        cells.extend(beside.iter().map(|load| mark_of(load, &row.arm.arm)));
        let named = row.named();
        let about = if row.is_change() { named.about.clone() } else { Text::default() };
        Row { cells, about, ..named }.rank(rank)
    });
    let table = Table {
        about: "changes",
        caption: format!("load {}: {}", first.load, load::described(study, first)),
        ..Table::new(Kind::Compare, "Comparison of arms", "arm")
    };
    let mut blocks = vec![Block::Table(table.columns(columns).rows(table_rows))];
    let left_out = others.len().saturating_sub(OTHER_LOADS);
    if left_out > 0 {
        let more = number::plural(left_out as u64, "more load");
        blocks.push(text(Style::Soft, format!("{more}: --full, or the report")));
    }
    let resolution = compare::resolution(first, metric);
    blocks.push(labelled("A/A", Style::Soft, resolution));
    blocks.extend(compare::why(rows));
    blocks
}

/// Returns verdict and ratio of an arm under another load. Empty if it was not measured.
fn mark_of(load: &[Compared<'_>], arm: &str) -> Cell {
    let row = load.iter().find(|row| row.arm.arm == arm);
    row.map_or_else(Cell::default, Compared::mark)
}

/// Returns the rank of each row, which decides what is shown if not all rows fit: baseline and A/A first, then clear
/// verdicts, and large effects before small ones.
fn ranks(rows: &[Compared<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&rows[*a], &rows[*b]);
        let groups = (a.is_change(), verdict_rank(a)).cmp(&(b.is_change(), verdict_rank(b)));
        groups.then(effect(b).total_cmp(&effect(a)))
    });
    let mut ranks = vec![0; rows.len()];
    for (rank, row) in order.into_iter().enumerate() {
        ranks[row] = rank;
    }
    ranks
}

fn verdict_rank(row: &Compared<'_>) -> usize {
    words::verdict_rank(row.found.map_or(Verdict::Invalid, |found| found.verdict))
}

/// Returns the size of an effect in either direction, as a log ratio. 0 if there is none.
fn effect(row: &Compared<'_>) -> f64 {
    let size = row.found.map_or(0.0, |found| found.ratio.ln().abs());
    if size.is_nan() { 0.0 } else { size }
}

/// Returns the arm with the largest improvement over the baseline.
fn winner<'a>(rows: &[Compared<'a>]) -> Option<&'a str> {
    rows.iter()
        .filter(|row| row.is_change())
        .filter(|row| row.found.is_some_and(|found| found.verdict == Verdict::Better))
        .max_by(|a, b| effect(a).total_cmp(&effect(b)))
        .map(|row| row.arm.arm.as_str())
}

/// Returns a table of the loads of a study with one arm.
fn loads_of_one_arm(first: &LoadFindings, others: &[&LoadFindings]) -> Block {
    let columns = ["rate/s", "p50", "p99", "failures"].map(Column::new);
    let rows = std::iter::once(first).chain(others.iter().copied()).filter_map(|load| {
        let arm = load.arms.first()?;
        let [p50, _, p99, ..] = number::quantiles(&arm.response_ns, arm.samples);
        let figures = [number::rate(arm.rate_completed), p50, p99, number::count(arm.failures)];
        let within = [limit::verdict(load, &arm.arm)];
        let cells = figures.map(Cell::from).into_iter().chain(within);
        Some(Row::new(&*load.load, cells))
    });
    let within = first.limits.first().map_or(String::new(), |limits| {
        let limit = number::short_time(limits.limit_ns as f64);
        format!("{} within {limit}", words::metric_head(limits.metric))
    });
    let table = Table::new(Kind::Figures, "The loads", "load")
        .columns(columns.into_iter().chain([Column::left(within)]))
        .rows(rows);
    Block::Table(table)
}

/// Describes the limiters of the baseline and the winner. Arms with the same limiter are named together.
fn limiters(found: &[LimiterFindings], study: &Study, winner: Option<&str>) -> Option<Block> {
    let baseline = study.arms.first().map(|arm| arm.name.as_str());
    let shown: Vec<&LimiterFindings> = [baseline, winner]
        .into_iter()
        .flatten()
        .filter_map(|arm| found.iter().find(|limiter| limiter.arm == arm))
        .collect();
    let mut groups: Vec<Vec<&LimiterFindings>> = Vec::new();
    for limiter in &shown {
        match groups.iter_mut().find(|group| is_alike(group[0], limiter)) {
            Some(group) => group.push(limiter),
            None => groups.push(vec![limiter]),
        }
    }
    for limiter in found {
        if let Some(group) = groups.iter_mut().find(|group| is_alike(group[0], limiter))
            && !group.iter().chain(&shown).any(|known| known.arm == limiter.arm)
        {
            group.push(limiter);
        }
    }
    let sentences = groups.iter().map(|group| {
        let advice = what_to_do(group[0]).map_or(String::new(), |advice| format!(" {advice}"));
        Text::from(describe(group[0]) + &same_for(&group[1..]) + &advice)
    });
    list(sentences, false)
}

/// Formats a sentence about further arms with the same limiter. Empty if there are none.
fn same_for(arms: &[&LimiterFindings]) -> String {
    match arms {
        [] => String::new(),
        [only] => format!(" The same holds for {}.", only.arm),
        [first, rest @ ..] => format!(
            " The same holds for {} and {}.",
            first.arm,
            number::plural(rest.len() as u64, "more arm")
        ),
    }
}

/// Returns true if two arms have the same limiter.
fn is_alike(a: &LimiterFindings, b: &LimiterFindings) -> bool {
    first_limiter(a) == first_limiter(b) && a.judgement.answer == b.judgement.answer
}

fn first_limiter(limiter: &LimiterFindings) -> Option<&str> {
    let first = limiter.judgement.findings.first();
    first.map(|finding| finding.limiter.as_str())
}
