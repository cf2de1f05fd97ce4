//! Report of a calibration, which measures the generator's capacity, for people.

use weir_model::calibration::{Calibration, WayCalibration};

use crate::number::{tenths, time};
use crate::render;
use crate::tree::{Block, Document, Heading, Style, clause, fact};

/// Width of the page, columns.
const WIDTH: usize = 100;

/// Formats a calibration. `apart` is true if generator and null server had a CPU each.
pub fn calibration(made: &Calibration, apart: bool) -> String {
    let mut blocks = vec![
        clause(Style::Plain, &*made.machine),
        clause(
            Style::Plain,
            "against a server that ignores what it receives, 50 kept connections, bodies of 1 KiB",
        ),
    ];
    if !apart {
        blocks.push(clause(
            Style::Plain,
            "on the same CPU as that server: a thread with a CPU to itself can do more",
        ));
    }
    blocks.extend(made.ways.iter().flat_map(way));
    let document = Document { blocks, ..Document::default() };
    render::terminal(&document, false, WIDTH)
}

fn way(way: &WayCalibration) -> [Block; 2] {
    let share = 100.0 * way.floor_ns / way.request_ns;
    let (request, floor) = (time(way.request_ns), time(way.floor_ns));
    let lag = way
        .lag
        .iter()
        .map(|&(quantile, ns)| match quantile {
            1.0 => format!("max {}", time(ns as f64)),
            quantile => format!("p{} {}", quantile * 100.0, time(ns as f64)),
        })
        .collect::<Vec<_>>()
        .join(", ");
    let spent = format!("{request:>10}   {share:.0} % of it the floor, {floor}");
    let sent = format!("{:>10} requests/s", tenths(way.capacity));
    let lag = format!("{lag} at {} requests/s", tenths(way.lag_rate));
    let facts = vec![
        fact("  CPU time per request", spent),
        fact("  one thread can send", sent),
        fact("  dispatch lag", lag),
    ];
    [Block::Heading(Heading::part(&way.io)), Block::Facts(facts)]
}
