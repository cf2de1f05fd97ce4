//! Options for showing progress.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;

use super::metrics::RemoteWriteArgs;

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

    #[command(flatten)]
    pub(crate) remote_write: RemoteWriteArgs,
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
