//! Table of the arms' rates and costs.

use weir_analysis::findings::{FrontierArm, FrontierFindings};
use weir_sentences::frontier;

use crate::number;
use crate::tree::{Block, Cell, Column, Heading, Kind, Role, Row, Style, Table, Text, text};

const GIB: f64 = (1_u64 << 30) as f64;

/// Returns one section for all loads. Empty if nothing is known of the cost.
pub(super) fn section(found: &[FrontierFindings]) -> Vec<Block> {
    if found.is_empty() {
        return Vec::new();
    }
    let heading = Heading::section("cost", "What does it cost?");
    let mut blocks = vec![Block::Heading(heading.remark("rates for each CPU, GiB and privilege"))];
    for one in found {
        if found.len() > 1 {
            blocks.push(Block::Heading(Heading::part(one.load.clone())));
        }
        blocks.push(text(Style::Plain, frontier::describe(one)));
        blocks.push(table(one));
    }
    blocks
}

fn table(found: &FrontierFindings) -> Block {
    let rate = if found.is_capacity { "capacity/s" } else { "rate/s" };
    let columns = [
        Column::new(rate),
        Column::new("each CPU"),
        Column::new("each GiB"),
        Column::left("needs"),
        Column::left("dominated by"),
    ];
    let label = format!("What arms carry under {}, and what they cost", found.load);
    let rows = found.arms.iter().map(row);
    Block::Table(Table::new(Kind::Plain, label, "arm").columns(columns).rows(rows))
}

fn row(arm: &FrontierArm) -> Row {
    let role = if arm.dominated_by.is_some() { Role::Soft } else { Role::Plain };
    let needs: Vec<&str> = arm.needs.iter().map(|need| frontier::name_privilege(*need)).collect();
    let cells = [
        number::rate(arm.rate),
        rate_or_none(arm.per_cpu),
        rate_or_none(arm.memory.map(|bytes| arm.rate / (bytes as f64 / GIB))),
        if needs.is_empty() { "nothing more".to_owned() } else { needs.join(", ") },
        arm.dominated_by.clone().unwrap_or_default(),
    ];
    Row::new(&*arm.arm, cells.map(|cell| Cell::from(Text::of(role, cell))))
}

fn rate_or_none(rate: Option<f64>) -> String {
    rate.map_or(number::NONE.to_owned(), number::rate)
}
