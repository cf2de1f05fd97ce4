//! `weir load --calibrate`, and its stored result.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_load::Io;
use weir_load::calibrate::{Calibrating, calibrate};
use weir_model::calibration::{Calibration, FORMAT, WayCalibration};
use weir_model::quantity::parse_time;
use weir_report::load::calibration;

use crate::args::{self, LoadArgs, LoadFormat};
use crate::commands::{deliver, flag};
use crate::failure::Failure;
use crate::{signals, terminal};

/// Default length of each run, and number of runs of each kind.
const LENGTH: Duration = Duration::from_secs(1);
const ROUNDS: u32 = 5;

/// Measures the generator itself and stores the result.
pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let allowed = weir_probe::allowed_cpus()
        .map_err(|error| Failure::failed(format!("cannot read the CPUs allowed: {error}")))?;
    let how = Calibrating {
        generator: allowed.cpus().first().copied(),
        server: allowed.cpus().last().copied(),
        length: match &args.duration {
            Some(text) => flag("-d", parse_time(text))?,
            None => LENGTH,
        },
        rounds: ROUNDS,
        stop: signals::stop_flag()?,
    };
    let mut ways = Vec::new();
    for io in [Io::Uring, Io::Epoll] {
        if !args.progress.is_quiet() {
            terminal::tell(&format!("measuring the generator on {}\n", io.name()));
        }
        let measured = calibrate(io, &how);
        if how.stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted(
                "--calibrate: interrupted before all was measured, so nothing of it is remembered",
            ));
        }
        match measured {
            Ok(way) => ways.push(way),
            // What does not work here needs no calibration.
            Err(error) if io == Io::Uring => terminal::tell(&format!("io_uring: {error}\n")),
            Err(error) => return Err(Failure::failed(error)),
        }
    }
    let calibrated = Calibration {
        format: FORMAT.to_owned(),
        weir_version: args::version().to_owned(),
        machine: machine(),
        made_at: jiff::Timestamp::now().to_string(),
        ways,
    };
    let json = serde_json::to_string_pretty(&calibrated)
        .map_err(|error| Failure::failed(format!("cannot write the calibration: {error}")))?;
    let text = match args.format {
        LoadFormat::Json => format!("{json}\n"),
        _ => calibration(&calibrated, allowed.cpus().len() > 1),
    };
    deliver(&text, args.output.as_deref())?;
    if let Err(failure) = remember(&json) {
        terminal::tell_painted(&format!("{}\n", failure.rendered(terminal::color_on_stderr())));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the stored calibration for this kernel interface, machine and version.
pub(crate) fn recall(io: &str) -> Option<WayCalibration> {
    let text = fs::read_to_string(path()?).ok()?;
    let stored: Calibration = serde_json::from_str(&text).ok()?;
    let same = stored.format == FORMAT
        && stored.weir_version == args::version()
        && stored.machine == machine();
    same.then(|| stored.way(io).cloned())?
}

/// Returns the requests per second that a thread of the generator can send, by the faster kernel interface.
pub(crate) fn carries() -> Option<f64> {
    [Io::Uring, Io::Epoll]
        .into_iter()
        .filter_map(|io| Some(recall(io.name())?.capacity))
        .max_by(f64::total_cmp)
}

fn remember(json: &str) -> Result<(), Failure> {
    let file = path().ok_or_else(|| {
        Failure::failed(
            "nowhere to remember the calibration: neither XDG_CACHE_HOME nor HOME is set",
        )
    })?;
    let written = file.parent().map_or(Ok(()), fs::create_dir_all);
    written.and_then(|()| fs::write(&file, json)).map_err(|error| {
        Failure::failed(format!("cannot remember it in {}: {error}", file.display()))
    })
}

/// Path of the stored calibration: $XDG_CACHE_HOME/weir/calibration.json, or the same under ~/.cache (XDG Base
/// Directory Specification).
fn path() -> Option<PathBuf> {
    let set =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("weir/calibration.json"))
}

/// Describes the machine for which a calibration is valid: CPU model, number of CPUs and kernel.
fn machine() -> String {
    let here = weir_probe::environment();
    format!("{}, CPUs {}, {}", here.cpu_model, here.cpus, here.kernel)
}
