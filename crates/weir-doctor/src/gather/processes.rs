//! The proxy's processes, found in /proc.

use std::fs;
use std::path::{Path, PathBuf};

use super::source::Source;
use super::{GatherError, trust};
use crate::facts::{Facts, Process, Proxy, Reading};

/// Titles of nginx's master, of its workers, and of workers that have been replaced and are about to exit.
const MASTER: &str = "nginx: master process";
const WORKER: &str = "nginx: worker process";
const LEAVING: &str = "is shutting down";

pub(super) fn read(
    source: &mut Source,
    asked: Option<u32>,
    facts: &mut Facts,
) -> Result<(), GatherError> {
    let Some(master) = master(source, asked)? else {
        source.unread(
            "a running nginx",
            "no master process in /proc: limits and listeners are those of the configuration",
        );
        return Ok(());
    };
    let mut workers: Vec<Process> = children(source, master)
        .into_iter()
        .filter(|&pid| {
            let title = command_line(source, pid);
            title.starts_with(WORKER) && !title.contains(LEAVING)
        })
        .map(|pid| Process { pid, nofile: None })
        .collect();
    // Without a master process (`master_process off`) the one that was named does the work.
    if workers.is_empty() {
        workers.push(Process { pid: master, nofile: None });
    }
    for worker in &mut workers {
        worker.nofile = nofile(source, worker.pid);
    }
    // Not a worker's: `worker_cpu_affinity` gives each of them a part.
    facts.cpus_allowed = allowed_cpus(source, master);
    let unit = find_unit(source, master);
    source.looked(Reading::Processes { master, workers: workers.len() });
    let (prefix, file) = started_with(source, master);
    facts.proxy = Some(Proxy {
        master,
        workers,
        unit,
        program: None,
        prefix,
        file: Some(file),
        own_root: has_own_root(source, master),
        own_network: false,
    });
    Ok(())
}

/// Path of nginx's configuration in distribution packages.
pub(super) const USUAL: &str = "/etc/nginx/nginx.conf";

/// Returns the folder (`-p`) and the configuration file (`-c`, relative to that folder) that nginx was started with.
fn started_with(source: &Source, master: u32) -> (Option<String>, String) {
    let title = command_line(source, master);
    let words: Vec<&str> = title.split_ascii_whitespace().collect();
    let prefix = find_option(&words, "-p");
    let folder = Path::new(prefix.unwrap_or("/etc/nginx"));
    let file = find_option(&words, "-c").map(|file| folder.join(file).display().to_string());
    (prefix.map(str::to_owned), file.unwrap_or_else(|| USUAL.to_owned()))
}

fn find_option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| word.starts_with(name))?;
    if words[at].len() > name.len() {
        Some(&words[at][name.len()..])
    } else {
        words.get(at + 1).copied()
    }
}

/// Returns true if a process has a root folder other than this process's, as in a container.
fn has_own_root(source: &Source, pid: u32) -> bool {
    source.is_real()
        && ["ns/mnt", "root"].iter().any(|name| {
            let theirs = read_process_link(&pid.to_string(), name);
            theirs.is_some() && theirs != read_process_link("self", name)
        })
}

fn read_process_link(pid: &str, name: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/{name}")).ok()
}

fn master(source: &mut Source, asked: Option<u32>) -> Result<Option<u32>, GatherError> {
    if let Some(pid) = asked {
        let name = source.text(&format!("/proc/{pid}/comm"));
        return match name.as_deref().map(str::trim) {
            Some("nginx") if !trust::has_process(source, pid) => {
                Err(GatherError::AnothersProcess {
                    pid,
                    user: trust::user_ids(source, pid).first().copied().unwrap_or_default(),
                })
            }
            Some("nginx") => Ok(Some(pid)),
            Some(other) => Err(GatherError::NotNginx { pid, why: format!("it is `{other}`") }),
            None => Err(GatherError::NotNginx { pid, why: "there is no such process".to_owned() }),
        };
    }
    // What another user's process says of itself is not even read: it can keep whoever asks waiting.
    let (own, foreign): (Vec<u32>, Vec<u32>) =
        process_ids(source).into_iter().partition(|&pid| trust::has_process(source, pid));
    let foreign_masters: Vec<u32> =
        foreign.into_iter().filter(|&pid| is_others_master(source, pid)).collect();
    for pid in foreign_masters {
        source.unread(
            format!("process {pid}, which is called nginx"),
            "it is neither root's nor yours: its user may run weir for it",
        );
    }
    let masters: Vec<u32> =
        own.into_iter().filter(|pid| command_line(source, *pid).starts_with(MASTER)).collect();
    match masters[..] {
        [_, _, ..] => Err(GatherError::Several {
            masters: masters.iter().map(|&pid| described(source, pid)).collect(),
        }),
        _ => Ok(masters.first().copied()),
    }
}

/// Returns true if a process is called nginx and its parent is not.
fn is_others_master(source: &Source, pid: u32) -> bool {
    let status = source.peek(&format!("/proc/{pid}/status"));
    let parent = status.and_then(|status| field(&status, "PPid:"));
    is_nginx(source, &pid.to_string()) && !parent.is_some_and(|parent| is_nginx(source, &parent))
}

fn is_nginx(source: &Source, pid: &str) -> bool {
    let name = source.peek(&format!("/proc/{pid}/comm"));
    name.is_some_and(|name| name.trim() == "nginx")
}

/// Describes a master process in one line, for a user who has to choose one.
fn described(source: &mut Source, pid: u32) -> String {
    let (_, file) = started_with(source, pid);
    let unit = find_unit(source, pid).map(|unit| format!(", {unit}"));
    let container = has_own_root(source, pid).then_some(", in a container");
    let (unit, container) = (unit.unwrap_or_default(), container.unwrap_or_default());
    format!("--pid {pid}: {file}{unit}{container}")
}

fn process_ids(source: &Source) -> Vec<u32> {
    let entries = std::fs::read_dir(source.path("/proc"));
    let mut ids: Vec<u32> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    ids
}

/// Returns the command line, words separated by blanks; empty if the process is gone.
pub(super) fn command_line(source: &Source, pid: u32) -> String {
    let text = source
        .peek(&format!("/proc/{pid}/cmdline"))
        .unwrap_or_default()
        .replace(char::is_control, " ");
    text.trim().to_owned()
}

fn children(source: &Source, parent: u32) -> Vec<u32> {
    process_ids(source)
        .into_iter()
        .filter(|pid| {
            let status = source.peek(&format!("/proc/{pid}/status"));
            status.and_then(|text| field(&text, "PPid:").and_then(|id| id.parse().ok()))
                == Some(parent)
        })
        .collect()
}

/// Returns the rest of the first line that begins with `name`.
fn field(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().to_owned())
}

/// Returns the soft and hard limit of descriptors (`Max open files` of proc_pid_limits(5)).
fn nofile(source: &mut Source, pid: u32) -> Option<(u64, u64)> {
    let text = source.text(&format!("/proc/{pid}/limits"))?;
    let limits = field(&text, "Max open files")?;
    let mut words = limits.split_ascii_whitespace();
    Some((parse_limit(words.next()?)?, parse_limit(words.next()?)?))
}

fn parse_limit(word: &str) -> Option<u64> {
    match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn allowed_cpus(source: &mut Source, pid: u32) -> Option<u64> {
    let text = source.text(&format!("/proc/{pid}/status"))?;
    super::host::count_cpus(&field(&text, "Cpus_allowed_list:")?)
}

/// Returns the systemd unit of a process; `None` if it does not run as a service of the system.
fn find_unit(source: &mut Source, pid: u32) -> Option<String> {
    let text = source.text(&format!("/proc/{pid}/cgroup"))?;
    text.lines().find_map(service).map(str::to_owned)
}

/// Returns the service of a control group: the innermost unit of its path. Returns `None` in a scope, such as those of
/// sessions and containers, and below a user's own manager (`user@1000.service`).
fn service(path: &str) -> Option<&str> {
    let mut units =
        path.rsplit('/').filter(|part| part.ends_with(".service") || part.ends_with(".scope"));
    let innermost = units.next()?;
    let is_users = path.split('/').any(|part| part.starts_with("user@"));
    (innermost.ends_with(".service") && !is_users).then_some(innermost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_known_by_its_control_group() {
        const NGINX: Option<&str> = Some("nginx.service");
        for (path, expected) in [
            ("0::/system.slice/nginx.service", NGINX),
            ("1:name=systemd:/system.slice/nginx.service/workers", NGINX),
            ("0::/user.slice/user-0.slice/session-3.scope", None),
            ("0::/user.slice/user@1000.service/app.slice/own.service", None),
        ] {
            assert_eq!(service(path), expected, "{path}");
        }
    }
}
