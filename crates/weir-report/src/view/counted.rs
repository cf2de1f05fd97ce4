//! What the proxies counted of themselves while a load lasted.

use weir_analysis::findings::{ArmFindings, LoadFindings};
use weir_analysis::is_telling;
use weir_model::study::{ProxyKind, Study};

use super::number;

/// More telling counters of one arm than this are counted rather than listed.
const LISTED: usize = 5;

/// The proxies' own counters under one load.
#[derive(Debug, Clone)]
pub struct CountedView {
    /// What tells of requests or connections that were turned away, given up or tried again, one
    /// sentence for each arm that has any.
    pub telling: Vec<String>,
    /// A table for each kind of proxy: names are its own.
    pub tables: Vec<CountedTable>,
}

/// The counters of all arms of one kind of proxy.
#[derive(Debug, Clone)]
pub struct CountedTable {
    /// The proxy: `HAProxy`.
    pub title: &'static str,
    /// Its arms, one column each.
    pub arms: Vec<String>,
    /// Counters that moved, by name; telling ones first.
    pub rows: Vec<CountedRow>,
}

/// One counter.
#[derive(Debug, Clone)]
pub struct CountedRow {
    /// As the proxy calls it.
    pub name: String,
    /// Whether it is among [`CountedView::telling`].
    pub telling: bool,
    /// By arm.
    pub counts: Vec<String>,
}

impl CountedView {
    /// `None` where no proxy told anything.
    pub(super) fn new(study: &Study, load: &LoadFindings) -> Option<CountedView> {
        let tables: Vec<CountedTable> = study
            .proxy_kinds()
            .into_iter()
            .filter_map(|kind| table(study, load, kind))
            .collect();
        (!tables.is_empty()).then(|| CountedView {
            telling: load.arms.iter().filter_map(telling).collect(),
            tables,
        })
    }
}

fn table(study: &Study, load: &LoadFindings, kind: ProxyKind) -> Option<CountedTable> {
    let is_of_kind = |arm: &&ArmFindings| {
        let planned = study.arms.iter().find(|planned| planned.name == arm.arm);
        planned.is_some_and(|planned| study.proxy_of(planned).kind == kind)
    };
    let arms: Vec<&ArmFindings> = load.arms.iter().filter(is_of_kind).collect();
    let mut names: Vec<&String> = arms.iter().flat_map(|arm| arm.counters.keys()).collect();
    names.sort_by_key(|name| (!is_telling(name), *name));
    names.dedup();
    let rows = names.into_iter().map(|name| CountedRow {
        name: name.clone(),
        telling: is_telling(name),
        counts: arms
            .iter()
            .map(|arm| number::count(arm.counters.get(name).copied().unwrap_or(0)))
            .collect(),
    });
    let rows: Vec<CountedRow> = rows.collect();
    (!rows.is_empty()).then(|| CountedTable {
        title: kind.title(),
        arms: arms.iter().map(|arm| arm.arm.clone()).collect(),
        rows,
    })
}

/// `envoy itself counted upstream_rq_pending_overflow 1,204, beside 57,120 requests that it answered`.
fn telling(arm: &ArmFindings) -> Option<String> {
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
