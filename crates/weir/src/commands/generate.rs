//! `weir generate`: files that installers need, made from the options themselves.

use std::fs;
use std::process::ExitCode;

use clap::{Command, CommandFactory};

use crate::args::{self, Args, GenerateArgs};
use crate::failure::Failure;
use crate::{schemas, terminal};

pub(crate) fn run(args: GenerateArgs) -> Result<ExitCode, Failure> {
    match args {
        GenerateArgs::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut list_commands(), "weir", &mut text);
            terminal::print_as_it_is(&String::from_utf8_lossy(&text))?;
        }
        GenerateArgs::Man { folder } => {
            fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(Args::command(), &folder))
                .map_err(|error| {
                    Failure::failed(format!(
                        "cannot write man pages to {}: {error}",
                        folder.display()
                    ))
                })?;
        }
        GenerateArgs::Schema { name: None } => {
            terminal::print(&schemas::names().map(|name| format!("{name}\n")).collect::<String>())?;
        }
        GenerateArgs::Schema { name: Some(name) } => {
            terminal::print(&schemas::schema(&name).ok_or_else(|| {
                let failure = Failure::input(format!("there is no schema called `{name}`"));
                failure.hint("`weir generate schema` lists them")
            })?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line interface without hidden commands, which completions would otherwise offer.
fn list_commands() -> Command {
    let all = Args::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set());
    let listed = Command::new("weir").version(args::version());
    listed.subcommands(commands.cloned())
}
