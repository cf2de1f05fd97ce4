//! Which clusters have objects that some weir has left changed.

use std::path::Path;

use weir_host::journal::ledger;

use super::{Line, opened};

/// How `weir restore` is told of the clusters of which this process would leave objects changed if it ended now:
/// `--on kubernetes:CONTEXT/NAMESPACE`.
pub fn left_by_this_process(folder: &Path) -> Vec<String> {
    left_by(folder, |pid| pid == std::process::id())
}

/// The same of processes that live no more.
pub fn left_by_the_dead(folder: &Path) -> Vec<String> {
    left_by(folder, |pid| !Path::new(&format!("/proc/{pid}")).exists())
}

fn left_by(folder: &Path, is_meant: impl Fn(u32) -> bool) -> Vec<String> {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let on = folders.filter_map(|folder| {
        let lines: Vec<Line> = ledger::peek(&folder.path()).ok()?;
        let own = match lines.first()? {
            Line::Head { pid, on, .. } if is_meant(*pid) => Some(on.clone()),
            _ => None,
        };
        own.filter(|_| !opened(lines).is_empty())
    });
    on.map(|on| format!("--on {on}")).collect()
}
