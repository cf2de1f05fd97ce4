//! Response times by rate, with the objective and the interval of the capacity: as a chart and as a table.

use weir_analysis::capacity::{Capacity, CurvePoint};
use weir_model::limit::Limit;
use weir_model::record::SearchStage;

use crate::number;
use crate::tree::{
    Axis, Block, Cell, Chart, Column, Dot, Extent, Kind, Line, Lines, Marks, Outputs, Part, Row,
    Style, Table, Tone, clause, figure, fold,
};

/// Index of the p99 among the quantiles of a point.
pub(super) const P99: usize = 2;
/// Name, quantile and style class of each line.
const QUANTILES: [(&str, f64, &str); 4] = [
    ("p50", 0.5, "s6 d0"),
    ("p90", 0.9, "s1 d0"),
    ("p99", 0.99, "s0 d0"),
    ("p99.9", 0.999, "s2 d0"),
];
/// Approximate number of rates of the curve that narrow outputs show, besides those at the edge.
const FEW: usize = 12;

pub(super) fn blocks(found: &Capacity) -> Vec<Block> {
    if found.curve.is_empty() && found.holds.is_empty() {
        return Vec::new();
    }
    let all = found.curve.iter().collect();
    let knee = match found.knee {
        Some(rate) => format!(
            "the knee is at {} requests/s: above it the p99 stays above twice its lowest value",
            number::rate(rate)
        ),
        None => "there is no clear knee: the p99 does not rise to twice its lowest value once and for all"
            .to_owned(),
    };
    vec![
        Block::Only(Outputs::HTML, vec![chart(found)]),
        Block::Only(Outputs::TERMINAL, vec![Block::Table(table(found, thinned(found)))]),
        clause(Style::Soft, knee),
        Block::Only(
            Outputs::FILES,
            vec![fold("The same in figures", vec![Block::Table(table(found, all))])],
        ),
    ]
}

/// Returns the index of the quantile that the objective depends on: that of the deciding limit if it is shown, else the
/// p99.
fn find_front(found: &Capacity) -> usize {
    let Some(Limit::Quantile(quantile, _)) = found.deciding() else {
        return P99;
    };
    QUANTILES.iter().position(|(_, shown, _)| (shown - quantile).abs() < 1e-9).unwrap_or(P99)
}

/// Returns the objective as a time in nanoseconds, with its text: the deciding limit if it is a time, else the first
/// limit that is.
pub(super) fn find_level(found: &Capacity) -> Option<(f64, String)> {
    let mut limits = found.deciding().into_iter().chain(&found.answer.limits);
    limits.find_map(|limit| Some((limit.time()?.as_nanos() as f64, limit.to_string())))
}

/// Returns a quantile by rate, in nanoseconds. It is infinite if the requests were not answered.
pub(super) fn line(found: &Capacity, quantile: usize) -> Vec<(f64, f64)> {
    found.curve.iter().map(|point| (point.rate, ns(point.quantiles()[quantile]))).collect()
}

fn ns(known: Option<u64>) -> f64 {
    known.map_or(f64::INFINITY, |ns| ns as f64)
}

fn chart(found: &Capacity) -> Block {
    let front = find_front(found);
    let lines = QUANTILES.iter().enumerate().map(|(index, (name, _, class))| Line {
        name: (*name).to_owned(),
        tooltip: format!("{name} of the response time"),
        class: (*class).to_owned(),
        series: index,
        front: index == front,
        points: line(found, index),
    });
    let lines: Vec<Line> = lines.collect();
    let level = find_level(found);
    let dots: Vec<Dot> =
        found.trials.iter().chain(&found.holds).map(|point| dot(found, point)).collect();
    let times = dots.iter().filter_map(|dot| dot.ns);
    let mut extent = Extent::of(&lines).with(times.chain(level.iter().map(|(ns, _)| *ns)));
    let rates = dots.iter().map(|dot| dot.rate);
    extent.right = rates.fold(extent.right, f64::max);
    let band = (found.answer.low > 0.0 && found.answer.high >= found.answer.low).then(|| {
        let name = match (found.claimed, found.answer.ceiling.is_some()) {
            (true, false) => "capacity",
            (true, true) => "at least",
            (false, _) => "so far",
        };
        ((found.answer.low, found.answer.high), name.to_owned())
    });
    let log = if extent.is_log() { " on a logarithmic axis" } else { "" };
    let band_is = match (&band, found.claimed, found.answer.ceiling) {
        (None, ..) => "",
        (_, true, Some(_)) => {
            " The band begins with what is carried at least; its end is not the server's limit."
        }
        (_, true, None) => " The band is the interval of the capacity.",
        (_, false, _) => " The band is where the capacity seemed to be so far.",
    };
    let caption = format!(
        "Response times{log} by requests per second, from the moment each request was due. Points are the {} of \
         single trials, large ones of long trials: filled where the objective held, hollow where it did not. At the \
         upper edge are requests that were not answered.{band_is}",
        QUANTILES[front].0
    );
    let chart = Chart::Lines(Lines {
        title: "Response times by rate".to_owned(),
        each: "quantile",
        axis: Axis::Rate,
        lines,
        extent,
        marks: Some(Marks {
            band,
            level,
            at: found.knee.map(|rate| (rate, "knee".to_owned())),
            dots,
        }),
    });
    figure(caption, chart)
}

/// Returns a trial as a point of the chart.
pub(super) fn dot(found: &Capacity, point: &CurvePoint) -> Dot {
    let front = find_front(found);
    let ns = point.quantiles()[front].map(|ns| ns as f64);
    Dot {
        rate: point.rate,
        ns,
        is_hollow: !point.holds,
        is_long: point.stage == Some(SearchStage::Hold),
        tooltip: format!(
            "{} requests/s for {}: {} {}, {} of the requests broke it",
            number::rate(point.rate),
            number::short_time((point.seconds * 1e9).round()),
            QUANTILES[front].0,
            number::time(ns.unwrap_or(f64::INFINITY)),
            number::percent(point.bad)
        ),
    }
}

fn is_edge(found: &Capacity, point: &CurvePoint) -> bool {
    (found.answer.low..=found.answer.high).contains(&point.rate)
}

/// Selects some rates at even intervals, the first and the last one, and all at the edge.
fn thinned(found: &Capacity) -> Vec<&CurvePoint> {
    let all = &found.curve;
    let (step, last) = (all.len().div_ceil(FEW).max(1), all.len().saturating_sub(1));
    all.iter()
        .enumerate()
        .filter(|(at, point)| at % step == 0 || *at == last || is_edge(found, point))
        .map(|(_, point)| point)
        .collect()
}

fn table(found: &Capacity, points: Vec<&CurvePoint>) -> Table {
    let columns = QUANTILES.map(|(name, ..)| Column::new(name)).into_iter().chain([
        Column::new("broke it").small("of requests"),
        Column::left("objective"),
        Column::new("seconds").only(Outputs::FILES),
        Column::new("trials").only(Outputs::FILES),
    ]);
    let mut rows: Vec<Row> = points.into_iter().map(|point| row(found, point)).collect();
    if !found.holds.is_empty() {
        rows.insert(0, Row::new("short trials", []).part(Part::Group));
        rows.push(Row::new("long trials", []).part(Part::Group));
        rows.extend(found.holds.iter().map(|point| row(found, point)));
    }
    Table::new(Kind::Figures, "Response times by rate", "requests/s").columns(columns).rows(rows)
}

/// Names the broken limit if there are several.
fn broken(found: &Capacity, point: &CurvePoint) -> String {
    match (&found.answer.limits[..], found.answer.limits.get(point.limit)) {
        ([_, _, ..], Some(limit)) => format!("{} broken", limit.subject()),
        _ => "broken".to_owned(),
    }
}

fn row(found: &Capacity, point: &CurvePoint) -> Row {
    let times = point.quantiles().map(|known| number::time(ns(known)));
    let verdict = if point.holds {
        Cell::tone(Tone::Better, "✓ holds")
    } else {
        Cell::tone(Tone::Worse, format!("✗ {}", broken(found, point)))
    };
    // Of a mean there is no such share.
    let broke = match found.answer.limits.get(point.limit) {
        Some(Limit::Mean(_)) => number::NONE.to_owned(),
        _ => number::percent(point.bad),
    };
    let cells = times.map(Cell::from).into_iter().chain([
        Cell::from(broke).small(number::count(point.requests)),
        verdict,
        Cell::from(number::tenths(point.seconds)),
        Cell::from(number::count(u64::from(point.trials))),
    ]);
    let part = if is_edge(found, point) { Part::Baseline } else { Part::Plain };
    Row::new(number::rate(point.rate), cells).part(part)
}
