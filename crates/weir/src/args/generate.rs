//! Arguments of `weir generate`.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

#[derive(Debug, Subcommand)]
pub(crate) enum GenerateArgs {
    /// Print the completions for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write a man page for each command
    Man {
        /// Folder to write them to; made if it is not there
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the JSON schema of an output, or without NAME the names of all
    Schema {
        /// Name and version, such as weir-load-2
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
}
