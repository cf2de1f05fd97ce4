//! Response times by rate, from loads that differ only in their rate.

use weir_analysis::findings::{Comparison, LoadFindings};
use weir_model::record::Validity;
use weir_model::study::{ArmRole, LoadSpec, Metric, Study, StudyArrivals};

use super::load::manner;
use super::{charts, tones};
use crate::tree::{
    Axis, Block, Cell, Chart, Column, Extent, Heading, Kind, Line, Lines, Outputs, Row, Style,
    Table, figure, text,
};
use crate::{number, words};

/// Minimum number of rates for a curve.
const LEAST_RATES: usize = 3;

/// Shown times, longest first: the metric whose verdicts accompany them, and their index among the quantiles of an arm.
const SHOWN: [(Metric, usize); 2] = [(Metric::ResponseP99, 2), (Metric::ResponseP50, 0)];

/// A load with a rate, and its findings.
#[derive(Clone, Copy)]
struct AtRate<'a> {
    spec: &'a LoadSpec,
    found: &'a LoadFindings,
    rate: f64,
}

impl AtRate<'_> {
    fn usable(&self) -> bool {
        self.found.is_usable()
    }
}

/// Returns a section for each group of loads that differ only in rate and duration, in the order of the study. Cells of
/// matrices are excluded.
pub(super) fn sections(study: &Study, loads: &[LoadFindings]) -> Vec<Block> {
    let mut groups: Vec<Vec<AtRate<'_>>> = Vec::new();
    for found in loads {
        let spec = study.loads.iter().find(|spec| spec.name == found.load);
        let (Some(spec), Some(rate)) = (spec, found.rate_intended) else {
            continue;
        };
        if spec.cell.is_some() || !rate.is_finite() {
            continue;
        }
        let load = AtRate { spec, found, rate };
        match groups.iter_mut().find(|group| alike(group[0].spec, spec)) {
            Some(group) => group.push(load),
            None => groups.push(vec![load]),
        }
    }
    for group in &mut groups {
        group.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        group.dedup_by(|a, b| a.rate == b.rate);
    }
    groups.retain(|group| group.len() >= LEAST_RATES);
    groups.iter().zip(1..).flat_map(|(group, number)| section(study, group, number)).collect()
}

/// Returns true if two loads differ only in rate and duration.
fn alike(a: &LoadSpec, b: &LoadSpec) -> bool {
    without_rate(a) == without_rate(b)
}

fn without_rate(spec: &LoadSpec) -> LoadSpec {
    let mut stripped = spec.clone();
    stripped.name.clear();
    stripped.main.arrivals = StudyArrivals::Closed;
    stripped.duration = std::time::Duration::ZERO;
    stripped
}

fn section(study: &Study, loads: &[AtRate<'_>], number: usize) -> Vec<Block> {
    let spec = loads[0].spec;
    let connections = number::plural(u64::from(spec.connections), "connection");
    let mut summary = vec![format!("{connections} to each arm")];
    summary.extend(manner(spec));
    // The worst validity of those that can be used; INVALID where none can.
    let validity = loads
        .iter()
        .filter(|load| load.usable())
        .map(|load| load.found.validity)
        .max()
        .unwrap_or(Validity::Invalid);
    let names: Vec<&str> = loads.iter().map(|load| &*load.spec.name).collect();
    let heading = Heading::section(&format!("by-rate-{number}"), "Response times by rate");
    let remark = format!("loads {}: {}", names.join(", "), summary.join(", "));
    let mut blocks = vec![Block::Heading(heading.badge(validity).remark(&remark))];
    for (metric, place) in SHOWN {
        blocks.push(plot(study, loads, metric, place));
        blocks.push(Block::Table(table(study, loads, metric, place)));
    }
    let signs = "Signs are the verdicts of each load (▲ better, ▼ worse, ■ equivalent, ○ inconclusive); × marks a load \
                 that is INVALID, ? one that is SUSPECT.";
    blocks.push(Block::Only(Outputs::FILES, vec![text(Style::Soft, signs)]));
    blocks
}

/// Draws a line for each arm. The lines are empty if no load can be used.
fn plot(study: &Study, loads: &[AtRate<'_>], metric: Metric, place: usize) -> Block {
    let roles: Vec<ArmRole> = study.arms.iter().map(|arm| arm.role).collect();
    let lines = study.arms.iter().zip(charts::series(&roles)).map(|(arm, series)| Line {
        name: arm.name.clone(),
        tooltip: arm.name.clone(),
        class: charts::class(series, arm.role),
        series,
        front: arm.role != ArmRole::Change,
        points: points(loads, &arm.name, place),
    });
    let lines: Vec<Line> = lines.collect();
    let quantile = words::metric_head(metric);
    let extent = Extent::of(&lines);
    let log = if extent.is_log() { ", times on a logarithmic axis" } else { "" };
    let caption = format!(
        "{quantile} by requests per second to each arm{log}, from the moment each request was due; loads that are \
         INVALID are left out."
    );
    let chart = Chart::Lines(Lines {
        title: format!("{quantile} of the response time by rate"),
        each: "arm",
        axis: Axis::Rate,
        lines,
        extent,
        marks: None,
    });
    figure(caption, chart)
}

/// Returns (requests per second, nanoseconds) of the loads that can be used.
fn points(loads: &[AtRate<'_>], arm: &str, quantile_index: usize) -> Vec<(f64, f64)> {
    let points = loads.iter().filter(|load| load.usable()).filter_map(|load| {
        let findings = load.found.arms.iter().find(|findings| findings.arm == arm)?;
        (findings.samples > 0).then(|| (load.rate, findings.response_ns[quantile_index] as f64))
    });
    points.collect()
}

fn table(study: &Study, loads: &[AtRate<'_>], metric: Metric, place: usize) -> Table {
    let quantile = words::metric_head(metric);
    let heads = loads.iter().map(|load| format!("{}/s", number::asked(load.rate)));
    let rows = study.arms.iter().map(|arm| {
        let cells = loads.iter().map(|load| cell(load, &arm.name, metric, place));
        Row::new(&*arm.name, cells)
    });
    Table::new(Kind::Figures, format!("{quantile} by rate"), quantile)
        .columns(heads.map(Column::new))
        .rows(rows)
}

/// Formats a response time with the sign of its verdict: a cross if the load is INVALID, a `?` at the end if it is
/// SUSPECT.
fn cell(load: &AtRate<'_>, arm: &str, metric: Metric, quantile_index: usize) -> Cell {
    let validity = load.found.validity;
    let title = format!("{}, {}", load.spec.name, words::validity(validity));
    if !load.usable() {
        return Cell::from("×").title(title);
    }
    let findings = load.found.arms.iter().find(|findings| findings.arm == arm);
    let time = findings.map_or_else(
        || number::NONE.to_owned(),
        |findings| {
            number::quantiles(&findings.response_ns, findings.samples)[quantile_index].clone()
        },
    );
    let mark = if validity == Validity::Valid { "" } else { "?" };
    match load.found.comparison(arm, metric) {
        None => Cell::from(format!("{time}{mark}")).title(title),
        Some(Comparison { verdict, .. }) => {
            let signed = format!("{} {time}{mark}", words::verdict_sign(*verdict));
            Cell::tone(tones::tone(*verdict), signed).title(format!("{title}: {}", verdict.word()))
        }
    }
}
