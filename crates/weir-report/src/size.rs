//! The machines that a workload needs.

use weir_analysis::findings::{Need, NeedUnknown, SizeFindings, SizedResource};
use weir_model::record::Validity;
use weir_sentences::size::{
    describe_size, describe_size_basis, explain_need_unknown, sized_resource_name,
};
use weir_sentences::with_unit;

use crate::number;
use crate::render;
use crate::tree::{
    Block, Callout, Cell, Code, Column, Document, Heading, Kind, Row, Style, Table, clause,
};

/// Formats the findings for a terminal of `width` columns, with colours if `color` says so.
pub fn terminal(found: &SizeFindings, color: bool, width: usize) -> String {
    render::terminal(&document(found), color, width)
}

/// Formats the findings as Markdown.
pub fn markdown(found: &SizeFindings) -> String {
    render::markdown(&document(found))
}

/// Formats the findings as one self-contained HTML page.
pub fn html(found: &SizeFindings) -> String {
    render::html(&document(found))
}

/// Returns what a Deployment's manifest says about size: replicas, requests and limits. `None` if the number of machines,
/// or the CPU time of each, is not known. Memory has no limit: what was measured is its typical use, and a container
/// that exceeds its limit is killed.
pub fn kubernetes(found: &SizeFindings) -> Option<String> {
    let nodes = found.nodes.as_ref()?;
    let (cpu_time, _) = SizeFindings::amount(&nodes.needs, SizedResource::CpuTime)?;
    let memory = SizeFindings::amount(&nodes.needs, SizedResource::Memory)
        .map_or(String::new(), |(_, (_, high))| format!(", memory: {}", mebi(high)));
    Some(format!(
        "# {}\nspec:\n  replicas: {}\n  template:\n    spec:\n      containers:\n        - name: {}\n          \
         resources:\n            requests: {{cpu: {}m{memory}}}\n            limits: {{cpu: \"{}\"}}\n",
        describe_size(found),
        nodes.count,
        container_name(&found.arm),
        (1000.0 * cpu_time).ceil().max(1.0),
        found.basis.cpus,
    ))
}

/// Returns the arm's name as the name of a container may be: lower-case letters, digits and dashes.
fn container_name(arm: &str) -> String {
    let name: String = arm
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(63)
        .collect();
    match name.trim_matches('-') {
        "" => "proxy".to_owned(),
        name => name.to_owned(),
    }
}

fn mebi(bytes: f64) -> String {
    format!("{}Mi", (bytes / f64::from(1 << 20)).ceil().max(1.0))
}

fn document(found: &SizeFindings) -> Document {
    let is_known = found.nodes.is_some();
    let mut blocks = vec![Block::Callout(Callout {
        label: "Answer",
        badge: if is_known { found.validity } else { found.validity.max(Validity::Suspect) },
        paragraphs: vec![describe_size(found)],
        basis: describe_size_basis(found),
    })];
    blocks.push(Block::Heading(Heading::section("needs", "What it takes")));
    let why_not_one = shared_reason(&found.one);
    let table = needs(found, why_not_one.is_none());
    if !table.columns.is_empty() {
        blocks.push(Block::Table(table));
    }
    if let Some(why) = why_not_one {
        let reason = explain_need_unknown(why);
        blocks
            .push(clause(Style::Plain, format!("one machine for all of it: not known, {reason}")));
    }
    if let Some(text) = kubernetes(found) {
        blocks.push(Block::Heading(Heading::section("kubernetes", "In Kubernetes")));
        blocks.push(Block::Code(Code { language: "yaml", text }));
    }
    Document {
        title: format!("Size of {}", found.arm),
        source: String::new(),
        footer: format!("runs: {}", found.runs.join(", ")),
        blocks,
    }
}

/// Returns the reason why no need is known, if all have the same.
fn shared_reason(needs: &[Need]) -> Option<NeedUnknown> {
    let first = needs.first()?.why_unknown?;
    needs.iter().all(|need| need.why_unknown == Some(first)).then_some(first)
}

/// Returns the table of resources: of each machine, and, if any is known, of one that takes everything.
fn needs(found: &SizeFindings, has_one: bool) -> Table {
    let shared = found.nodes.as_ref().filter(|nodes| nodes.count > 1);
    let rows = found.one.iter().enumerate().map(|(index, one)| {
        let of_each = shared.and_then(|nodes| nodes.needs.get(index)).map(format_need);
        let of_one = has_one.then(|| format_need(one));
        let cells: Vec<Cell> = of_each.into_iter().chain(of_one).map(Cell::from).collect();
        Row::new(sized_resource_name(one.resource, &found.basis), cells)
    });
    let mut columns = Vec::new();
    if let Some(nodes) = shared {
        columns.push(Column::left(format!("each of {}", number::count(u64::from(nodes.count)))));
    }
    if has_one {
        columns.push(Column::left("one machine for all of it"));
    }
    Table::new(Kind::Prose, "Needs by resource", "resource").columns(columns).rows(rows)
}

/// Formats an amount with its interval, or the reason why it is not known.
fn format_need(need: &Need) -> String {
    let unit = match need.resource {
        SizedResource::CpuTime | SizedResource::Cpus => "",
        SizedResource::Memory => "bytes",
        SizedResource::Network => "bytes/s",
        SizedResource::Sockets => "",
    };
    match (need.amount, need.why_unknown) {
        (Some((value, (low, high))), _) => {
            let [value, low, high] = [value, low, high].map(|amount| with_unit(amount, unit));
            format!("{value} ({low} to {high})")
        }
        (None, Some(why)) => format!("not known: {}", explain_need_unknown(why)),
        (None, None) => "not known".to_owned(),
    }
}
