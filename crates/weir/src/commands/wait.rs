//! `weir wait`: the first process of a pod. Agents come and go beside it. It ends when the pod is stopped, or when no
//! other process has been there for a while, because the creator of the pod has gone.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::WaitOptions;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::WaitArgs;
use crate::commands::flag;
use crate::failure::Failure;
use weir_model::quantity::parse_duration;

/// Time between checks for a signal.
const TICK: Duration = Duration::from_millis(250);
/// Time between checks for other processes.
const LOOK: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &WaitArgs) -> Result<ExitCode, Failure> {
    let idle = args.idle.as_deref().map(|text| flag("--idle", parse_duration(text))).transpose()?;
    // The first process of a namespace gets only signals that it asks for.
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    let (mut looked, mut seen) = (Instant::now(), Instant::now());
    loop {
        if signals.pending().next().is_some() {
            return Ok(ExitCode::SUCCESS);
        }
        // It inherits what agents leave behind.
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        if looked.elapsed() > LOOK {
            looked = Instant::now();
            if has_other_processes() {
                seen = looked;
            }
        }
        if idle.is_some_and(|idle| seen.elapsed() > idle) {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(TICK);
    }
}

/// Returns true if there are other processes in the pod, or if that cannot be determined.
fn has_other_processes() -> bool {
    let this_process = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        // Whoever cannot look must not end.
        return true;
    };
    let mut numbers = entries
        .flatten()
        .map(|entry| entry.file_name())
        .filter_map(|name| name.to_str()?.parse::<u32>().ok());
    numbers.any(|pid| pid != this_process)
}
