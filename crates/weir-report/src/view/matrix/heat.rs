//! Response times by connections and rate as heat tables: one for each arm and quantile.

use weir_model::record::Validity;
use weir_sentences::validity::describe;

use super::{Cell, axes};
use crate::tree::{Block, Cell as TableCell, Column, Kind, Outputs, Row, Table, fold};
use crate::{number, words};

/// Quantiles that are shown, each with its index in the findings of an arm.
const QUANTILES: [(&str, usize); 4] = [("p50", 0), ("p90", 1), ("p99", 2), ("max", 4)];
/// Number of shades, from the shortest time to the longest.
const SHADES: u8 = 10;
/// Minimum ratio between the ends of the shades, so that noise does not look like a gradient.
const LEAST_FACTOR: f64 = 4.0;

/// Returns the tables of one arm. A quantile has the same shades in all arms.
pub(super) fn blocks(cells: &[Cell<'_>], arm: &str) -> Vec<Block> {
    let [p50, p90, p99, max] = QUANTILES;
    let tables = [p50, p90, max].map(|quantile| Block::Table(heat(cells, arm, quantile))).into();
    let folded = fold("The same at the median, p90 and the slowest request", tables);
    vec![
        Block::Only(Outputs::MARKDOWN, vec![Block::Table(heat(cells, arm, p50))]),
        Block::Only(Outputs::FILES, vec![Block::Table(heat(cells, arm, p99))]),
        Block::Only(Outputs::HTML, vec![folded]),
    ]
}

/// Returns the shortest and the longest usable time of all arms at a quantile.
fn find_range(cells: &[Cell<'_>], place: usize) -> (f64, f64) {
    let (low, high) = cells
        .iter()
        .filter(|cell| cell.usable())
        .flat_map(|cell| &cell.found.arms)
        .filter(|arm| arm.samples > 0)
        .map(|arm| arm.response_ns[place].max(1) as f64)
        .fold((f64::INFINITY, 1.0), |(low, high), ns| (f64::min(low, ns), f64::max(high, ns)));
    (low, high.max(low * LEAST_FACTOR))
}

fn heat(cells: &[Cell<'_>], arm: &str, (quantile, place): (&str, usize)) -> Table {
    let range = find_range(cells, place);
    let (connections, rates) = axes(cells);
    let rows = connections.iter().map(|&connections| {
        let row = rates.iter().map(|rate| {
            let cell = cells
                .iter()
                .find(|cell| cell.spec.connections == connections && cell.rate() == *rate);
            cell.map_or_else(
                || TableCell::from(number::NONE).title("not measured"),
                |cell| one(cell, arm, place, range),
            )
        });
        Row::new(number::count(u64::from(connections)), row)
    });
    let heads = rates.iter().map(|rate| rate.map_or(number::NONE.to_owned(), number::asked));
    let label = format!("Response time at {quantile} by connections and rate, {arm}");
    Table {
        caption: format!("{quantile} in ms, by connections (down) and requests/s (across)"),
        ..Table::new(Kind::Heat, label, "connections")
    }
    .columns(heads.map(Column::new))
    .rows(rows)
}

/// Formats a time in milliseconds: a cross if it must not be used, a dash if it is missing, a `?` at the end if it is
/// SUSPECT.
fn one(cell: &Cell<'_>, arm: &str, place: usize, range: (f64, f64)) -> TableCell {
    let validity = cell.found.validity;
    let title = format!("{}, {}", cell.spec.name, words::validity(validity));
    if !cell.usable() {
        let first = cell.found.reasons.first();
        let why =
            first.map_or_else(|| "not to be used".to_owned(), |counted| describe(&counted.reason));
        return TableCell::from("×").title(format!("{title}: {why}"));
    }
    let Some(found) = cell.arm(arm).filter(|arm| arm.samples > 0) else {
        return TableCell::from(number::NONE).title(format!("{title}: no request was answered"));
    };
    let ns = found.response_ns[place] as f64;
    let mark = if validity == Validity::Valid { "" } else { "?" };
    TableCell {
        shade: Some(shade(ns, range)),
        ..TableCell::from(format!("{}{mark}", milliseconds(ns)))
            .title(format!("{title}: {}", number::time(ns)))
    }
}

/// Returns the shade of a time between the shortest and the longest, on a logarithmic scale.
fn shade(ns: f64, (low, high): (f64, f64)) -> u8 {
    let share = (ns.max(1.0) / low).ln() / (high / low).ln();
    let shade = (share * f64::from(SHADES)).clamp(0.0, f64::from(SHADES - 1));
    shade as u8
}

/// Formats milliseconds with about three digits, without the unit.
fn milliseconds(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms {
        ms if ms >= 99.95 => format!("{ms:.0}"),
        ms if ms >= 9.995 => format!("{ms:.1}"),
        ms if ms >= 0.0995 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_the_shortest_to_the_longest_by_ratio() {
        let range = (1e6, 1e9);
        assert_eq!(shade(1e6, range), 0);
        assert_eq!(shade(31.6e6, range), 4);
        assert_eq!(shade(1e9, range), SHADES - 1);
        assert_eq!(shade(0.0, range), 0);
        assert_eq!(shade(f64::MAX, range), SHADES - 1);
    }

    #[test]
    fn milliseconds_have_three_digits() {
        for (ns, text) in [
            (1.0, "0.000"),
            (94_000.0, "0.094"),
            (99_700.0, "0.10"),
            (1_234_000.0, "1.23"),
            (9_996_000.0, "10.0"),
            (99_960_000.0, "100"),
            (1.2e9, "1200"),
        ] {
            assert_eq!(milliseconds(ns), text);
        }
    }
}
