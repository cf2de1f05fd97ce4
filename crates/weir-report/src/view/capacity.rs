//! Capacity of each arm: the answer, the response times by rate, the quantities that grew with the load, and the steps
//! of the search.

mod curve;
mod growth;
mod side_by_side;
mod summary;

use weir_analysis::capacity::{Capacity, CapacityFindings};
use weir_model::record::SearchStage;
use weir_model::study::Study;

use super::load;
pub(super) use summary::{blocks as summary, winner};

use crate::input::ReportInput;
use crate::tree::{
    Block, Cell, Chart, Closing, Column, Heading, Kind, Outputs, Row, Style, Table, figure, fold,
    list, text,
};
use crate::{number, words};

/// Returns all sections of a study that searches for capacities.
pub(super) fn sections(input: &ReportInput<'_>, found: &CapacityFindings) -> Vec<Block> {
    let study = &input.header.study;
    let is_one = found.arms.len() == 1;
    let mut blocks = Vec::new();
    if !is_one {
        blocks.extend(side_by_side::section(study, found));
    }
    for (arm, number) in found.arms.iter().zip(1..) {
        let id = format!("capacity-{number}");
        let title = if is_one {
            "Response times by rate".to_owned()
        } else {
            format!("Response times of {} by rate", arm.answer.arm)
        };
        let heading = Heading::section(&id, title).badge(found.validity);
        blocks.push(Block::Heading(heading.remark(&effort(study, arm))));
        if !is_one {
            let sentences = weir_sentences::capacity::details(arm, &input.findings.limiters);
            blocks.extend(sentences.into_iter().map(|sentence| text(Style::Plain, sentence)));
        }
        blocks.extend(curve::blocks(arm));
        blocks.extend(growth::blocks(arm));
        blocks.push(Block::Only(Outputs::FILES, search(arm)));
    }
    blocks.extend(validity(found));
    blocks
}

/// Formats the objective: `p99 < 30ms; confidence 95 %`.
pub(super) fn objective(study: &Study) -> String {
    let limits: Vec<String> = study.capacity.iter().map(ToString::to_string).collect();
    format!("{}; confidence {}", limits.join(", "), number::level(study.objective.confidence))
}

/// Describes the load of the search, and the time that it took.
fn effort(study: &Study, found: &Capacity) -> String {
    let mut parts = Vec::new();
    if let Some(spec) = study.loads.iter().find(|spec| spec.name == found.answer.load) {
        // More than the load's, where those were all busy.
        let most = found.answer.connections.max(spec.connections);
        let connections = number::plural(u64::from(most), "connection");
        parts.push(format!("up to {connections}"));
        parts.extend(load::manner(spec));
    }
    let (short, all) = found.answer.seconds;
    let [all_time, short_time, rest_time] = [all, short, found.answer.rest_s]
        .map(|seconds| number::short_time((seconds * 1e9).round()));
    let kinds = if found.answer.rest_s > 0.0 {
        format!("trials and rests ({rest_time})")
    } else {
        "trials".to_owned()
    };
    if all > short {
        parts.push(format!("{all_time} of {kinds}, {short_time} of it short ones"));
    } else if all > 0.0 {
        parts.push(format!("{all_time} of {kinds}"));
    }
    parts.join(", ")
}

/// Shows how the search narrowed the interval.
fn search(found: &Capacity) -> Vec<Block> {
    let steps: Vec<(f64, f64, f64)> = found
        .bracket
        .iter()
        .filter_map(|step| step.between.map(|(low, high)| (step.seconds, low, high)))
        .collect();
    if steps.is_empty() {
        return Vec::new();
    }
    let holds = found.bracket.iter().filter(|step| step.stage == SearchStage::Hold);
    let dots = holds.zip(&found.holds).map(|(step, hold)| (step.seconds, curve::dot(found, hold)));
    let chart = Chart::Closing(Closing {
        title: "How the search closed in".to_owned(),
        over: "seconds of measured load",
        steps,
        dots: dots.collect(),
    });
    let caption = "The range in which the capacity was believed to be, after each step. Large points \
                   are long trials: filled where the objective held, hollow where it did not.";
    let rows = found.bracket.iter().map(|step| {
        let (low, high) = step.between.unwrap_or((f64::NAN, f64::NAN));
        let cells = [number::tenths(step.seconds), number::rate(low), number::rate(high)];
        Row::new(words::stage(step.stage), cells.map(Cell::from))
    });
    let table = Table::new(Kind::Figures, "Steps of the search", "step")
        .columns(["seconds", "from", "to"].map(Column::new))
        .rows(rows);
    vec![
        Block::Heading(Heading::part("The search")),
        Block::Only(Outputs::HTML, vec![figure(caption, chart)]),
        fold("Its steps", vec![Block::Table(table)]),
    ]
}

/// Returns the reasons that make trials doubtful. Empty if there are none.
fn validity(found: &CapacityFindings) -> Vec<Block> {
    let arms: Vec<&str> = found.arms.iter().map(|arm| &*arm.answer.arm).collect();
    let reasons = found.reasons.iter().map(|counted| load::reason(counted, &arms));
    let Some(reasons) = list(reasons, false) else {
        return Vec::new();
    };
    let heading = Heading::section("validity", "Validity").badge(found.validity);
    let note = "Trials that are INVALID were left out before any outcome was looked at.";
    vec![
        Block::Heading(heading),
        Block::Only(Outputs::FILES, vec![text(Style::Soft, note)]),
        reasons,
    ]
}
