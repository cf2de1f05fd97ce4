//! Listener, server and location of the user's configuration that each load reaches.

use weir_model::record::{AskedRecord, RequestRecord, SpotRecord};

use super::about;
use crate::input::ReportInput;
use crate::tree::{
    Block, Cell, Column, Heading, Kind, Outputs, Role, Row, Style, Table, Text, clause, list,
};
use crate::words;

/// Maximum number of places per load and listener that are listed. The rest of a mix is only counted.
const SHOWN: usize = 8;

/// Describes in one line what the copies replace. `None` if weir wrote the configurations.
pub(super) fn replaced(input: &ReportInput<'_>) -> Option<String> {
    let sentences = sentences(input);
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn sentences(input: &ReportInput<'_>) -> Vec<String> {
    let last = about::last_records(input.records);
    let asked = last.values().flat_map(|record| &record.asked);
    words::replaced(&input.header.study.origin, asked)
}

/// Describes the destinations of the loads, grouped by arms that have the same. Empty if weir wrote the configurations.
pub(super) fn blocks(input: &ReportInput<'_>) -> Vec<Block> {
    let study = &input.header.study;
    let last = about::last_records(input.records);
    // What all arms ask is said without them.
    let mut groups: Vec<(Vec<&str>, &[AskedRecord])> = Vec::new();
    for arm in &study.arms {
        let asked = last.get(arm.name.as_str()).map_or(&[][..], |own| &own.asked);
        match groups.iter_mut().find(|(_, known)| *known == asked) {
            Some((arms, _)) => arms.push(&arm.name),
            None => groups.push((vec![&arm.name], asked)),
        }
    }
    let is_one = groups.len() == 1;
    let asked = groups.iter().flat_map(|(arms, asked)| {
        let of = if is_one { String::new() } else { format!(" ({})", arms.join(", ")) };
        asked.iter().map(move |record| (of.clone(), record))
    });
    let asked: Vec<(String, &AskedRecord)> = asked.collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let items = asked
        .iter()
        .map(|(of, record)| Text::of(Role::Soft, format!("{}{of}", words::asked(record))));
    let rows = asked.iter().flat_map(|(of, record)| rows(of, record));
    let columns = ["listener", "server", "location", "what it does"].map(Column::left);
    let table = Table::new(Kind::Prose, "Where each load goes", "load").columns(columns).rows(rows);
    let mut in_files = vec![
        Block::Heading(Heading::section("asked", "Where each load goes")),
        Block::Table(table),
    ];
    if let Some(replaced) = list(sentences(input).into_iter().map(Text::from), false) {
        let lead = "What the copies have otherwise than your configurations:";
        in_files.extend([clause(Style::Plain, lead), replaced]);
    }
    vec![
        Block::Only(Outputs::TERMINAL, list(items, false).into_iter().collect()),
        Block::Only(Outputs::FILES, in_files),
    ]
}

fn rows(of: &str, record: &AskedRecord) -> Vec<Row> {
    let name = format!("{}{of}", words::loads(&record.loads));
    let mut requests: Vec<&RequestRecord> = Vec::new();
    for request in &record.requests {
        let is_same = |other: &&RequestRecord| {
            (other.server(), &other.location, &other.answer)
                == (request.server(), &request.location, &request.answer)
        };
        if !requests.iter().any(is_same) {
            requests.push(request);
        }
    }
    let cell = |spot: Option<String>| -> Cell { spot.unwrap_or_else(|| "–".to_owned()).into() };
    let left = requests.len().saturating_sub(SHOWN);
    let rows = requests.iter().take(SHOWN).map(|request| {
        let cells = [
            record.at().into(),
            cell(request.server()),
            cell(request.location.as_ref().map(SpotRecord::to_string)),
            request.answer.as_str().into(),
        ];
        Row::new(name.as_str(), cells)
    });
    let more = (left > 0).then(|| {
        let cells = [Cell::from(record.at()), format!("and {left} more").into()];
        Row::new(name.as_str(), cells)
    });
    rows.chain(more).collect()
}
