//! `weir compare RUN_A RUN_B`: whether a run is worse than an earlier one, by the spread of all runs before it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use weir_conditions::runs::Conditions;
use weir_files::only_ours_named;
use weir_history::{RunFigures, RunsFindings, differences, judge};
use weir_model::record::{Outcome, RunHeader};
use weir_record::{HEADER_FILE, Run};
use weir_report::secrets::masked;

use crate::args::{CompareArgs, ReportFormat};
use crate::commands::baseline::Baseline;
use crate::commands::kept_runs::is_same_study;
use crate::commands::{deliver, fail_if, report};
use crate::failure::Failure;
use crate::terminal;

/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-runs/1";

/// Maximum number of earlier runs that are read, the newest ones.
const MOST_RUNS: usize = 50;

/// The findings, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// `weir-runs/1`.
    format: &'static str,
    #[serde(flatten)]
    findings: &'a RunsFindings,
}

/// Returns the folders of two runs, if that is what the arguments name.
pub(super) fn folders(args: &CompareArgs) -> Option<[PathBuf; 2]> {
    let both = [args.flow.url.as_ref()?, args.other.as_ref()?];
    both.iter()
        .any(|text| Path::new(text.as_str()).join(HEADER_FILE).is_file())
        .then(|| both.map(PathBuf::from))
}

/// Returns the folder of the run that is to be judged by a baseline, if that is what the arguments name.
pub(super) fn folder_for_baseline(args: &CompareArgs) -> Option<PathBuf> {
    args.kept.baseline.as_ref()?;
    let folder = PathBuf::from(args.flow.url.as_ref()?);
    (args.other.is_none() && folder.join(HEADER_FILE).is_file()).then_some(folder)
}

/// Judges a run by a baseline.
pub(super) fn run_by_baseline(args: &CompareArgs, folder: &Path) -> Result<ExitCode, Failure> {
    let (baseline, others) = Baseline::read(&args.kept, &args.fail_if, true)?;
    // Other conditions are told as those of two runs are.
    Conditions::read(&others).map_err(fail_if::refused)?;
    refuse_idle(args)?;
    let run = report::read(folder)?;
    let Some(baseline) = baseline else { return Ok(ExitCode::SUCCESS) };
    baseline.check(&run.header.study)?;
    let judged = baseline.judge(&run, true)?;
    fail_if::keep(args.junit.as_deref(), &run.header.study.name, &judged)?;
    fail_if::conclude(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// Compares two runs.
pub(super) fn run(args: &CompareArgs, [old, new]: [PathBuf; 2]) -> Result<ExitCode, Failure> {
    let conditions = Conditions::read(&args.fail_if).map_err(fail_if::refused)?;
    let [old_run, new_run] = [report::read(&old)?, report::read(&new)?];
    refuse_idle(args)?;
    refuse_unlike(&old_run.header, &new_run.header)?;
    if let Some(run) = [&old_run, &new_run].into_iter().find(|run| !is_complete(run)) {
        return Err(Failure::input(format!("{} did not end as planned", run.dir.display()))
            .hint(format!("go on with it: `weir run --resume {}`", run.dir.display())));
    }
    let folder = match &args.history {
        Some(folder) => folder.clone(),
        None => parent_of(&old),
    };
    let earlier = find_earlier(&folder, [&old_run.header, &new_run.header])?;
    let history: Vec<RunFigures> = earlier.iter().map(figures_of).collect();
    let both = [&old_run, &new_run].map(figures_of);
    let [old_figures, new_figures] = &both;
    let around = differences(&old_run.header, &new_run.header);
    let findings = judge([old_figures, new_figures], &history, around);
    let text = format(args, &findings)?;
    deliver(&text, args.output.as_deref())?;
    let judged = conditions.judge(&findings);
    fail_if::keep(args.junit.as_deref(), &new_run.header.study.name, &judged)?;
    fail_if::conclude(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses options of a load that has been made already.
fn refuse_idle(args: &CompareArgs) -> Result<(), Failure> {
    let is_given =
        args.candidate.is_given() || args.budget.is_some() || args.flow.rate.is_some() || args.full;
    if args.kept.baseline.is_some() && args.other.is_some() {
        return Err(Failure::input(
            "--baseline: the runs that it keeps are what a run is compared with",
        )
        .hint("give one run: weir compare RUN --baseline DIR"));
    }
    if is_given {
        return Err(Failure::input("both runs were made already: nothing is started or loaded")
            .hint("two runs take --history, --fail-if, --junit, --format and -o"));
    }
    Ok(())
}

fn is_complete(run: &Run) -> bool {
    run.outcome() == Some(Outcome::Complete)
}

fn figures_of(run: &Run) -> RunFigures {
    RunFigures::of(run, &weir_analysis::analyze(run))
}

fn parent_of(folder: &Path) -> PathBuf {
    match folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        Some(above) => above.to_owned(),
        None => PathBuf::from("."),
    }
}

/// Refuses runs that have no figure in common, or of which the second began first.
fn refuse_unlike(old: &RunHeader, new: &RunHeader) -> Result<(), Failure> {
    if old.run == new.run && old.started_at == new.started_at {
        return Err(Failure::input(format!("{} is compared with itself", old.run)));
    }
    if !is_same_study(&old.study, &new.study) {
        return Err(Failure::input(format!(
            "{} and {} are runs of different studies ({} and {}), without an arm and a load in common, or with another objective",
            old.run, new.run, old.study.name, new.study.name
        )));
    }
    if new.started_at < old.started_at {
        return Err(Failure::input(format!("{} began before {}", new.run, old.run))
            .hint("give the earlier run first"));
    }
    Ok(())
}

/// Finds the complete runs of the study in a folder that began before the later of two runs, on the same machine; those
/// that cannot be read are named on standard error.
fn find_earlier(folder: &Path, [old, new]: [&RunHeader; 2]) -> Result<Vec<Run>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Failure::input(format!("cannot read {}: {error}", folder.display()))
            .hint("--history names the folder of earlier runs")
    })?;
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(HEADER_FILE).is_file() && only_ours_named(path).is_ok())
        .collect();
    folders.sort();
    let mut runs: Vec<Run> = Vec::new();
    for path in folders {
        let run = match Run::read(&path) {
            Ok(run) => run,
            Err(error) => {
                terminal::tell(&format!("weir: {} is left out: {error}\n", path.display()));
                continue;
            }
        };
        let header = &run.header;
        let is_one_of_both = [old, new].iter().any(|other| other.started_at == header.started_at);
        let is_earlier = header.started_at < new.started_at && !is_one_of_both;
        let is_alike = is_same_study(&header.study, &new.study);
        let is_here = !differences(header, new).iter().any(|one| one.is_of_machine);
        if is_earlier && is_alike && is_here && is_complete(&run) {
            runs.push(run);
        }
    }
    runs.sort_by(|one, other| one.header.started_at.cmp(&other.header.started_at));
    let surplus = runs.len().saturating_sub(MOST_RUNS);
    Ok(runs.split_off(surplus))
}

fn format(args: &CompareArgs, found: &RunsFindings) -> Result<String, Failure> {
    Ok(match args.format {
        None | Some(ReportFormat::Terminal) => {
            let color = args.output.is_none() && terminal::color_on_stdout();
            weir_report::runs::terminal(found, color, terminal::width())
        }
        Some(ReportFormat::Markdown) => weir_report::runs::markdown(found),
        Some(ReportFormat::Html) => weir_report::runs::html(found),
        Some(ReportFormat::Csv) => {
            return Err(Failure::input("--format csv: two runs have no table of that kind")
                .hint("--format json has all figures"));
        }
        Some(ReportFormat::Json) => {
            let json = serde_json::to_string_pretty(&Document { format: FORMAT, findings: found })
                .map_err(|error| Failure::failed(format!("cannot write findings: {error}")))?;
            masked(&json).into_owned() + "\n"
        }
    })
}
