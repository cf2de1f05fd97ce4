//! Table for one screen: the capacity of each arm, the rate that held, and the rate at which it broke.

use weir_analysis::capacity::{Capacity, CapacityFindings};
use weir_analysis::findings::Verdict;
use weir_model::record::ObservedRecord;
use weir_model::study::Study;
use weir_sentences::capacity::because;

use super::side_by_side::{end, interval, part, role, verdict};
use crate::number;
use crate::tree::{Block, Cell, Column, Kind, Row, Table};
use crate::words;

/// Returns the table, with a row for each arm.
pub(in crate::view) fn blocks(study: &Study, found: &CapacityFindings) -> Vec<Block> {
    let mut columns = vec![
        Column::new("carries").short("requests/s"),
        Column::new("held (for)"),
        Column::new("broke (after)"),
    ];
    if found.arms.len() > 1 {
        columns.push(Column::new("ratio").whole());
        columns.push(Column::left("verdict"));
        columns.push(Column::left("why").below());
    }
    let rows = found.arms.iter().map(|arm| row(study, found, arm));
    let table = Table::new(Kind::Plain, "Capacity of each arm", "arm").columns(columns).rows(rows);
    vec![Block::Table(table)]
}

/// Returns the arm with the largest improvement over the arm that it is compared with.
pub(in crate::view) fn winner(found: &CapacityFindings) -> Option<&str> {
    let best = found
        .ratios
        .iter()
        .filter(|ratio| ratio.verdict == Verdict::Better)
        .max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    best.map(|ratio| ratio.arm.as_str())
}

fn row(study: &Study, found: &CapacityFindings, arm: &Capacity) -> Row {
    let carries = if arm.claimed { interval(arm) } else { end(arm).to_owned() };
    let mut cells = vec![Cell::from(carries), held(arm).into(), observed(arm.answer.broke).into()];
    let mut rank = 0;
    if let Some(ratio) = found.ratios.iter().find(|ratio| ratio.arm == arm.answer.arm) {
        let (tone, word) = verdict(study, ratio);
        let sign = words::verdict_sign(ratio.verdict);
        let shown = Cell::from(number::ratio(ratio.ratio));
        let (shown, why) = match ratio.verdict {
            Verdict::Invalid => (shown, because(ratio)),
            _ => {
                let within = number::ratio_interval(ratio.ratio, ratio.interval);
                (shown.small(within), String::new())
            }
        };
        cells.extend([shown, Cell::tone(tone, format!("{sign} {word}")), Cell::from(why)]);
        rank = 1 + words::verdict_rank(ratio.verdict);
    }
    Row::new(&*arm.answer.arm, cells).part(part(role(study, &arm.answer.arm))).rank(rank)
}

/// Formats the highest rate that a long trial held, or a short one if no long trial held: `4,380 (65 s)`.
fn held(arm: &Capacity) -> String {
    let by_hold = ObservedRecord { rate: arm.answer.verified, seconds: arm.answer.held_s };
    let by_hold = Some(by_hold).filter(|held| held.rate > 0.0);
    observed(by_hold.or(arm.answer.carried))
}

fn observed(seen: Option<ObservedRecord>) -> String {
    seen.map_or_else(
        || number::NONE.to_owned(),
        |seen| {
            let seconds = number::short_time((seen.seconds * 1e9).round());
            format!("{} ({seconds})", number::rate(seen.rate))
        },
    )
}
