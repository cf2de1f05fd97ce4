//! A report as one HTML file that needs nothing else: styles, charts and a few lines of script are
//! in it, fonts are the system's. A Content-Security-Policy in its head forbids every load, so the
//! file cannot call anywhere even if something slipped through.

mod by_rate;
mod matrix;

use askama::Template;
use weir_model::record::Validity;
use weir_model::study::{ArmRole, Metric};

use crate::ReportInput;
use crate::svg::{self, Panel, Range, Width};
use crate::view::{GainView, LoadView, MetricView, ReportView, number, words};

/// The page; `templates/report.html` lays it out.
#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    view: ReportView,
    loads: Vec<Section>,
    by_rate: Vec<by_rate::Section>,
    matrices: Vec<matrix::Section>,
    style: &'static str,
    script: &'static str,
}

/// One load with its charts drawn. Charts are finished SVG, escaped by their module.
struct Section {
    view: LoadView,
    /// Anchor in the page: numbered, because names are anybody's.
    id: String,
    forests: Vec<Forest>,
    percentile: [String; 2],
    log_axis: bool,
    legend: Vec<Key>,
    rates: Vec<Strip>,
    responses: Vec<Strip>,
}

/// The forest of one metric, for both widths.
struct Forest {
    metric: MetricView,
    charts: [String; 2],
    /// The part around 1, when large effects leave it no room; empty otherwise.
    close_up: [String; 2],
}

/// An entry of the legend.
struct Key {
    name: String,
    class: String,
    series: usize,
}

impl Key {
    fn of(line: &svg::Line<'_>) -> Key {
        Key {
            name: line.name.to_owned(),
            class: line.class.clone(),
            series: line.series,
        }
    }
}

/// A panel over time with its caption.
struct Strip {
    name: String,
    chart: String,
}

/// Formats a report as one self-contained HTML page.
pub fn html(input: &ReportInput<'_>) -> String {
    let mut view = ReportView::new(input);
    glue_sentences(&mut view);
    let loads = view.loads.iter().enumerate();
    let groups = view.by_rate.iter().enumerate();
    let matrices = view.matrices.iter().enumerate();
    let page = Page {
        loads: loads.map(|(index, load)| section(index, load)).collect(),
        by_rate: groups
            .map(|(index, view)| by_rate::section(index, view))
            .collect(),
        matrices: matrices
            .map(|(index, view)| matrix::section(index, view))
            .collect(),
        view,
        style: include_str!("../templates/style.css"),
        script: include_str!("../templates/script.js"),
    };
    page.render()
        .expect("rendering into a String fails only if the template calls something that can fail")
}

/// Keeps numbers and their units on one line, where text is set as running text.
fn glue_sentences(view: &mut ReportView) {
    let glue = |text: &mut String| {
        *text = text
            .replace(" %", "\u{a0}%")
            .replace("n = ", "n\u{a0}=\u{a0}");
    };
    glue(&mut view.answer);
    glue(&mut view.objective);
    for suite in view
        .matrices
        .iter_mut()
        .flat_map(|matrix| &mut matrix.suites)
    {
        glue(&mut suite.at);
    }
    let metrics = view.loads.iter_mut().flat_map(|load| &mut load.metrics);
    for metric in metrics {
        glue(&mut metric.resolution);
        for row in &mut metric.rows {
            glue(&mut row.because);
            glue(&mut row.replicates);
        }
        metric.why.iter_mut().for_each(|why| glue(&mut why.because));
        if let Some(pairs) = &mut metric.pairs {
            glue(&mut pairs.ranking);
            glue(&mut pairs.note);
        }
    }
}

fn section(index: usize, load: &LoadView) -> Section {
    let id = format!("load-{}", index + 1);
    let series = series(load);
    let lines = lines(load, &series);
    let about = svg::About {
        each: "arm",
        beside: &[],
    };
    let both = |draw: &dyn Fn(Width, &str) -> String| {
        [
            draw(Width::Wide, &format!("{id}-w")),
            draw(Width::Narrow, &format!("{id}-n")),
        ]
    };
    let forests = load
        .metrics
        .iter()
        .enumerate()
        .map(|(place, metric)| Forest {
            metric: metric.clone(),
            charts: both(&|width, id| {
                svg::forest(&format!("{id}-f{place}"), metric, width, Range::Whole)
            }),
            close_up: both(&|width, id| {
                svg::forest(&format!("{id}-c{place}"), metric, width, Range::CloseUp)
            }),
        });
    Section {
        forests: forests.collect(),
        percentile: both(&|width, id| svg::percentile(&format!("{id}-p"), &lines, about, width)),
        log_axis: svg::uses_log_axis(&lines),
        legend: lines.iter().map(Key::of).collect(),
        rates: strips(&id, load, &series, Metric::Rate),
        responses: strips(&id, load, &series, Metric::ResponseP50),
        view: load.clone(),
        id,
    }
}

/// The percentile curves of all arms.
fn lines<'a>(load: &'a LoadView, series: &[usize]) -> Vec<svg::Line<'a>> {
    let arms = load.arms.iter().zip(series);
    arms.map(|(arm, &series)| {
        let [p50, _, p99, p999, max] = &arm.response;
        svg::Line {
            name: &arm.name,
            tooltip: format!(
                "{}: 50 % {p50}, 99 % {p99}, 99.9 % {p999}, slowest {max}",
                arm.name
            ),
            class: svg::series_class(series, arm.role),
            series,
            front: arm.role != ArmRole::Change,
            points: &arm.percentile_curve,
        }
    })
    .collect()
}

fn series(load: &LoadView) -> Vec<usize> {
    let roles: Vec<ArmRole> = load.arms.iter().map(|arm| arm.role).collect();
    series_of(&roles)
}

/// Number of each arm's colour: changes are counted, so that the hues go to them alone; baseline
/// and A/A get numbers of their own after all others.
fn series_of(roles: &[ArmRole]) -> Vec<usize> {
    let changes = roles.iter().filter(|role| **role == ArmRole::Change);
    let (mut change, mut other) = (0, changes.count());
    roles
        .iter()
        .map(|role| {
            let next = match role {
                ArmRole::Change => &mut change,
                ArmRole::Baseline | ArmRole::SameAsBaseline => &mut other,
            };
            *next += 1;
            *next - 1
        })
        .collect()
}

fn strips(id: &str, load: &LoadView, series: &[usize], metric: Metric) -> Vec<Strip> {
    let group = Panel {
        all: load
            .arms
            .iter()
            .map(|arm| match metric {
                Metric::Rate => arm.rate_over_time.as_slice(),
                _ => arm.response_over_time.as_slice(),
            })
            .collect(),
        metric,
    };
    let tag = match metric {
        Metric::Rate => "r",
        _ => "t",
    };
    let arms = load.arms.iter().zip(series).enumerate();
    arms.map(|(index, (arm, &series))| Strip {
        name: arm.name.clone(),
        chart: svg::panel(
            &format!("{id}-{tag}{index}"),
            &group,
            index,
            &arm.name,
            series,
            arm.role,
        ),
    })
    .filter(|strip| !strip.chart.is_empty())
    .collect()
}

impl Section {
    /// Whether the figures may be used at all. If not, the reasons stand before them.
    fn usable(&self) -> bool {
        self.view.validity != Validity::Invalid
    }

    fn has_percentiles(&self) -> bool {
        !self.percentile[0].is_empty()
    }

    fn has_time(&self) -> bool {
        !self.rates.is_empty()
    }
}
