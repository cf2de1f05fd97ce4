//! The proxy's processes, found in /proc.

use super::GatherError;
use super::source::Source;
use crate::facts::{Facts, Process, Proxy};
use crate::rules::counted;

/// How nginx titles its master process.
const MASTER: &str = "nginx: master process";

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
        .filter(|&pid| command_line(source, pid).starts_with("nginx: worker process"))
        .map(|pid| Process { pid, nofile: None })
        .collect();
    // Without a master process (`master_process off`) the one that was named does the work.
    if workers.is_empty() {
        workers.push(Process {
            pid: master,
            nofile: None,
        });
    }
    for worker in &mut workers {
        worker.nofile = nofile(source, worker.pid);
    }
    facts.cpus_allowed = allowed_cpus(source, workers[0].pid);
    let unit = unit(source, master);
    source.looked(format!(
        "nginx: master process {master}, {}",
        counted(workers.len() as u64, "worker")
    ));
    facts.proxy = Some(Proxy {
        master,
        workers,
        unit,
    });
    Ok(())
}

fn master(source: &mut Source, asked: Option<u32>) -> Result<Option<u32>, GatherError> {
    if let Some(pid) = asked {
        let name = source.text(&format!("/proc/{pid}/comm"));
        return match name.as_deref().map(str::trim) {
            Some("nginx") => Ok(Some(pid)),
            Some(other) => Err(GatherError::NotNginx {
                pid,
                why: format!("it is `{other}`"),
            }),
            None => Err(GatherError::NotNginx {
                pid,
                why: "there is no such process".to_owned(),
            }),
        };
    }
    let masters: Vec<u32> = process_ids(source)
        .into_iter()
        .filter(|&pid| command_line(source, pid).starts_with(MASTER))
        .collect();
    if let [first, _, ..] = masters[..] {
        let all: Vec<String> = masters.iter().map(u32::to_string).collect();
        source.unread(
            "other nginx processes",
            format!(
                "masters are {}; looked at {first}: choose with --pid",
                all.join(", ")
            ),
        );
    }
    Ok(masters.first().copied())
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

/// The command line, words apart by blanks. Processes come and go: what is gone has none.
pub(super) fn command_line(source: &Source, pid: u32) -> String {
    let bytes = std::fs::read(source.path(&format!("/proc/{pid}/cmdline"))).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .replace('\0', " ")
        .trim()
        .to_owned()
}

fn children(source: &Source, parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let status = std::fs::read_to_string(source.path(&format!("/proc/{pid}/status")));
        let of = |text: String| field(&text, "PPid:").and_then(|id| id.parse().ok());
        status.ok().and_then(of) == Some(parent)
    };
    process_ids(source).into_iter().filter(is_child).collect()
}

/// The rest of the line that begins so.
fn field(text: &str, name: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim().to_owned())
}

/// Soft and hard limit of descriptors (`Max open files` of proc_pid_limits(5)).
fn nofile(source: &mut Source, pid: u32) -> Option<(u64, u64)> {
    let text = source.text(&format!("/proc/{pid}/limits"))?;
    let limits = field(&text, "Max open files")?;
    let number = |word: &str| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    let mut words = limits.split_ascii_whitespace();
    Some((number(words.next()?)?, number(words.next()?)?))
}

fn allowed_cpus(source: &mut Source, pid: u32) -> Option<u64> {
    let text = source.text(&format!("/proc/{pid}/status"))?;
    super::host::count_cpus(&field(&text, "Cpus_allowed_list:")?)
}

/// The systemd unit of a process: the last `.service` in the path of its control group.
fn unit(source: &mut Source, pid: u32) -> Option<String> {
    let text = source.text(&format!("/proc/{pid}/cgroup"))?;
    let parts = text.lines().flat_map(|line| line.rsplit('/'));
    let mut units = parts.filter(|part| part.ends_with(".service"));
    units.next().map(str::to_owned)
}
