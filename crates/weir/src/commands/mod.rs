//! One module for each command: from what was typed to what is done.

use std::path::Path;
use std::process::ExitCode;

use weir_model::quantity::QuantityError;

use crate::args::Command;
use crate::failure::Failure;
use crate::terminal;

mod agent;
mod capacity;
mod confirm;
mod doctor;
mod idle;
mod launch;
mod load;
mod origin;
mod parameters;
mod patch;
mod place;
mod public;
mod report;
pub(crate) mod restore;
mod run;
mod studies;
mod study;
mod time;

/// Carries a command out.
pub(crate) fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    if matches!(
        command,
        Command::Run(_) | Command::Capacity(_) | Command::Agent
    ) {
        weir_files::keep_to_oneself();
    }
    match command {
        Command::Load(args) => load::run(&args),
        Command::Capacity(args) => capacity::run(&args),
        Command::Origin(args) => origin::run(args),
        Command::Launch(args) => launch::run(args),
        Command::Agent => agent::run(),
        Command::Run(args) => run::run(args),
        Command::Report(args) => report::run(args),
        Command::Patch(args) => patch::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Parameters(args) => parameters::run(&args),
        Command::Doctor(args) => doctor::run(args),
        Command::Studies(args) => studies::run(args),
    }
}

/// The value of a flag, or a message that names the flag.
fn flag<T>(name: &str, parsed: Result<T, QuantityError>) -> Result<T, Failure> {
    parsed.map_err(|error| Failure::input(format!("{name}: {error}")))
}

/// Writes a result, perhaps with colours, where it was asked for.
fn deliver(text: &str, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        None => terminal::print_painted(text),
        Some(path) => weir_files::write_output(path, text.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display()))),
    }
}
