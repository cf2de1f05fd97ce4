//! `weir studies`: the ready-made studies.

use std::process::ExitCode;

use crate::args::StudiesArgs;
use crate::commands::study;
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(args: StudiesArgs) -> Result<ExitCode, Failure> {
    match args.name {
        Some(name) => print!("{}", study::ready_made(&name)?.text),
        None => list()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<(), Failure> {
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
        println!(
            "{:widest$}  {} ({arms} arms, {minutes:.1} min)",
            study.name, study.title
        );
    }
    println!("\nRun one with `weir run NAME`; print its text with `weir studies NAME`.");
    Ok(())
}
