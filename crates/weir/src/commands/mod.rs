//! One module for each command, which carries out the parsed arguments.

use std::path::Path;
use std::process::ExitCode;

use weir_model::quantity::QuantityError;

use crate::args::{Command, LabArgs};
use crate::closed;
use crate::failure::Failure;
use crate::terminal;

pub(crate) mod advise;
mod agent;
mod baseline;
pub(crate) mod capacity;
pub(crate) mod compare;
pub(crate) mod config;
mod confirm;
mod doctor;
mod export;
mod fail_if;
mod generate;
pub(crate) mod history;
mod idle;
mod ingress;
mod kept_runs;
pub(crate) mod kube;
mod launch;
mod load;
pub(crate) mod metrics;
mod next;
mod origin;
pub(crate) mod parameters;
mod patch;
mod place;
mod public;
pub(crate) mod report;
pub(crate) mod restore;
mod rootless;
mod run;
pub(crate) mod runs;
mod scale;
mod server;
pub(crate) mod size;
mod studies;
pub(crate) mod study;
mod sysctl;
mod time;
mod ui;
mod wait;

/// Runs a command.
pub(crate) fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    if matches!(
        command,
        Command::Run(_)
            | Command::Scale(_)
            | Command::Capacity(_)
            | Command::Compare(_)
            | Command::Advise(_)
            | Command::Agent
    ) {
        weir_files::keep_to_oneself();
    }
    if prints(&command) {
        closed::stdout_is_open()?;
    }
    if needs_networks(&command) {
        rootless::begin();
    }
    match command {
        Command::Load(mut args) => {
            let is_quiet = args.progress.is_quiet();
            ingress::resolve(&mut args.flow, &mut args.pods, args.observe, is_quiet)?;
            load::run(&args)
        }
        Command::Capacity(mut args) => {
            let is_quiet = args.lab.progress.is_quiet();
            ingress::resolve(&mut args.flow, &mut args.lab.pods, true, is_quiet)?;
            capacity::run(&args)
        }
        Command::Compare(args) => compare::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Origin(args) => origin::run(args),
        Command::Config(args) => config::run(&args),
        Command::Generate(args) => generate::run(args),
        Command::Launch(args) => launch::run(args),
        Command::Agent => agent::run(),
        Command::TryUserNamespace => rootless::attempt(),
        Command::Run(args) => run::run(*args),
        Command::Scale(args) => scale::run(*args),
        Command::Report(args) => report::run(args),
        Command::Size(args) => size::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::History(args) => history::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => export::import(&args),
        Command::Patch(args) => patch::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Parameters(args) => parameters::run(&args),
        Command::Doctor(args) => doctor::run(args),
        Command::Studies(args) => studies::run(args),
        Command::Ui(args) => ui::run(&args),
        Command::Kube(args) => kube::run(&args),
        Command::Wait(args) => wait::run(&args),
        Command::Sysctl(args) => sysctl::run(&args),
    }
}

/// Returns true if a command may start proxies on this host.
fn needs_networks(command: &Command) -> bool {
    match command {
        Command::Run(args) => is_here(&args.lab),
        Command::Scale(args) => is_here(&args.run.lab),
        Command::Capacity(args) => is_here(&args.lab),
        Command::Compare(args) => is_here(&args.lab),
        Command::Advise(args) => !args.what.is_empty() || args.resume.is_some(),
        Command::Agent => true,
        _ => false,
    }
}

/// Returns true if no other host has a role.
fn is_here(lab: &LabArgs) -> bool {
    lab.place.is_empty() && lab.pods.on.is_none()
}

/// Returns true if a command writes to standard output.
fn prints(command: &Command) -> bool {
    match command {
        Command::Load(args) => args.output.is_none(),
        Command::Capacity(args) => args.output.is_none(),
        Command::Compare(args) => args.output.is_none(),
        Command::Advise(args) => args.output.is_none(),
        Command::Report(args) => args.output.is_none(),
        Command::Size(args) => args.output.is_none(),
        Command::Metrics(args) => args.output.is_none(),
        Command::History(args) => args.output.is_none(),
        Command::Launch(_) | Command::TryUserNamespace | Command::Wait(_) => false,
        _ => true,
    }
}

/// Returns the value of a flag, or an error that names the flag.
fn flag<T>(name: &str, parsed: Result<T, QuantityError>) -> Result<T, Failure> {
    parsed.map_err(|error| Failure::input(format!("{name}: {error}")))
}

/// Checks that an output can be written, before anything is measured. An earlier result in the file is kept until a new
/// one replaces it.
fn can_be_written(path: &Path) -> Result<(), Failure> {
    // Whoever reads a pipe would hear its end.
    if weir_files::is_fifo(path) {
        return Ok(());
    }
    weir_files::open_output(path)
        .map(drop)
        .map_err(|error| Failure::input(format!("-o {}: {error}", path.display())))
}

/// Writes a result to the file, or to standard output, where it may have colours.
fn deliver(text: &str, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        None => terminal::print_painted(text),
        Some(path) => weir_files::write_output(path, text.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display()))),
    }
}
