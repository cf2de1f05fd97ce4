//! `weir run`: runs a study and writes its report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_conditions::study::Conditions;
use weir_host::journal::quoted;
use weir_hosts::asked::AskedByArm;
use weir_hosts::{Options, PlaceSpec};
use weir_lab::{LabError, Summary};
use weir_model::limit::Limit;
use weir_model::record::{Outcome, Remark};
use weir_model::study::{ArmRole, LoadSpec, Study, Until};
use weir_parameters::Catalog;
use weir_record::HEADER_FILE;
use weir_report::secrets::masked;
use weir_report::{number, words};
use weir_study::{CheckContext, Scale};
use weir_sut::Launcher;

use crate::args::{self, LabArgs, ReportFormat, RunArgs};
use crate::commands::baseline::Baseline;
use crate::commands::fail_if;
use crate::commands::study::StudyFile;
use crate::commands::{
    can_be_written, confirm, idle, kube, load, next, parameters, place, public, report, study, time,
};
use crate::failure::{Failure, INTERRUPTED};
use crate::progress::analyst::Analyst;
use crate::progress::phrases::{about, at_most, listed, whole_seconds};
use crate::progress::{Event, Nothing, Reporter};
use crate::{signals, terminal};

pub(crate) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    run_checked(args, |_| Ok(()))
}

/// Runs a study that `is_fit` accepts.
pub(super) fn run_checked(
    args: RunArgs,
    is_fit: fn(&Study) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let scale = parse_scale(args.scale.as_deref())?;
    if let Some(name) = &args.study {
        study::is_right_before_cluster(name, &args.lab, scale)?;
    }
    let options = read_options(&args.lab)?;
    let (baseline, fail_if) = Baseline::read(&args.kept, &args.fail_if, !args.check)?;
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    let Some(name) = &args.study else {
        let folder = args.resume.clone().unwrap_or_default();
        public::check_folder(&folder, &args.lab)?;
        let conditions = if fail_if.is_empty() && folder.join(HEADER_FILE).exists() {
            None
        } else {
            let study = report::read(&folder)?.header.study;
            Some(Conditions::read(&fail_if, &study).map_err(fail_if::refused)?)
        };
        let options = Options { folder, ..options };
        return finish_run(&options, None, &args, (conditions.as_ref(), baseline.as_ref()));
    };
    // A plan needs no pods.
    let machine = if args.check && args.lab.pods.on.is_some() {
        study::context()
    } else {
        machine(&options)?
    };
    let machine = CheckContext { node_sysctls: args.lab.node_sysctls || args.check, ..machine };
    let mut read = study::read(name, &options.catalog, scale, &machine)?;
    is_fit(&read.study)?;
    if args.lab.pods.on.is_some() {
        kube::can_be_sent_to(&read.study)?;
    }
    let conditions = Conditions::read(&fail_if, &read.study).map_err(fail_if::refused)?;
    let shortened = fit_time(&mut read.study, &args)?;
    if let Some(baseline) = &baseline {
        baseline.check(&read.study)?;
    }
    let mut remarks = study::remarks(&read.study, &options.catalog, &machine);
    let idle = idle::options(&args, &read, &options.catalog, &machine);
    let notes = shortened.into_iter().chain(idle);
    remarks.extend(notes.map(Remark::of_run));
    // First of all: figures that cannot be had are known before anything is started.
    let short = weir_proposers::short_loads(&read.study).map(Remark::of_run);
    remarks.splice(0..0, short);
    if args.check_alone {
        can_be_alone(&read.study)?;
    }
    if args.check {
        let (asked, left_out) = weir_hosts::asked::asked(&read.study, &options)
            .map_err(|error| Failure::of_run(error, None))?;
        remarks.extend(left_out);
        let text = description(&read.study, &asked, &remarks, args.check_alone);
        terminal::print(&masked(&text))?;
        return Ok(ExitCode::SUCCESS);
    }
    kube::can_be_controlled(&read.study, &options.places)?;
    public::check(&mut read.study, &args.lab)?;
    let options = Options {
        folder: folder(&args.lab, &read.study.name),
        remarks,
        check_alone: args.check_alone,
        time: args.time.clone(),
        ..options
    };
    finish_run(&options, Some(&read), &args, (Some(&conditions), baseline.as_ref()))
}

fn finish_run(
    options: &Options,
    read: Option<&StudyFile>,
    args: &RunArgs,
    (conditions, baseline): (Option<&Conditions>, Option<&Baseline>),
) -> Result<ExitCode, Failure> {
    if args.lab.confirm {
        confirm::promise(args.lab.progress.is_quiet());
    }
    let reporter = Reporter::shown(&args.lab.progress)?;
    let summary = carry_out(options, read, reporter)
        .map_err(|error| Failure::of_run(error, Some(&options.folder)))?;
    let confirm = args.lab.confirm.then_some(options);
    let shown = EndOutput {
        format: args.format,
        is_full: args.full,
        output: args.output.as_deref(),
        junit: args.junit.as_deref(),
        baseline,
    };
    finish(&summary, confirm, &shown, &args.lab, conditions)
}

/// Runs a study, or resumes the run in the folder of `options`, and sends events to `reporter`.
pub(super) fn carry_out(
    options: &Options,
    read: Option<&StudyFile>,
    reporter: Reporter,
) -> Result<Summary, LabError> {
    let is_analyzed = reporter.is_analyzed();
    reporter.beside(Nothing, |events| {
        let mut analyst = is_analyzed.then(|| Analyst::new(events));
        let mut tell = |event: weir_lab::Event| {
            analyst.iter_mut().for_each(|analyst| analyst.hear(&event));
            // Whoever shows it has not ended before.
            let _ = events.send(Event::Lab(event));
        };
        match read {
            Some(read) => weir_lab::run(&read.study, &read.text, options, &mut tell),
            None => weir_lab::resume(options, &mut tell),
        }
    })
}

/// Applies the options about time to a study, and returns sentences about what they change.
fn fit_time(study: &mut Study, args: &RunArgs) -> Result<Vec<String>, Failure> {
    if let Some(word) = args.until {
        study.until = word.into();
    }
    if study.until == Until::Decided && study.objective.within.is_some() {
        return Err(Failure::input(
            "--until decided: the study's objective has a limit (`within`), which is held against the whole run",
        ));
    }
    if study.until == Until::Decided && study.questions().is_empty() {
        return Err(Failure::input(
            "nothing can be decided early: the study compares no change with anything",
        ));
    }
    if let Some(text) = &args.budget {
        study.budget = Some(time::budget(text)?);
    }
    match (&args.time, study.budget) {
        (None, _) => Ok(time::fit(study, args.check_alone)?.into_iter().collect()),
        (Some(share), None) => time::shorten(study, share),
        (Some(_), Some(budget)) => Err(Failure::input(format!(
            "--time: the study has a budget of {}; give another one with --budget",
            number::length(budget)
        ))),
    }
}

/// Returns the properties of the study's hosts, against which it is checked.
pub(super) fn machine(options: &Options) -> Result<CheckContext, Failure> {
    if options.places.is_here() {
        return Ok(study::context());
    }
    let facts = weir_hosts::facts(options).map_err(|error| Failure::of_run(error, None))?;
    Ok(study::elsewhere(facts))
}

/// Returns the options of a run, without its folder and its remarks, which are not known yet.
pub(super) fn read_options(args: &LabArgs) -> Result<Options, Failure> {
    if args.where_time_goes && args.samples.interval().is_none() {
        let words = "--where-time-goes is told by samples, which --samples off leaves out";
        return Err(Failure::input(words));
    }
    if args.confirm && args.samples.interval().is_none() {
        let words = "--confirm turns what samples name, which --samples off leaves out";
        return Err(Failure::input(words));
    }
    Ok(Options {
        where_time_goes: args.where_time_goes,
        catalog: parameters::read_catalog(&args.parameters)?,
        allow_host_settings: args.allow_host_settings,
        samples: args.samples.interval(),
        node_image: args.node_sysctls.then(|| kube::image(&args.pods.wanted)),
        ..options_at(kube::places(
            &args.pods,
            place::roles(&args.place, &args.ssh)?,
            args.node_sysctls,
        )?)?
    })
}

/// Returns the default options of a run at these places.
pub(super) fn options_at(places: PlaceSpec) -> Result<Options, Failure> {
    let is_here = places.sends_from_here();
    let weir = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find weir's own program: {error}")))?;
    Ok(Options {
        folder: PathBuf::new(),
        launcher: Launcher::new(weir),
        weir_version: args::version().to_owned(),
        catalog: Catalog::builtin(),
        remarks: Vec::new(),
        places,
        allow_host_settings: false,
        node_image: None,
        check_alone: false,
        // What was found out is about this host.
        generator_carries: load::carries().filter(|_| is_here),
        samples: None,
        where_time_goes: false,
        time: None,
        stop: signals::stop_flag()?,
    })
}

/// Returns the folder for a study's run: `--out`, or the default.
pub(super) fn folder(args: &LabArgs, study: &str) -> PathBuf {
    let out = args.out.clone();
    out.unwrap_or_else(|| default_folder(study))
}

/// Returns `runs/STUDY-20261121T101500Z`, with a number after it if that exists.
pub(super) fn default_folder(study: &str) -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let first = Path::new(report::RUNS).join(format!("{study}-{time}"));
    let numbered = (2..).map(|n| Path::new(report::RUNS).join(format!("{study}-{time}-{n}")));
    std::iter::once(first).chain(numbered).find(|folder| !folder.exists()).unwrap_or_default()
}

/// Checks that arms can run one at a time, and that there is a ratio to check.
fn can_be_alone(study: &Study) -> Result<(), Failure> {
    match (study.controlled(), study.is_in_turn()) {
        (None, _) => {}
        (Some(_), true) => {
            return Err(Failure::input(
                "--check-alone: arms of a controller are measured in turn, so each of them runs alone already, and the check would \
                 compare its ratio with itself",
            )
            .hint("leave --check-alone out"));
        }
        (Some(_), false) => {
            return Err(Failure::input(
                "--check-alone: weir cannot end the other instances of the controller, so no arm can run alone beside them",
            )
            .hint(
                "run the study without `beside` too: arms in turn run alone, and both ratios can be compared",
            ));
        }
    }
    if let Some(arm) = study.arms.iter().find(|arm| study.proxy_of(arm).external.is_some()) {
        return Err(Failure::input(format!(
            "--check-alone: weir did not start {} and cannot end it, so no other arm can run alone",
            arm.name
        )));
    }
    match study.arms.len() {
        1 => Err(Failure::input(
            "--check-alone: the study has one arm, so there is no ratio to check",
        )),
        _ => Ok(()),
    }
}

/// Reads the factor for connections and rates.
fn parse_scale(text: Option<&str>) -> Result<Scale, Failure> {
    let Some(text) = text else {
        return Ok(Scale::ONE);
    };
    text.parse().map_err(|error| Failure::input(format!("--scale: {error}")))
}

/// Describes a study for `--check`. `asked` holds, by arm, the parts of the user's configurations that the loads
/// request.
fn description(study: &Study, asked: &AskedByArm, remarks: &[Remark], check_alone: bool) -> String {
    let mut text = format!("{}: {}\n", study.name, study.question.trim());
    for arm in &study.arms {
        let changes: Vec<_> = arm.changes.iter().map(|(id, to)| format!("{id} = {to}")).collect();
        let changes = match arm.role {
            ArmRole::Baseline => "what the others are compared with".to_owned(),
            ArmRole::SameAsBaseline => "the baseline again (A/A)".to_owned(),
            ArmRole::Change => changes.join(", "),
        };
        text.push_str(&format!("  arm   {:28} {changes}\n", arm.name));
    }
    let plan = weir_proposers::budget::plan_of(study);
    let loads: Vec<_> = study.loads.iter().zip(&plan).collect();
    let groups = loads.chunk_by(|a: &Planned<'_>, b: &Planned<'_>| {
        matrix_of(a.0).is_some() && matrix_of(a.0) == matrix_of(b.0)
    });
    for loads in groups {
        text.push_str(&if study.capacity.is_empty() {
            load_line(loads)
        } else {
            search_line(study)
        });
    }
    if study.until == Until::Decided {
        for (load, blocks, _) in &plan {
            let looks = listed(&weir_proposers::looks_planned(study, *blocks));
            text.push_str(&format!("  looks {load:28} after {looks} blocks\n"));
        }
    }
    for line in asked_lines(study, asked) {
        text.push_str(&format!("  asks  {line}\n"));
    }
    for line in words::replaced(&study.origin, asked.values().flatten()) {
        text.push_str(&format!("  copy  {line}\n"));
    }
    let mut takes = weir_proposers::budget::LOOK + weir_proposers::budget::length_of(study);
    if check_alone {
        let check = weir_proposers::alone::length_of_check(study);
        takes += check;
        text.push_str(&format!(
            "  check the winner and the arm that it is compared with, one at a time: about {}\n",
            number::length(whole_seconds(check))
        ));
    }
    let stretches = weir_proposers::length_of_stretches(study);
    if !stretches.is_zero() {
        takes += stretches;
        text.push_str(&format!(
            "  then  each arm has the load alone, to see what limits it: about {}\n",
            number::length(whole_seconds(stretches))
        ));
    }
    for remark in remarks {
        text.push_str(&format!("  note  {remark}\n"));
    }
    let takes = number::length(whole_seconds(takes));
    text.push_str(&format!("The whole run takes {} {takes}.\n", about(study.until)));
    if !study.capacity.is_empty() {
        text.push_str(&format!("{}\n", at_most(weir_proposers::longest_search(study))));
    }
    text.push_str("Nothing was started (--check).\n");
    text
}

/// Describes the parts of configurations that loads request, in a line for each listener. Arms with the same
/// configuration share a line.
fn asked_lines(study: &Study, asked: &AskedByArm) -> Vec<String> {
    let mut lines = Vec::new();
    for record in study.arms.iter().filter_map(|arm| asked.get(&arm.name)).flatten() {
        let line = words::asked(record);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A load with its name, number of blocks and length as planned.
type Planned<'a> = (&'a LoadSpec, &'a (String, u32, Duration));

/// Returns the name of the matrix that a load is a cell of.
fn matrix_of(load: &LoadSpec) -> Option<&str> {
    load.cell.as_ref().map(|cell| &*cell.matrix)
}

fn describe_blocks((_, (_, blocks, length)): &Planned<'_>) -> String {
    format!("{blocks} blocks, {}", number::length(*length))
}

/// Describes a load, or all cells of a matrix together, with blocks and length: a hundred lines would say no more.
fn load_line(loads: &[Planned<'_>]) -> String {
    let (Some((_, (first, ..))), Some((_, (last, ..)))) = (loads.first(), loads.last()) else {
        return String::new();
    };
    let shortest = loads.iter().min_by_key(|(_, (_, blocks, _))| *blocks);
    let longest = loads.iter().max_by_key(|(_, (_, blocks, _))| *blocks);
    let (shortest, longest) = (
        shortest.map_or(String::new(), describe_blocks),
        longest.map_or(String::new(), describe_blocks),
    );
    let blocks = if shortest == longest { shortest } else { format!("{shortest}, to {longest}") };
    if first == last {
        return format!("  load  {first:28} {blocks}\n");
    }
    let name = format!("{first} to {last}");
    let total: Duration = loads.iter().map(|(_, (_, _, length))| *length).sum();
    format!(
        "  load  {name:28} {} loads, each {blocks}; {} in all\n",
        loads.len(),
        number::length(total)
    )
}

/// Describes the load of a study that asks for a capacity.
fn search_line(study: &Study) -> String {
    let limits: Vec<String> = study.capacity.iter().map(Limit::to_string).collect();
    let order =
        if study.is_in_turn() && study.arms.len() > 1 { "; one arm after the other" } else { "" };
    format!(
        "  load  {:28} the highest rate with {}, held for {}{order}\n",
        study.loads[0].name,
        limits.join(", "),
        number::length(study.search.hold)
    )
}

/// Output at the end of a run.
pub(super) struct EndOutput<'a> {
    /// Format to write; `None`: a summary, or the whole report.
    pub(super) format: Option<ReportFormat>,
    pub(super) is_full: bool,
    /// File to write to instead of standard output.
    pub(super) output: Option<&'a Path>,
    /// File for the judged conditions.
    pub(super) junit: Option<&'a Path>,
    /// Baseline that the run is judged by.
    pub(super) baseline: Option<&'a Baseline>,
}

/// Shows what a run found, keeps its report, and judges the conditions.
pub(super) fn finish(
    summary: &Summary,
    confirm: Option<&Options>,
    shown: &EndOutput<'_>,
    lab: &LabArgs,
    conditions: Option<&Conditions>,
) -> Result<ExitCode, Failure> {
    let (run, findings) = confirm::read(summary, confirm, lab.progress.is_quiet())?;
    match shown.format {
        None => {
            let next = next::of_run(&run, &findings);
            report::show_and_keep(&run, &findings, shown.is_full, next)?;
        }
        Some(format) => {
            let report_paths = report::keep_all(&run, &findings);
            report::give(&run, &findings, format, shown.output)?;
            let [page, markdown] = report_paths?;
            terminal::tell(&format!("Report: {page}\n        {markdown}\n"));
        }
    }
    match interrupted(summary, confirm, lab) {
        Some(rest) => {
            terminal::tell(&format!("\nInterrupted. Continue with: weir run {rest}\n"));
            Ok(ExitCode::from(INTERRUPTED))
        }
        None => {
            let study = &run.header.study;
            let mut judged =
                conditions.map(|conditions| conditions.judge(study, &findings)).unwrap_or_default();
            if let Some(baseline) = shown.baseline {
                judged.extend(baseline.judge(&run, shown.format.is_none())?);
            }
            fail_if::keep(shown.junit, &study.name, &judged)?;
            fail_if::conclude(&judged)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the arguments that resume a run that the user has stopped, during the run or its `--confirm` trials; `None`
/// if it was not stopped.
pub(super) fn interrupted(
    summary: &Summary,
    options: Option<&Options>,
    args: &LabArgs,
) -> Option<String> {
    let turning = options.is_some_and(|options| options.stop.load(Ordering::Relaxed));
    let is_stopped = turning || summary.outcome == Outcome::Interrupted;
    let more = if options.is_some() { " --confirm" } else { "" };
    let nodes = if args.node_sysctls { " --node-sysctls" } else { "" };
    is_stopped.then(|| {
        let folder = summary.folder.display().to_string();
        format!("--resume {}{}{nodes}{more}", quoted(&folder), args.pods.again())
    })
}
