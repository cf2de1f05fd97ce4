//! `weir origin`: runs an origin server without a study.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_model::quantity::{CpuSet, parse_bytes, parse_duration};
use weir_model::study::DelaySpec;
use weir_origin::{Content, Origin, OriginConfig, Stall};

use crate::args::OriginArgs;
use crate::commands::flag;
use crate::failure::Failure;
use crate::{name_lookup, signals, terminal};

/// Time between checks for the end.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: OriginArgs) -> Result<ExitCode, Failure> {
    let config = read_config(&args)?;
    let duration =
        args.duration.as_deref().map(|text| flag("-d", parse_duration(text))).transpose()?;
    let stop = signals::stop_flag()?;
    let origin = Origin::start(config).map_err(cannot_serve)?;
    for address in origin.addresses() {
        terminal::tell(&format!("serving on http://{address}/\n"));
    }
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed)
        && duration.is_none_or(|duration| begun.elapsed() < duration)
    {
        std::thread::sleep(LOOK);
    }
    for (index, address) in origin.addresses().iter().enumerate() {
        let counters = origin.counters(index);
        terminal::print(&format!(
            "{address}: {} requests on {} connections\n",
            counters.requests, counters.connections
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cannot_serve(error: io::Error) -> Failure {
    let hint = (error.kind() == io::ErrorKind::AddrInUse)
        .then_some("another program listens there; choose another address with --listen");
    Failure::input(format!("cannot serve: {error}")).maybe_hint(hint)
}

fn read_config(args: &OriginArgs) -> Result<OriginConfig, Failure> {
    let listen = args.listen.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
    let mut config = OriginConfig::new(listen);
    config.content = match &args.file {
        Some(path) => Content::file(path)
            .map_err(|error| Failure::input(format!("--file {}: {error}", path.display())))?,
        None => Content::text(flag("--size", parse_bytes(&args.size))?),
    };
    if !(200..600).contains(&args.status) {
        return Err(Failure::input(format!(
            "--status {}: a final status is 200 to 599",
            args.status
        )));
    }
    config.status = args.status;
    config.content_type.clone_from(&args.content_type);
    config.delay = delay(&args.delay)?;
    config.concurrency = args.concurrency;
    if config.concurrency.is_some() && config.delay == DelaySpec::None {
        let failure = Failure::input("--concurrency: without a delay no request waits");
        return Err(failure.hint("add --delay 2ms: 500 requests/s, one after the other"));
    }
    config.stalls = args.stall.iter().map(|text| stall(text)).collect::<Result<_, _>>()?;
    if let Some(text) = &args.cpus {
        let set: CpuSet = flag("--cpus", text.parse())?;
        config.cpus = set.cpus().to_vec();
    }
    Ok(config)
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let addresses = name_lookup::addresses(text).map_err(|error| {
        Failure::input(format!("--listen {text}: {error}"))
            .hint("an address looks like 127.0.0.1:8000 or [::1]:8000")
    })?;
    addresses
        .into_iter()
        .next()
        .ok_or_else(|| Failure::input(format!("--listen {text}: the name has no address")))
}

fn delay(text: &str) -> Result<DelaySpec, Failure> {
    let time = |text: &str| flag("--delay", parse_duration(text));
    if text == "none" {
        return Ok(DelaySpec::None);
    }
    if let Some(mean) = text.strip_prefix("exp:") {
        return Ok(DelaySpec::Exponential(time(mean)?));
    }
    match text.split_once("..") {
        None => Ok(DelaySpec::Fixed(time(text)?)),
        Some((least, most)) => {
            let (least, most) = (time(least)?, time(most)?);
            if most < least {
                return Err(Failure::input(format!(
                    "--delay {text}: the second time must be the longer one"
                )));
            }
            Ok(DelaySpec::Uniform(least, most))
        }
    }
}

fn stall(text: &str) -> Result<Stall, Failure> {
    let (length, at) = text.split_once('@').ok_or_else(|| {
        Failure::input(format!("--stall `{text}` is not LENGTH@TIME"))
            .hint("1s@5s freezes for 1 s, 5 s after the first request")
    })?;
    let at = flag("--stall", parse_duration(at))?;
    Ok(Stall { at, length: flag("--stall", parse_duration(length))? })
}
