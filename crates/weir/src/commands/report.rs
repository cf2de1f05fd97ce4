//! `weir report`: a run's findings, in any format, from its folder alone.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use weir_analysis::findings::Findings;
use weir_files::NotOurs;
use weir_model::nearest::nearest;
use weir_notebook::{SUMMARY_FILE, files_in, keep_summary, read_notes};
use weir_record::{HEADER_FILE, HISTOGRAMS_FILE, RECORDS_FILE, Run, STUDY_FILE};
use weir_report::secrets::{masked, visible};
use weir_report::{FolderContent, Pointers, ReportInput};

use crate::args::{self, ReportArgs, ReportFormat};
use crate::commands::{deliver, next};
use crate::failure::Failure;
use crate::terminal;

/// Default folder of runs.
pub(crate) const RUNS: &str = "runs";
/// Name of the page by which a run folder explains itself.
const README: &str = "README.md";
/// Name of the file in a run folder with sums of the files that the loads name.
const LOAD_SUMS: &str = "loads.sha256";
/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-findings/2";

/// The findings of a run, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// `weir-findings/2`.
    format: &'static str,
    /// Exact version of the weir that measured.
    weir_version: &'a str,
    #[serde(flatten)]
    findings: &'a Findings,
}

pub(crate) fn run(args: ReportArgs) -> Result<ExitCode, Failure> {
    let run = read(&args.run)?;
    let findings = weir_analysis::analyze(&run);
    let Some(format) = args.format else {
        let next = next::of_report(&run, &findings);
        match weir_files::only_ours_named(&run.dir) {
            Ok(()) => show_and_keep(&run, &findings, args.full, next)?,
            Err(why) => show(&run, &findings, args.full, next, &why)?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    give(&run, &findings, format, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a run's findings in a format, to the file or to standard output.
pub(crate) fn give(
    run: &Run,
    findings: &Findings,
    format: ReportFormat,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let text = match format {
        ReportFormat::Terminal => {
            let color = output.is_none() && terminal::color_on_stdout();
            as_text(run, findings, Length::Whole, color)
        }
        ReportFormat::Markdown => as_markdown(run, findings),
        ReportFormat::Html => weir_report::html(&build_input(run, findings)),
        ReportFormat::Csv => weir_report::csv::findings(findings).text(),
        ReportFormat::Json => {
            let document =
                Document { format: FORMAT, weir_version: &run.header.weir_version, findings };
            let json = serde_json::to_string_pretty(&document)
                .map_err(|error| Failure::failed(format!("cannot write findings: {error}")))?;
            masked(&json).into_owned() + "\n"
        }
    };
    deliver(&text, output)
}

/// Reads a run from its folder, or from the path of its header file.
pub(crate) fn read(folder: &Path) -> Result<Run, Failure> {
    let folder = match folder.parent() {
        Some(above) if folder.ends_with(HEADER_FILE) && folder.is_file() => above,
        _ => folder,
    };
    Run::read(folder).map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        Failure::input(error).maybe_hint(hint.or_else(|| suggest_run(folder)))
    })
}

fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Returns a hint with the run that was most likely meant by a folder without one.
pub(crate) fn suggest_run(folder: &Path) -> Option<String> {
    if folder.join(HEADER_FILE).exists() {
        return None;
    }
    let begun =
        |path: &PathBuf| path.join(HEADER_FILE).metadata().and_then(|about| about.modified()).ok();
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    let places = [above.unwrap_or(Path::new(".")), Path::new(RUNS)];
    let runs: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(HEADER_FILE).is_file())
        .collect();
    let names: Vec<String> = runs.iter().filter_map(|run| file_name(run)).collect();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = file_name(folder).unwrap_or_default();
    let similar = nearest(&wanted, &texts)
        .and_then(|name| runs.iter().find(|run| file_name(run).as_deref() == Some(name)));
    match (similar, runs.iter().max_by_key(|run| begun(run))) {
        (Some(similar), _) => Some(format!("did you mean {}?", similar.display())),
        (None, Some(last)) => Some(format!("the latest run here is {}", last.display())),
        (None, None) => Some(
            "a run's folder is the one that `weir run` names first, such as runs/NAME-TIME"
                .to_owned(),
        ),
    }
}

/// Amount of a report to print.
#[derive(Debug, Clone)]
pub(crate) enum Length {
    /// A summary of one screen, which ends with these pointers.
    Summary(Pointers),
    Whole,
}

/// Prints a report, and writes its files next to the records. A summary names these files itself, after
/// the commands of `next`.
pub(crate) fn show_and_keep(
    run: &Run,
    findings: &Findings,
    is_full: bool,
    next: Vec<(String, String)>,
) -> Result<(), Failure> {
    // First, so that the files are there whatever becomes of the terminal.
    let files = keep_all(run, findings)?;
    let color = terminal::color_on_stdout();
    let text = if is_full {
        let [page, markdown] = &files;
        let report = as_text(run, findings, Length::Whole, color);
        format!("{report}\nReport: {page}\n        {markdown}\n")
    } else {
        let pointers = Pointers { next, files: files.to_vec() };
        as_text(run, findings, Length::Summary(pointers), color)
    };
    terminal::print_painted(&text)
}

/// Returns a report for a terminal.
pub(crate) fn as_text(run: &Run, findings: &Findings, length: Length, color: bool) -> String {
    let (input, width) = (build_input(run, findings), terminal::width());
    match length {
        Length::Summary(pointers) => weir_report::summary(&input, &pointers, color, width),
        Length::Whole => weir_report::terminal(&input, color, width),
    }
}

/// Returns the report as Markdown.
pub(crate) fn as_markdown(run: &Run, findings: &Findings) -> String {
    weir_report::markdown(&build_input(run, findings))
}

/// Writes report.html, report.md, README.md and the summary next to the records, and returns the paths of the first two.
pub(crate) fn keep_all(run: &Run, findings: &Findings) -> Result<[String; 2], Failure> {
    let input = build_input(run, findings);
    let page = keep(run, "report.html", &weir_report::html(&input))?;
    let markdown = keep(run, "report.md", &weir_report::markdown(&input))?;
    keep_summary(run, findings, args::version())
        .map_err(|error| Failure::failed(format!("cannot write {SUMMARY_FILE}: {error}")))?;
    keep(run, README, &weir_report::readme(&input, &describe_folder(run)?))?;
    Ok([page, markdown].map(|path| visible(&path.display().to_string()).into_owned()))
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", path.display()))
}

/// Lists the files of a run's folder, with the sums of those that figures rest on.
fn describe_folder(run: &Run) -> Result<FolderContent, Failure> {
    let mut files = Vec::new();
    for file in files_in(&run.dir).map_err(|error| cannot_read(&run.dir, &error))? {
        // Its own length is not known yet.
        if file.path != Path::new(README) {
            files.push((file.path.to_string_lossy().into_owned(), file.bytes));
        }
    }
    let mut sums = String::new();
    for name in [HEADER_FILE, STUDY_FILE, RECORDS_FILE, HISTOGRAMS_FILE] {
        let path = run.dir.join(name);
        let bytes = weir_files::read(&path).map_err(|error| cannot_read(&path, &error))?;
        sums += &weir_agent::sums([(Path::new(name), &*bytes)]);
    }
    sums.extend(run.header.environment.program_sums.iter().map(|sum| format!("{sum}\n")));
    // Files that the loads name; most runs have none.
    let of_loads = weir_files::read_text(&run.dir.join(LOAD_SUMS)).unwrap_or_default();
    sums += &String::from_utf8_lossy(&of_loads);
    // Notes that cannot be read are named by `weir runs`.
    let note = read_notes(&run.dir).map_or_else(|_| String::new(), |notes| notes.note);
    Ok(FolderContent { files, sums, note })
}

/// Prints the report without writing files: in a folder that others may write to, no name is sure to be a file in it.
fn show(
    run: &Run,
    findings: &Findings,
    is_full: bool,
    next: Vec<(String, String)>,
    why: &NotOurs,
) -> Result<(), Failure> {
    let files = Vec::new();
    let length = if is_full { Length::Whole } else { Length::Summary(Pointers { next, files }) };
    terminal::print_painted(&as_text(run, findings, length, terminal::color_on_stdout()))?;
    terminal::tell(&format!(
        "report.html and report.md are not written: {why}\nhint: --format html -o FILE writes one elsewhere\n"
    ));
    Ok(())
}

fn keep(run: &Run, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = run.dir.join(name);
    // The folder may be another user's: nothing in it is followed.
    weir_files::replace(&path, text.as_bytes())
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    Ok(std::path::absolute(&path).unwrap_or(path))
}

fn build_input<'a>(run: &'a Run, findings: &'a Findings) -> ReportInput<'a> {
    ReportInput {
        header: &run.header,
        study_text: &run.study_text,
        records: &run.records,
        findings,
        answer: weir_sentences::answer(&run.header.study, findings),
    }
}
