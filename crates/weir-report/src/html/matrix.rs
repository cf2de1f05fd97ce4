//! A matrix of loads with its charts drawn.

use weir_model::study::Metric;

use super::Key;
use crate::svg::{self, Width};
use crate::view::{HeatView, LineView, MatrixView, SuiteView};

/// A matrix, its suites drawn.
pub(super) struct Section {
    pub(super) view: MatrixView,
    /// Anchor in the page.
    pub(super) id: String,
    /// Metrics of the tallies, each once, in their order.
    pub(super) metrics: Vec<Metric>,
    pub(super) suites: Vec<Suite>,
    pub(super) log_axis: bool,
}

/// One suite. Charts are finished SVG, escaped by their module.
pub(super) struct Suite {
    pub(super) view: SuiteView,
    /// For both widths.
    pub(super) percentile: [String; 2],
    pub(super) legend: Vec<Key>,
    /// The quantile that stands open, and those that are folded away.
    pub(super) open: Vec<HeatView>,
    pub(super) folded: Vec<HeatView>,
}

/// Colours of a scale from few to many, as the style sheet has them.
const COLOURS: f64 = 10.0;
/// The quantile that stands open.
const OPEN: &str = "p99";

/// Draws a matrix. All suites have the same axes, so that they can be compared by eye.
pub(super) fn section(index: usize, view: &MatrixView) -> Section {
    let id = format!("matrix-{}", index + 1);
    let lines: Vec<Vec<svg::Line<'_>>> = view.suites.iter().map(lines).collect();
    let all = lines.concat();
    let suites = view.suites.iter().zip(&lines).enumerate();
    let suites = suites.map(|(place, (suite, lines))| {
        let about = svg::About {
            each: "number of connections",
            beside: &all,
        };
        let draw = |width, tag: &str| {
            svg::percentile(&format!("{id}-s{place}-{tag}"), lines, about, width)
        };
        let (open, folded) = suite
            .heats
            .iter()
            .cloned()
            .partition(|heat| heat.quantile == OPEN);
        Suite {
            view: suite.clone(),
            percentile: [draw(Width::Wide, "w"), draw(Width::Narrow, "n")],
            legend: lines.iter().map(Key::of).collect(),
            open,
            folded,
        }
    });
    let mut metrics: Vec<Metric> = view.tallies.iter().map(|tally| tally.metric).collect();
    metrics.dedup();
    Section {
        metrics,
        suites: suites.collect(),
        view: view.clone(),
        log_axis: svg::uses_log_axis(&all),
        id,
    }
}

/// The lines of a suite, few connections to many. Every other one is dashed, for those to whom the
/// colours look alike and for print.
fn lines(suite: &SuiteView) -> Vec<svg::Line<'_>> {
    let drawn = suite.lines.iter().enumerate();
    drawn.map(|(series, line)| one(series, line)).collect()
}

fn one(series: usize, line: &LineView) -> svg::Line<'_> {
    let [p50, _, p99, p999, max] = &line.response;
    let colour = (line.place * (COLOURS - 1.0)).round();
    svg::Line {
        name: &line.name,
        tooltip: format!(
            "{}: 50 % {p50}, 99 % {p99}, 99.9 % {p999}, slowest {max}",
            line.name
        ),
        class: format!("q{colour} d{}", series % 2),
        series,
        front: false,
        points: &line.curve,
    }
}

impl Section {
    /// `Matrix`, or its name.
    pub(super) fn title(&self) -> String {
        match self.view.name.as_str() {
            "" => "Matrix".to_owned(),
            name => format!("Matrix: {name}"),
        }
    }
}
