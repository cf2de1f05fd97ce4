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
    let sentences = describe_replaced(input);
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn describe_replaced(input: &ReportInput<'_>) -> Vec<String> {
    let last = about::last_records(input.records);
    let destinations = last.values().flat_map(|record| &record.asked);
    words::replaced(&input.header.study.origin, destinations)
}

/// Describes the destinations of the loads, grouped by arms that have the same. Empty if weir wrote the configurations.
pub(super) fn blocks(input: &ReportInput<'_>) -> Vec<Block> {
    let study = &input.header.study;
    let last = about::last_records(input.records);
    // What all arms ask is said without them.
    let mut groups: Vec<(Vec<&str>, &[AskedRecord])> = Vec::new();
    for arm in &study.arms {
        let destinations = last.get(arm.name.as_str()).map_or(&[][..], |record| &record.asked);
        match groups.iter_mut().find(|(_, group)| *group == destinations) {
            Some((arms, _)) => arms.push(&arm.name),
            None => groups.push((vec![&arm.name], destinations)),
        }
    }
    let is_one = groups.len() == 1;
    let destinations: Vec<(String, &AskedRecord)> = groups
        .iter()
        .flat_map(|(arms, records)| {
            let suffix = if is_one { String::new() } else { format!(" ({})", arms.join(", ")) };
            records.iter().map(move |record| (suffix.clone(), record))
        })
        .collect();
    if destinations.is_empty() {
        return Vec::new();
    }
    let items = destinations
        .iter()
        .map(|(arms, record)| Text::of(Role::Soft, format!("{}{arms}", words::asked(record))));
    let rows = destinations.iter().flat_map(|(arms, record)| rows(arms, record));
    let columns = ["listener", "server", "location", "what it does"].map(Column::left);
    let table = Table::new(Kind::Prose, "Where each load goes", "load").columns(columns).rows(rows);
    let mut in_files = vec![
        Block::Heading(Heading::section("asked", "Where each load goes")),
        Block::Table(table),
    ];
    if let Some(replaced) = list(describe_replaced(input).into_iter().map(Text::from), false) {
        let lead = "What the copies have otherwise than your configurations:";
        in_files.extend([clause(Style::Plain, lead), replaced]);
    }
    vec![
        Block::Only(Outputs::TERMINAL, list(items, false).into_iter().collect()),
        Block::Only(Outputs::FILES, in_files),
    ]
}

fn rows(arms: &str, record: &AskedRecord) -> Vec<Row> {
    let name = format!("{}{arms}", words::loads(&record.loads));
    let mut requests: Vec<&RequestRecord> = Vec::new();
    for request in &record.requests {
        let is_known = requests.iter().any(|other| {
            (other.server(), &other.location, &other.answer)
                == (request.server(), &request.location, &request.answer)
        });
        if !is_known {
            requests.push(request);
        }
    }
    let excess = requests.len().saturating_sub(SHOWN);
    let rows = requests.iter().take(SHOWN).map(|request| {
        let cells = [
            record.at().into(),
            or_dash(request.server()),
            or_dash(request.location.as_ref().map(SpotRecord::to_string)),
            request.answer.as_str().into(),
        ];
        Row::new(name.as_str(), cells)
    });
    let more = (excess > 0).then(|| {
        let cells = [Cell::from(record.at()), format!("and {excess} more").into()];
        Row::new(name.as_str(), cells)
    });
    rows.chain(more).collect()
}

fn or_dash(spot: Option<String>) -> Cell {
    spot.unwrap_or_else(|| "–".to_owned()).into()
}
