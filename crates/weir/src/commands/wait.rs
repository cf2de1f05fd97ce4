//! `weir wait`: the first process of a pod. Agents come and go beside it; it ends when the pod is to end, or when nobody
//! has been there for a while: then whoever made the pod is gone.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::WaitOptions;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::WaitArgs;
use crate::commands::flag;
use crate::failure::Failure;
use weir_model::quantity::parse_duration;

/// How soon a signal is answered.
const TICK: Duration = Duration::from_millis(250);
/// How often is looked who is there.
const LOOK: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(args: &WaitArgs) -> Result<ExitCode, Failure> {
    let idle = args
        .idle
        .as_deref()
        .map(|text| flag("--idle", parse_duration(text)));
    let idle = idle.transpose()?;
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
            if somebody() {
                seen = looked;
            }
        }
        if idle.is_some_and(|idle| seen.elapsed() > idle) {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(TICK);
    }
}

/// Whether there are other processes here.
fn somebody() -> bool {
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        // Whoever cannot look must not end.
        return true;
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut numbers = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    numbers.any(|pid| pid != own)
}
