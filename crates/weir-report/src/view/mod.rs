//! Conversion of findings to the tree that every output renders: all figures formatted, all names resolved, everything
//! in reading order.

mod about;
mod alone;
mod asked;
mod by_rate;
mod capacity;
mod charts;
mod compare;
mod connections;
mod counted;
mod frontier;
mod glossary;
mod growth;
mod limit;
pub(crate) mod limiter;
mod load;
mod looks;
mod matrix;
mod overall;
mod pairs;
mod phases;
mod published;
mod readme;
mod scaling;
mod setup;
mod summary;
mod surroundings;
mod times;
mod tones;

use weir_analysis::findings::{Findings, Incomplete};
use weir_model::record::Outcome;
use weir_model::study::Study;
use weir_sentences::headline::describe_doubt;
use weir_sentences::validity::describe_counted;

use crate::input::ReportInput;
use crate::tree::{
    Block, Callout, Cell, Column, Document, Heading, Kind, Outputs, Role, Row, Style, Table, Text,
    clause, labelled, text,
};
use crate::{number, words};

pub(crate) use readme::document as readme;
pub(crate) use summary::pointers;

/// Builds the document of a report.
pub(crate) fn document(input: &ReportInput<'_>) -> Document {
    let header = input.header;
    let study = &header.study;
    let source = format!("{} · {}", header.run, words::instant(&header.started_at));
    let mut blocks = head(input);
    blocks.push(Block::Only(Outputs::SCREEN, summary::blocks(input)));
    blocks.push(Block::Only(Outputs::WHOLE, sections(input)));
    Document {
        title: match study.title.as_str() {
            "" => study.name.clone(),
            title => title.to_owned(),
        },
        footer: format!("weir {} · {} · {}", header.weir_version, header.format, header.run),
        source,
        blocks,
    }
}

/// Returns all sections below the answer.
fn sections(input: &ReportInput<'_>) -> Vec<Block> {
    let study = &input.header.study;
    let mut blocks = scaling::section(&input.findings.scaling);
    match &input.findings.capacity {
        Some(found) => blocks.extend(capacity::sections(input, found)),
        None => {
            blocks.extend(overall::section(input));
            blocks.extend(load::sections(input));
            blocks.extend(alone::section(&input.header.study, input.findings.alone.as_ref()));
            blocks.extend(by_rate::sections(study, &input.findings.loads));
            blocks.extend(matrix::sections(input));
        }
    }
    blocks.extend(frontier::section(&input.findings.frontiers));
    blocks.extend(published::section(input));
    blocks.extend(limiter::sections(input));
    blocks.extend(growth::section(&input.findings.growth));
    blocks.extend(times::section(input));
    blocks.extend(inert(input));
    // What was found comes first; what its arms are can be looked up.
    blocks.extend(about::blocks(input.header, input.records));
    blocks.extend(asked::blocks(input));
    blocks.extend(remarks(input));
    let mut back = setup::sections(input);
    back.extend(glossary::section(input.findings));
    blocks.push(Block::Only(Outputs::FILES, back));
    blocks
}

/// Returns the question, the answer, and the notes that qualify both.
fn head(input: &ReportInput<'_>) -> Vec<Block> {
    let study = &input.header.study;
    let mut blocks = Vec::new();
    if !study.question.trim().is_empty() {
        let question = text(Style::Lead, study.question.trim());
        blocks.push(Block::Only(Outputs::WHOLE, vec![question]));
    }
    let headline = &input.findings.headline;
    blocks.push(Block::Callout(Callout {
        label: "Answer",
        badge: headline.validity,
        paragraphs: input.answer.trim().lines().map(str::to_owned).collect(),
        basis: format!("judged by {}", objective(study)),
    }));
    let run = Text::from("run ")
        .and(Role::Code, &*input.header.run)
        .plain(format!(", {}", words::instant(&input.header.started_at)));
    blocks.push(Block::Only(Outputs::MARKDOWN, vec![clause(Style::Plain, run)]));
    let notes = note_sentences(study, input.findings);
    let all = notes.iter().map(|sentence| clause(Style::Warning, sentence.as_str()));
    blocks.push(Block::Only(Outputs::WHOLE, all.collect()));
    let remarks =
        input.header.remarks.iter().filter(|remark| remark.arm.is_some()).map(ToString::to_string);
    let copies = asked::replaced(input).map(|text| format!("measured on copies: {text}"));
    let all_notes = notes.into_iter().chain(copies).chain(remarks).collect();
    blocks.push(Block::Only(Outputs::SCREEN, summary::notes(all_notes)));
    blocks
}

/// Returns the notes that qualify the answer, in sentences.
fn note_sentences(study: &Study, findings: &Findings) -> Vec<String> {
    let headline = &findings.headline;
    let mut notes = Vec::new();
    if let Some(doubt) = describe_doubt(study, findings) {
        notes.push(format!("{}: {doubt}", words::validity(headline.validity)));
    }
    notes.extend(headline.incomplete.as_ref().map(incomplete));
    notes.extend(left_out(findings));
    notes.extend(findings.misread.iter().map(weir_sentences::describe_misread));
    if findings.loads.is_empty() && findings.capacity.is_none() {
        notes.push("no load was measured".to_owned());
    }
    notes
}

/// Returns remarks from before the first measurement. Files have them with the environment.
fn remarks(input: &ReportInput<'_>) -> Option<Block> {
    let remarks = input
        .header
        .remarks
        .iter()
        .map(|remark| labelled("remark", Style::Soft, remark.to_string()));
    let heading = Block::Heading(Heading::section("remarks", "What was noticed beforehand"));
    let all: Vec<Block> = std::iter::once(heading).chain(remarks).collect();
    (all.len() > 1).then_some(Block::Only(Outputs::TERMINAL, all))
}

fn objective(study: &Study) -> String {
    if !study.capacity.is_empty() {
        return capacity::objective(study);
    }
    let objective = &study.objective;
    if study.overall_pair().is_some() {
        return format!(
            "rates of closed loops, and p50 and p99 of open ones, together; equivalence band ±{}; confidence {}",
            number::level(objective.band),
            number::level(objective.confidence),
        );
    }
    format!(
        "{} ({}){}; equivalence band ±{}; confidence {}",
        words::metric(objective.metric),
        words::direction(objective.metric),
        limit::words(study),
        number::level(objective.band),
        number::level(objective.confidence),
    )
}

/// Returns a sentence for each load that must not be used.
fn left_out(findings: &Findings) -> impl Iterator<Item = String> {
    let names = &findings.headline.left_out;
    findings.loads.iter().filter(|load| names.contains(&load.load)).map(|load| {
        let first = load.reasons.first();
        let why = first.map_or(String::new(), |counted| format!(": {}", describe_counted(counted)));
        format!("load {} is INVALID and says nothing{why}", load.load)
    })
}

/// Describes why the run is incomplete.
fn incomplete(found: &Incomplete) -> String {
    let reason = match found.outcome {
        Some(Outcome::Complete) => "not everything that was planned was recorded",
        Some(Outcome::Interrupted) => "the run was interrupted",
        Some(Outcome::Failed) => "the run failed",
        None => "the run has not ended",
    };
    let error = &found.error;
    let colon = if error.is_empty() { "" } else { ": " };
    format!("{reason}{colon}{error}; the figures cover what was measured")
}

/// Lists requested levels that are not in force.
fn inert(input: &ReportInput<'_>) -> Vec<Block> {
    let rows = input
        .findings
        .inert
        .iter()
        .flat_map(|arm| arm.levels.iter().map(move |level| (arm, level)))
        .map(|(arm, level)| {
            let cells = [
                Text::of(Role::Code, &*level.id).into(),
                Cell::from(&*level.requested),
                Cell::from(&*level.effective),
                Cell::from(&*level.why),
            ];
            Row::new(&*arm.arm, cells)
        });
    let columns = [
        Column::left("parameter"),
        Column::new("asked for"),
        Column::left("in force").below(),
        Column::left("why").below(),
    ];
    let table = Table::new(Kind::Plain, "Inert levels", "arm").columns(columns).rows(rows);
    if table.rows.is_empty() {
        return Vec::new();
    }
    let explanation =
        "asked for and read back: something else caps them, so the arm says nothing about them";
    vec![
        Block::Heading(Heading::section("inert", "Levels that are not in force")),
        clause(Style::Soft, explanation),
        Block::Table(table),
    ]
}
