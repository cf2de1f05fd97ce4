//! Options for showing progress.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;
use http::Uri;

#[derive(Debug, ClapArgs)]
pub(crate) struct ProgressArgs {
    /// Display of what goes on: auto (the live view on a terminal, else lines), tui, lines, jsonl (events as JSON Lines
    /// on standard error), jsonl:FILE, or off
    #[arg(long, value_name = "HOW", default_value = "auto")]
    progress: ProgressWord,

    /// Show nothing: --progress off
    #[arg(short, long, conflicts_with = "progress")]
    quiet: bool,

    /// Serve the figures to Prometheus at http://ADDRESS/metrics while weir works, for example 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS", value_parser = read_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Send the figures to a receiver of Prometheus' remote write, for example http://127.0.0.1:9090/api/v1/write
    #[arg(long, value_name = "URL", value_parser = read_receiver)]
    pub(crate) remote_write: Option<Uri>,

    /// Version of remote write: 2 with native histograms, or 1 if the receiver knows no other; 1 with classic ones
    #[arg(long, value_name = "VERSION", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2), requires = "remote_write")]
    pub(crate) remote_write_version: u8,
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

fn read_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not an IP address and a port, such as 127.0.0.1:9100".to_owned())
}

impl ProgressArgs {
    /// Returns the chosen display; `--quiet` is `off`.
    pub(crate) fn word(&self) -> &ProgressWord {
        if self.quiet { &ProgressWord::Off } else { &self.progress }
    }

    /// Returns true if nothing is to be shown beside the result.
    pub(crate) fn is_quiet(&self) -> bool {
        self.word() == &ProgressWord::Off
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProgressWord {
    /// The live view if there is a terminal for it, else lines.
    Auto,
    Tui,
    Lines,
    /// JSON Lines on standard error (`None`), or in this file.
    Jsonl(Option<PathBuf>),
    Off,
}

impl FromStr for ProgressWord {
    type Err = String;

    fn from_str(text: &str) -> Result<ProgressWord, String> {
        match text {
            "auto" => Ok(ProgressWord::Auto),
            "tui" => Ok(ProgressWord::Tui),
            "lines" => Ok(ProgressWord::Lines),
            "jsonl" => Ok(ProgressWord::Jsonl(None)),
            "off" => Ok(ProgressWord::Off),
            other => match other.strip_prefix("jsonl:") {
                Some(file) if !file.is_empty() => Ok(ProgressWord::Jsonl(Some(file.into()))),
                _ => Err("not one of auto, tui, lines, jsonl, jsonl:FILE and off".to_owned()),
            },
        }
    }
}
