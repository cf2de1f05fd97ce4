//! Setup of the run: machine, programs, CPU roles, effective settings.

use std::collections::BTreeMap;

use weir_model::quantity::format_duration;
use weir_model::record::{GeneratorStart, NetworkUsed, ProxyRecord, Record, RunHeader};
use weir_model::study::{Arm, Study, Until};

use super::{about, compare, surroundings};
use crate::input::ReportInput;
use crate::number;
use crate::secrets::masked_study;
use crate::tree::{
    Block, Cell, Code, Column, Heading, Kind, Role, Row, Style, Table, Text, fact, fold, list, text,
};

const READ_BACK: &str = "As read back from each proxy, not as asked for.";

/// Names with their values.
type Facts = Vec<(String, Vec<Text>)>;

/// Returns the environment, the effective settings, and the command that repeats the run.
pub(super) fn sections(input: &ReportInput<'_>) -> Vec<Block> {
    let mut blocks = environment(input.header, input.records);
    blocks.extend(settings(&input.header.study, input.records));
    blocks.extend(repeat(input));
    blocks
}

pub(super) fn environment(header: &RunHeader, records: &[Record]) -> Vec<Block> {
    let heading = Heading::section("environment", "Environment");
    let mut blocks = vec![Block::Heading(heading)];
    if !header.remarks.is_empty() {
        let remarks = header.remarks.iter();
        blocks.push(part_heading("Remarks"));
        blocks.extend(list(remarks.map(|remark| remark.to_string().into()), false));
    }
    blocks.extend([part_heading("Machine"), Block::Facts(machine(header))]);
    let mut roles = cpus(header);
    roles.extend(start_spread(records));
    blocks.extend([part_heading("CPUs by role"), Block::Facts(roles)]);
    blocks.extend(surroundings::blocks(header));
    let programs = list_programs(header, records);
    if !programs.is_empty() {
        blocks.extend([part_heading("Programs"), Block::Facts(programs)]);
    }
    let sysctls =
        header.environment.sysctls.iter().map(|(name, value)| setting(name, value.trim()));
    let summary = "Kernel settings that matter for a proxy's load".to_owned();
    blocks.extend(folded(summary, sysctls.collect()));
    blocks
}

fn part_heading(text: &str) -> Block {
    Block::Heading(Heading::part(text))
}

/// Returns facts that are hidden at first. `None` if there are none.
fn folded(summary: String, facts: Facts) -> Option<Block> {
    (!facts.is_empty()).then(|| fold(summary, vec![Block::Facts(facts)]))
}

fn machine(header: &RunHeader) -> Facts {
    let e = &header.environment;
    let virtualization = match e.virtualization.as_str() {
        "" => "none seen",
        name => name,
    };
    let descriptors = format!("{} soft, {} hard", limit(e.nofile.0), limit(e.nofile.1));
    let facts = [
        ("kernel", e.kernel.clone()),
        ("distribution", e.distribution.clone()),
        ("CPU", e.cpu_model.clone()),
        ("CPUs", e.cpus.clone()),
        ("memory", number::bytes(e.memory_bytes)),
        ("virtualization", virtualization.to_owned()),
        ("open descriptors", descriptors),
        ("privileges", e.privileges.clone()),
        ("network", network(header.network)),
    ];
    facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| fact(name, value))
        .collect()
}

fn cpus(header: &RunHeader) -> Facts {
    let places = &header.places;
    let generators = match &places.more_generators[..] {
        [] => places.generator.clone(),
        more => {
            let all = places.generator.iter().chain(more).cloned();
            Some(format!("each of {}", all.collect::<Vec<_>>().join(", ")))
        }
    };
    [
        ("proxy", &header.cpus.proxy, &places.proxy),
        ("generator", &header.cpus.generator, &generators),
        ("origin", &header.cpus.origin, &places.origin),
    ]
    .map(|(role, cpus, host)| match host {
        _ if places.are_here() => fact(role, cpus.to_string()),
        Some(host) => fact(role, format!("{cpus} on {host}")),
        None => fact(role, format!("{cpus} on the host that weir ran on")),
    })
    .into()
}

/// Returns the largest spread of the start times of several generators in one trial.
fn start_spread(records: &[Record]) -> Option<(String, Vec<Text>)> {
    let (spread, unsure) = records
        .iter()
        .filter_map(|record| match record {
            Record::Part(part) => GeneratorStart::spread_ns(&part.starts),
            _ => None,
        })
        .max()?;
    let [spread, unsure] = [spread, unsure].map(|ns| number::time(ns as f64));
    let words = format!("{spread} at most, by clocks that are known to {unsure}");
    Some(fact("generators started apart", words))
}

/// Returns programs with their versions as the host has them, and those programs of the arms that are not among them.
fn list_programs(header: &RunHeader, records: &[Record]) -> Facts {
    let mut programs: Vec<(&str, &str)> =
        header.environment.versions.iter().map(|(k, v)| (k.as_str(), v.trim())).collect();
    let last = about::last_records(records);
    for arm in &header.study.arms {
        let program = last.get(arm.name.as_str()).map_or("", |own| &own.program);
        let is_known = programs.iter().any(|(_, known)| *known == program);
        if !program.is_empty() && !is_known {
            let kind = header.study.proxy_of(arm).kind;
            programs.push((kind.name(), program));
        }
    }
    programs.into_iter().map(|(name, version)| fact(name, version)).collect()
}

/// Describes the network between generator, proxies and origin server.
fn network(used: NetworkUsed) -> String {
    match used {
        NetworkUsed::Loopback => "the loopback interface".to_owned(),
        NetworkUsed::Namespaces { mtu } => format!(
            "a network namespace for each arm, the generator and the origin server, linked by veth, \
             MTU {mtu}"
        ),
        NetworkUsed::Hosts => "that of the hosts".to_owned(),
    }
}

/// Formats a limit. RLIM_INFINITY is the largest number there is (getrlimit(2)).
fn limit(value: u64) -> String {
    match value {
        u64::MAX => "unlimited".to_owned(),
        value => number::count(value),
    }
}

/// Lists the effective settings of the proxies: differences from the baseline, and all settings of the baseline.
pub(super) fn settings(study: &Study, records: &[Record]) -> Vec<Block> {
    let last = about::last_records(records);
    let first = study.arms.first();
    let baseline = first
        .and_then(|arm| last.get(arm.name.as_str()))
        .map(|proxy| effective(proxy))
        .unwrap_or_default();
    let mut rows = Vec::new();
    let mut other_proxies = Vec::new();
    for arm in study.arms.iter().skip(1) {
        let proxy = last.get(arm.name.as_str()).copied();
        rows.extend(differences(study, arm, proxy, &baseline));
        let settings = proxy
            .filter(|_| study.proxy_of(arm).kind != study.proxy.kind)
            .map(effective)
            .into_iter()
            .flatten()
            .filter(|(id, _)| !baseline.contains_key(id))
            .map(|(id, level)| setting(&id, &level))
            .collect();
        let name = &arm.name;
        let summary = format!("All settings of {name}, which is another proxy than the baseline");
        other_proxies.extend(folded(summary, settings));
    }
    // Of servers that weir did not start none was read.
    if !study.arms.iter().any(|arm| study.proxy_of(arm).kind.is_started()) {
        return Vec::new();
    }
    let mut blocks = vec![
        Block::Heading(Heading::section("settings", "Effective settings")),
        text(Style::Soft, READ_BACK),
    ];
    if !rows.is_empty() {
        let columns = ["setting", "baseline", "this arm"].map(Column::left);
        let table = Table::new(Kind::Plain, "Settings that differ from the baseline", "arm");
        blocks.push(Block::Table(table.columns(columns).rows(rows)));
    }
    blocks.extend(other_proxies);
    let all = baseline.iter().map(|(id, level)| setting(id, level)).collect();
    blocks.extend(folded("All settings of the baseline".to_owned(), all));
    blocks
}

fn setting(id: &str, level: &str) -> (String, Vec<Text>) {
    fact(id, Text::of(Role::Code, level))
}

/// Returns the settings as read back, and the descriptor limit of the process.
fn effective(proxy: &ProxyRecord) -> BTreeMap<String, String> {
    let mut all = proxy.effective.clone();
    if proxy.nofile > 0 {
        all.insert("nofile (process limit)".to_owned(), limit(proxy.nofile));
    }
    all
}

/// Returns a row for each setting in which an arm differs from the baseline, or a remark if there is none.
fn differences(
    study: &Study,
    arm: &Arm,
    proxy: Option<&ProxyRecord>,
    baseline: &BTreeMap<String, String>,
) -> Vec<Row> {
    let levels = proxy.map(effective).unwrap_or_default();
    let mut ids: Vec<&String> = levels.keys().chain(baseline.keys()).collect();
    ids.sort_unstable();
    ids.dedup();
    // Settings of another kind of proxy have other names: only what both have can differ.
    let is_other_kind = study.proxy_of(arm).kind != study.proxy.kind;
    let is_comparable =
        |id: &&String| !is_other_kind || (levels.contains_key(*id) && baseline.contains_key(*id));
    let differing = ids.into_iter().filter(|_| proxy.is_some()).filter(is_comparable);
    let rows = differing
        .map(|id| (id, baseline.get(id), levels.get(id)))
        .filter(|(_, before, now)| {
            before.map(|level| placed(level)) != now.map(|level| placed(level))
        })
        .map(|(id, before, now)| {
            let [before, now] =
                [before, now].map(|level| Cell::from(level.map_or("not set", String::as_str)));
            Row::new(&*arm.name, [Text::of(Role::Code, id).into(), before, now])
        });
    let mut rows: Vec<Row> = rows.collect();
    let spec = study.proxy_of(arm);
    let is_seen = spec.is_started() || spec.controller.is_some();
    let note = match (proxy, rows.is_empty(), arm.changes.is_empty()) {
        _ if !is_seen => "weir did not start it and cannot read its settings".to_owned(),
        (Some(_), true, _) if is_other_kind => String::new(),
        (None, ..) => "no record: its proxy was never started".to_owned(),
        (Some(_), true, true) => "the same as the baseline".to_owned(),
        (Some(_), true, false) => format!(
            "reads back the same as the baseline, although the study asks for {}",
            compare::changes(study, Some(arm), arm.role)
        ),
        _ => String::new(),
    };
    if !note.is_empty() {
        rows.push(Row::new(&*arm.name, [Cell::from(note)]));
    }
    rows
}

/// Replaces the folder of the arm, below weir's work folder (`weir-<pid>-<random>`), by `*`, so that the folders of
/// arms are not reported as differences.
fn placed(value: &str) -> String {
    let mut is_below: i32 = 0;
    value
        .split('/')
        .map(|part| {
            is_below = if is_work_folder(part) { 2 } else { is_below - 1 };
            if is_below > 0 { "*" } else { part }
        })
        .collect::<Vec<_>>()
        .join("/")
}

fn is_work_folder(name: &str) -> bool {
    let pair = name.strip_prefix("weir-").and_then(|suffix| suffix.split_once('-'));
    pair.is_some_and(|(pid, random)| {
        pid.bytes().all(|byte| byte.is_ascii_digit())
            && random.len() == 16
            && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Returns the command that repeats a run, with the options that changed the measurement.
fn command(header: &RunHeader) -> String {
    let mut command = "weir run study.yaml".to_owned();
    if let Some(share) = &header.time {
        command += &format!(" --time {}", about::quoted(share));
    }
    if header.study.until == Until::Decided {
        command += " --until decided";
    }
    if let Some(budget) = header.study.budget {
        command += &format!(" --budget {}", format_duration(budget));
    }
    if let Some(factor) = header.study.scale {
        command += &format!(" --scale {factor}x");
    }
    if header.check_alone {
        command += " --check-alone";
    }
    command
}

fn code_block(language: &'static str, text: &str) -> Block {
    Block::Code(Code { language, text: text.to_owned() })
}

pub(super) fn repeat(input: &ReportInput<'_>) -> Vec<Block> {
    let header = input.header;
    let mut blocks = vec![Block::Heading(Heading::section("repeat", "How to repeat it"))];
    let study_text = &masked_study(&header.study, input.study_text);
    let command_line = made_by_weir(study_text);
    match command_line {
        Some(typed) if typed.starts_with("weir ") => blocks.push(code_block("", typed)),
        Some(_) => blocks.push(text(
            Style::Soft,
            "weir made this study by itself, for the run that its folder is in: repeat that one.",
        )),
        None => {
            let save = Text::from("Save the study below as ").and(Role::Code, "study.yaml");
            let then = if study_text == input.study_text {
                ", then:"
            } else {
                ", fill in the secrets that are masked in it, then:"
            };
            blocks.push(text(Style::Soft, save.plain(then)));
            blocks.push(code_block("", &command(header)));
        }
    }
    blocks.push(Block::Facts(vec![
        fact("weir", header.weir_version.as_str()),
        fact("seed", header.study.blocks.seed.to_string()),
        fact("record format", header.format.as_str()),
        fact("run folder", header.run.as_str()),
    ]));
    if command_line.is_none() {
        blocks.push(Block::Heading(Heading::part("The study")));
        blocks.push(code_block("yaml", study_text));
    }
    blocks
}

/// Returns the comment that stands in place of a study if weir made the study itself. It is a single line.
fn made_by_weir(study_text: &str) -> Option<&str> {
    let line = study_text.trim_end().strip_prefix("# ")?;
    (!line.contains('\n')).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_said_in_words() {
        assert_eq!(limit(u64::MAX), "unlimited");
        assert_eq!(limit(1_048_576), "1,048,576");
    }

    fn in_work_folder(path: &str) -> String {
        format!("/tmp/weir-42-0123456789abcdef/{path}")
    }

    #[test]
    fn the_folder_of_an_arm_is_no_difference() {
        let rows = [
            (in_work_folder("stock/logs/a.log"), in_work_folder("fast/logs/a.log"), true),
            (in_work_folder("stock/a.log main"), in_work_folder("fast/b.log main"), false),
            (in_work_folder("stock"), in_work_folder("fast"), true),
            ("/var/log/a".to_owned(), "/var/log/b".to_owned(), false),
            ("/a/weir-x/stock/l".to_owned(), "/a/weir-x/fast/l".to_owned(), false),
            ("on".to_owned(), "off".to_owned(), false),
        ];
        for (one, other, is_same) in rows {
            assert_eq!(placed(&one) == placed(&other), is_same, "{one}, {other}");
        }
    }
}
