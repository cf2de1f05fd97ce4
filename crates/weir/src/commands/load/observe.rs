//! `--observe`: finds the limiter of a server that weir did not start, by samples of its host and of this one.

use std::time::Duration;

use weir_analysis::findings::LimiterFindings;
use weir_hosts::PlaceSpec;
use weir_lab::Observation;
use weir_model::load_report::LoadReport;

use super::{Distant, Job};
use crate::args::LoadArgs;
use crate::commands::run;
use crate::failure::Failure;

/// Time between samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Shortest measured time: it certainly holds two samples.
const SHORTEST: Duration = Duration::from_secs(3);
/// Longest load: all samples of it are kept in memory.
const LONGEST: Duration = Duration::from_secs(2 * 3600);

/// Begins to sample, if `--observe` was given.
///
/// # Errors
/// The measured time is too short for samples, or the server's host cannot be reached.
pub(super) fn begin<'d>(
    job: &Job,
    args: &LoadArgs,
    places: PlaceSpec,
    distant: Option<&'d Distant>,
) -> Result<Option<Observation<'d>>, Failure> {
    if !args.observe {
        return Ok(None);
    }
    let last = job.plan.slices.last().map_or(0, |slice| slice.end);
    if Duration::from_nanos(last) < job.plan.ramp_up + SHORTEST {
        let message = "--observe: samples are taken every second, so a load must last at least 3 s";
        return Err(Failure::input(message).hint("give it -d 10s"));
    }
    if Duration::from_nanos(last) > LONGEST {
        let message = "--observe: all samples are kept in memory until the end, so a load may last two hours at most";
        return Err(Failure::input(message).hint(
            "leave a long load running without --observe, and observe a short one beside it",
        ));
    }
    let options = run::options_at(places)?;
    let address = job.flows[0].target.address.clone();
    let address =
        address.parse().map_err(|_| Failure::failed(format!("{address} is not an address")))?;
    let generators = distant.map(Distant::generators);
    let begun = Observation::begin(address, INTERVAL, &options, generators);
    begun.map(Some).map_err(|error| Failure::of_run(error, None))
}

/// Ends it, and says what limits the server. The report notes whose samples have not ended in time.
pub(super) fn end(observed: Observation<'_>, report: &mut LoadReport) -> LimiterFindings {
    let until_ns = weir_agent::monotonic_ns();
    let pods = observed.pods();
    let (samples, late) = observed.end();
    report.notes.extend(late.iter().map(|host| {
        format!(
            "samples of {host} have not ended in time; what limits the server is judged without the last ones"
        )
    }));
    let times = weir_report::load::response_times(report);
    weir_analysis::limiter::find_load_limiter(report, times, (&samples, pods), until_ns)
}
