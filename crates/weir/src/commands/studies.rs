//! `weir studies`: the ready-made studies.

use std::process::ExitCode;
use std::time::Duration;

use weir_model::study::Study;
use weir_report::number;

use crate::args::StudiesArgs;
use crate::commands::study;
use crate::failure::Failure;
use crate::terminal;

pub(crate) fn run(args: StudiesArgs) -> Result<ExitCode, Failure> {
    match args.name {
        Some(name) => terminal::print(study::ready_made(&name)?.text)?,
        None => terminal::print(&list())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> String {
    let mut text = String::new();
    let studies = weir_study::studies();
    let widest = studies.iter().map(|study| study.name.len()).max().unwrap_or(0);
    for ready in studies {
        let line = match study::fit(ready) {
            Ok(study) => describe(&study),
            Err(why) => format!("does not fit this machine: {why}"),
        };
        text.push_str(&format!("{:widest$}  {line}\n", ready.name));
    }
    text.push_str("\nRun one with `weir run NAME`; print its text with `weir studies NAME`.\n");
    text
}

/// Describes a study: title, number of arms and length.
pub(super) fn describe(study: &Study) -> String {
    // Whole seconds: it depends on the machine.
    let seconds = weir_proposers::budget::length_of(study).as_secs_f64().round();
    let length = number::length(Duration::from_secs(seconds as u64));
    let arms = study.arms.len();
    let plural = if arms == 1 { "" } else { "s" };
    format!("{} ({arms} arm{plural}, {length})", study.title)
}
