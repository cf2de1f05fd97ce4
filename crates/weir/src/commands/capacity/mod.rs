//! `weir capacity`: how many requests per second a server, or each arm of a study, carries within an objective.
//!
//! A URL becomes a study of one arm that weir did not start. The rest is a run like any other, with a folder, records
//! and a report.

use std::process::ExitCode;

use weir_analysis::findings::Findings;
use weir_conditions::capacity::Condition;
use weir_hosts::Options;
use weir_lab::Summary;
use weir_model::record::{CapacityEnd, Remark};
use weir_report::Pointers;
use weir_report::secrets::masked;
use weir_study::Scale;

use crate::args::{CapacityArgs, CapacityFormat, FlowArgs};
use crate::commands::baseline::Baseline;
use crate::commands::fail_if;
use crate::commands::report::Length;
use crate::commands::{
    can_be_written, confirm, deliver, kube, next, public, report, run, server, study, time,
};
use crate::failure::{Failure, INTERRUPTED};
use crate::progress::Reporter;
use crate::terminal;

mod answer;
mod tuning;
mod url;

#[cfg(test)]
pub(crate) use answer::{Answer, FORMAT};
use tuning::Tuning;

pub(crate) fn run(args: &CapacityArgs) -> Result<ExitCode, Failure> {
    let (baseline, fail_if) = Baseline::read(&args.kept, &args.fail_if, true)?;
    let conditions = weir_conditions::capacity::read(&fail_if).map_err(fail_if::refused)?;
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    if let Some(name) =
        args.flow.url.as_deref().filter(|name| !is_url(name) && !looks_like_a_host(name))
    {
        study::is_right_before_cluster(name, &args.lab, Scale::ONE)?;
    }
    let options = run::read_options(&args.lab)?;
    let confirm = args.lab.confirm.then(|| options.clone());
    if args.lab.confirm {
        confirm::promise(args.lab.progress.is_quiet());
    }
    let summary = match (&args.resume, &args.flow.url) {
        (Some(folder), _) => {
            only_a_folder(args)?;
            public::check_folder(folder, &args.lab)?;
            let options = Options { folder: folder.clone(), ..options };
            run::carry_out(&options, None, reporter(args)?)
                .map_err(|error| Failure::of_run(error, Some(&options.folder)))?
        }
        (None, Some(target)) if is_url(target) => search_url(args, options, baseline.as_ref())?,
        (None, Some(name)) => search_study(name, args, options, baseline.as_ref())?,
        (None, None) => {
            return Err(Failure::input("which server, or which study?")
                .hint("weir capacity http://127.0.0.1:8080/"));
        }
    };
    finish(&summary, confirm.as_ref(), args, (&conditions, baseline.as_ref()))
}

/// Returns the reporter for the chosen display of progress.
fn reporter(args: &CapacityArgs) -> Result<Reporter, Failure> {
    Reporter::shown(&args.lab.progress)
}

/// Returns true if the target is meant as a URL, even a wrong one.
fn is_url(target: &str) -> bool {
    target.contains("://")
}

fn search_url(
    args: &CapacityArgs,
    options: Options,
    baseline: Option<&Baseline>,
) -> Result<Summary, Failure> {
    let search = url::search(args, &options)?;
    if !args.lab.progress.is_quiet() {
        search.said.iter().for_each(|line| terminal::tell(&format!("{line}\n")));
    }
    let read = search.read;
    baseline.map_or(Ok(()), |baseline| baseline.check(&read.study))?;
    let options = Options { folder: run::folder(&args.lab, &read.study.name), ..options };
    run::carry_out(&options, Some(&read), reporter(args)?)
        .map_err(|error| server::explained(error, &read.study, &options.folder))
}

fn search_study(
    name: &str,
    args: &CapacityArgs,
    options: Options,
    baseline: Option<&Baseline>,
) -> Result<Summary, Failure> {
    let machine = run::machine(&options)?;
    let mut read =
        study::read(name, &options.catalog, Scale::ONE, &machine).map_err(|failure| {
            if looks_like_a_host(name) {
                failure.hint(format!("is it a URL? weir capacity http://{name}/"))
            } else {
                failure
            }
        })?;
    if let Some(option) = said_by_study(args) {
        let message = format!("{option}: the study itself defines the requests and the server");
        return Err(Failure::input(message).hint("change the study, or give a URL instead of it"));
    }
    if read.study.capacity.is_empty() {
        let message = format!("{name} does not ask for a capacity");
        return Err(Failure::input(message).hint(format!(
            "write `objective: {{capacity: 'p99 < 30ms'}}` in it, or run it as it is: weir run {name}"
        )));
    }
    if args.lab.pods.on.is_some() {
        kube::can_be_sent_to(&read.study)?;
    }
    kube::can_be_controlled(&read.study, &options.places)?;
    Tuning::read(args)?.apply(&mut read.study);
    let mut remarks = study::remarks(&read.study, &options.catalog, &machine);
    remarks.extend(time::fit_search(&read.study)?.map(Remark::of_run));
    baseline.map_or(Ok(()), |baseline| baseline.check(&read.study))?;
    public::check(&mut read.study, &args.lab)?;
    let options = Options { folder: run::folder(&args.lab, &read.study.name), remarks, ..options };
    run::carry_out(&options, Some(&read), reporter(args)?)
        .map_err(|error| Failure::of_run(error, Some(&options.folder)))
}

/// Returns true if a missing study's name looks like a host, so that a forgotten `http://` is likelier than a missing
/// file.
fn looks_like_a_host(name: &str) -> bool {
    let host = name.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    matches!(port, Some(Ok(_))) || host.parse::<std::net::IpAddr>().is_ok() || host == "localhost"
}

/// Returns the first given option that has no effect with a study.
fn said_by_study(args: &CapacityArgs) -> Option<&'static str> {
    let url = args.flow.url.clone();
    let is_flow = args.flow != FlowArgs { url, ..FlowArgs::default() };
    let all = [
        (args.objective.is_some(), "--objective"),
        (args.cpus.is_some(), "--cpus"),
        (args.duration.is_some(), "--duration"),
        (is_flow, "options for requests, connections and TLS"),
    ];
    all.into_iter().find(|(is_said, _)| *is_said).map(|(_, option)| option)
}

/// Refuses options that change a resumed search: it keeps its settings.
fn only_a_folder(args: &CapacityArgs) -> Result<(), Failure> {
    match said_by_study(args) {
        Some(option) => {
            Err(Failure::input(format!("{option}: a resumed search keeps its settings")))
        }
        None => Ok(()),
    }
}

/// Prints the answer, writes the report next to the records, and judges the conditions.
fn finish(
    summary: &Summary,
    confirm: Option<&Options>,
    args: &CapacityArgs,
    (conditions, baseline): (&[Condition], Option<&Baseline>),
) -> Result<ExitCode, Failure> {
    let (run, findings) = confirm::read(summary, confirm, args.lab.progress.is_quiet())?;
    let mut judged = weir_conditions::capacity::judge(conditions, &findings);
    let report_paths = report::keep_all(&run, &findings);
    let text = match args.format {
        CapacityFormat::Text => {
            let color = args.output.is_none() && terminal::color_on_stdout();
            let length = if args.full {
                Length::Whole
            } else {
                Length::Summary(Pointers {
                    next: next::of_run(&run, &findings),
                    files: report_paths.iter().flatten().cloned().collect(),
                })
            };
            report::as_text(&run, &findings, length, color)
        }
        CapacityFormat::Markdown => report::as_markdown(&run, &findings),
        CapacityFormat::Csv => weir_report::csv::findings(&findings).text(),
        CapacityFormat::Json => {
            let json = answer::json(&run, &findings, &judged);
            masked(&json.map_err(Failure::failed)?).into_owned() + "\n"
        }
    };
    deliver(&text, args.output.as_deref())?;
    let [page, markdown] = report_paths?;
    let is_summary = args.format == CapacityFormat::Text && !args.full;
    if !is_summary && !args.lab.progress.is_quiet() {
        terminal::tell(&format!("Report: {page}\n        {markdown}\n"));
    }
    if let Some(rest) = run::interrupted(summary, confirm, &args.lab) {
        terminal::tell(&format!("\nInterrupted. Continue with: weir capacity {rest}\n"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if let Some(baseline) = baseline {
        judged.extend(baseline.judge(&run, args.format == CapacityFormat::Text)?);
    }
    fail_if::keep(args.junit.as_deref(), &run.header.study.name, &judged)?;
    fail_if::conclude(&judged)?;
    if is_answered(&findings) {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(Failure::failed("no capacity could be claimed: the report says why"))
    }
}

/// Returns true if the capacity of some arm is known, even if it is nothing.
fn is_answered(findings: &Findings) -> bool {
    findings
        .capacity
        .iter()
        .flat_map(|capacity| &capacity.arms)
        .any(|arm| arm.claimed || arm.end == Some(CapacityEnd::Never))
}
