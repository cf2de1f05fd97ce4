//! Descriptions of arms that differ by more than settings: another proxy, a server that weir did not start, a user's
//! own configuration, a launcher, a transport.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir_model::record::{Protection, ProxyRecord, Record, RunHeader};
use weir_model::study::{Arm, ArmRole, LauncherSpec, ProxyKind, Settings, Study};
use weir_parameters::{Catalog, Hop};

use crate::tree::{
    Block, Cell, Column, Heading, Kind, Outputs, Role, Row, Style, Table, Text, clause, list,
};

/// Maximum number of settings that are listed in narrow outputs. The rest is only counted.
const LISTED: usize = 6;

/// Describes each arm. Returns nothing if arms differ only in settings of the study's one proxy.
pub(super) fn blocks(header: &RunHeader, records: &[Record]) -> Vec<Block> {
    let study = &header.study;
    if study.arms.iter().all(|arm| is_plain(study, arm)) {
        return Vec::new();
    }
    let last = last_records(records);
    if let [arm] = &study.arms[..]
        && study.proxy_of(arm).kind == ProxyKind::External
    {
        let heading = Block::Heading(Heading::section("arms", "The server"));
        let heading = Block::Only(Outputs::FILES, vec![heading]);
        return vec![heading, clause(Style::Soft, external(study, arm))];
    }
    let arms = study.arms.iter();
    let mut arms: Vec<(&str, Vec<String>)> = arms
        .map(|arm| {
            let record = last.get(arm.name.as_str()).copied();
            let all = std::iter::once(proxy(study, arm, record)).chain(clauses(header, arm));
            (arm.name.as_str(), all.collect())
        })
        .collect();
    // What is true of all arms is said once.
    let shared = match &arms[..] {
        [(_, first), others @ ..] if !others.is_empty() => first
            .iter()
            .filter(|clause| others.iter().all(|(_, clauses)| clauses.contains(clause)))
            .cloned()
            .collect(),
        _ => Vec::new(),
    };
    for (_, clauses) in &mut arms {
        clauses.retain(|clause| !shared.contains(clause));
    }
    let all = (!shared.is_empty()).then(|| ("all arms", shared.clone()));
    let items = all
        .iter()
        .chain(&arms)
        .filter(|(_, clauses)| !clauses.is_empty())
        .map(|(arm, clauses)| Text::of(Role::Soft, format!("{arm}: {}", clauses.join("; "))));
    let in_terminal = Block::Only(Outputs::TERMINAL, list(items, false).into_iter().collect());
    let rows =
        arms.iter().map(|(arm, clauses)| Row::new(*arm, [Cell::lines(clauses.iter().cloned())]));
    let table = Table::new(Kind::Prose, "What each arm is", "arm")
        .columns([Column::left("what it is")])
        .rows(rows);
    let mut files = vec![Block::Heading(Heading::section("arms", "The arms"))];
    files.extend(
        all.map(|(name, shared)| clause(Style::Plain, format!("{name}: {}", shared.join("; ")))),
    );
    files.push(Block::Table(table));
    vec![in_terminal, Block::Only(Outputs::FILES, files)]
}

/// Returns true if an arm is the study's proxy with other settings only.
fn is_plain(study: &Study, arm: &Arm) -> bool {
    let proxy = study.proxy_of(arm);
    arm.proxy.is_none()
        && proxy.configuration.is_none()
        && proxy.is_started()
        && launcher(arm).is_none()
        && transport(arm).is_none()
}

/// Returns the last record of each arm's proxy. A resumed run starts its proxies again.
pub(super) fn last_records(records: &[Record]) -> BTreeMap<&str, &ProxyRecord> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Proxy(proxy) => Some((proxy.arm.as_str(), proxy)),
            _ => None,
        })
        .collect()
}

/// Describes the proxy of an arm: `HAProxy (haproxy/2.6.12), /opt/haproxy/sbin/haproxy`.
fn proxy(study: &Study, arm: &Arm, record: Option<&ProxyRecord>) -> String {
    let spec = study.proxy_of(arm);
    if !spec.is_started() {
        return external(study, arm);
    }
    let program = record.map_or("", |record| record.program.as_str());
    let mut text = spec.kind.title().to_owned();
    if !program.is_empty() {
        text += &format!(" ({program})");
    }
    if let Some(path) = &spec.executable {
        text += &format!(", {}", path.display());
    }
    text
}

fn external(study: &Study, arm: &Arm) -> String {
    let spec = study.proxy_of(arm);
    match (&spec.external, &spec.controller) {
        (Some(external), Some(controller)) => {
            let objects: Vec<&str> =
                controller.first.objects.values().map(String::as_str).collect();
            format!(
                "{} at {external}, configured by {} of namespace {} ({}); what an arm changes in these objects was put back",
                spec.kind.title(),
                controller.is,
                controller.first.namespace,
                objects.join(", ")
            )
        }
        (Some(external), None) => format!("a server at {external} that weir did not start"),
        (None, _) => "a server that weir did not start".to_owned(),
    }
}

fn clauses(header: &RunHeader, arm: &Arm) -> Vec<String> {
    let study = &header.study;
    let spec = study.proxy_of(arm);
    let mut clauses = Vec::new();
    if let Some(configuration) = &spec.configuration {
        let port = configuration
            .port
            .map_or_else(String::new, |port| format!(", its listener on port {port}"));
        let file = configuration.file.display();
        clauses.push(format!("the user's own configuration {file}{port}"));
        clauses.extend(header.copies.map(|copies| protection(copies).to_owned()));
    }
    clauses.extend(settings(study, arm));
    clauses.extend(launcher(arm).map(|name| {
        let written = study.launchers.get(name).map_or_else(String::new, command);
        match written.as_str() {
            "" => format!("launcher {name}"),
            written => format!("launcher {name}: started as `{written} {}`", spec.kind.name()),
        }
    }));
    clauses.extend(
        transport(arm).map(|(level, hops)| format!("transport {level}: {}", carries(&hops))),
    );
    clauses
}

/// Describes the isolation of a copy from the user's servers and files.
fn protection(copies: Protection) -> &'static str {
    match copies {
        Protection::Checked => {
            "every address, socket and written file in its copy was checked to be the run's own; no network \
             namespace separated it from other hosts"
        }
        Protection::CheckedWithoutRoute => {
            "every address, socket and written file in its copy was checked to be the run's own, and it ran in \
             a network namespace without a route to other hosts"
        }
    }
}

/// Describes the settings of an arm: all of them if the arm has its own proxy, else its changes.
fn settings(study: &Study, arm: &Arm) -> Option<String> {
    let spec = study.proxy_of(arm);
    if !spec.is_started() && spec.controller.is_none() {
        return None;
    }
    if arm.role == ArmRole::SameAsBaseline {
        return Some("the baseline once more".to_owned());
    }
    let is_own = arm.proxy.is_some() || arm.role == ArmRole::Baseline;
    let shown = if is_own {
        pairs(&own_settings(&arm.settings), usize::MAX)
    } else {
        pairs(&own_settings(&arm.changes), usize::MAX)
    };
    let is_configured = spec.configuration.is_some();
    if shown.is_empty() && is_own && spec.controller.is_some() {
        return Some("the controller as it was".to_owned());
    }
    match (shown.is_empty(), is_own, is_configured) {
        (true, true, true) => Some("nothing changed in it".to_owned()),
        (true, true, false) => Some("no settings but the program's defaults".to_owned()),
        (true, false, _) => None,
        (false, true, true) => Some(format!("changed in it: {shown}")),
        (false, true, false) => Some(format!("settings: {shown}")),
        (false, false, _) => Some(format!("changes: {shown}")),
    }
}

/// Returns the launcher of an arm's proxy, if it has one.
fn launcher(arm: &Arm) -> Option<&str> {
    Catalog::builtin().started_through(&arm.settings)
}

/// Returns the transport of an arm and the hops that it bypasses. `None` if it is the kernel's TCP alone.
fn transport(arm: &Arm) -> Option<(&str, BTreeSet<Hop>)> {
    let catalog = Catalog::builtin();
    let level = arm.settings.get(&catalog.transport()?.id)?;
    let hops = catalog.bypassed(&arm.settings);
    (!hops.is_empty()).then_some((level, hops))
}

/// Describes the transport of the bytes on these hops.
fn carries(hops: &BTreeSet<Hop>) -> String {
    let peers = match (hops.contains(&Hop::Inbound), hops.contains(&Hop::Outbound)) {
        (true, true) => "its clients and its origin server",
        (true, false) => "its clients, not its origin server,",
        (false, _) => "its origin server, not its clients,",
    };
    format!(
        "between the proxy and {peers} an eBPF program passes bytes from socket to socket, without the \
         kernel's TCP/IP; both ends must be on one host"
    )
}

/// Returns true if a parameter selects the launcher of a proxy.
pub(super) fn is_launcher(id: &str) -> bool {
    Catalog::builtin().launcher().is_some_and(|row| row.id == id)
}

/// Formats a launcher as one would type it in a shell: `EF_POLL_USEC=100000 onload --profile=latency`.
pub(super) fn command(launcher: &LauncherSpec) -> String {
    let preload: Vec<String> = launcher.preload.iter().map(|path| shown(path)).collect();
    let preload = (!preload.is_empty()).then(|| format!("LD_PRELOAD={}", preload.join(":")));
    let variables = launcher.env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let command = launcher.prefix.iter().map(|word| quoted(word));
    let all: Vec<String> = variables.chain(preload).chain(command).collect();
    all.join(" ")
}

fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Formats a word for a shell, in quotes only if necessary.
pub(super) fn quoted(word: &str) -> String {
    if !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c))
    {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns the settings without launcher and transport.
fn own_settings(settings: &Settings) -> Settings {
    let mut remaining = settings.clone();
    let catalog = Catalog::builtin();
    // They are said by themselves.
    for row in [catalog.launcher(), catalog.transport()].into_iter().flatten() {
        remaining.remove(&row.id);
    }
    remaining
}

/// Formats settings by the proxy's own ids: `nbthread: 2, maxconn: 4000`.
fn pairs(settings: &Settings, most: usize) -> String {
    let mut pairs: Vec<String> =
        settings.iter().take(most).map(|(id, level)| format!("{id}: {level}")).collect();
    if settings.len() > most {
        pairs.push(format!("and {} more", settings.len() - most));
    }
    pairs.join(", ")
}

/// Describes an arm with its own proxy in a few words: `HAProxy; nbthread: 2`. `None` for other arms.
pub(super) fn other_proxy(study: &Study, arm: &Arm) -> Option<String> {
    let spec = arm.proxy.as_deref()?;
    if spec.kind == ProxyKind::External {
        return Some(external(study, arm));
    }
    let mut text = spec.kind.title().to_owned();
    if let Some(path) = &spec.executable {
        text += &format!(", {}", path.display());
    }
    if let Some(own) = &spec.configuration {
        text += &format!(" with {}", own.file.display());
    }
    let mut settings = vec![pairs(&own_settings(&arm.settings), LISTED)];
    settings.extend(launcher(arm).map(|name| launcher_words(study, name)));
    settings.extend(transport(arm).map(|(level, _)| format!("transport: {level}")));
    settings.retain(|part| !part.is_empty());
    if !settings.is_empty() {
        text += &format!("; {}", settings.join(", "));
    }
    Some(text)
}

/// Formats the name and the command of a launcher: `launcher: onload (onload --profile=latency)`.
pub(super) fn launcher_words(study: &Study, name: &str) -> String {
    let written = study.launchers.get(name).map(command);
    match written.filter(|written| !written.is_empty()) {
        Some(written) => format!("launcher: {name} ({written})"),
        None => format!("launcher: {name}"),
    }
}

/// Describes the baseline if necessary: its proxy if the study has several, a user's own configuration. Otherwise
/// `nothing`.
pub(super) fn baseline(study: &Study) -> String {
    let proxy = &study.proxy;
    match &proxy.configuration {
        Some(own) => format!("{} with {}", proxy.kind.title(), own.file.display()),
        None if !proxy.is_started() => {
            study.arms.first().map_or_else(String::new, |arm| external(study, arm))
        }
        None if study.proxy_kinds().len() > 1 => proxy.kind.title().to_owned(),
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_written_as_it_would_be_typed() {
        let launcher = LauncherSpec {
            prefix: vec!["onload".to_owned(), "--profile=latency".to_owned()],
            env: [("EF_POLL_USEC", "100000"), ("NOTE", "it's")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            preload: vec!["/usr/lib/a.so".into(), "/usr/lib/b.so".into()],
        };
        assert_eq!(
            command(&launcher),
            "EF_POLL_USEC=100000 NOTE='it'\\''s' LD_PRELOAD=/usr/lib/a.so:/usr/lib/b.so onload \
             --profile=latency"
        );
        assert_eq!(command(&LauncherSpec::default()), "");
    }
}
