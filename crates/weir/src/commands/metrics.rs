//! `weir metrics`: the figures of a past run for Prometheus, with their own time stamps.

use std::process::ExitCode;

use weir_metrics::{Version, backfill, remote};
use weir_report::secrets::{masked, visible};

use crate::args::MetricsArgs;
use crate::commands::{can_be_written, deliver, report};
use crate::failure::Failure;
use crate::terminal;

pub(crate) fn run(args: &MetricsArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    let run = report::read(&args.run)?;
    let folder = args.run.canonicalize().unwrap_or_else(|_| args.run.clone());
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let moments = backfill::moments(&run, &name).ok_or_else(|| {
        Failure::failed(format!("{}: run.json does not say when the run began", args.run.display()))
    })?;
    let Some(url) = &args.remote_write.url else {
        deliver(&masked(&backfill::text(&moments)), args.output.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    };
    let version = if args.remote_write.version == 1 { Version::V1 } else { Version::V2 };
    let delivery = remote::deliver(url.clone(), version, moments)
        .map_err(|error| Failure::failed(format!("--remote-write: {error}")))?;
    let all = delivery.delivered + delivery.lost();
    if delivery.lost() > 0 {
        let error = visible(&delivery.last_error);
        let message = format!(
            "--remote-write {url}: {} of {all} samples were not delivered: {error}",
            delivery.lost()
        );
        return Err(Failure::failed(masked(&message).into_owned()).hint(
            "Prometheus takes old samples if it is new, or has storage.tsdb.out_of_order_time_window; \
             else: weir metrics RUN | promtool tsdb create-blocks-from openmetrics",
        ));
    }
    terminal::tell(&format!("weir: {all} samples were delivered to {url}\n"));
    Ok(ExitCode::SUCCESS)
}
