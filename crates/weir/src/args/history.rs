//! Arguments of `weir history`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::ReportFormat;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, or too few runs to judge --fail-if, 2 bad input, 3 a --fail-if \
condition is true.

docs/history.md explains the answer, with examples."
)]
pub(crate) struct HistoryArgs {
    /// A folder of runs, of which those of the newest one's study are shown; or a study, whose runs are looked for
    /// in runs/
    #[arg(value_name = "FOLDER|STUDY")]
    pub(crate) what: String,

    /// Number of newest runs that --fail-if is about: a change counts if it was found with one of them
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) last: usize,

    /// Exit with code 3 if this is true: 'worse', 'better', 'drift', 'inconclusive'; may be given many times
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<String>,

    /// Write the conditions of --fail-if to a file as JUnit XML, which CI servers show as test results
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub(crate) junit: Option<PathBuf>,

    /// Format to write
    #[arg(long, value_enum, default_value = "terminal")]
    pub(crate) format: ReportFormat,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
