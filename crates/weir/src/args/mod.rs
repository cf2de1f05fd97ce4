//! What can be typed. What it means is decided by each command.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use weir_model::study::{ProxyKind, Until};

mod capacity;
mod doctor;
mod load;
mod patch;
mod progress;

pub(crate) use capacity::{CapacityArgs, CapacityFormat};
pub(crate) use doctor::{DoctorArgs, DoctorFormat};
pub(crate) use load::{FlowArgs, FlowText, IoChoice, LoadArgs, LoadFormat};
pub(crate) use patch::PatchArgs;
pub(crate) use progress::{ProgressArgs, ProgressWord};

/// An ingress performance lab in one binary.
///
/// weir puts a reverse proxy under controlled load, compares settings side by side, and says which
/// make it carry more, with proof.
#[derive(Debug, Parser)]
#[command(name = "weir", version = version(), max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 bad input (nothing was measured or changed), \
3 a --fail-if condition is true, 130 interrupted (what was measured is reported)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The exact version: number, and commit where the build knew it.
pub(crate) fn version() -> &'static str {
    env!("WEIR_VERSION")
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Put a URL under load and say what it carries and how long it takes.
    Load(Box<LoadArgs>),
    /// Find out how many requests per second a URL, or each arm of a study, carries within an objective.
    Capacity(Box<CapacityArgs>),
    /// Run a study: compare settings of a real proxy, side by side.
    Run(RunArgs),
    /// Write the report of a run again, in any format.
    Report(ReportArgs),
    /// Print what an arm of a run changes in your own configuration, as a diff; apply nothing.
    Patch(PatchArgs),
    /// Say what of this host's and its proxy's settings stands against a load; change nothing.
    Doctor(DoctorArgs),
    /// List the ready-made studies.
    Studies(StudiesArgs),
    /// Put back the settings that a killed weir has left changed, and remove its folders.
    Restore(RestoreArgs),
    /// List what a study can vary, of the proxy and of the kernel, or show one parameter in full.
    Parameters(ParametersArgs),
    /// Serve as an origin server: content by size or file, delays, scripted stalls.
    Origin(OriginArgs),
    /// Start a program as the lab starts proxies: on given CPUs, dying with its parent.
    #[command(hide = true)]
    Launch(LaunchArgs),
    /// Serve as weir's hand on this host, on standard input and output; started by weir itself.
    #[command(hide = true)]
    Agent,
}

/// How hosts are reached.
#[derive(Debug, ClapArgs)]
pub(crate) struct SshArgs {
    /// One more word for ssh, such as -p and 2222, or -oPort=2222; may be given many times
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) ssh_option: Vec<String>,

    /// The weir that is installed on those hosts, instead of a copy of this one
    #[arg(long, value_name = "PATH")]
    pub(crate) agent: Option<PathBuf>,
}

/// When a load has blocks enough.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum UntilWord {
    /// When its duration is over.
    Planned,
    /// As soon as everything is decided.
    Decided,
}

impl From<UntilWord> for Until {
    fn from(word: UntilWord) -> Until {
        match word {
            UntilWord::Planned => Until::Planned,
            UntilWord::Decided => Until::Decided,
        }
    }
}

/// Where a run is made, and what it may touch.
#[derive(Debug, ClapArgs)]
pub(crate) struct LabArgs {
    /// Folder for the run's records and report [default: runs/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Where a role is, as ROLE=HOST: generator, proxy, origin or all, and a host as ssh takes it; may be
    /// given many times [default: this host]
    #[arg(long, value_name = "ROLE=HOST")]
    pub(crate) place: Vec<String>,

    #[command(flatten)]
    pub(crate) ssh: SshArgs,

    /// Let the study change settings of the whole host while it lasts; they are put back
    #[arg(long)]
    pub(crate) allow_host_settings: bool,

    /// A file with parameters of your own (docs/parameters.md); may be given many times
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Vec<PathBuf>,

    /// The server is yours, or its owner agrees: needed for more than 100 requests/s to a public address
    #[arg(long)]
    pub(crate) yes_this_is_mine: bool,

    /// Prove what limits each arm: turn the parameter that it names, or take a quarter of the CPU time away,
    /// in a paired trial of its own after the run (half a minute or two for each arm). "Not confirmed" is an answer too
    #[arg(long)]
    pub(crate) confirm: bool,

    /// How often the counters of every host and proxy are read while a trial goes on; they are kept in the run's
    /// folder, in samples/*.csv
    #[arg(long, value_name = "HOW_OFTEN", value_enum, default_value = "1hz")]
    pub(crate) samples: SamplesWord,

    /// Look at where the time of requests goes: in the proxy, connecting, waiting for the origin, in accept queues; each
    /// proxy that weir configures logs every request for that, which costs it some CPU time (docs/samples.md)
    #[arg(long)]
    pub(crate) where_time_goes: bool,

    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

/// How often counters are read.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SamplesWord {
    /// Ten times a second
    #[value(name = "10hz")]
    Tenths,
    /// Every second
    #[value(name = "1hz")]
    Seconds,
    /// Not at all
    Off,
}

impl SamplesWord {
    /// From one reading to the next.
    pub(crate) fn interval(self) -> Option<Duration> {
        match self {
            SamplesWord::Tenths => Some(Duration::from_millis(100)),
            SamplesWord::Seconds => Some(Duration::from_secs(1)),
            SamplesWord::Off => None,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// A study file, or the name of a ready-made study (`weir studies` lists them)
    #[arg(value_name = "STUDY", required_unless_present = "resume")]
    pub(crate) study: Option<String>,

    /// Go on with a run that was interrupted or killed
    #[arg(long, value_name = "RUN", conflicts_with_all = ["study", "out", "check", "time", "until", "budget", "scale", "parameters", "check_alone"])]
    pub(crate) resume: Option<PathBuf>,

    /// Check the study and say what would be done, without starting anything
    #[arg(long)]
    pub(crate) check: bool,

    /// Measure baseline and winner once more when the study is done, one at a time, and say whether their ratio
    /// holds without the other arms beside them (a third of the load's time more, half a minute at least)
    #[arg(long)]
    pub(crate) check_alone: bool,

    #[command(flatten)]
    pub(crate) lab: LabArgs,

    /// Measure for this share of the study's time, such as 25%: quicker, with wider intervals. Where blocks at
    /// least, starts and warm-ups do not allow it, what it takes and why is said first
    #[arg(long, value_name = "SHARE")]
    pub(crate) time: Option<String>,

    /// When a load has blocks enough: planned, as many as its duration has time for; or decided, as soon as every arm
    /// is better, worse, equivalent, or hopeless to tell. An arm that is decided leaves, and a load lasts no
    /// longer than its duration [default: what the study says, else planned]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) until: Option<UntilWord>,

    /// What the whole run may take, such as 20m: starts, pilots and the report included. The loads get longer or shorter
    /// to fit it
    #[arg(long, value_name = "TIME", conflicts_with = "time")]
    pub(crate) budget: Option<String>,

    /// Multiply the connections and rates of all loads, to fit them to this machine: 25%, 0.25, 2x
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// The run's folder
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// What to write [default: the table on the terminal, and report.html and report.md in the folder]
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "format")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// The verdict table.
    Terminal,
    /// Markdown.
    Markdown,
    /// One self-contained page.
    Html,
    /// The findings, for programs.
    Json,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StudiesArgs {
    /// Print the text of one study, as a start for one of your own
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do it on another host, as ssh takes it: a name, an alias, user@host
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,

    #[command(flatten)]
    pub(crate) ssh: SshArgs,

    /// How to say what was done
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: RestoreFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RestoreFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ParametersArgs {
    /// The parameter to show in full
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Whose parameters: nginx's, unless NAME is another proxy's
    #[arg(long, value_parser = proxy_name(), value_name = "PROXY")]
    pub(crate) proxy: Option<ProxyKind>,

    /// A file with parameters of your own (docs/parameters.md); may be given many times
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Vec<PathBuf>,

    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ParametersFormat,
}

/// A proxy that has parameters, by its name.
fn proxy_name() -> impl TypedValueParser<Value = ProxyKind> {
    let names = ProxyKind::started().map(ProxyKind::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let kind = ProxyKind::started().find(|kind| kind.name() == name);
        kind.ok_or("no such proxy")
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParametersFormat {
    /// A table, or a description, for people.
    Text,
    /// The same for programs.
    Json,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OriginArgs {
    /// Address to listen on; may be given many times
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub(crate) listen: Vec<String>,

    /// Size of the content, such as 600 or 1KiB
    #[arg(
        short,
        long,
        value_name = "SIZE",
        default_value = "1KiB",
        conflicts_with = "file"
    )]
    pub(crate) size: String,

    /// File whose bytes are the content
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Status code of every response
    #[arg(long, value_name = "CODE", default_value_t = 200)]
    pub(crate) status: u16,

    /// Media type of the content
    #[arg(long, value_name = "TYPE", default_value = "text/plain")]
    pub(crate) content_type: String,

    /// Wait before each response: 5ms, or 1ms..9ms (evenly between), or exp:5ms (exponential, mean)
    #[arg(long, value_name = "DELAY", default_value = "none")]
    pub(crate) delay: String,

    /// Requests that wait at the same time; the others stand in line: 1 with --delay 2ms answers 500/s at most
    /// [default: each waits by itself]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<NonZeroU32>,

    /// Freeze after the first request: 1s@5s freezes for 1 s, 5 s after it; may be given many times
    #[arg(long, value_name = "LENGTH@TIME")]
    pub(crate) stall: Vec<String>,

    /// CPUs, one thread pinned to each [default: one thread, anywhere]
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,

    /// Stop by itself after this time
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LaunchArgs {
    /// What `weir-sut` has put together.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}
