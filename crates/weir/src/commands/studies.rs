//! `weir studies`: the ready-made studies.

use std::process::ExitCode;

use crate::args::StudiesArgs;
use crate::commands::study;
use crate::failure::Failure;
use crate::terminal;

/// Runs the command.
pub(crate) fn run(args: StudiesArgs) -> Result<ExitCode, Failure> {
    match args.name {
        Some(name) => terminal::print(study::ready_made(&name)?.text)?,
        None => terminal::print(&list()?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<String, Failure> {
    let mut text = String::new();
    let studies = weir_study::studies();
    let widest = studies
        .iter()
        .map(|study| study.name.len())
        .max()
        .unwrap_or(0);
    for ready in studies {
        let study = study::parse_ready_made(ready)?;
        let seconds: u64 = study.loads.iter().map(|load| load.duration.as_secs()).sum();
        let minutes = (seconds as f64 / 60.0).max(0.1);
        let arms = study.arms.len();
        let plural = if arms == 1 { "" } else { "s" };
        text.push_str(&format!(
            "{:widest$}  {} ({arms} arm{plural}, {minutes:.1} min)\n",
            study.name, study.title
        ));
    }
    text.push_str("\nRun one with `weir run NAME`; print its text with `weir studies NAME`.\n");
    Ok(text)
}
