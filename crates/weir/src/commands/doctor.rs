//! `weir doctor`: what stands against a load. Reads, and changes nothing.

use std::process::ExitCode;

use weir_doctor::{Asked, GatherError, Request};
use weir_model::quantity::parse_rate;
use weir_report::foreign::masked;

use crate::args::{DoctorArgs, DoctorFormat};
use crate::commands::flag;
use crate::failure::{FAILED, Failure};
use crate::terminal;

/// Runs the command.
pub(crate) fn run(args: DoctorArgs) -> Result<ExitCode, Failure> {
    let facts = weir_doctor::gather(&Request {
        asked: asked(&args)?,
        nginx: args.nginx,
        pid: args.pid,
        root: args.root,
    })
    .map_err(|error| refused(&error))?;
    let examination = weir_doctor::examine(&facts);
    match args.format {
        DoctorFormat::Text => {
            let (width, color) = (terminal::width(), terminal::color_on_stdout());
            let text = weir_doctor::text(&examination, width, color);
            terminal::print_painted(&masked(&text))?;
        }
        DoctorFormat::Json => {
            let json = examination.json().map_err(Failure::failed)?;
            terminal::print(&masked(&json))?;
        }
    }
    Ok(match examination.has_errors() {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    })
}

fn asked(args: &DoctorArgs) -> Result<Asked, Failure> {
    let rate = |name: &str, text: &Option<String>| {
        text.as_deref()
            .map(|text| flag(name, parse_rate(text)))
            .transpose()
    };
    Ok(Asked {
        connections: args.connections,
        rate: rate("--rate", &args.rate)?,
        connections_per_second: rate("--connections-per-second", &args.connections_per_second)?,
    })
}

fn refused(error: &GatherError) -> Failure {
    Failure::input(error).hint(error.hint())
}
