//! Where and with what the run was made: machine, programs, CPU roles, effective settings.

use std::collections::BTreeMap;

use weir_model::quantity::CpuSet;
use weir_model::record::{NetworkUsed, ProxyRecord, Record, RunHeader};
use weir_model::study::{Arm, Study};

use super::{about, compare, number};

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value.
    pub value: String,
}

fn fact(name: &str, value: impl Into<String>) -> Fact {
    Fact {
        name: name.to_owned(),
        value: value.into(),
    }
}

/// The machine and what ran on it.
#[derive(Debug, Clone)]
pub struct SetupView {
    /// The machine.
    pub machine: Vec<Fact>,
    /// Programs and their versions.
    pub programs: Vec<Fact>,
    /// CPUs by role.
    pub cpus: Vec<Fact>,
    /// Sysctls that matter for a proxy's load.
    pub sysctls: Vec<Fact>,
    /// What could not be as the study asks.
    pub remarks: Vec<String>,
}

impl SetupView {
    pub(super) fn new(header: &RunHeader, records: &[Record]) -> SetupView {
        let e = &header.environment;
        let facts = |map: &BTreeMap<String, String>| -> Vec<Fact> {
            map.iter().map(|(k, v)| fact(k, v.trim())).collect()
        };
        let places = &header.places;
        let cpus = |role: &str, cpus: &CpuSet, place: &Option<String>| match place {
            _ if places.are_here() => fact(role, cpus.to_string()),
            Some(host) => fact(role, format!("{cpus} on {host}")),
            None => fact(role, format!("{cpus} on the host that weir ran on")),
        };
        let machine = vec![
            fact("kernel", e.kernel.as_str()),
            fact("distribution", e.distribution.as_str()),
            fact("CPU", e.cpu_model.as_str()),
            fact("CPUs", e.cpus.as_str()),
            fact("memory", number::bytes(e.memory_bytes)),
            fact(
                "virtualization",
                match e.virtualization.as_str() {
                    "" => "none seen",
                    name => name,
                },
            ),
            fact(
                "open descriptors",
                format!("{} soft, {} hard", limit(e.nofile.0), limit(e.nofile.1)),
            ),
            fact("privileges", e.privileges.as_str()),
            fact("network", network(header.network)),
        ];
        SetupView {
            machine: machine
                .into_iter()
                .filter(|fact| !fact.value.is_empty())
                .collect(),
            programs: programs(header, records),
            cpus: vec![
                cpus("proxy", &header.cpus.proxy, &places.proxy),
                cpus("generator", &header.cpus.generator, &places.generator),
                cpus("origin", &header.cpus.origin, &places.origin),
            ],
            sysctls: facts(&e.sysctls),
            remarks: header.remarks.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Programs with their versions as the host has them, and those of the arms that are not among them.
fn programs(header: &RunHeader, records: &[Record]) -> Vec<Fact> {
    let versions = header.environment.versions.iter();
    let mut programs: Vec<Fact> = versions.map(|(k, v)| fact(k, v.trim())).collect();
    let last = about::last_records(records);
    for arm in &header.study.arms {
        let program = last.get(arm.name.as_str()).map_or("", |own| &own.program);
        let is_known = programs.iter().any(|known| known.value == program);
        if !program.is_empty() && !is_known {
            let kind = header.study.proxy_of(arm).kind;
            programs.push(fact(kind.name(), program));
        }
    }
    programs
}

/// What connected generator, proxies and origin server.
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

/// RLIM_INFINITY is the largest number there is (getrlimit(2)).
fn limit(value: u64) -> String {
    match value {
        u64::MAX => "unlimited".to_owned(),
        value => number::count(value),
    }
}

/// `2026-11-21T06:17:45.123Z` as `2026-11-21 06:17 UTC`; anything else as it is.
pub(super) fn instant(rfc3339: &str) -> String {
    let parts = rfc3339
        .strip_suffix('Z')
        .and_then(|utc| utc.split_once('T'))
        .filter(|(date, _)| date.len() == 10 && date.is_ascii())
        .and_then(|(date, time)| Some((date, time.get(..5)?)));
    match parts {
        Some((date, time)) => format!("{date} {time} UTC"),
        None => rfc3339.to_owned(),
    }
}

/// What the proxies were really running with.
#[derive(Debug, Clone)]
pub struct SettingsView {
    /// The baseline's settings, complete.
    pub baseline: Vec<Fact>,
    /// The other arms: what differs.
    pub arms: Vec<ArmSettings>,
}

/// What an arm's proxy has different from the baseline's.
#[derive(Debug, Clone)]
pub struct ArmSettings {
    /// The arm.
    pub arm: String,
    /// Where it listened.
    pub address: String,
    /// Settings that differ, as read back.
    pub rows: Vec<SettingRow>,
    /// Of a proxy of another kind than the baseline's: its own settings, which the baseline has not.
    pub own: Vec<Fact>,
    /// What the reader must know: no record of it, nothing differs although something was asked.
    pub note: String,
}

/// One setting that differs from the baseline's.
#[derive(Debug, Clone)]
pub struct SettingRow {
    /// Parameter.
    pub id: String,
    /// The baseline's value.
    pub baseline: String,
    /// The arm's value.
    pub value: String,
}

impl SettingsView {
    pub(super) fn new(study: &Study, records: &[Record]) -> SettingsView {
        let last = about::last_records(records);
        let baseline = study
            .arms
            .first()
            .and_then(|arm| last.get(arm.name.as_str()))
            .map(|proxy| effective(proxy))
            .unwrap_or_default();
        let others = study.arms.iter().skip(1);
        SettingsView {
            arms: others
                .map(|arm| arm_settings(study, arm, last.get(arm.name.as_str()), &baseline))
                .collect(),
            baseline: baseline.iter().map(|(k, v)| fact(k, v.as_str())).collect(),
        }
    }
}

/// Settings as read back, and the limit of the process beside them.
fn effective(proxy: &ProxyRecord) -> BTreeMap<String, String> {
    let mut all = proxy.effective.clone();
    if proxy.nofile > 0 {
        all.insert("nofile (process limit)".to_owned(), limit(proxy.nofile));
    }
    all
}

fn arm_settings(
    study: &Study,
    arm: &Arm,
    proxy: Option<&&ProxyRecord>,
    baseline: &BTreeMap<String, String>,
) -> ArmSettings {
    let own = proxy.map(|proxy| effective(proxy)).unwrap_or_default();
    let mut ids: Vec<&String> = own.keys().chain(baseline.keys()).collect();
    ids.sort_unstable();
    ids.dedup();
    let value = |map: &BTreeMap<String, String>, id: &String| {
        map.get(id)
            .map_or_else(|| "not set".to_owned(), Clone::clone)
    };
    // Settings of another kind of proxy have other names: only what both have can differ.
    let is_other_kind = study.proxy_of(arm).kind != study.proxy.kind;
    let is_comparable =
        |id: &&String| !is_other_kind || (own.contains_key(*id) && baseline.contains_key(*id));
    let of_own = own.iter().filter(|(id, _)| !baseline.contains_key(*id));
    let of_own = of_own.filter(|_| is_other_kind);
    let rows: Vec<SettingRow> = match proxy {
        None => Vec::new(),
        Some(_) => ids
            .into_iter()
            .filter(is_comparable)
            .filter(|id| own.get(*id) != baseline.get(*id))
            .map(|id| SettingRow {
                id: id.clone(),
                baseline: value(baseline, id),
                value: value(&own, id),
            })
            .collect(),
    };
    let is_started = study.proxy_of(arm).kind.is_started();
    let note = match (proxy, rows.is_empty(), arm.changes.is_empty()) {
        _ if !is_started => "weir did not start it and reads nothing of it back".to_owned(),
        (Some(_), true, _) if is_other_kind => String::new(),
        (None, ..) => "no record: its proxy was never started".to_owned(),
        (Some(_), true, true) => "the same as the baseline".to_owned(),
        (Some(_), true, false) => format!(
            "reads back the same as the baseline, although the study asks for {}",
            compare::changes(study, Some(arm), arm.role)
        ),
        _ => String::new(),
    };
    ArmSettings {
        arm: arm.name.clone(),
        address: proxy.map_or(String::new(), |proxy| proxy.address.clone()),
        own: of_own.map(|(id, level)| fact(id, level.as_str())).collect(),
        rows,
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_shortened_only_when_it_is_understood() {
        assert_eq!(instant("2026-11-21T06:17:45Z"), "2026-11-21 06:17 UTC");
        assert_eq!(
            instant("2026-11-21T06:17:45+01:00"),
            "2026-11-21T06:17:45+01:00"
        );
        assert_eq!(instant("yesterday"), "yesterday");
        assert_eq!(instant("Té€Z"), "Té€Z");
    }

    #[test]
    fn no_limit_is_said_in_words() {
        assert_eq!(limit(u64::MAX), "unlimited");
        assert_eq!(limit(1_048_576), "1,048,576");
    }
}
