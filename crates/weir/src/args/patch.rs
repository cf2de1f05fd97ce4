//! Arguments of `weir patch`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The diff goes to standard output; the result behind it, and how to apply it, go to \
standard error:\n  weir patch RUN > change.diff\nNothing is written to your configuration. See docs/patch.md."
)]
pub(crate) struct PatchArgs {
    /// The run's folder
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Print the changes of this arm [default: the best arm, if one is better than the baseline]
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,

    /// Print the diff that undoes the arm's changes
    #[arg(long)]
    pub(crate) revert: bool,

    /// Print the changes as a diff of this values file of the controller's Helm chart, instead of commands for kubectl
    #[arg(long, value_name = "FILE")]
    pub(crate) values: Option<PathBuf>,
}
