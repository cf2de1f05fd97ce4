//! The page by which a run folder explains itself to somebody who has never seen weir.

use weir_model::record::{ChangedSetting, EndRecord, Outcome, Record};
use weir_model::study::{ArmRole, LoadSpec, Study};
use weir_sentences::folder::{
    describe_end, describe_file, describe_outcome, explain_arms, explain_changes, introduce,
};

use super::{about, capacity, compare, glossary, head, load, setup, summary};
use crate::input::{FolderContent, ReportInput};
use crate::tree::{
    Block, Cell, Code, Column, Document, Fold, Heading, Kind, Role, Row, Style, Table, Text,
    clause, text,
};
use crate::{number, words};

/// Maximum number of loads that are listed one by one.
const LOADS_LISTED: usize = 12;

/// Builds the page of a run folder.
pub(crate) fn document(input: &ReportInput<'_>, folder: &FolderContent) -> Document {
    let header = input.header;
    let study = &header.study;
    let mut blocks = head(input);
    blocks.push(text(Style::Plain, with_code(&introduce(header))));
    if !folder.note.is_empty() {
        blocks.push(text(Style::Plain, format!("Note of the user's: {}", folder.note)));
    }
    blocks.extend(plan(study));
    blocks.push(section("results", "Results"));
    blocks.extend(summary::blocks(input));
    let more = "`report.html` and `report.md` have everything that was found.";
    blocks.push(text(Style::Soft, with_code(more)));
    blocks.extend(glossary::section(input.findings));
    blocks.extend(changes(input));
    blocks.extend(setup::environment(header, input.records));
    blocks.extend(setup::repeat(input));
    blocks.extend(files(folder));
    let title = if study.title.is_empty() { &study.name } else { &study.title };
    Document {
        title: title.clone(),
        source: String::new(),
        footer: format!("weir {} · {} · {}", header.weir_version, header.format, header.run),
        blocks,
    }
}

/// Returns a sentence in which words between backticks are names of files or commands.
fn with_code(sentence: &str) -> Text {
    let parts = sentence.split('`').enumerate().map(|(index, part)| {
        let role = if index % 2 == 1 { Role::Code } else { Role::Plain };
        (role, part.to_owned())
    });
    Text(parts.collect())
}

fn section(id: &str, title: &str) -> Block {
    Block::Heading(Heading::section(id, title))
}

/// Describes arms and loads.
fn plan(study: &Study) -> Vec<Block> {
    let mut blocks = vec![section("plan", "Plan")];
    let arms = study.arms.iter().map(|arm| {
        let against = study.arms.get(arm.against).map_or("", |other| other.name.as_str());
        let against = if arm.role == ArmRole::Baseline { "" } else { against };
        let proxy = study.proxy_of(arm).kind.title();
        let changes = match arm.role {
            ArmRole::Baseline => "the baseline, which changes nothing".to_owned(),
            _ => compare::changes(study, Some(arm), arm.role),
        };
        Row::new(&*arm.name, [Cell::from(proxy), Cell::from(changes), Cell::from(against)])
    });
    let columns = ["proxy", "what it changes", "compared with"].map(Column::left);
    let table = Table::new(Kind::Prose, "Arms", "arm").columns(columns).rows(arms);
    blocks.push(Block::Table(table));
    if !study.capacity.is_empty() {
        let objective = format!("objective: {}", capacity::objective(study));
        blocks.push(clause(Style::Plain, objective));
    }
    let loads = study.loads.iter().take(LOADS_LISTED).map(|spec| {
        let parts = describe_load(spec).join(", ");
        let length = number::length(spec.duration);
        Row::new(&*spec.name, [Cell::from(parts), Cell::from(length)])
    });
    let columns = [Column::left("requests"), Column::new("time for all arms")];
    let table = Table::new(Kind::Prose, "Loads", "load").columns(columns).rows(loads);
    blocks.push(Block::Table(table));
    let more = study.loads.len().saturating_sub(LOADS_LISTED);
    if more > 0 {
        let more = number::plural(more as u64, "more load");
        blocks.push(clause(Style::Soft, format!("{more}: in study.yaml")));
    }
    blocks
}

fn describe_load(spec: &LoadSpec) -> Vec<String> {
    let kind = match spec.rate() {
        Some(rate) => format!("{} requests/s at fixed times (open loop)", number::asked(rate)),
        None if spec.is_open() => "requests at fixed times (open loop)".to_owned(),
        None => "each connection sends its next request after a response (closed loop)".to_owned(),
    };
    let connections = number::plural(u64::from(spec.connections), "connection");
    let mut parts = vec![kind, format!("{connections} to each arm")];
    parts.extend(load::manner(spec));
    parts
}

/// Describes what was changed, when and why, and whether it was put back.
fn changes(input: &ReportInput<'_>) -> Vec<Block> {
    let mut blocks = vec![section("changes", "What was changed, when and why")];
    let sessions = list_sessions(input.records);
    let rows = sessions.iter().map(|session| {
        let ended = session.end.map_or_else(String::new, |end| words::instant(&end.at));
        let outcome = describe_outcome(session.end.map(|end| end.outcome));
        let error = session.end.map_or("", |end| end.error.trim());
        let colon = if error.is_empty() { "" } else { ": " };
        let cells = [words::instant(session.began), ended, format!("{outcome}{colon}{error}")];
        Row::new((session.number + 1).to_string(), cells.map(Cell::from))
    });
    let columns = ["began", "ended", "outcome"].map(Column::left);
    let table = Table::new(Kind::Prose, "Sessions", "session").columns(columns).rows(rows);
    blocks.push(Block::Table(table));
    blocks.push(text(Style::Plain, with_code(&explain_arms(input.header))));
    blocks.extend(about::blocks(input.header, input.records));
    let changed: Vec<&ChangedSetting> =
        sessions.iter().filter_map(|session| session.end).flat_map(|end| &end.changed).collect();
    let outcome: Option<Outcome> =
        sessions.last().and_then(|session| session.end).map(|end| end.outcome);
    blocks.push(text(Style::Plain, with_code(&explain_changes(&changed, outcome))));
    let rows = sessions.iter().flat_map(|session| {
        let end = session.end;
        let changed = end.map_or(&[][..], |end| &end.changed);
        changed.iter().map(move |setting| {
            let when = format!(
                "{} to {}",
                words::instant(session.began),
                end.map_or_else(String::new, |end| words::instant(&end.at))
            );
            let cells = [
                setting.before.clone().unwrap_or_default(),
                setting.given.join(", "),
                when,
                describe_end(&setting.end),
            ];
            Row::new(&*setting.name, cells.map(Cell::from))
        })
    });
    let columns = ["before", "in the run", "when", "afterwards"].map(Column::left);
    let table =
        Table::new(Kind::Prose, "Settings outside the run", "setting").columns(columns).rows(rows);
    if !table.rows.is_empty() {
        blocks.push(Block::Table(table));
    }
    let settings = setup::settings(&input.header.study, input.records).into_iter();
    // Hundreds of settings that no arm changes would hide the few that matter here.
    blocks.extend(settings.filter(|block| !matches!(block, Block::Fold(_))));
    blocks
}

/// A session of a run.
struct Session<'a> {
    number: u32,
    began: &'a str,
    /// Its end; `None` if its process was killed or still runs.
    end: Option<&'a EndRecord>,
}

fn list_sessions(records: &[Record]) -> Vec<Session<'_>> {
    let mut sessions: Vec<Session<'_>> = Vec::new();
    for record in records {
        match record {
            Record::Session(session) => {
                sessions.push(Session { number: session.session, began: &session.at, end: None });
            }
            Record::End(end) => {
                if let Some(last) = sessions.last_mut() {
                    last.end = Some(end);
                }
            }
            _ => {}
        }
    }
    sessions
}

/// Describes the files of the folder, with the sums of those that were measured with.
fn files(folder: &FolderContent) -> Vec<Block> {
    let rows = folder.files.iter().map(|(path, bytes)| {
        let cells = [Cell::from(with_code(describe_file(path))), Cell::from(number::bytes(*bytes))];
        Row::new(path.as_str(), cells)
    });
    let columns = [Column::left("content"), Column::new("length")];
    let table = Table::new(Kind::Plain, "Files", "file").columns(columns).rows(rows);
    let mut blocks = vec![section("files", "Files"), Block::Table(table)];
    if !folder.sums.is_empty() {
        blocks.push(Block::Fold(Fold {
            summary: "SHA-256 of plan, measurements, proxies' programs and the loads' files"
                .to_owned(),
            unusable: false,
            blocks: vec![Block::Code(Code { language: "", text: folder.sums.clone() })],
        }));
    }
    blocks
}
