//! Growth of CPU, memory, network and connections with the rate, and its linearity.

use weir_analysis::findings::{GrowthFindings, ResourceGrowth, Shape};
use weir_limits::{Quantities, shown};

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
        blocks.push(text(Style::Plain, one.words.as_str()));
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
    let known: Vec<&ResourceGrowth> =
        found.resources.iter().filter(|one| one.slope.is_some()).collect();
    let rows = known.into_iter().map(|one| {
        let each = |slope: f64| shown(slope, &one.unit);
        let none = || number::NONE.to_owned();
        let (slope, within) = match (one.shape, one.slope) {
            (Shape::Constant, _) => ("nothing".to_owned(), none()),
            (_, Some((slope, (low, high)))) => (each(slope), between(each(low), each(high))),
            (_, None) => (none(), none()),
        };
        let bend = one.bend.map_or_else(none, |bend| {
            let (at, (low, high)) = bend.at;
            let rate = number::rate;
            format!("{}/s ({} to {})", rate(at), rate(low), rate(high))
        });
        let cells =
            [slope, within, linear(one.shape).to_owned(), bend, one.points.len().to_string()];
        Row::new(means(one), cells.map(Cell::from))
    });
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

/// Formats a range. A common unit is written once.
fn between(low: String, high: String) -> String {
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    match (low.split_once(' '), unit(&high)) {
        (Some((value, own)), Some(unit)) if own == unit => format!("{value} to {high}"),
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
    let mut short = SHORT.iter();
    let short = short.find(|(quantity, _)| *quantity == one.quantity);
    let name = short
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
    let is_told = |one: &&ResourceGrowth| one.points.len() >= CHARTED;
    let all = found.resources.iter().filter(is_told).map(|one| Multiple {
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
    });
    let all: Vec<Multiple> = all.collect();
    let caption = format!(
        "{} by requests per second: a point for each time at one rate, and the line that they follow. Where its slope \
         changes, a bar marks the place and a band its 95 % interval.",
        found.arm
    );
    let chart = figure(caption, Chart::Multiples(all));
    (found.resources.iter().any(|one| is_told(&one)))
        .then(|| Block::Only(Outputs::HTML, vec![chart]))
}

/// Returns the straight line, or the two lines that meet at a bend.
fn line(one: &ResourceGrowth, (low, high): (f64, f64)) -> Vec<(f64, f64)> {
    match (one.bend, one.slope, one.intercept) {
        (Some(bend), ..) => {
            let at = bend.at.0;
            let value = |rate: f64, slope: f64| (rate, bend.value + slope * (rate - at) / 1000.0);
            vec![value(low, bend.before), (at, bend.value), value(high, bend.after)]
        }
        (None, Some((slope, _)), Some(intercept)) if one.shape != Shape::Curve => {
            let value = |rate: f64| (rate, intercept + slope * rate / 1000.0);
            vec![value(low), value(high)]
        }
        _ => Vec::new(),
    }
}
