//! Files in which tuning advice usually ends up: sysctl.d(5), limits.conf(5), and the descriptor limit of the proxy's
//! unit (systemd.exec(5)).

use std::collections::BTreeMap;

use super::host;
use super::processes::USUAL;
use super::source::Source;
use crate::facts::{Facts, FileLine, LimitOrigin, Reading, SysctlLine, UnitLimit};

/// Folders that sysctl.d(5) searches. A file in an earlier folder hides files of the same name in later ones.
const SYSCTL_FOLDERS: &[&str] = &[
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];

/// Folders of system units (systemd.unit(5)), the most important first.
const UNIT_FOLDERS: &[&str] = &[
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

pub(super) fn read(source: &mut Source, facts: &mut Facts) {
    sysctls(source, facts);
    limits(source, facts);
    unit(source, facts);
}

fn sysctls(source: &mut Source, facts: &mut Facts) {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for folder in SYSCTL_FOLDERS {
        for file in source.files(folder, ".conf") {
            let name = file.rsplit('/').next().unwrap_or_default().to_owned();
            files.entry(name).or_insert(file);
        }
    }
    let conf = "/etc/sysctl.conf";
    let linked = files.values().any(|file| leads_to(source, file, conf));
    for file in files.values() {
        // Lines belong to the file that they are written in, not to a link to it.
        let shown = if leads_to(source, file, conf) { conf } else { file };
        lines(source, file, shown, true, facts);
    }
    if !linked && source.exists(conf) {
        lines(source, conf, conf, false, facts);
    }
    source.looked(Reading::SysctlFiles { assignments: facts.sysctl_lines.len() });
    let keys: Vec<String> = facts.sysctl_lines.iter().map(|l| l.key.clone()).collect();
    for key in keys.into_iter().filter(|key| !is_pattern(key)) {
        if !facts.sysctls.contains_key(&key)
            && let Some(value) = host::sysctl(source, &key)
        {
            facts.sysctls.insert(key, value);
        }
    }
}

fn leads_to(source: &Source, file: &str, target: &str) -> bool {
    let link = std::fs::read_link(source.path(file)).ok();
    let name = target.rsplit('/').next().unwrap_or_default();
    link.is_some_and(|link| link.file_name().is_some_and(|found| found == name))
}

/// Returns true if the key is a glob(7), which sets many keys at once.
fn is_pattern(key: &str) -> bool {
    key.contains(['*', '?', '['])
}

fn lines(source: &mut Source, file: &str, shown: &str, applied: bool, facts: &mut Facts) {
    let text = source.text(file).unwrap_or_default();
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if line.starts_with(['#', ';']) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let key = dotted(key.trim().trim_start_matches('-'));
        facts.sysctl_lines.push(SysctlLine {
            file: shown.to_owned(),
            line: number + 1,
            exists: is_pattern(&key) || source.exists(&host::path_of(&key)),
            key,
            value: value.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
            applied,
        });
    }
}

/// Returns a key in dotted form. Keys may be written with slashes; the first separator tells which form is used
/// (sysctl.d(5)).
fn dotted(key: &str) -> String {
    let first = key.find(['.', '/']).map(|at| &key[at..=at]);
    match first {
        Some("/") => key
            .chars()
            .map(|letter| match letter {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
        _ => key.to_owned(),
    }
}

fn limits(source: &mut Source, facts: &mut Facts) {
    let mut files = vec!["/etc/security/limits.conf".to_owned()];
    files.extend(source.files("/etc/security/limits.d", ".conf"));
    for file in files {
        let text = source.text(&file).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = content.split_ascii_whitespace().collect();
            if words.get(2) == Some(&"nofile") {
                facts.limit_lines.push(FileLine {
                    file: file.clone(),
                    line: number + 1,
                    text: words.join(" "),
                });
            }
        }
    }
    source.looked(Reading::LimitsConf);
}

/// Soft limit of descriptors that systemd gives services (DefaultLimitNOFILE= in systemd-system.conf(5)).
const SYSTEMD_SOFT: u64 = 1024;

/// Reads LimitNOFILE= of the proxy's unit. Drop-ins override the unit's own file.
fn unit(source: &mut Source, facts: &mut Facts) {
    let running = facts.proxy.as_ref().map(|proxy| proxy.unit.clone());
    let file = facts.configuration.as_ref().map(|all| &*all.file);
    let is_usual = file.is_none_or(|file| file == USUAL);
    let is_booted = !source.is_real() || source.exists("/run/systemd/system");
    let name = match running {
        // It runs, and not as a service.
        Some(None) => return,
        Some(Some(unit)) => unit,
        // The package's unit runs the package's configuration, where systemd runs (sd_booted(3)).
        None if !is_usual || !is_booted => return,
        None => "nginx.service".to_owned(),
    };
    let mut unit_files = UNIT_FOLDERS.iter().map(|folder| format!("{folder}/{name}"));
    let Some(unit_file) = unit_files.find(|file| source.exists(file)) else {
        return;
    };
    let mut files = vec![unit_file];
    for folder in UNIT_FOLDERS.iter().rev() {
        files.extend(source.files(&format!("{folder}/{name}.d"), ".conf"));
    }
    let (soft, origin) = match soft_limit(source, &files, "LimitNOFILE=") {
        Some((soft, line)) => (soft, LimitOrigin::Unit(line)),
        None => default_limit(source),
    };
    source.looked(Reading::Unit { name: name.clone() });
    facts.unit_limit = Some(UnitLimit { unit: name, soft, origin });
}

/// Returns the soft limit of services that set none themselves (systemd-system.conf(5)), and its origin.
fn default_limit(source: &mut Source) -> (Option<u64>, LimitOrigin) {
    let mut files = vec!["/etc/systemd/system.conf".to_owned()];
    files.extend(source.files("/etc/systemd/system.conf.d", ".conf"));
    match soft_limit(source, &files, "DefaultLimitNOFILE=") {
        Some((soft, line)) => (soft, LimitOrigin::Manager(line)),
        None => (Some(SYSTEMD_SOFT), LimitOrigin::Default),
    }
}

/// Returns the soft limit that the last line with this key sets (`None` if it is not a number), and that line.
fn soft_limit(source: &mut Source, files: &[String], key: &str) -> Option<(Option<u64>, FileLine)> {
    let mut limit = None;
    for file in files {
        let text = source.text(file).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let text = line.trim();
            let Some(value) = text.strip_prefix(key) else {
                continue;
            };
            let soft = match value.split(':').next().unwrap_or_default().trim() {
                "infinity" => Some(u64::MAX),
                number => number.parse().ok(),
            };
            let (file, text) = (file.clone(), text.to_owned());
            limit = Some((soft, FileLine { file, line: number + 1, text }));
        }
    }
    limit
}
