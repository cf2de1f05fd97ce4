//! Counters of the proxies while a load lasted.

use weir_analysis::findings::{ArmFindings, LoadFindings};
use weir_analysis::is_telling;
use weir_model::study::{ProxyKind, Study};

use crate::number;
use crate::tree::{Block, Cell, Column, Kind, Part, Row, Style, Table, Text, clause, fold};

/// More telling counters of one arm than this are counted rather than listed.
const LISTED: usize = 5;

/// What tells of requests or connections that were turned away, given up or tried again, one sentence for each arm that
/// has any.
pub(super) fn telling(load: &LoadFindings) -> Vec<Block> {
    let told = load.arms.iter().filter_map(sentence);
    // It begins with the name of an arm, which keeps its spelling.
    let text = |sentence| Text::from("").plain(sentence);
    told.map(|sentence: String| clause(Style::Warning, text(sentence)))
        .collect()
}

/// All counters that moved; nothing where no proxy told any.
pub(super) fn tables(study: &Study, load: &LoadFindings) -> Vec<Block> {
    let kinds = study.proxy_kinds().into_iter();
    let tables = kinds.filter_map(|kind| table(study, load, kind));
    let mut blocks: Vec<Block> = tables.map(Block::Table).collect();
    if blocks.is_empty() {
        return Vec::new();
    }
    let note = "sums over all continuous trials of this load, unmeasured slices and loads that share them included, by the \
                proxies' own names; counters that stayed 0 are left out. Requests and connections that were refused, given up or tried again come first";
    blocks.push(clause(Style::Soft, note));
    vec![fold("Counters of the proxies", blocks)]
}

/// The counters of all arms of one kind of proxy: names are its own.
fn table(study: &Study, load: &LoadFindings, kind: ProxyKind) -> Option<Table> {
    let is_of_kind = |arm: &&ArmFindings| {
        let planned = study.arms.iter().find(|planned| planned.name == arm.arm);
        planned.is_some_and(|planned| study.proxy_of(planned).kind == kind)
    };
    let arms: Vec<&ArmFindings> = load.arms.iter().filter(is_of_kind).collect();
    let mut names: Vec<&String> = arms.iter().flat_map(|arm| arm.counters.keys()).collect();
    names.sort_by_key(|name| (!is_telling(name), *name));
    names.dedup();
    let rows = names.into_iter().map(|name| {
        let counts = arms.iter().map(|arm| arm.counters.get(name).copied());
        let cells = counts.map(|count| Cell::from(number::count(count.unwrap_or(0))));
        Row::new(name, cells).part(match is_telling(name) {
            true => Part::Telling,
            false => Part::Plain,
        })
    });
    let table = Table::new(
        Kind::Counts,
        format!("Counters of {}", kind.title()),
        kind.title(),
    )
    .columns(arms.iter().map(|arm| Column::new(&*arm.arm)))
    .rows(rows);
    (!table.rows.is_empty()).then_some(table)
}

/// `envoy itself counted upstream_rq_pending_overflow 1,204, beside 57,120 requests that it answered`.
fn sentence(arm: &ArmFindings) -> Option<String> {
    let found = arm.counters.iter().filter(|(name, _)| is_telling(name));
    let mut found: Vec<(&String, u64)> = found.map(|(name, count)| (name, *count)).collect();
    if found.is_empty() {
        return None;
    }
    found.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let more = found.len().saturating_sub(LISTED);
    let listed = found.iter().take(LISTED);
    let mut listed: Vec<String> = listed
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
    Some(format!(
        "{} itself counted {}{beside}",
        arm.arm,
        listed.join(", ")
    ))
}
