//! `weir load`: one load test against a URL.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use weir_analysis::findings::LimiterFindings;
use weir_http::ParseError;
use weir_load::{Control, LoadError, Plan, SliceData, Watch};
use weir_model::load::{ErrorKind, Lifetime};
use weir_model::load_report::LoadReport;
use weir_model::quantity::parse_duration;
use weir_report::foreign::masked;

use crate::args::{LoadArgs, LoadFormat, ProgressWord};
use crate::commands::fail_if::{self, Judged, load::Conditions, load::Windows};
use crate::commands::{can_be_written, deliver, flag};
use crate::failure::{Failure, INTERRUPTED};
use crate::progress::{Consumer, JsonLines, Reporter};
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
pub(crate) use job::Server;
use result::{Collected, End};
use second_look::Remark;
pub(crate) use second_look::about_redirect;
use source::{Load, locked};

/// Runs the command.
pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let places = distant::places(args)?;
    if args.calibrate {
        return calibrate::run(args);
    }
    let conditions = Conditions::read(&args.fail_if)?;
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
    let distant = match is_here {
        true => None,
        false => Some(Distant::of(&mut job, args, places.clone())?),
    };
    let observed = observe::begin(&job, args, (places, distant.as_ref()))?;
    let (mut report, conditions) = measure((&job, distant.as_ref()), args, conditions)?;
    let remark = if is_here {
        second_look::remark(&job, &report)
    } else {
        None
    };
    report.notes.extend(job.notes.iter().cloned());
    report.notes.extend(remark.as_ref().map(Remark::note));
    let judged = conditions.judge(&report);
    let ended = (args, &job, &*judged, remark);
    let limiter = observed.map(|observed| observe::end(observed, &report));
    let text = match args.format {
        LoadFormat::Text => {
            let color = args.output.is_none() && terminal::color_on_stdout();
            let width = if args.output.is_none() {
                terminal::width()
            } else {
                100
            };
            weir_report::load::human(&report, limiter.as_ref(), args.latency, color, width)
        }
        LoadFormat::Json => weir_report::load::json(&report, limiter.as_ref()),
        LoadFormat::Csv => weir_report::csv::load(&report),
        LoadFormat::Jsonl => return lines_done(&report, limiter.as_ref(), ended),
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

/// Refuses the same file for the result and for what happens meanwhile: each would write over the other.
fn keeps_apart(output: &Path, progress: &ProgressWord) -> Result<(), Failure> {
    let ProgressWord::Jsonl(Some(path)) = progress else {
        return Ok(());
    };
    // A terminal, or nowhere, may be both.
    let file = |path: &Path| {
        let found = std::fs::metadata(path)
            .ok()
            .filter(std::fs::Metadata::is_file)?;
        Some((found.dev(), found.ino()))
    };
    match file(path).is_some_and(|one| Some(one) == file(output)) {
        true => Err(Failure::input(format!(
            "-o {} and --progress jsonl:{} are the same file",
            output.display(),
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Everything that decides how the command ends.
type Ended<'a> = (&'a LoadArgs, &'a Job, &'a [Judged], Option<Remark>);

fn concluded(
    report: &LoadReport,
    (args, job, judged, remark): Ended<'_>,
) -> Result<ExitCode, Failure> {
    let is_failure = remark.as_ref().is_some_and(|remark| remark.is_failure);
    let failure = remark.map(|remark| remark.failure(&report.target.url));
    match (
        report.outcome.as_str(),
        report.counts.completed_whole,
        failure,
    ) {
        ("interrupted", ..) => return Ok(ExitCode::from(INTERRUPTED)),
        (_, _, Some(failure)) if is_failure => return Err(failure),
        (_, 0, _) if !is_held(&job.plan) => return Err(nothing_answered(report)),
        // A text has it above its figures.
        (_, _, Some(failure)) if args.format != LoadFormat::Text => {
            terminal::tell(&format!("{}\n", failure.rendered(false)));
        }
        _ => {}
    }
    fail_if::conclude(judged)?;
    Ok(ExitCode::SUCCESS)
}

/// The result as the last of many lines.
fn lines_done(
    report: &LoadReport,
    limiter: Option<&LimiterFindings>,
    ended: Ended<'_>,
) -> Result<ExitCode, Failure> {
    let text = weir_report::load::json_line(report, limiter);
    match &ended.0.output {
        None => terminal::print(&text)?,
        Some(path) => {
            let appended = lines_to(path).and_then(|mut file| {
                file.seek(SeekFrom::End(0))?;
                file.write_all(text.as_bytes())
            });
            appended.map_err(|error| {
                Failure::failed(format!("cannot write {}: {error}", path.display()))
            })?;
        }
    }
    concluded(report, ended)
}

/// A trial without a single response, in one line beside the result.
fn nothing_answered(report: &LoadReport) -> Failure {
    // The most frequent error stands first.
    let words = match report.errors.first() {
        Some(error) => error.words.clone(),
        None => "requests were sent, and nothing came back".to_owned(),
    };
    let hint = hint(&words);
    Failure::failed(format!(
        "{}: not one request was answered: {words}",
        report.target.url
    ))
    .maybe_hint(hint)
}

/// What to do about an error that TLS, or TLS where none should be, is the reason of.
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

fn measure(
    (job, distant): (&Job, Option<&Distant>),
    args: &LoadArgs,
    conditions: Conditions,
) -> Result<(LoadReport, Conditions), Failure> {
    let stop = signals::stop_flag()?;
    let senders = distant.map_or(job.plan.cpus.len(), Distant::count);
    let control = Control::new(senders, Arc::clone(&stop));
    let stays = args.every.is_some() && args.format != LoadFormat::Jsonl;
    let reporter = Reporter::new(args.progress.word(), lines(args, &stop)?, stays)?;
    // What happens on this host is nothing to those who send from others.
    let watch = distant
        .is_none()
        .then(|| Mutex::new(Watch::begin(&job.plan)));
    let every = every(args)?;
    // Each interval takes the time of a whole report.
    let intervals = reporter.is_shown().then_some(every);
    let collected = Mutex::new(Collected::new(&job.plan, intervals));
    let load = Load {
        job,
        control: &control,
        collected: &collected,
        watch: watch.as_ref(),
        started_at: jiff::Timestamp::now(),
        begun: Instant::now(),
        running: None,
        told: None,
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
            let way = calibrate::recall(&carried.generator.io);
            carried.generator.self_capacity = way.map(|way| way.capacity);
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

/// Seconds of each interval.
fn every(args: &LoadArgs) -> Result<usize, Failure> {
    let Some(text) = &args.every else {
        return Ok(1);
    };
    let every = flag("--every", parse_duration(text))?;
    match every.subsec_nanos() == 0 && !every.is_zero() {
        true => Ok(every.as_secs() as usize),
        false => Err(Failure::input(format!(
            "--every {text}: figures are taken second by second, so an interval has whole seconds"
        ))),
    }
}

/// Whoever writes intervals where the result goes, if they are wanted there.
fn lines(args: &LoadArgs, stop: &Arc<AtomicBool>) -> Result<Option<Box<dyn Consumer>>, Failure> {
    if args.format != LoadFormat::Jsonl {
        return Ok(None);
    }
    let out: Box<dyn Write + Send> = match &args.output {
        None => Box::new(io::stdout()),
        Some(path) => {
            let opened = lines_to(path).and_then(|file| {
                file.metadata()?
                    .is_file()
                    .then(|| file.set_len(0))
                    .transpose()?;
                Ok(file)
            });
            let opened = opened.map_err(|error| {
                Failure::failed(format!("cannot write {}: {error}", path.display()))
            })?;
            Box::new(opened)
        }
    };
    // Nobody is left whom a load of a day would tell anything.
    Ok(Some(Box::new(JsonLines::intervals(out, Arc::clone(stop)))))
}

fn lines_to(path: &Path) -> io::Result<File> {
    weir_files::open_output(path)
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
                    let looked_up = || {
                        second_look::without_connection(job)
                            .as_ref()
                            .map(Remark::note)
                    };
                    failure.maybe_hint(by_words.or_else(looked_up))
                }
                _ => failure.hint(format!("is a server listening on {}?", target.address)),
            }
        }
        other => Failure::failed(other),
    }
}

/// Whether no answer was to be expected.
fn is_held(plan: &Plan) -> bool {
    plan.flows.iter().all(weir_load::Flow::is_held)
}

/// Whether a calibration says something about this load: kept connections in clear, one request in
/// flight on each.
fn is_calibrated_kind(plan: &Plan) -> bool {
    plan.flows.iter().all(|flow| {
        let kept = flow.lifetime == Lifetime::Kept;
        kept && flow.pipeline == 1 && flow.tls.is_none()
    })
}
