//! Arguments of `weir doctor`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 no setting would limit the load (there may be warnings and notes), \
1 at least one setting would, 2 bad input."
)]
pub(crate) struct DoctorArgs {
    /// Configuration file to check, as with --nginx
    #[arg(value_name = "FILE", conflicts_with = "on")]
    pub(crate) file: Option<PathBuf>,

    /// Client connections that the proxy must hold at the same time
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) connections: Option<u64>,

    /// Requests per second that it must serve, such as 2000 or 50k
    #[arg(short = 'R', long, value_name = "RATE")]
    pub(crate) rate: Option<String>,

    /// New client connections per second [default: the rate, if nginx keeps no client connections]
    #[arg(long, value_name = "RATE")]
    pub(crate) connections_per_second: Option<String>,

    /// nginx configuration file to check [default: that of the running nginx, or /etc/nginx/nginx.conf]
    #[arg(
        long,
        visible_alias = "config",
        value_name = "FILE",
        conflicts_with_all = ["file", "on"]
    )]
    pub(crate) nginx: Option<PathBuf>,

    /// Process id of the nginx master process to check [default: the running one]
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Check pods of a Kubernetes cluster and what they run on, instead of this host: kubernetes:CONTEXT/NAMESPACE, of your
    /// kubectl configuration
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["pid", "root"])]
    pub(crate) on: Option<String>,

    /// Only the pods that have this label [default: all of the namespace]
    #[arg(long, value_name = "KEY=VALUE", requires = "on")]
    pub(crate) selector: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = DoctorFormat::Text)]
    pub(crate) format: DoctorFormat,

    /// Folder that stands for `/`
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) root: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// For a reader.
    Text,
    /// For programs: docs/doctor.md.
    Json,
}
