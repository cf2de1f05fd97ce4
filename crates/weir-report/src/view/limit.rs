//! Comparison of arms with the study's absolute limit.

use weir_analysis::findings::{LimitFindings, LoadFindings};
use weir_model::study::Study;

use super::tones;
use crate::tree::{Block, Cell, Column, Heading, Kind, Row, Table};
use crate::{number, words};

/// Returns the table. Empty if the study has no limit.
pub(super) fn blocks(load: &LoadFindings) -> Vec<Block> {
    let Some(first) = load.limits.first() else {
        return Vec::new();
    };
    let limit = format!(
        "{} within {}",
        words::metric_head(first.metric),
        number::short_time(first.limit_ns as f64)
    );
    let columns = [
        Column::new("estimate").small("interval").whole(),
        Column::left("verdict"),
        Column::left("why").below(),
    ];
    let table = Table::new(Kind::Plain, "Arms and the limit", "arm")
        .columns(columns)
        .rows(load.limits.iter().map(row));
    let heading = Heading::part(words::capital(&limit)).badge(load.validity);
    vec![Block::Heading(heading), Block::Table(table)]
}

/// Returns a cell with the arm's verdict on its limit. Empty if there is no limit.
pub(super) fn verdict(load: &LoadFindings, arm: &str) -> Cell {
    let limit = load.limits.iter().find(|limit| limit.arm == arm);
    limit.map_or_else(Cell::default, signed)
}

fn signed(limit: &LimitFindings) -> Cell {
    let like = words::limit_as_verdict(limit.verdict);
    let (sign, word) = (words::verdict_sign(like), words::limit(limit.verdict));
    Cell::tone(tones::tone(like), format!("{sign} {word}"))
}

fn row(limit: &LimitFindings) -> Row {
    let cells = [
        Cell::from(number::time(limit.value_ns)).small(number::time_interval(limit.interval_ns)),
        signed(limit),
        Cell::from(weir_sentences::explain_limit(limit)),
    ];
    Row::new(&*limit.arm, cells)
}

/// Formats the limit of a study's objective, to be appended to the name of its metric. Empty if there is none.
pub(super) fn words(study: &Study) -> String {
    match study.objective.within {
        Some(limit) => format!(", within {}", number::short_time(limit.as_nanos() as f64)),
        None => String::new(),
    }
}
