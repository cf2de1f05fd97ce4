//! Arguments of `weir compare`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{BaselineArgs, FlowArgs, LabArgs, ReportFormat};

#[derive(Debug, ClapArgs)]
#[command(
    allow_negative_numbers = true,
    mut_arg("url", |arg| arg.index(1).value_name("OLD_URL").help(
        "URL of the server that is known, for example http://127.0.0.1:8080/; with --candidate-program or \
         --candidate-configuration: host and target of the requests",
    )),
    mut_arg("rate", |arg| arg.help(
        "Rate at which response times are compared, requests per second [default: 60% of what the slower one completes \
         in the closed loop, so that both carry it]",
    )),
    mut_arg("trace", |arg| arg.hide(true)),
    mut_arg("trace_speed", |arg| arg.hide(true)),
    mut_arg("requests", |arg| arg.hide(true)),
    after_help = "Both servers get the same requests, in turns of a fraction of a second, so that whatever else happens \
on the way happens to both. The options for requests, connections and TLS are those of `weir load`.

Exit codes: 0 done, 1 failed (nobody listens, TLS fails, a wrong answer), or too little is known to judge --fail-if, 2 bad input, 3 a --fail-if condition is \
true, 130 interrupted.

docs/compare.md explains the answer, with examples."
)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) flow: FlowArgs,

    /// URL of the server that is compared with it
    #[arg(index = 2, value_name = "NEW_URL")]
    pub(crate) other: Option<String>,

    #[command(flatten)]
    pub(crate) candidate: CandidateArgs,

    /// Folder of earlier runs, whose spread says how much two runs differ by chance, when OLD_URL and NEW_URL are
    /// folders of runs [default: the folder that the older run is in]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) history: Option<PathBuf>,

    /// Time for the whole comparison, such as 10m: the longer, the smaller the differences that can be shown
    /// [default: about a minute]
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<String>,

    /// Exit with code 3 if this is true: 'worse', 'inconclusive', 'invalid', 'suspect', 'new p99 > 30ms',
    /// 'errors > 0.1%', 'rate < 5000/s'; may be given many times
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<String>,

    /// Write the conditions of --fail-if to a file as JUnit XML, which CI servers show as test results
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub(crate) junit: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) kept: BaselineArgs,

    #[command(flatten)]
    pub(crate) lab: LabArgs,

    /// Format to write at the end [default: a summary of one screen]; report.html and report.md are written to the
    /// run's folder in any case
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,

    /// Print the whole report at the end, not its summary
    #[arg(long, conflicts_with = "format")]
    pub(crate) full: bool,

    /// Write it to a file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "format")]
    pub(crate) output: Option<PathBuf>,
}

const PROGRAMS: &str = "Programs and configurations, started by weir";

/// A proxy that weir starts, and its candidate.
#[derive(Debug, ClapArgs)]
pub(crate) struct CandidateArgs {
    /// Program that is compared with --program: another version, or another build; weir starts both
    #[arg(long, value_name = "PATH", help_heading = PROGRAMS)]
    pub(crate) candidate_program: Option<PathBuf>,

    /// Program that is known [default: the one found on PATH]
    #[arg(long, value_name = "PATH", help_heading = PROGRAMS)]
    pub(crate) program: Option<PathBuf>,

    /// Configuration that is compared with --configuration; weir starts a copy of each
    #[arg(long, value_name = "FILE", help_heading = PROGRAMS)]
    pub(crate) candidate_configuration: Option<PathBuf>,

    /// Configuration that is known, also that of the candidate if it has none of its own [default: one that weir writes]
    #[arg(long, value_name = "FILE", help_heading = PROGRAMS)]
    pub(crate) configuration: Option<PathBuf>,

    /// Kind of the proxy [default: by the program's or the file's name]
    #[arg(long, value_name = "KIND", help_heading = PROGRAMS)]
    pub(crate) proxy: Option<String>,
}

impl CandidateArgs {
    /// Returns true if weir is to start what is compared.
    pub(crate) fn is_given(&self) -> bool {
        let CandidateArgs {
            candidate_program,
            program,
            candidate_configuration,
            configuration,
            proxy,
        } = self;
        let paths = [candidate_program, program, candidate_configuration, configuration];
        proxy.is_some() || paths.iter().any(|path| path.is_some())
    }
}
