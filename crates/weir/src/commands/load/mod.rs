//! `weir load`: one load test against a URL.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_http::ParseError;
use weir_load::{Control, LoadError, Plan, SliceData};
use weir_model::load::{ErrorKind, Lifetime};
use weir_model::load_report::LoadReport;
use weir_report::foreign::masked;

use crate::args::{LoadArgs, LoadFormat};
use crate::commands::fail_if::{self, load::Conditions};
use crate::commands::{can_be_written, deliver};
use crate::failure::{Failure, INTERRUPTED};
use crate::{signals, terminal};

mod calibrate;
mod floor;
mod job;
mod observe;
mod progress;
mod result;
mod tls_port;
mod watch;

pub(crate) use calibrate::carries;
use job::Job;
pub(crate) use job::Server;
use result::Gathering;
use watch::Watch;

/// Runs the command.
pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    if args.calibrate {
        return calibrate::run(args);
    }
    let conditions = Conditions::read(&args.fail_if)?;
    let job = Job::new(args)?;
    if args.floor {
        return floor::run(&job, args);
    }
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    let observed = observe::begin(&job, args)?;
    let (report, conditions) = measure(&job, args, conditions)?;
    let judged = conditions.judge(&report);
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
    match (report.outcome.as_str(), report.counts.completed_whole) {
        ("interrupted", _) => Ok(ExitCode::from(INTERRUPTED)),
        (_, 0) if !is_held(&job.plan) => Err(nothing_answered(&report)),
        _ => {
            if let Some(words) = tls_port::remark(&job, &report) {
                terminal::tell(&format!("{words}\n"));
            }
            fail_if::conclude(&judged)?;
            Ok(ExitCode::SUCCESS)
        }
    }
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
    } else {
        None
    }
}

fn measure(
    job: &Job,
    args: &LoadArgs,
    conditions: Conditions,
) -> Result<(LoadReport, Conditions), Failure> {
    let stop = signals::stop_flag()?;
    let control = Control::new(job.plan.cpus.len(), Arc::clone(&stop));
    let watch = Watch::begin(&job.plan);
    let started_at = jiff::Timestamp::now();
    let mut gathered = Gathering::new(&job.plan, conditions);
    let take = |slice: usize, data: &[SliceData]| gathered.take(slice, data);
    let outcome = if args.quiet {
        weir_load::run(&job.plan, &control, None, take)
    } else {
        progress::beside(&control, &job.plan, || {
            weir_load::run(&job.plan, &control, None, take)
        })
    };
    let interrupted = stop.load(Ordering::Relaxed);
    let outcome = outcome.map_err(|error| explain(job, error, interrupted))?;
    let mut generator = watch.end(&outcome);
    if is_calibrated_kind(&job.plan) {
        generator.self_capacity = calibrate::recall(&generator.io).map(|way| way.capacity);
    }
    let (collected, conditions) = gathered.end();
    let report = collected.report(job, &outcome, generator, started_at, interrupted);
    Ok((report, conditions))
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
                    failure.maybe_hint(hint(&first.words))
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
