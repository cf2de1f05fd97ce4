//! Clusters in which some weir has left objects changed.

use std::path::Path;

use weir_host::journal::ledger;

use super::{Line, collect_open};

/// Returns the options of `weir restore` for the clusters in which this process would leave objects changed if it ended
/// now: `--on kubernetes:CONTEXT/NAMESPACE`.
pub fn left_by_this_process(folder: &Path) -> Vec<String> {
    left_by(folder, |pid| pid == std::process::id())
}

/// Returns the same options for processes that no longer run.
pub fn left_by_the_dead(folder: &Path) -> Vec<String> {
    left_by(folder, |pid| !Path::new(&format!("/proc/{pid}")).exists())
}

fn left_by(folder: &Path, is_meant: impl Fn(u32) -> bool) -> Vec<String> {
    let on = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|folder| {
        let lines: Vec<Line> = ledger::peek(&folder.path()).ok()?;
        let target = match lines.first()? {
            Line::Head { pid, on, .. } if is_meant(*pid) => Some(on.clone()),
            _ => None,
        };
        target.filter(|_| !collect_open(lines).is_empty())
    });
    on.map(|on| format!("--on {on}")).collect()
}
