//! `weir scale`: how a proxy's rate or capacity grows with one number, by a study that is run, or by a run that exists.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_model::study::Study;
use weir_record::HEADER_FILE;
use weir_sentences::scaling::explain_no_factor;

use crate::args::{ReportArgs, RunArgs, ScaleArgs};
use crate::commands::{report, run};
use crate::failure::Failure;

pub(crate) fn run(args: ScaleArgs) -> Result<ExitCode, Failure> {
    match &args.run.study {
        Some(name) if Path::new(name).join(HEADER_FILE).is_file() => {
            analyze(PathBuf::from(name), args)
        }
        _ => run::run_checked(args.run, has_factor),
    }
}

/// Analyses a run that exists.
fn analyze(folder: PathBuf, args: ScaleArgs) -> Result<ExitCode, Failure> {
    if let Some(option) = args.said_of_new_run() {
        return Err(Failure::input(format!("{option}: this run was made already"))
            .hint("a run takes --format, --full and -o"));
    }
    has_factor(&report::read(&folder)?.header.study)?;
    let RunArgs { format, full, output, .. } = args.run;
    report::run(ReportArgs { run: folder, format, full, output })
}

/// Refuses a study of which no number has enough levels.
fn has_factor(study: &Study) -> Result<(), Failure> {
    weir_analysis::scaling::has_factor(study).map_err(|reason| {
        Failure::input(explain_no_factor(&reason)).hint(
            "vary one number: `one-at-a-time: {worker_processes: [1, 2, 4]}` in the study, or connections in a matrix of \
             closed loads",
        )
    })
}
