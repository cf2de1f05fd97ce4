//! `weir history`: all runs of a study over time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use weir_conditions::history::Conditions;
use weir_history::{HistoryFindings, over_time};
use weir_parameters::Catalog;
use weir_record::HEADER_FILE;
use weir_report::secrets::masked;
use weir_study::Scale;

use crate::args::{HistoryArgs, ReportFormat};
use crate::commands::kept_runs::{KeptRuns, read_alike, read_headers};
use crate::commands::{can_be_written, deliver, fail_if, report, study};
use crate::failure::Failure;
use crate::terminal;

/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-history/1";

/// Maximum number of runs that are read, the newest ones.
const MOST_RUNS: usize = 200;

/// The findings, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// `weir-history/1`.
    format: &'static str,
    #[serde(flatten)]
    findings: &'a HistoryFindings,
}

pub(crate) fn run(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    let conditions = Conditions::read(&args.fail_if, args.last).map_err(fail_if::refused)?;
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    if args.format == ReportFormat::Csv {
        return Err(Failure::input("--format csv: a history has no table of that kind")
            .hint("--format json has all figures"));
    }
    let (folder, name) = find_folder(&args.what)?;
    let KeptRuns { runs, left_out } = read_runs(&folder, name.as_deref())?;
    let findings = over_time(&runs, left_out);
    deliver(&format(args, &findings)?, args.output.as_deref())?;
    let judged = conditions.judge(&findings);
    fail_if::keep(args.junit.as_deref(), &findings.study, &judged)?;
    fail_if::conclude(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the folder of runs, and the name of the study if one is given instead of a folder.
fn find_folder(what: &str) -> Result<(PathBuf, Option<String>), Failure> {
    let path = Path::new(what);
    if path.join(HEADER_FILE).is_file() {
        let named = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = named.unwrap_or(Path::new("."));
        return Err(Failure::input(format!("{what} is a single run"))
            .hint(format!("all runs beside it: weir history {}", above.display())));
    }
    if path.is_dir() {
        return Ok((path.to_owned(), None));
    }
    let read = study::read(what, &Catalog::builtin(), Scale::ONE, &study::context())?;
    let folder = Path::new(report::RUNS);
    if !folder.is_dir() {
        return Err(Failure::input(format!("there is no folder {}", folder.display())).hint(
            "give the folder that has the runs, or run the study several times: weir run STUDY",
        ));
    }
    Ok((folder.to_owned(), Some(read.study.name)))
}

/// Reads the runs of one study in a folder: that of this name, or that of the newest run.
fn read_runs(folder: &Path, name: Option<&str>) -> Result<KeptRuns, Failure> {
    let (mut headers, left_out) = read_headers(folder)?;
    let of_study = headers
        .iter()
        .map(|kept| &kept.header)
        .rfind(|header| name.is_none_or(|name| header.study.name == name));
    let Some(reference) = of_study.cloned() else {
        let which = name.map_or_else(String::new, |name| format!(" of {name}"));
        let unusable = match left_out.first() {
            None => String::new(),
            Some(one) => format!(" ({} cannot be used)", one.name),
        };
        return Err(Failure::input(format!(
            "there is no run{which} in {}{unusable}",
            folder.display()
        ))
        .hint("give a folder that has folders of runs, such as runs/"));
    };
    let surplus = headers.len().saturating_sub(MOST_RUNS);
    headers.drain(..surplus);
    if surplus > 0 {
        terminal::tell(&format!(
            "weir: the {surplus} oldest runs in {} are not read\n",
            folder.display()
        ));
    }
    Ok(read_alike(headers, left_out, &reference))
}

fn format(args: &HistoryArgs, found: &HistoryFindings) -> Result<String, Failure> {
    Ok(match args.format {
        ReportFormat::Markdown => weir_report::history::markdown(found),
        ReportFormat::Html => weir_report::history::html(found),
        ReportFormat::Json => {
            let json = serde_json::to_string_pretty(&Document { format: FORMAT, findings: found })
                .map_err(|error| Failure::failed(format!("cannot write findings: {error}")))?;
            masked(&json).into_owned() + "\n"
        }
        ReportFormat::Terminal | ReportFormat::Csv => {
            let color = args.output.is_none() && terminal::color_on_stdout();
            weir_report::history::terminal(found, color, terminal::width())
        }
    })
}
