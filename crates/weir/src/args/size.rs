//! Arguments of `weir size`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Give runs of the same proxy on the same machine: a search (`weir capacity`) says how CPU time and network grow \
with the rate, a study with different numbers of connections (`held-connections`) what connections take. docs/size.md \
explains the answer."
)]
pub(crate) struct SizeArgs {
    /// Folders of runs
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,

    /// Requests per second that are to be carried, such as 30k
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: String,

    /// Connections that are open at the same time, idle ones included, such as 300k [default: as many as in the runs]
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<String>,

    /// Arm whose needs are wanted [default: the one with the highest capacity, else the baseline]
    #[arg(long, value_name = "ARM")]
    pub(crate) arm: Option<String>,

    /// Format to print
    #[arg(long, value_enum, default_value = "terminal")]
    pub(crate) format: SizeFormat,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Format of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SizeFormat {
    /// Text.
    Terminal,
    /// Markdown.
    Markdown,
    /// One self-contained page.
    Html,
    /// The findings, for programs (docs/schemas/weir-size-1.json).
    Json,
    /// Replicas, requests and limits for a manifest of Kubernetes.
    Kubernetes,
}
