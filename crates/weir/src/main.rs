//! weir: an ingress performance lab in one binary.
//!
//! This crate is the terminal: arguments, output, exit codes and signals. No other crate prints.

use std::process::ExitCode;
use std::time::SystemTime;

use clap::Parser;

use failure::Failure;

mod args;
mod bug;
mod clock;
mod closed;
mod commands;
mod config;
mod engine;
mod failure;
mod name_lookup;
mod other_tools;
mod progress;
mod recorded;
mod request_file;
mod schemas;
mod signals;
mod terminal;

fn main() -> ExitCode {
    if bug::is_putting_back() {
        return bug::put_back();
    }
    bug::watch();
    // Before anything that takes time: whoever asks how things are must not end what is being begun. Where the kernel refuses it, it is
    // told by who needs it.
    let _ = signals::asked_flag();
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(failure) = other_tools::refused(&words) {
        return failed(&failure);
    }
    let typed = match config::complete(std::env::args_os().collect()) {
        Ok(typed) => typed,
        Err(failure) => return failed(&failure),
    };
    let args = match args::Args::try_parse_from(&typed.words) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are not errors; everything else is bad input, exit code 2.
            if !error.use_stderr() {
                let text = error.render();
                let printed = closed::stdout_is_open().and_then(|()| {
                    if terminal::color_on_stdout() {
                        terminal::print_painted(&text.ansi().to_string())
                    } else {
                        terminal::print(&text.to_string())
                    }
                });
                return printed.map_or_else(|failure| failed(&failure), |()| ExitCode::SUCCESS);
            }
            let text = error.render();
            if terminal::color_on_stderr() {
                terminal::tell_painted(&text.ansi().to_string());
            } else {
                terminal::tell(&text.to_string());
            }
            terminal::tell(&typed.sources(&text.to_string()));
            return ExitCode::from(failure::BAD_INPUT);
        }
    };
    let command = args.command.settled();
    // Settings are put back whatever the time is.
    if !matches!(command, args::Command::Restore(_))
        && let Err(failure) = clock::check(SystemTime::now())
    {
        return failed(&failure);
    }
    match commands::dispatch(command) {
        Ok(code) => code,
        Err(failure) => {
            let code = failed(&failure);
            if failure.is_input() {
                terminal::tell(&typed.sources(&failure.rendered(false)));
            }
            code
        }
    }
}

fn failed(failure: &Failure) -> ExitCode {
    let text = failure.rendered(terminal::color_on_stderr());
    terminal::tell_painted(&format!("{text}\n"));
    failure.exit_code()
}
