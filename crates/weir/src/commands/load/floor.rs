//! `weir load --floor`: the least that a request can cost here, for benchmarks.

use std::process::ExitCode;
use std::time::Duration;

use weir_model::load_report::{Counts, Rates, TimeReport};

use super::job::Job;
use crate::args::LoadArgs;
use crate::commands::deliver;
use crate::failure::Failure;
use crate::signals;

/// Runs the floor of a load on its first CPU, and prints the counts in the format of a result.
pub(crate) fn run(job: &Job, args: &LoadArgs) -> Result<ExitCode, Failure> {
    let stop = signals::stop_flag()?;
    let end = job.plan.slices.last().map_or(0, |slice| slice.end);
    let duration = Duration::from_nanos(end);
    let floor = weir_load::trial::floor(&job.plan, duration, &stop).map_err(Failure::failed)?;
    let rate = floor.requests as f64 / (floor.ns.max(1) as f64 / 1e9);
    let document = serde_json::json!({
        "rates": Rates { intended: None, offered: rate, completed: rate, received_bytes: 0.0 },
        "counts": Counts {
            offered: floor.requests,
            completed: floor.requests,
            completed_whole: floor.requests,
            connected: floor.connections.into(),
            ..Counts::default()
        },
        "errors": [],
        "validity": [],
        "dispatch_lag": TimeReport::default(),
        "generator_cpu_ns": [floor.cpu_ns],
    });
    deliver(&format!("{document:#}\n"), args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
