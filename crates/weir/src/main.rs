//! weir: an ingress performance lab in one binary.
//!
//! This crate is the terminal: arguments, output, exit codes and signals. Nothing else prints.

use std::process::ExitCode;

use clap::Parser;

mod args;
mod commands;
mod engine;
mod failure;
mod progress;
mod request_file;
mod signals;
mod terminal;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are not errors; everything else is bad input, exit code 2.
            if !error.use_stderr() {
                let _ = error.print();
                return ExitCode::SUCCESS;
            }
            let text = error.render();
            match terminal::color_on_stderr() {
                true => terminal::tell_painted(&text.ansi().to_string()),
                false => terminal::tell(&text.to_string()),
            }
            return ExitCode::from(failure::BAD_INPUT);
        }
    };
    match commands::dispatch(args.command) {
        Ok(code) => code,
        Err(failure) => {
            let text = failure.rendered(terminal::color_on_stderr());
            terminal::tell_painted(&format!("{text}\n"));
            failure.exit_code()
        }
    }
}
