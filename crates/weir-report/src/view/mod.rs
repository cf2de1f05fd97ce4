//! The one intermediate form between findings and outputs: all figures formatted, all names
//! resolved, everything in the order in which it is shown.
//!
//! Raw numbers appear only where a chart draws them ([`Effect`], curves), next to the text that
//! names them.

mod about;
mod by_rate;
mod compare;
mod connections;
mod counted;
mod gains;
mod inert;
mod limit;
mod load;
mod matrix;
pub mod number;
mod pairs;
mod published;
mod published_times;
mod setup;
pub mod words;

use weir_analysis::findings::{Incomplete, LoadFindings};
use weir_model::record::{Outcome, Validity};
use weir_model::study::Study;

use crate::ReportInput;
pub use about::ArmAbout;
pub use by_rate::{ByRateCell, ByRateRow, ByRateTable, ByRateView};
pub use compare::{Effect, MetricView, RowView, WhyView};
pub use connections::{ConnectionsRow, ConnectionsView};
pub use counted::{CountedRow, CountedTable, CountedView};
pub use gains::{GainArm, GainView};
pub use inert::InertView;
pub use limit::LimitView;
pub use load::{ArmView, LoadView, ReasonView};
pub use matrix::{
    CellRow, CellView, HeatCell, HeatRow, HeatView, LineView, MatrixReason, MatrixView, SuiteView,
    TallyView,
};
pub use pairs::{PairCell, PairRow, PairsView};
pub use published::{PublishedRow, PublishedTable, PublishedView};
pub use published_times::TimesRow;
pub use setup::{ArmSettings, Fact, SettingRow, SettingsView, SetupView};

/// A whole report, formatted.
#[derive(Debug, Clone)]
pub struct ReportView {
    /// Title of the study, or its name when it has none.
    pub title: String,
    /// Name of the run folder.
    pub run: String,
    /// The question, as it was asked.
    pub question: String,
    /// The answer in one sentence, or a line with one for each load.
    pub answer: String,
    /// The worst validity of the loads that the answer rests on; INVALID when there are none.
    pub validity: Validity,
    /// What the reader must know when the run did not end as planned.
    pub incomplete: Option<String>,
    /// Loads beside the answer that are not to be used, one sentence each.
    pub left_out: Vec<String>,
    /// When the run began.
    pub started_at: String,
    /// What counts as better, and how sure one must be.
    pub objective: String,
    /// What each arm is; empty where arms differ in nothing but settings of the study's one proxy.
    pub about: Vec<ArmAbout>,
    /// Per load, in the order of the study, but for those of a matrix.
    pub loads: Vec<LoadView>,
    /// Loads that differ in their rate alone, beside each other.
    pub by_rate: Vec<ByRateView>,
    /// Matrices of loads, in the order of the study.
    pub matrices: Vec<MatrixView>,
    /// Levels that were asked for and are not in force.
    pub inert: Vec<InertView>,
    /// Published figures beside ours.
    pub published: Option<PublishedView>,
    /// Machine, programs and CPU roles.
    pub setup: SetupView,
    /// What the proxies were really running with.
    pub settings: SettingsView,
    /// The study as it was written.
    pub study_text: String,
    /// How to repeat the run: commands first, then what must be the same.
    pub repeat: Repeat,
}

/// How to repeat a run.
#[derive(Debug, Clone)]
pub struct Repeat {
    /// The command.
    pub command: String,
    /// Exact version of weir.
    pub weir_version: String,
    /// Seed of the random order of arms.
    pub seed: String,
    /// Version of the run folder's formats.
    pub format: String,
}

impl ReportView {
    /// Formats everything that a report shows.
    pub fn new(input: &ReportInput<'_>) -> ReportView {
        let study = &input.header.study;
        let inert = &input.findings.inert;
        let mut loads: Vec<LoadView> = input
            .findings
            .loads
            .iter()
            .filter(|load| !is_cell(study, load))
            .map(|load| LoadView::new(study, load, inert))
            .collect();
        let metrics = loads.iter_mut().flat_map(|load| &mut load.metrics);
        for pairs in metrics.filter_map(|metric| metric.pairs.as_mut()) {
            pairs.beside(&input.findings.answer);
        }
        let headline = &input.findings.headline;
        let title = if study.title.is_empty() {
            &study.name
        } else {
            &study.title
        };
        ReportView {
            title: title.clone(),
            run: input.header.run.clone(),
            question: study.question.trim().to_owned(),
            answer: input.findings.answer.trim().to_owned(),
            validity: headline.validity,
            incomplete: headline.incomplete.as_ref().map(incomplete),
            left_out: left_out(&loads, &headline.left_out),
            started_at: setup::instant(&input.header.started_at),
            objective: format!(
                "{} ({}){}; equivalence band ±{}; confidence {}",
                words::metric(study.objective.metric),
                words::direction(study.objective.metric),
                limit::words(study),
                number::level(study.objective.band),
                number::level(study.objective.confidence),
            ),
            published: published::view(study, input.findings),
            about: about::all(study, input.records),
            loads,
            by_rate: by_rate::all(study, &input.findings.loads),
            matrices: matrix::all(study, input.findings),
            inert: inert::all(input.findings),
            setup: SetupView::new(input.header, input.records),
            settings: SettingsView::new(study, input.records),
            study_text: input.study_text.to_owned(),
            repeat: Repeat {
                command: command(study.scale),
                weir_version: input.header.weir_version.clone(),
                seed: study.blocks.seed.to_string(),
                format: input.header.format.clone(),
            },
        }
    }
}

/// Whether a load is a cell of a matrix.
fn is_cell(study: &Study, load: &LoadFindings) -> bool {
    let mut specs = study.loads.iter();
    specs.any(|spec| spec.name == load.load && spec.cell.is_some())
}

/// The command that repeats a run.
fn command(scale: Option<f64>) -> String {
    match scale {
        Some(factor) => format!("weir run study.yaml --scale {factor}x"),
        None => "weir run study.yaml".to_owned(),
    }
}

/// What is said of loads that are not to be used.
fn left_out(loads: &[LoadView], names: &[String]) -> Vec<String> {
    let unusable = loads.iter().filter(|load| names.contains(&load.name));
    let each = unusable.map(|load| {
        let why = load.reasons.first().map_or(String::new(), |reason| {
            format!(": {} ({})", reason.seen, reason.how_often)
        });
        format!("load {} is INVALID and says nothing{why}", load.name)
    });
    each.collect()
}

/// Why the run is not what was planned.
fn incomplete(found: &Incomplete) -> String {
    let what = match found.outcome {
        Some(Outcome::Complete) => "not everything that was planned is among the records",
        Some(Outcome::Interrupted) => "the run was interrupted",
        Some(Outcome::Failed) => "the run failed",
        None => "the run has no end yet",
    };
    let error = &found.error;
    let colon = if error.is_empty() { "" } else { ": " };
    format!("{what}{colon}{error}; the figures cover what was measured")
}
