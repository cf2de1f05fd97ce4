//! Whole studies on simulated hosts: how many a minute, and how often their verdicts are wrong.
//!
//! ```text
//! simulate [STUDIES [SEED]]
//! simulate keep FOLDER SCENARIO
//! ```
//!
//! Each scenario of `weir_simulation::scenarios` has its share of the studies: baseline, A/A arm and an arm that
//! something happens to, 12 s in a closed loop. A verdict is false where the A/A arm is called better or worse.
//! The second form runs one study and keeps its folder, for `weir report`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_analysis::findings::{Findings, Verdict};
use weir_lab::{LabError, Options, PlaceSpec};
use weir_model::fixture;
use weir_model::record::Validity;
use weir_model::study::{ArmRole, Study, StudyArrivals};
use weir_parameters::Catalog;
use weir_record::Run;
use weir_simulation::{Model, SICK, scenarios};
use weir_sut::Launcher;

/// What came of the studies of a scenario.
#[derive(Default)]
struct Tally {
    studies: u32,
    errors: u32,
    not_valid: u32,
    comparisons: u32,
    /// A/A comparisons that are better or worse.
    false_verdicts: u32,
    /// Comparisons of the arm that something happens to that are better or worse.
    seen: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == "keep").is_some() {
        let (folder, name) = arguments
            .next()
            .zip(arguments.next())
            .ok_or("keep what, where?")?;
        let found = scenarios(1).into_iter().find(|(known, _)| *known == name);
        let (_, model) = found.ok_or("there is no such scenario")?;
        run_in(&model, folder.into())?;
        return Ok(());
    }
    let mut number = |otherwise: u64| match arguments.next() {
        Some(text) => text.parse(),
        None => Ok(otherwise),
    };
    let (studies, first) = (number(1000)?, number(1)?);
    let names: Vec<&str> = scenarios(0).into_iter().map(|(name, _)| name).collect();
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    let begun = Instant::now();
    for number in 0..studies {
        let place = number as usize % names.len();
        let (_, model) = scenarios(first + number).swap_remove(place);
        tallies.entry(place).or_default().add(&one(&model));
    }
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:30} studies  errors  not VALID  false A/A  seen",
        "scenario"
    )?;
    for (place, tally) in &tallies {
        writeln!(
            out,
            "{:30} {:7} {:7} {:10} {:6} of {:<4} {:4}",
            names[*place],
            tally.studies,
            tally.errors,
            tally.not_valid,
            tally.false_verdicts,
            tally.comparisons,
            tally.seen
        )?;
    }
    let rate = studies as f64 / minutes;
    writeln!(
        out,
        "{studies} studies in {minutes:.2} minutes, {rate:.0} a minute"
    )?;
    Ok(())
}

impl Tally {
    fn add(&mut self, result: &Result<Findings, LabError>) {
        self.studies += 1;
        let Ok(findings) = result else {
            self.errors += 1;
            return;
        };
        let load = &findings.loads[0];
        self.not_valid += u32::from(load.validity != Validity::Valid);
        for comparison in &load.comparisons {
            let differs = matches!(comparison.verdict, Verdict::Better | Verdict::Worse);
            match comparison.arm.as_str() {
                "same" => {
                    self.comparisons += 1;
                    self.false_verdicts += u32::from(differs);
                }
                _ => self.seen += u32::from(differs),
            }
        }
    }
}

fn study() -> Study {
    let arms = [
        ("stock", ArmRole::Baseline),
        ("same", ArmRole::SameAsBaseline),
        (SICK, ArmRole::Change),
    ];
    let arms = arms.map(|(name, role)| fixture::arm(name, role, &[]));
    let mut study = fixture::study(arms.to_vec());
    study.name = "simulated".to_owned();
    study.question = "Does anything happen to the second arm?".to_owned();
    let mut load = fixture::load("closed", StudyArrivals::Closed);
    load.connections = 8;
    load.duration = Duration::from_secs(12);
    let mut load = fixture::load("closed", StudyArrivals::Closed);
    load.connections = 8;
    load.duration = Duration::from_secs(12);
    study.loads = vec![load];
    study.blocks.slice = Some(Duration::from_millis(100));
    study
}

/// Runs a study on a host of this model, in a folder in memory where there is one.
fn one(model: &Model) -> Result<Findings, LabError> {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    let folder = folder.expect("a folder can be made");
    let folder = run_in(model, folder.path().join("run"))?;
    Ok(weir_analysis::analyze(&Run::read(&folder)?))
}

/// Runs a study on a host of this model in a folder that is not there yet.
fn run_in(model: &Model, folder: PathBuf) -> Result<PathBuf, LabError> {
    let options = Options {
        folder,
        launcher: Launcher::new("weir".into()),
        weir_version: "simulated".to_owned(),
        remarks: Vec::new(),
        catalog: Catalog::builtin(),
        places: PlaceSpec::simulated(model.clone()),
        allow_host_settings: false,
        stop: Arc::default(),
    };
    Ok(weir_lab::run(&study(), "", &options, &mut |_| {})?.folder)
}
