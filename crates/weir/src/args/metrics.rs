//! Arguments of `weir metrics`, and those of remote write.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use http::Uri;

/// Receiver of remote write.
#[derive(Debug, ClapArgs)]
pub(crate) struct RemoteWriteArgs {
    /// Send the figures to a receiver of Prometheus' remote write, for example http://127.0.0.1:9090/api/v1/write
    #[arg(id = "remote_write", long = "remote-write", value_name = "URL", value_parser = read_receiver)]
    pub(crate) url: Option<Uri>,

    /// Version of remote write: 2 with native histograms, or 1 if the receiver knows no other; 1 with classic ones
    #[arg(id = "remote_write_version", long = "remote-write-version", value_name = "VERSION", default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(1..=2), requires = "remote_write")]
    pub(crate) version: u8,
}

fn read_receiver(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("not a URL: {error}"))?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_some() => Ok(uri),
        Some("https") => {
            Err("remote write over TLS is not supported: send to a local agent or proxy".to_owned())
        }
        _ => Err("not a URL such as http://127.0.0.1:9090/api/v1/write".to_owned()),
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Without --remote-write, prints OpenMetrics text with time stamps:
  weir metrics runs/today -o run.om
  promtool tsdb create-blocks-from openmetrics run.om DATA_OF_PROMETHEUS

docs/metrics.md explains the figures.")]
pub(crate) struct MetricsArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) remote_write: RemoteWriteArgs,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "remote_write")]
    pub(crate) output: Option<PathBuf>,
}
