//! Arms that changed during the measurement.

use weir_analysis::findings::{LoadFindings, PhaseChange};
use weir_model::study::Metric;

use crate::tree::{Block, Cell, Column, Heading, Kind, Row, Style, Table, clause};
use crate::{number, words};

/// Returns the table. Empty if no arm changed.
pub(super) fn blocks(load: &LoadFindings) -> Vec<Block> {
    if load.phases.is_empty() {
        return Vec::new();
    }
    let columns = [
        Column::left("what"),
        Column::new("from second"),
        Column::new("before"),
        Column::new("after"),
        Column::new("ratio before").small("interval").whole(),
        Column::new("ratio after").small("interval").whole(),
        Column::left("what else was different").below(),
    ];
    let table = Table::new(Kind::Plain, "Arms that changed during the run", "arm")
        .columns(columns)
        .rows(load.phases.iter().map(row));
    let note = "Figures over all blocks are a mixture of before and after. Ratios are to the arm that each is \
                compared with.";
    vec![
        Block::Heading(Heading::part("Arms that changed during the run").badge(load.validity)),
        clause(Style::Soft, note),
        Block::Table(table),
    ]
}

fn row(change: &PhaseChange) -> Row {
    let values = [change.before, change.after].map(|value| match change.metric {
        Metric::CpuPerRequest => number::time(value),
        _ => number::rate(value),
    });
    let [value_before, value_after] = values.map(Cell::from);
    let [before, after] = change.ratios.map(|known| match known {
        Some((ratio, interval)) => {
            Cell::from(number::ratio(ratio)).small(number::ratio_interval(ratio, interval))
        }
        None => Cell::from(number::NONE),
    });
    let cells = [
        Cell::from(words::metric_head(change.metric)),
        Cell::from(number::asked(change.at_s.round())),
        value_before,
        value_after,
        before,
        after,
        Cell::from(weir_sentences::describe_phase_evidence(&change.evidence)),
    ];
    Row::new(&*change.arm, cells)
}
