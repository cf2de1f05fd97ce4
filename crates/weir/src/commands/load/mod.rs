//! `weir load`: one load test against a URL.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use weir_analysis::findings::LimiterFindings;
use weir_conditions::Judged;
use weir_conditions::load::{Conditions, Windows};
use weir_http::ParseError;
use weir_load::{Control, LoadError, Plan, SliceData, Watch};
use weir_model::load::{ErrorKind, Lifetime};
use weir_model::load_report::LoadReport;
use weir_model::quantity::parse_time;
use weir_report::secrets::{masked, visible};

use crate::args::{LoadArgs, LoadFormat, ProgressWord};
use crate::commands::fail_if;
use crate::commands::{can_be_written, deliver, flag};
use crate::failure::{Failure, INTERRUPTED};
use crate::progress::{Consumer, JsonLines, Reporter, Sink};
use crate::{signals, terminal};

mod calibrate;
mod distant;
mod floor;
mod job;
mod observe;
mod result;
mod second_look;
mod source;
mod stretches;

pub(crate) use calibrate::carries;
use distant::{Carried, Distant};
use job::Job;
pub(crate) use job::{Server, describe_requests};
use result::{Collected, End};
use second_look::Remark;
pub(crate) use second_look::about_redirect;
use source::{Load, locked};

pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let places = distant::places(args)?;
    if args.calibrate {
        return calibrate::run(args);
    }
    let conditions = Conditions::read(&args.fail_if).map_err(fail_if::refused)?;
    let is_here = places.sends_from_here();
    let mut job = Job::new(args, is_here)?;
    for note in &job.notes {
        terminal::tell(&format!("weir: {note}\n"));
    }
    if args.floor {
        return floor::run(&job, args);
    }
    if let Some(path) = &args.output {
        can_be_written(path)?;
        keeps_apart(path, args.progress.word())?;
    }
    let distant = if is_here { None } else { Some(Distant::of(&mut job, args, places.clone())?) };
    let observed = observe::begin(&job, args, places, distant.as_ref())?;
    let lines = open_lines(args)?;
    let (mut report, conditions) =
        measure(&job, distant.as_ref(), args, conditions, lines.clone())?;
    let remark = if is_here { second_look::remark(&job, &report) } else { None };
    report.notes.extend(job.notes.iter().cloned());
    report.notes.extend(remark.as_ref().map(Remark::note));
    let judged = conditions.judge(&report);
    let ended = (args, &job, &*judged, remark);
    let limiter = observed.map(|observed| observe::end(observed, &mut report));
    let text = match args.format {
        LoadFormat::Text => {
            let color = args.output.is_none() && terminal::color_on_stdout();
            let width = if args.output.is_none() { terminal::width() } else { 100 };
            weir_report::load::human(&report, limiter.as_ref(), args.latency, color, width)
        }
        LoadFormat::Json => weir_report::load::json(&report, limiter.as_ref()),
        LoadFormat::Csv => weir_report::csv::load(&report),
        LoadFormat::Jsonl => return lines_done(&report, limiter.as_ref(), ended, lines),
        LoadFormat::Wrk2 => {
            let text = weir_report::load::wrk2(&report).map_err(Failure::failed)?;
            masked(&text).into_owned()
        }
        LoadFormat::Hgrm => weir_report::load::hgrm(&report).map_err(Failure::failed)?,
    };
    if let Err(failure) = deliver(&text, args.output.as_deref()) {
        // A full disk must not cost what may have taken an hour to measure.
        let instead = args.output.is_some() && terminal::print(&text).is_ok();
        let hint = instead.then_some("the result is on standard output instead");
        return Err(failure.maybe_hint(hint));
    }
    concluded(&report, ended)
}

/// Returns the device and inode of a file; `None` for a terminal or nowhere, which may be used twice.
fn identify_file(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

/// Refuses the same file for the result and for progress events: each would overwrite the other.
fn keeps_apart(output: &Path, progress: &ProgressWord) -> Result<(), Failure> {
    let ProgressWord::Jsonl(Some(path)) = progress else {
        return Ok(());
    };
    if identify_file(path).is_some_and(|file| Some(file) == identify_file(output)) {
        Err(Failure::input(format!(
            "-o {} and --progress jsonl:{} are the same file",
            output.display(),
            path.display()
        )))
    } else {
        Ok(())
    }
}

/// The values that decide how the command ends.
type Ended<'a> = (&'a LoadArgs, &'a Job, &'a [Judged], Option<Remark>);

fn concluded(
    report: &LoadReport,
    (args, job, judged, remark): Ended<'_>,
) -> Result<ExitCode, Failure> {
    let is_failure = remark.as_ref().is_some_and(|remark| remark.is_failure);
    let failure = remark.map(|remark| remark.failure(&report.results.target.url));
    match (report.outcome.as_str(), report.results.counts.completed_whole, failure) {
        ("interrupted", ..) => return Ok(ExitCode::from(INTERRUPTED)),
        (_, _, Some(failure)) if is_failure => return Err(failure),
        (_, 0, _) if !is_held(&job.plan) => return Err(nothing_answered(report)),
        // A text has it above its figures.
        (_, _, Some(failure)) if args.format != LoadFormat::Text => {
            terminal::tell(&format!("{}\n", failure.rendered(false)));
        }
        _ => {}
    }
    fail_if::keep(args.junit.as_deref(), "weir load", judged)?;
    fail_if::conclude(judged)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the result as the last line of many.
fn lines_done(
    report: &LoadReport,
    limiter: Option<&LimiterFindings>,
    ended: Ended<'_>,
    lines: Option<Sink>,
) -> Result<ExitCode, Failure> {
    let text = weir_report::load::json_line(report, limiter);
    let written = lines.map_or(Ok(()), |mut lines| lines.write_all(visible(&text).as_bytes()));
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let to = ended
            .0
            .output
            .as_ref()
            .map_or("standard output".to_owned(), |path| path.display().to_string());
        let failure = Failure::failed(format!("cannot write {to}: {error}"));
        let is_unread = error.kind() == io::ErrorKind::TimedOut;
        if !is_unread || report.outcome != "interrupted" {
            return Err(failure);
        }
        terminal::tell(&format!("{}\n", failure.rendered(false)));
    }
    concluded(report, ended)
}

/// Returns the failure for a trial without a single response, as one line next to the result.
fn nothing_answered(report: &LoadReport) -> Failure {
    // The most frequent error stands first.
    let words = match report.results.errors.first() {
        Some(error) => error.words.clone(),
        None => "requests were sent, and nothing came back".to_owned(),
    };
    Failure::failed(format!("{}: not one request was answered: {words}", report.results.target.url))
        .maybe_hint(hint(&words))
}

/// Returns a hint for an error caused by TLS, or by missing TLS.
pub(crate) fn hint(words: &str) -> Option<&'static str> {
    if words == ParseError::Tls.to_string() {
        Some("ask over TLS: https://…")
    } else if words.contains("does not speak TLS") {
        Some("ask it in clear: http://…")
    } else if words.contains("not valid for name") {
        Some("ask for a name that it is for with --sni, or accept any certificate with -k")
    } else if words.contains("not signed by") {
        Some("name the file of its authority with --ca, or accept any certificate with -k")
    } else if words.contains("certificate expired") || words.contains("certificate not valid yet") {
        Some("renew it (or set the clock right), or accept any certificate with -k")
    } else if words.contains("certificate_required") {
        Some("the server demands a client certificate: --cert and --key")
    } else if words.contains("bad_certificate") || words.contains("handshake_failure") {
        Some(
            "the server may demand a client certificate (--cert, --key), or another --tls, --ciphers",
        )
    } else {
        None
    }
}

/// Shows the progress of a load. A reader of `lines` that is gone sets `stop`: nobody is left whom a load of a day
/// would tell anything.
fn progress_of(
    args: &LoadArgs,
    lines: Option<Sink>,
    stop: &Arc<AtomicBool>,
) -> Result<Reporter, Failure> {
    let stays = args.every.is_some() && args.format != LoadFormat::Jsonl;
    let consumer = lines.map(|lines| -> Box<dyn Consumer> {
        Box::new(JsonLines::intervals(lines, Arc::clone(stop)))
    });
    Reporter::new(&args.progress, consumer, stays)
}

fn measure(
    job: &Job,
    distant: Option<&Distant>,
    args: &LoadArgs,
    conditions: Conditions,
    lines: Option<Sink>,
) -> Result<(LoadReport, Conditions), Failure> {
    let stop = signals::stop_flag()?;
    let senders = distant.map_or(job.plan.cpus.len(), Distant::count);
    let control = Control::new(senders, Arc::clone(&stop));
    let reporter = progress_of(args, lines, &stop)?;
    // What happens on this host is nothing to those who send from others.
    let watch = distant.is_none().then(|| Mutex::new(Watch::begin(&job.plan)));
    let every = read_interval(args)?;
    // Each interval takes the time of a whole report.
    let intervals = reporter.is_shown().then_some(every);
    let collected = Mutex::new(Collected::new(&job.plan, intervals, reporter.counts_flows()));
    let load = Load {
        job,
        control: &control,
        collected: &collected,
        watch: watch.as_ref(),
        started_at: jiff::Timestamp::now(),
        begun: Instant::now(),
        running: None,
        told: None,
        flows_told: None,
    };
    let started_at = load.started_at;
    let mut windows = Windows::new(conditions, job.plan.ramp_up);
    let outcome = reporter.beside(load, |_| {
        let take = |slice: usize, data: &[SliceData]| {
            let mut collected = locked(&collected);
            if let Some((measured, all, wrong)) = collected.take(slice, data) {
                windows.take(measured, all, wrong);
            }
        };
        let carried = match distant {
            Some(distant) => distant.carry_out(&job.plan, &control, take)?,
            None => {
                let outcome = weir_load::run(&job.plan, &control, None, take);
                let interrupted = stop.load(Ordering::Relaxed);
                Carried::here(outcome.map_err(|error| explain(job, error, interrupted))?)
            }
        };
        locked(&collected).end(carried.outcome.ended_at);
        Ok::<_, Failure>(carried)
    });
    let interrupted = stop.load(Ordering::Relaxed);
    let mut carried = outcome?;
    if let Some(watch) = &watch {
        carried.generator = locked(watch).end(&carried.outcome);
        if is_calibrated_kind(&job.plan) {
            let calibration = calibrate::recall(&carried.generator.io);
            carried.generator.self_capacity = calibration.map(|calibration| calibration.capacity);
        }
    }
    let end = End {
        outcome: &carried.outcome,
        generator: carried.generator,
        generators: carried.generators,
        started_at,
        interrupted,
        times: weir_report::load::time_report,
    };
    let report = locked(&collected).report(job, end);
    Ok((report, windows.end()))
}

/// Returns the length of each interval, seconds.
fn read_interval(args: &LoadArgs) -> Result<usize, Failure> {
    let Some(text) = &args.every else {
        return Ok(1);
    };
    let every = flag("--every", parse_time(text))?;
    if every.subsec_nanos() == 0 && !every.is_zero() {
        Ok(every.as_secs() as usize)
    } else {
        Err(Failure::input(format!(
            "--every {text}: figures are taken second by second, so an interval has whole seconds"
        )))
    }
}

/// Opens the output of the result, after intervals, if they are wanted there.
fn open_lines(args: &LoadArgs) -> Result<Option<Sink>, Failure> {
    if args.format != LoadFormat::Jsonl {
        return Ok(None);
    }
    let Some(path) = &args.output else {
        let stdout = io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Failure::failed(format!("standard output: {error}")))?;
        return Ok(Some(Sink::to(File::from(stdout))));
    };
    let opened = weir_files::open_output(path)
        .and_then(|file| {
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            Ok(file)
        })
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    Ok(Some(Sink::to(opened)))
}

fn explain(job: &Job, error: LoadError, interrupted: bool) -> Failure {
    let target = &job.flows[0].target;
    match error {
        LoadError::NoConnection(_) if interrupted => Failure::interrupted(format!(
            "{}: interrupted before a connection was open",
            target.url
        )),
        LoadError::NoConnection(ref errors) => {
            let failure = Failure::failed(format!("{}: {error}", target.url));
            match errors.first() {
                Some(first) if first.kind == ErrorKind::Tls => {
                    let by_words = hint(&first.words).map(str::to_owned);
                    failure.maybe_hint(by_words.or_else(|| {
                        second_look::without_connection(job).as_ref().map(Remark::note)
                    }))
                }
                _ => failure.hint(format!("is a server listening on {}?", target.address)),
            }
        }
        other => Failure::failed(other),
    }
}

/// Returns true if no flow sends requests, so that no answer is expected.
fn is_held(plan: &Plan) -> bool {
    plan.flows.iter().all(weir_load::Flow::is_held)
}

/// Returns true if a calibration applies to this load: kept connections without TLS, one request in flight on each.
fn is_calibrated_kind(plan: &Plan) -> bool {
    plan.flows
        .iter()
        .all(|flow| flow.lifetime == Lifetime::Kept && flow.pipeline == 1 && flow.tls.is_none())
}
