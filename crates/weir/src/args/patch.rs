//! What `weir patch` takes.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The diff goes to standard output; how to apply it, and what it rests on, to \
standard error:\n  weir patch RUN > change.diff\nNothing is written to your configuration. See docs/patch.md."
)]
pub(crate) struct PatchArgs {
    /// The run's folder
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// The arm whose changes are wanted [default: the one that came out best, if any is better]
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,

    /// Print what takes the arm's changes back
    #[arg(long)]
    pub(crate) revert: bool,
}
