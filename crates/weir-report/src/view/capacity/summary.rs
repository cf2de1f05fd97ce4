//! The table of one screen: the rates that each arm carried, held and broke at.

use weir_analysis::capacity::{Capacity, CapacityFindings, CurvePoint};
use weir_analysis::findings::Verdict;
use weir_model::study::Study;

use super::side_by_side::{end, interval, part, role, verdict};
use crate::number;
use crate::tree::{Block, Cell, Column, Kind, Row, Table};
use crate::words;

/// A row for each arm.
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
    let table = Table::new(Kind::Plain, "Capacity of each arm", "arm")
        .columns(columns)
        .rows(rows);
    vec![Block::Table(table)]
}

/// The arm that carries most more than the one that it is compared with.
pub(in crate::view) fn winner(found: &CapacityFindings) -> Option<&str> {
    let ratios = found.ratios.iter();
    let better = ratios.filter(|ratio| ratio.verdict == Verdict::Better);
    let best = better.max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    best.map(|ratio| ratio.arm.as_str())
}

fn row(study: &Study, found: &CapacityFindings, arm: &Capacity) -> Row {
    let carries = if arm.claimed {
        interval(arm)
    } else {
        end(arm).to_owned()
    };
    let mut cells = vec![
        Cell::from(carries),
        trial(highest_held(arm)).into(),
        trial(lowest_broken(arm)).into(),
    ];
    let mut rank = 0;
    if let Some(ratio) = found.ratios.iter().find(|ratio| ratio.arm == arm.arm) {
        let (tone, word) = verdict(study, ratio);
        let sign = words::verdict_sign(ratio.verdict);
        let shown = Cell::from(number::ratio(ratio.ratio));
        let (shown, why) = match ratio.verdict {
            Verdict::Invalid => (shown, ratio.because.as_str()),
            _ => {
                let within = number::ratio_interval(ratio.ratio, ratio.interval);
                (shown.small(within), "")
            }
        };
        cells.extend([
            shown,
            Cell::tone(tone, format!("{sign} {word}")),
            Cell::from(why),
        ]);
        rank = 1 + words::verdict_rank(ratio.verdict);
    }
    Row::new(&*arm.arm, cells)
        .part(part(role(study, &arm.arm)))
        .rank(rank)
}

/// The highest rate that a long trial held, or a short one where none did.
fn highest_held(arm: &Capacity) -> Option<&CurvePoint> {
    highest(&arm.holds).or_else(|| highest(&arm.trials))
}

fn highest(trials: &[CurvePoint]) -> Option<&CurvePoint> {
    trials
        .iter()
        .filter(|trial| trial.holds)
        .max_by(|a, b| a.rate.total_cmp(&b.rate))
}

/// The lowest rate above that which a trial of any length broke at; the lowest of all where none held.
fn lowest_broken(arm: &Capacity) -> Option<&CurvePoint> {
    let held = highest_held(arm).map_or(0.0, |trial| trial.rate);
    let trials = arm.holds.iter().chain(&arm.trials);
    let broken = trials.filter(|trial| !trial.holds && trial.rate > held);
    broken.min_by(|a, b| a.rate.total_cmp(&b.rate))
}

/// `4,380 (65 s)`.
fn trial(trial: Option<&CurvePoint>) -> String {
    trial.map_or_else(
        || number::NONE.to_owned(),
        |trial| {
            let seconds = number::short_time((trial.seconds * 1e9).round());
            format!("{} ({seconds})", number::rate(trial.rate))
        },
    )
}
