//! Options of a baseline that is kept.

use std::path::PathBuf;

use clap::Args as ClapArgs;

const BASELINE: &str = "Baseline";

#[derive(Debug, ClapArgs)]
pub(crate) struct BaselineArgs {
    /// Judge the run by the runs of the same study that are kept in this folder, and keep it there unless it is worse;
    /// --fail-if worse and inconclusive are then about that (docs/compare.md)
    #[arg(long, value_name = "DIR", help_heading = BASELINE)]
    pub(crate) baseline: Option<PathBuf>,

    /// Maximum number of runs that the baseline keeps: half of them, but at most ten, are the first ones, and the others
    /// the newest
    #[arg(long, value_name = "N", default_value_t = 20, requires = "baseline", help_heading = BASELINE,
        value_parser = clap::value_parser!(u16).range(10..=200))]
    pub(crate) keep: u16,

    /// Begin the baseline anew with this run, whatever its verdict: accept a change, or another machine
    #[arg(long, requires = "baseline", help_heading = BASELINE)]
    pub(crate) renew: bool,
}
