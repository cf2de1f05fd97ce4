//! Connections and handshakes under one load.

use weir_analysis::findings::LoadFindings;
use weir_model::load::Lifetime;
use weir_model::load_report::{NameCount, TlsReport};
use weir_model::record::ArmConnections;
use weir_model::study::LoadSpec;

use crate::number;
use crate::tree::{Block, Cell, Column, Heading, Kind, Row, Style, Table, clause};

/// Returns remarks that are useful without the table, one clause each. Empty if connections are kept and unencrypted.
pub(super) fn sentences(spec: Option<&LoadSpec>, load: &LoadFindings) -> Vec<String> {
    let all: Vec<&ArmConnections> =
        load.arms.iter().filter_map(|arm| arm.connections.as_ref()).collect();
    let handshakes: Vec<&TlsReport> = all.iter().filter_map(|c| c.tls.as_ref()).collect();
    let mut sentences = Vec::new();
    sentences.extend(held(all.iter().copied()));
    sentences.extend(agreed(&handshakes));
    let is_kept = spec.is_none_or(|spec| spec.lifetime == Lifetime::Kept);
    if !is_kept && !all.is_empty() {
        let opened: u64 = all.iter().map(|c| c.asking.opened).sum();
        let answered: u64 = all.iter().map(|c| c.answered).sum();
        let share = number::share(opened as f64 / answered as f64);
        sentences.push(format!("{share} connections opened for each request"));
    }
    let arms = load.arms.iter();
    sentences.extend(overflowed(
        arms.filter_map(|arm| Some((arm.arm.as_str(), arm.connections.as_ref()?))),
    ));
    sentences
}

/// A column, and the function that fills an arm's cell.
type FigureColumn = (Column, fn(&ArmConnections) -> String);

/// Returns the table. Empty if the run did not record connections.
pub(super) fn blocks(spec: Option<&LoadSpec>, load: &LoadFindings) -> Vec<Block> {
    let all: Vec<&ArmConnections> =
        load.arms.iter().filter_map(|arm| arm.connections.as_ref()).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let shown = columns(
        all.iter().any(|c| c.held.wanted > 0),
        all.iter().any(|c| c.tls.is_some()),
        all.iter().any(|c| c.listen_overflows.is_some()),
    );
    let rows = load.arms.iter().filter_map(|arm| {
        let connections = arm.connections.as_ref()?;
        let cells = shown.iter().map(|(_, cell)| Cell::from(cell(connections)));
        Some(Row::new(&*arm.arm, cells))
    });
    let rows: Vec<Row> = rows.collect();
    let table = Table::new(Kind::Figures, "Connections of each arm", "arm")
        .rows(rows)
        .columns(shown.into_iter().map(|(column, _)| column));
    let heading = Heading::part("Connections").badge(load.validity);
    let mut blocks = vec![Block::Heading(heading), Block::Table(table)];
    let sentences = sentences(spec, load).into_iter();
    blocks.extend(sentences.map(|sentence| clause(Style::Soft, sentence)));
    let counted = "counted from the first connection of each continuous trial to its end, unmeasured slices and \
                   loads that share it included. Memory is the proportional set size of all processes of the proxy when the last slice had ended and \
                   every connection was open";
    blocks.push(clause(Style::Soft, counted));
    blocks
}

/// Returns the columns that have figures.
fn columns(is_held: bool, is_tls: bool, has_queues: bool) -> Vec<FigureColumn> {
    #[rustfmt::skip]
    let mut shown: Vec<FigureColumn> = vec![
        (Column::new("connections").small("opened"), |c| { number::count(c.asking.opened) }),
        (Column::new("").small("per request"), |c| { number::share(c.asking.opened as f64 / c.answered as f64) }),
    ];
    if is_held {
        shown.push((Column::new("held").small("at the start"), |c| {
            let (open, wanted) = (c.held.open_at_start, c.held.wanted);
            format!("{} of {}", number::count(open), number::count(wanted))
        }));
        shown.push((Column::new("").small("at the end"), |c| number::count(c.held.open_at_end)));
        shown.push((Column::new("").small("opened again"), |c| number::count(c.held.opened)));
    }
    if is_tls {
        shown.push((Column::new("handshakes"), |c| {
            or_none(c.tls.as_ref().map(|tls| tls.handshakes))
        }));
        shown.push((Column::new("").small("resumed"), |c| {
            or_none(c.tls.as_ref().map(|tls| tls.resumed))
        }));
    }
    if has_queues {
        let queue = Column::new("listen queue").small("times full");
        shown.push((queue, |c| or_none(c.listen_overflows)));
    }
    shown.push((Column::new("proxy memory"), |c| match c.proxy_memory_bytes {
        0 => number::NONE.to_owned(),
        bytes => number::bytes(bytes),
    }));
    shown
}

fn or_none(count: Option<u64>) -> String {
    count.map_or_else(|| number::NONE.to_owned(), number::count)
}

/// Describes the held connections of the arm that held the fewest: `100,000 of 100,000 connections held to the end,
/// none opened again, proxy memory 113 MiB`.
fn held<'a>(all: impl Iterator<Item = &'a ArmConnections>) -> Option<String> {
    let least = all
        .filter(|connections| connections.held.wanted > 0)
        .min_by_key(|c| c.held.open_at_end.min(c.held.open_at_start))?;
    let held = &least.held;
    let again = match held.opened {
        0 => "none opened again".to_owned(),
        again => format!("{} opened again", number::count(again)),
    };
    let memory = match least.proxy_memory_bytes {
        0 => String::new(),
        bytes => format!(", proxy memory {}", number::bytes(bytes)),
    };
    Some(format!(
        "{} of {} connections held to the end, {again}{memory}",
        number::count(held.open_at_end.min(held.open_at_start)),
        number::count(held.wanted),
    ))
}

/// Describes overflows of listen queues: `the listen queue was full 12,345 times for a, never for b`. `None` if there
/// were none.
fn overflowed<'a>(arms: impl Iterator<Item = (&'a str, &'a ArmConnections)>) -> Option<String> {
    let (full, never): (Vec<_>, Vec<_>) = arms
        .filter_map(|(arm, c)| Some((arm, c.listen_overflows?)))
        .partition(|(_, times)| *times > 0);
    let mut parts: Vec<String> = full
        .iter()
        .map(|(arm, times)| format!("{} for {arm}", number::plural(*times, "time")))
        .collect();
    if parts.is_empty() {
        return None;
    }
    if !never.is_empty() {
        let names: Vec<&str> = never.iter().map(|(arm, _)| *arm).collect();
        parts.push(format!("never for {}", names.join(", ")));
    }
    Some(format!("the listen queue was full {} (net.core.somaxconn, `backlog`)", parts.join(", ")))
}

/// Describes TLS handshakes: `12,345 handshakes, none resumed: TLS 1.2, ECDHE-RSA-AES256-GCM-SHA384, x25519`.
fn agreed(all: &[&TlsReport]) -> Option<String> {
    if all.is_empty() {
        return None;
    }
    let handshakes: u64 = all.iter().map(|tls| tls.handshakes).sum();
    let resumed: u64 = all.iter().map(|tls| tls.resumed).sum();
    let resumed = match resumed {
        0 => "none resumed".to_owned(),
        n if n == handshakes => "all resumed".to_owned(),
        n => format!("{} resumed", number::count(n)),
    };
    let names: Vec<String> = [
        join_names(all.iter().flat_map(|tls| &tls.versions)),
        join_names(all.iter().flat_map(|tls| &tls.ciphers)),
        join_names(all.iter().flat_map(|tls| &tls.groups)),
    ]
    .into_iter()
    .filter(|name| !name.is_empty())
    .collect();
    Some(format!("{}, {resumed}: {}", number::plural(handshakes, "handshake"), names.join(", ")))
}

/// Joins the names, each once.
fn join_names<'r>(counts: impl Iterator<Item = &'r NameCount>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for count in counts {
        if !names.contains(&&*count.name) {
            names.push(&count.name);
        }
    }
    names.join(" or ")
}

#[cfg(test)]
mod tests {
    use weir_model::record::ConnectionCounts;

    use super::*;

    fn sentence_about(arms: &[(&str, Option<u64>)]) -> Option<String> {
        let connections: Vec<(&str, ArmConnections)> = arms
            .iter()
            .map(|&(arm, listen_overflows)| {
                (arm, ArmConnections { listen_overflows, ..ArmConnections::default() })
            })
            .collect();
        overflowed(connections.iter().map(|(arm, connections)| (*arm, connections)))
    }

    #[test]
    fn full_listen_queues_are_told_by_arm() {
        assert_eq!(sentence_about(&[("a", Some(0)), ("b", Some(0))]), None);
        assert_eq!(sentence_about(&[("a", None)]), None);
        assert_eq!(
            sentence_about(&[("a", Some(12_345)), ("b", Some(0)), ("c", Some(1))]).as_deref(),
            Some(
                "the listen queue was full 12,345 times for a, 1 time for c, never for b \
                 (net.core.somaxconn, `backlog`)"
            )
        );
    }

    #[test]
    fn what_was_held_and_agreed_on_is_said_in_a_clause() {
        let mut connections = ArmConnections {
            held: ConnectionCounts {
                wanted: 100_000,
                open_at_start: 100_000,
                open_at_end: 99_998,
                opened: 2,
                ..ConnectionCounts::default()
            },
            proxy_memory_bytes: 113 << 20,
            ..ArmConnections::default()
        };
        assert_eq!(
            held([&connections].into_iter()).as_deref(),
            Some(
                "99,998 of 100,000 connections held to the end, 2 opened again, proxy memory 113 MiB"
            )
        );
        connections.held = ConnectionCounts::default();
        assert_eq!(held([&connections].into_iter()), None);
        let [versions, ciphers] =
            ["TLS 1.2", "C"].map(|name| vec![NameCount { name: name.to_owned(), count: 7 }]);
        let tls = TlsReport { handshakes: 7, versions, ciphers, ..TlsReport::default() };
        assert_eq!(
            agreed(&[&tls, &tls]).as_deref(),
            Some("14 handshakes, none resumed: TLS 1.2, C")
        );
        assert_eq!(agreed(&[]), None);
    }
}
