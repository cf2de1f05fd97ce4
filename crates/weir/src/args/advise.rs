//! Arguments of `weir advise`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use weir_model::study::ProxyKind;

use super::{ProgressArgs, ReportFormat, proxy_name};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without WHAT, the recommendations are listed with the reason if one cannot be tried here.

Exit codes: 0 done, 1 failed, 2 bad input (nothing was measured), 130 interrupted: what is known is printed, and --resume goes on.

docs/advise.md explains the verdicts, and has the table of one machine."
)]
pub(crate) struct AdviseArgs {
    /// Letters of the published studies (A, A..E), names of recommendations, and the main file of a
    /// configuration of your own, on a copy of which they are tried; repeatable, or separated by commas
    #[arg(value_name = "WHAT", value_delimiter = ',')]
    pub(crate) what: Vec<String>,

    /// Only recommendations for this proxy; with a file: which proxy it belongs to [default: as its name says]
    #[arg(long, value_parser = proxy_name(), value_name = "PROXY")]
    pub(crate) proxy: Option<ProxyKind>,

    /// Port of your configuration's listener that gets the load [default: docs/configuration.md has the choice]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Name of the server in your configuration that gets the load
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,

    /// Path to request of your configuration [default: /]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,

    /// Time for all runs together, such as 20m [default: three quarters of a minute for each, and half a minute for each
    /// change]
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<String>,

    /// Go on with an earlier call, in its folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["what", "proxy", "port", "host", "path", "budget", "out"])]
    pub(crate) resume: Option<PathBuf>,

    /// Folder for the runs and the report [default: runs/advice-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Allow recommendations that change settings of the whole host; they are restored afterwards
    #[arg(long)]
    pub(crate) allow_host_settings: bool,

    /// Format to print at the end; advice.html, advice.md and advice.json are written to the folder in any case
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,

    /// Write it to a file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "format")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}
