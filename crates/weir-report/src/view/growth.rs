//! Growth of CPU, memory, network and connections with the rate, and its linearity.

use weir_analysis::findings::{GrowthFindings, ResourceGrowth, Shape};
use weir_limits::Quantities;
use weir_sentences::{growth, with_unit};

use crate::number;
use crate::tree::{
    Block, Cell, Chart, Column, Heading, Kind, Multiple, Outputs, Row, Style, Table, figure, text,
};

/// Returns one section for all arms. Empty if nothing was measured at several rates.
pub(super) fn section(found: &[GrowthFindings]) -> Vec<Block> {
    if found.is_empty() {
        return Vec::new();
    }
    let heading = Heading::section("growth", "Does everything grow with the load?");
    let remark = "what the proxy uses at each rate that was carried";
    let mut blocks = vec![Block::Heading(heading.remark(remark))];
    for one in found {
        if found.len() > 1 {
            blocks.push(Block::Heading(Heading::part(title(one))));
        }
        blocks.push(text(Style::Plain, growth::describe(one)));
        blocks.extend(chart(one));
        blocks.extend(table(one));
    }
    blocks
}

/// Formats the arm, and the loads if the arm has several groups of them.
fn title(found: &GrowthFindings) -> String {
    match &found.loads[..] {
        [first, .., last] => format!("{}, {first} to {last}", found.arm),
        _ => found.arm.clone(),
    }
}

fn table(found: &GrowthFindings) -> Option<Block> {
    let rows = found.resources.iter().filter(|resource| resource.slope.is_some()).map(row);
    let columns = [
        Column::new("each 1,000/s"),
        Column::new("95 % interval"),
        Column::left("linear"),
        Column::left("bend at"),
        Column::new("windows").only(Outputs::FILES),
    ];
    let title = format!("What {} takes", found.arm);
    let table = Table::new(Kind::Plain, &title, "what").columns(columns).rows(rows);
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

fn row(resource: &ResourceGrowth) -> Row {
    let (slope, within) = match (resource.shape, resource.slope) {
        (Shape::Constant, _) => ("nothing".to_owned(), number::NONE.to_owned()),
        (_, Some((slope, (low, high)))) => {
            let [slope, low, high] =
                [slope, low, high].map(|slope| with_unit(slope, &resource.unit));
            (slope, between(low, high))
        }
        (_, None) => (number::NONE.to_owned(), number::NONE.to_owned()),
    };
    let bend = resource.bend.map_or_else(
        || number::NONE.to_owned(),
        |bend| {
            let (at, (low, high)) = bend.at;
            let [at, low, high] = [at, low, high].map(number::rate);
            format!("{at}/s ({low} to {high})")
        },
    );
    let windows = resource.points.len().to_string();
    let cells = [slope, within, linear(resource.shape).to_owned(), bend, windows];
    Row::new(means(resource), cells.map(Cell::from))
}

/// Formats a range. A common unit is written once.
fn between(low: String, high: String) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((value, low_unit)), Some((_, unit))) if low_unit == unit => {
            format!("{value} to {high}")
        }
        _ => format!("{low} to {high}"),
    }
}

fn linear(shape: Shape) -> &'static str {
    match shape {
        Shape::Constant => "yes: constant",
        Shape::Linear => "yes",
        Shape::Bend => "no: it bends",
        Shape::Curve => "no",
        Shape::Unknown => "unknown",
    }
}

/// Returns a description of a quantity that is short enough for a chart, or its catalogued meaning if there is no short
/// one.
fn means(one: &ResourceGrowth) -> String {
    const SHORT: [(&str, &str); 6] = [
        ("proxy_cpus", "CPU time of the proxy"),
        ("own_cpu", "CPU time of the proxy"),
        ("cpu", "use of its CPUs, with interrupts"),
        ("memory", "memory of the proxy"),
        ("bytes", "network traffic"),
        ("connections", "connections to the proxy"),
    ];
    let name = SHORT
        .iter()
        .find(|(quantity, _)| *quantity == one.quantity)
        .map(|(_, name)| *name)
        .or_else(|| Quantities::builtin().get(&one.quantity).map(|known| &*known.means));
    name.unwrap_or(&one.quantity).to_owned()
}

/// Minimum number of points for a chart.
const CHARTED: usize = 4;

/// Draws a small chart for each quantity that is known at enough rates.
fn chart(found: &GrowthFindings) -> Option<Block> {
    let (least, most) = found.rates;
    // Rates of a search lie close together near its edge.
    let begin = if least > most / 2.0 { least - (most - least) / 8.0 } else { 0.0 };
    // Fewer points say no more than the table.
    let charted = found.resources.iter().filter(|one| one.points.len() >= CHARTED);
    let multiples = charted.map(|one| Multiple {
        name: means(one),
        said: format!(
            "{} windows up to {} requests/s; linear: {}",
            one.points.len(),
            number::rate(most),
            linear(one.shape)
        ),
        unit: one.unit.clone(),
        across: (
            (begin, most),
            (number::asked(begin), format!("{} requests/s", number::rate(most))),
        ),
        dots: one.points.clone(),
        line: line(one, found.rates),
        bend: one.bend.map(|bend| bend.at),
        ..Multiple::default()
    });
    let multiples: Vec<Multiple> = multiples.collect();
    if multiples.is_empty() {
        return None;
    }
    let caption = format!(
        "{} by requests per second: a point for each time at one rate, and the line that they follow. Where its slope \
         changes, a bar marks the place and a band its 95 % interval.",
        found.arm
    );
    let chart = figure(caption, Chart::Multiples(multiples));
    Some(Block::Only(Outputs::HTML, vec![chart]))
}

/// Returns the straight line, or the two lines that meet at a bend.
fn line(one: &ResourceGrowth, (low, high): (f64, f64)) -> Vec<(f64, f64)> {
    match (one.bend, one.slope, one.intercept) {
        (Some(bend), ..) => {
            let at = bend.at.0;
            let [begin, end] = [(low, bend.before), (high, bend.after)]
                .map(|(rate, slope)| (rate, bend.value + slope * (rate - at) / 1000.0));
            vec![begin, (at, bend.value), end]
        }
        (None, Some((slope, _)), Some(intercept)) if one.shape != Shape::Curve => {
            [low, high].map(|rate| (rate, intercept + slope * rate / 1000.0)).into()
        }
        _ => Vec::new(),
    }
}
