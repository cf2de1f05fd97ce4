//! Quantities other than response times that grew with the load.

use weir_analysis::capacity::{Capacity, Counted};

use crate::number;
use crate::tree::{Block, Cell, Column, Heading, Kind, Row, Table};

/// Returns the table. Empty if the edge is not known.
pub(super) fn blocks(found: &Capacity) -> Vec<Block> {
    if found.grows.is_empty() {
        return Vec::new();
    }
    let columns = ["at low rates", "at the edge", "above it"].map(Column::new);
    let rows = found.grows.iter().map(|row| {
        let cells = [row.low, row.edge, row.above].map(|value| shown(row.what, value));
        Row::new(name(row.what), cells.map(Cell::from))
    });
    let table =
        Table::new(Kind::Plain, "What grew with the load", "counted").columns(columns).rows(rows);
    vec![Block::Heading(Heading::part("What grew with the load")), Block::Table(table)]
}

fn name(what: Counted) -> &'static str {
    match what {
        Counted::Rate => "requests/s",
        Counted::Completed => "responses/s",
        Counted::Unanswered => "without a right answer",
        Counted::ProxyCpu => "proxy CPU/request",
        Counted::ProxyCpuShare => "proxy CPUs in use",
        Counted::OriginCpu => "origin CPU/request",
        Counted::OriginConnects => "origin connects/request",
        Counted::Reconnects => "reconnects/request",
        Counted::TimeWait => "most in TIME_WAIT",
        Counted::Sockets => "most other sockets",
    }
}

fn shown(what: Counted, value: Option<f64>) -> String {
    let Some(value) = value else {
        return number::NONE.to_owned();
    };
    match what {
        Counted::Rate | Counted::Completed => number::rate(value),
        Counted::Unanswered | Counted::ProxyCpuShare => number::percent(value),
        Counted::ProxyCpu | Counted::OriginCpu => number::time(value),
        Counted::OriginConnects | Counted::Reconnects => number::share(value),
        Counted::TimeWait | Counted::Sockets => number::count(value as u64),
    }
}
