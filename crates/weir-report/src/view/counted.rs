//! Counters of the proxies during a load.

use weir_analysis::findings::{ArmFindings, LoadFindings};
use weir_analysis::is_telling;
use weir_model::study::{ProxyKind, Study};

use crate::number;
use crate::tree::{Block, Cell, Column, Kind, Part, Row, Style, Table, Text, clause, fold};

/// Maximum number of telling counters per arm that are listed. The rest is only counted.
const LISTED: usize = 5;

/// Returns a sentence for each arm with counters of requests or connections that were refused, given up or retried.
pub(super) fn telling(load: &LoadFindings) -> Vec<Block> {
    // A sentence begins with the name of an arm, which keeps its spelling.
    load.arms
        .iter()
        .filter_map(sentence)
        .map(|sentence| clause(Style::Warning, Text::from("").plain(sentence)))
        .collect()
}

/// Returns all counters that changed. Empty if no proxy has counters.
pub(super) fn tables(study: &Study, load: &LoadFindings) -> Vec<Block> {
    let mut blocks: Vec<Block> = study
        .proxy_kinds()
        .into_iter()
        .filter_map(|kind| table(study, load, kind))
        .map(Block::Table)
        .collect();
    if blocks.is_empty() {
        return Vec::new();
    }
    let note = "sums over all continuous trials of this load, unmeasured slices and loads that share them included, by the \
                proxies' own names; counters that stayed 0 are left out. Requests and connections that were refused, given up or tried again come first";
    blocks.push(clause(Style::Soft, note));
    vec![fold("Counters of the proxies", blocks)]
}

/// Returns the counters of all arms with one kind of proxy, which share the names of counters.
fn table(study: &Study, load: &LoadFindings, kind: ProxyKind) -> Option<Table> {
    let arms: Vec<&ArmFindings> = load
        .arms
        .iter()
        .filter(|arm| {
            let planned = study.arms.iter().find(|planned| planned.name == arm.arm);
            planned.is_some_and(|planned| study.proxy_of(planned).kind == kind)
        })
        .collect();
    let mut names: Vec<&String> = arms.iter().flat_map(|arm| arm.counters.keys()).collect();
    names.sort_by_key(|name| (!is_telling(name), *name));
    names.dedup();
    let rows = names.into_iter().map(|name| {
        let cells = arms
            .iter()
            .map(|arm| arm.counters.get(name).copied())
            .map(|count| Cell::from(number::count(count.unwrap_or(0))));
        Row::new(name, cells).part(if is_telling(name) { Part::Telling } else { Part::Plain })
    });
    let table = Table::new(Kind::Counts, format!("Counters of {}", kind.title()), kind.title())
        .columns(arms.iter().map(|arm| Column::new(&*arm.arm)))
        .rows(rows);
    (!table.rows.is_empty()).then_some(table)
}

/// Describes the telling counters of an arm: `envoy itself counted upstream_rq_pending_overflow 1,204, beside 57,120
/// requests answered`.
fn sentence(arm: &ArmFindings) -> Option<String> {
    let mut counters: Vec<(&String, u64)> = arm
        .counters
        .iter()
        .filter(|(name, _)| is_telling(name))
        .map(|(name, count)| (name, *count))
        .collect();
    if counters.is_empty() {
        return None;
    }
    counters.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let more = counters.len().saturating_sub(LISTED);
    let mut listed: Vec<String> = counters
        .iter()
        .take(LISTED)
        .map(|(name, count)| format!("{name} {}", number::count(*count)))
        .collect();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    let answered = arm.connections.as_ref().map_or(0, |all| all.answered);
    let beside = match answered {
        0 => String::new(),
        answered => format!(", beside {} requests answered", number::count(answered)),
    };
    Some(format!("{} itself counted {}{beside}", arm.arm, listed.join(", ")))
}
