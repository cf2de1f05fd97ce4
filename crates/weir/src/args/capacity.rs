//! Arguments of `weir capacity`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{BaselineArgs, FlowArgs, LabArgs};

const SEARCH: &str = "Search";

#[derive(Debug, ClapArgs)]
#[command(
    allow_negative_numbers = true,
    mut_arg("url", |arg| arg.value_name("URL | STUDY").help(
        "The server's URL, for example http://127.0.0.1:8080/; with --on also ingress/NAME, an Ingress of the cluster; or the \
         file or name of a study with `objective: {capacity: …}`",
    )),
    mut_arg("rate", |arg| arg.hide(true)),
    mut_arg("trace", |arg| arg.hide(true)),
    mut_arg("connections", |arg| arg.help(
        "Connections over all threads [default: 50, doubled up to 800 while they are the limit]",
    )),
    mut_arg("trace_speed", |arg| arg.hide(true)),
    mut_arg("requests", |arg| arg.hide(true)),
    after_help = "The options for requests, connections and TLS are those of `weir load`. The search chooses the \
rates, so there is no -R.

Exit codes: 0 done, 1 failed (nobody listens, TLS fails, a wrong answer), or too little is known to judge --fail-if, 2 bad input, 3 a --fail-if condition is \
true, 130 interrupted.

docs/capacity.md explains the answer, with examples."
)]
pub(crate) struct CapacityArgs {
    #[command(flatten)]
    pub(crate) flow: FlowArgs,

    /// Limits that all must hold: p50 to p99.99, mean and errors. The default is fixed so that answers can be
    /// compared: people perceive a reaction within 100 ms as immediate
    /// [default: p99 < 100ms, errors < 0.1%]
    #[arg(short = 'O', long, value_name = "LIMITS", help_heading = SEARCH)]
    pub(crate) objective: Option<String>,

    /// Confidence of the interval: 95%, 0.9 [default: 95%]
    #[arg(long, value_name = "SHARE", help_heading = SEARCH)]
    pub(crate) confidence: Option<String>,

    /// End the search when half the interval's width is this share of the rate [default: 3%]
    #[arg(long, value_name = "SHARE", help_heading = SEARCH)]
    pub(crate) precision: Option<String>,

    /// Time that a rate must be held to count as carried. Linux remembers closed connections for 60 s, so a shorter
    /// time can miss a collapse in the second minute [default: 65s]
    #[arg(long, value_name = "TIME", help_heading = SEARCH)]
    pub(crate) hold: Option<String>,

    /// Also find the rate that is carried for this long after a rest
    #[arg(long, value_name = "TIME", help_heading = SEARCH)]
    pub(crate) burst: Option<String>,

    /// Time for the whole search, such as 5m; it then ends with what it knows
    #[arg(long, value_name = "TIME", help_heading = SEARCH)]
    pub(crate) budget: Option<String>,

    /// Refused: a search has no duration of its own.
    #[arg(short, long, value_name = "TIME", hide = true)]
    pub(crate) duration: Option<String>,

    /// Seed of the order in which rates are tried [default: 1]
    #[arg(long, value_name = "N", help_heading = SEARCH)]
    pub(crate) seed: Option<u64>,

    /// CPUs for the load generator, such as 0,2-3 [default: all, or a share of them if the server is on this machine]
    #[arg(long, value_name = "CPUS", help_heading = SEARCH)]
    pub(crate) cpus: Option<String>,

    /// Exit with code 3 if this is true: 'capacity < 5000/s' (the whole interval is below), or
    /// 'capacity.low < 5000/s' (a part of it is below); repeatable
    #[arg(long, value_name = "CONDITION", help_heading = SEARCH)]
    pub(crate) fail_if: Vec<String>,

    /// Write the conditions of --fail-if to a file as JUnit XML, which CI servers show as test results
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub(crate) junit: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) kept: BaselineArgs,

    /// Continue a search that was interrupted or killed
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["url", "objective", "confidence", "precision", "hold", "burst", "budget", "seed", "cpus", "out", "parameters"]
    )]
    pub(crate) resume: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) lab: LabArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t = CapacityFormat::Text)]
    pub(crate) format: CapacityFormat,

    /// Print the whole report as text, not a summary of one screen
    #[arg(long)]
    pub(crate) full: bool,

    /// Write the answer to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CapacityFormat {
    /// A summary of one screen, or the whole report with --full.
    Text,
    /// The report as Markdown.
    Markdown,
    /// For programs: docs/schemas/weir-capacity-2.json.
    Json,
    /// A row for each arm (docs/csv.md).
    Csv,
}
