//! Arguments of all commands. Each command interprets its own.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use weir_model::study::{ProxyKind, Until};

mod advise;
mod baseline;
mod capacity;
mod compare;
mod doctor;
mod generate;
mod history;
mod kube;
mod load;
mod metrics;
mod patch;
mod progress;
mod runs;
mod scale;
mod size;
mod ui;

pub(crate) use advise::AdviseArgs;
pub(crate) use baseline::BaselineArgs;
pub(crate) use capacity::{CapacityArgs, CapacityFormat};
pub(crate) use compare::{CandidateArgs, CompareArgs};
pub(crate) use doctor::{DoctorArgs, DoctorFormat};
pub(crate) use generate::GenerateArgs;
pub(crate) use history::HistoryArgs;
pub(crate) use kube::{
    ImageArgs, KubeArgs, PodArgs, RenderArgs, RightsArgs, SysctlArgs, WaitArgs, WantedArgs,
};
pub(crate) use load::{FlowArgs, FlowText, IoChoice, LoadArgs, LoadFormat};
pub(crate) use metrics::MetricsArgs;
pub(crate) use patch::PatchArgs;
pub(crate) use progress::{ProgressArgs, ProgressWord};
pub(crate) use runs::{
    DeleteArgs, ExportArgs, ExportFormat, ImportArgs, ListArgs, NoteArgs, RunsArgs, RunsCommand,
    TagArgs,
};
pub(crate) use scale::ScaleArgs;
pub(crate) use size::{SizeArgs, SizeFormat};
pub(crate) use ui::UiArgs;

/// An ingress performance lab in one binary.
///
/// weir puts a reverse proxy under controlled load, compares settings side by side, and says which
/// make it carry more, with proof.
#[derive(Debug, Parser)]
#[command(name = "weir", version = version(), max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed (what was asked for could not be done: nobody listens, a name does not \
resolve, TLS fails), 2 bad input (nothing was measured or changed), \
3 a --fail-if condition is true, 101 a bug in weir (settings are put back), 130 interrupted (what was measured is reported)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Returns the exact version: number, and commit if the build knew it.
pub(crate) fn version() -> &'static str {
    env!("WEIR_VERSION")
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send load to a URL; print rates, response times and whether to trust them.
    Load(Box<LoadArgs>),
    /// Find how many requests per second a URL, or each arm of a study, carries within an objective.
    Capacity(Box<CapacityArgs>),
    /// Compare two servers side by side: is the new one worse than the old one?
    Compare(Box<CompareArgs>),
    /// Try published recommendations on a proxy: which help here, which do nothing, which harm?
    Advise(Box<AdviseArgs>),
    /// Run a study: compare settings of a real proxy, side by side.
    Run(Box<RunArgs>),
    /// Run a study of one number (CPUs, workers, connections, sizes) and say how the rate grows with it.
    Scale(Box<ScaleArgs>),
    /// Write the report of a run again, in any format.
    Report(ReportArgs),
    /// Say which machines a load needs, from runs that measured smaller ones.
    Size(SizeArgs),
    /// Print the figures of a run for Prometheus, with its own time stamps, or send them there.
    Metrics(MetricsArgs),
    /// Show all runs of a study over time: what changed when, and what else changed with it.
    History(HistoryArgs),
    /// Show runs, studies and what a run does in a browser, on a page of this host alone.
    Ui(UiArgs),
    /// List the runs of a folder; find, tag and remove them.
    Runs(RunsArgs),
    /// Write a run as tables, or as one file that another weir imports.
    Export(ExportArgs),
    /// Unpack a run that was exported as an archive, and check it.
    Import(ImportArgs),
    /// Print what an arm of a run changes in your own configuration, as a diff; apply nothing.
    Patch(PatchArgs),
    /// Say which settings of this host and its nginx would limit a load; change nothing.
    Doctor(DoctorArgs),
    /// List the ready-made studies.
    Studies(StudiesArgs),
    /// Restore the settings that a killed weir left changed, and remove its folders.
    Restore(RestoreArgs),
    /// List the parameters of the proxy and the kernel that a study can vary, or show one in full.
    Parameters(ParametersArgs),
    /// Show the default of every option, and whether it comes from the environment or from a weir.toml.
    Config(ConfigArgs),
    /// Run an origin server: responses by size or from a file, delays, scripted stalls.
    Origin(OriginArgs),
    /// Prepare generators in pods of a Kubernetes cluster: the image, the objects, the rights.
    #[command(subcommand)]
    Kube(KubeArgs),
    /// Write what installers need, from the options themselves: shell completions, man pages, JSON schemas.
    #[command(hide = true, subcommand)]
    Generate(GenerateArgs),
    /// Start a program as the lab starts proxies: on given CPUs, dying with its parent.
    #[command(hide = true)]
    Launch(LaunchArgs),
    /// Act for a weir on another host, over standard input and output; started by weir itself.
    #[command(hide = true)]
    Agent,
    /// Be the first process of a pod, which only waits; started by the cluster.
    #[command(hide = true)]
    Wait(WaitArgs),
    /// Read a setting of the kernel, or change it; started by weir in a pod.
    #[command(hide = true)]
    Sysctl(SysctlArgs),
    /// Try whether a user namespace brings network namespaces; started by weir itself.
    #[command(hide = true)]
    TryUserNamespace,
}

impl Command {
    /// Returns the command with `-o -` replaced by no `-o`: both mean standard output.
    pub(crate) fn settled(mut self) -> Command {
        let output = match &mut self {
            Command::Load(args) => &mut args.output,
            Command::Capacity(args) => &mut args.output,
            Command::Compare(args) => &mut args.output,
            Command::Advise(args) => &mut args.output,
            Command::Run(args) => &mut args.output,
            Command::Scale(args) => &mut args.run.output,
            Command::Report(args) => &mut args.output,
            Command::Size(args) => &mut args.output,
            Command::Metrics(args) => &mut args.output,
            Command::History(args) => &mut args.output,
            _ => return self,
        };
        output.take_if(|path| path.as_os_str() == "-");
        self
    }
}

/// Options of ssh connections to other hosts.
#[derive(Debug, ClapArgs)]
pub(crate) struct SshArgs {
    /// One more argument for ssh, such as -oPort=2222, or -p and then 2222; repeatable
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) ssh_option: Vec<String>,

    /// Use the weir that is installed at this path on those hosts, instead of copying this one
    #[arg(long, value_name = "PATH")]
    pub(crate) agent: Option<PathBuf>,
}

/// When a load ends.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum UntilWord {
    /// When its duration is over.
    Planned,
    /// Ends as soon as everything is decided.
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

/// Options for the place of a run and the settings that it may change.
#[derive(Debug, ClapArgs)]
pub(crate) struct LabArgs {
    /// Folder for the run's records and report [default: runs/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Put a role on a host, as ROLE=HOST: generator, proxy, origin or all, and a host as for ssh; repeatable. Generators
    /// may be several, each with its share of the load: generator=HOST,HOST [default: this host]
    #[arg(long, value_name = "ROLE=HOST")]
    pub(crate) place: Vec<String>,

    #[command(flatten)]
    pub(crate) ssh: SshArgs,

    #[command(flatten)]
    pub(crate) pods: PodArgs,

    /// Allow the study to change settings of the whole host while it runs; they are restored afterwards
    #[arg(long)]
    pub(crate) allow_host_settings: bool,

    /// Allow a study with `sysctls: node` to set the kernel of the cluster's nodes while it runs, by privileged pods of --image; the
    /// settings are restored afterwards
    #[arg(long, requires = "on", help_heading = "Kubernetes")]
    pub(crate) node_sysctls: bool,

    /// A file with parameters of your own (docs/parameters.md); repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Vec<PathBuf>,

    /// Confirm that the server is yours, or that its owner agrees: needed for more than 100 requests/s or connections to
    /// a public address
    #[arg(long)]
    pub(crate) yes_this_is_mine: bool,

    /// Prove what limits each arm, in a paired trial after the run: change the parameter that is named, or take away a
    /// quarter of the CPU time (half a minute to two minutes per arm). "Not confirmed" is an answer too
    #[arg(long)]
    pub(crate) confirm: bool,

    /// Time between readings of the counters of every host and proxy during a trial; they are kept in the run's folder,
    /// in samples/*.csv
    #[arg(long, value_name = "HOW_OFTEN", value_enum, default_value = "1hz")]
    pub(crate) samples: SamplesWord,

    /// Show where the time of requests goes: in the proxy, connecting, waiting for the origin, in accept queues. Each
    /// proxy that weir configures then logs every request, which costs some CPU time (docs/samples.md)
    #[arg(long)]
    pub(crate) where_time_goes: bool,

    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

/// Rate at which counters are read.
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
    /// Returns the time from one sample to the next; `None` if there are no samples.
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

    /// Continue a run that was interrupted or killed
    #[arg(long, value_name = "RUN", conflicts_with_all = ["study", "out", "check", "time", "until", "budget", "scale", "parameters", "check_alone"])]
    pub(crate) resume: Option<PathBuf>,

    /// Check the study and show the plan, without starting anything
    #[arg(long)]
    pub(crate) check: bool,

    /// After the study, measure baseline and winner again, one at a time, and say whether their ratio holds without
    /// the other arms beside them (adds a third of the load's time, at least half a minute)
    #[arg(long)]
    pub(crate) check_alone: bool,

    #[command(flatten)]
    pub(crate) lab: LabArgs,

    /// Measure for this share of the study's time, such as 25%: faster, with wider intervals. If the minimum of blocks,
    /// starts and warm-ups need more, weir first says how long it will take and why
    #[arg(long, value_name = "SHARE")]
    pub(crate) time: Option<String>,

    /// When a load ends: planned, after its duration; or decided, as soon as every arm is better, worse, equivalent,
    /// or cannot be decided in its duration. A decided arm ends earlier [default: as in the study, or planned]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) until: Option<UntilWord>,

    /// Time for the whole run, such as 20m, including starts, pilots and the report. Loads become longer or shorter
    /// to fit
    #[arg(long, value_name = "TIME", conflicts_with = "time")]
    pub(crate) budget: Option<String>,

    /// Multiply the connections and rates of all loads, to fit them to this machine: 25%, 0.25, 2x
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<String>,

    /// Format to write at the end [default: a summary of one screen]; report.html and report.md are written to the
    /// run's folder in any case
    #[arg(long, value_enum, conflicts_with = "check")]
    pub(crate) format: Option<ReportFormat>,

    /// Print the whole report at the end, not its summary
    #[arg(long, conflicts_with_all = ["format", "check"])]
    pub(crate) full: bool,

    /// Write it to a file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "format")]
    pub(crate) output: Option<PathBuf>,

    /// Exit with code 3 if this is true: 'worse', 'inconclusive', 'invalid', 'suspect', 'ARM worse',
    /// 'ARM p99 > 30ms', 'errors > 0.1%', 'rate < 5000/s'; of a study that asks for a capacity as `weir capacity` has it; may be
    /// given many times
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<String>,

    /// Write the conditions of --fail-if to a file as JUnit XML, which CI servers show as test results
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub(crate) junit: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) kept: BaselineArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// The run's folder
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Format to write [default: a summary of one screen, and report.html and report.md in the folder]
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,

    /// Print the whole report, not its summary
    #[arg(long, conflicts_with = "format")]
    pub(crate) full: bool,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "format")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// The whole report as text, as --full prints it.
    Terminal,
    /// Markdown.
    Markdown,
    /// One self-contained page.
    Html,
    /// The findings, for programs (docs/schemas/weir-findings-2.json).
    Json,
    /// A row for each load, arm and metric (docs/csv.md).
    Csv,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigArgs {
    /// Format to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TextOrJson,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StudiesArgs {
    /// Print this study, as a starting point for your own
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Restore another host, named as for ssh: a name, an alias, user@host
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,

    /// Remove all that weir has in a namespace of a cluster, as kubernetes:CONTEXT or kubernetes:CONTEXT/NAMESPACE: pods
    /// of runs that go on as well
    #[arg(long, value_name = "WHERE", conflicts_with = "host")]
    pub(crate) on: Option<String>,

    #[command(flatten)]
    pub(crate) ssh: SshArgs,

    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TextOrJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
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

    /// Proxy whose parameters to list [default: nginx, or the proxy that has NAME]
    #[arg(long, value_parser = proxy_name(), value_name = "PROXY")]
    pub(crate) proxy: Option<ProxyKind>,

    /// A file with parameters of your own (docs/parameters.md); repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Vec<PathBuf>,

    /// Format to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TextOrJson,
}

/// Returns a parser for the names of proxies that have parameters.
fn proxy_name() -> impl TypedValueParser<Value = ProxyKind> {
    let names = ProxyKind::started().map(ProxyKind::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let kind = ProxyKind::started().find(|kind| kind.name() == name);
        kind.ok_or("no such proxy")
    })
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OriginArgs {
    /// Address to listen on; repeatable
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub(crate) listen: Vec<String>,

    /// Size of the response body, such as 600 or 1KiB
    #[arg(short, long, value_name = "SIZE", default_value = "1KiB", conflicts_with = "file")]
    pub(crate) size: String,

    /// File to send as the response body
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Status code of every response
    #[arg(long, value_name = "CODE", default_value_t = 200)]
    pub(crate) status: u16,

    /// Media type of the response body
    #[arg(long, value_name = "TYPE", default_value = "text/plain")]
    pub(crate) content_type: String,

    /// Delay before each response: 5ms, 1ms..9ms (uniform), or exp:5ms (exponential with this mean)
    #[arg(long, value_name = "DELAY", default_value = "none")]
    pub(crate) delay: String,

    /// Process at most this many requests at the same time; the others wait in a queue: 1 with --delay 2ms answers at
    /// most 500/s [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<NonZeroU32>,

    /// Freeze: 1s@5s freezes for 1 s, starting 5 s after the first request; repeatable
    #[arg(long, value_name = "LENGTH@TIME")]
    pub(crate) stall: Vec<String>,

    /// CPUs to use, one pinned thread for each [default: one thread, not pinned]
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,

    /// Stop after this time
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LaunchArgs {
    /// Command line that `weir-sut` has put together.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}
