//! Runs whole studies on simulated hosts: shows how many run in a minute, and how often their verdicts are wrong.
//!
//! ```text
//! simulate [STUDIES [SEED]]
//! simulate keep FOLDER SCENARIO
//! simulate verdicts [STUDIES [SEED [ROW [INSTANCES]]]]
//! simulate alone [STUDIES [SEED [ROW]]]
//! simulate until [STUDIES [SEED [ROW [SECONDS]]]]
//! simulate overall [STUDIES [SEED [ROW [SECONDS]]]]
//! ```
//!
//! The first form divides the studies among the scenarios of `weir_simulation::scenarios`. A study has a baseline, an
//! A/A arm and an arm with an effect, and lasts 12 s in a closed loop. A verdict is false if it calls the A/A arm
//! better or worse. The second form runs one study and keeps its folder, for `weir report`. The third makes the table
//! of docs/statistics.md: STUDIES studies of 24 s for each row of `weir_simulation::NOISES`, or for rows with ROW in
//! their names. The fourth also measures baseline and winner alone afterwards. The fifth measures until everything is
//! decided, for SECONDS (24) at most. The sixth makes the table of docs/compare.md: a change with `compare: overall`,
//! which has a closed loop and an open one for SECONDS (20) each.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_analysis::findings::{Comparison, Findings, Verdict};
use weir_hosts::{Options, PlaceSpec};
use weir_lab::{LabError, Summary};
use weir_model::fixture;
use weir_model::record::Validity;
use weir_model::study::{ArmRole, Compare, Metric, Study, StudyArrivals, Until};
use weir_parameters::Catalog;
use weir_record::Run;
use weir_simulation::{ArmModel, Model, NOISES, NoiseRow, SICK, scenarios};
use weir_stats::power;
use weir_sut::Launcher;

/// Results of the studies of a scenario.
#[derive(Default)]
struct Tally {
    studies: u32,
    errors: u32,
    not_valid: u32,
    comparisons: u32,
    /// A/A comparisons with the verdict better or worse.
    false_verdicts: u32,
    /// Comparisons of the arm with an effect that have the verdict better or worse.
    seen: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == "keep").is_some() {
        let (folder, name) = arguments.next().zip(arguments.next()).ok_or("keep what, where?")?;
        let (_, model) = scenarios(1)
            .into_iter()
            .find(|(scenario, _)| *scenario == name)
            .ok_or("there is no such scenario")?;
        run_in((&make_study(), false), &model, folder.into())?;
        return Ok(());
    }
    if arguments.next_if(|first| first == "verdicts").is_some() {
        return verdicts(&arguments.collect::<Vec<String>>());
    }
    if arguments.next_if(|first| first == "alone").is_some() {
        return alone(&arguments.collect::<Vec<String>>());
    }
    if arguments.next_if(|first| first == "until").is_some() {
        return until(&arguments.collect::<Vec<String>>());
    }
    if arguments.next_if(|first| first == "overall").is_some() {
        return overall(&arguments.collect::<Vec<String>>());
    }
    let arguments: Vec<String> = arguments.collect();
    let (studies, first) = (parse_number(&arguments, 0, 1000)?, parse_number(&arguments, 1, 1)?);
    let names: Vec<&str> = scenarios(0).into_iter().map(|(name, _)| name).collect();
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    let begun = Instant::now();
    for number in 0..studies {
        let index = number as usize % names.len();
        let (_, model) = scenarios(first + number).swap_remove(index);
        tallies.entry(index).or_default().add(&simulate((&make_study(), false), &model));
    }
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    let mut out = io::stdout().lock();
    writeln!(out, "{:30} studies  errors  not VALID  false A/A  seen", "scenario")?;
    for (index, tally) in &tallies {
        writeln!(
            out,
            "{:30} {:7} {:7} {:10} {:6} of {:<4} {:4}",
            names[*index],
            tally.studies,
            tally.errors,
            tally.not_valid,
            tally.false_verdicts,
            tally.comparisons,
            tally.seen
        )?;
    }
    let rate = studies as f64 / minutes;
    writeln!(out, "{studies} studies in {minutes:.2} minutes, {rate:.0} a minute")?;
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

fn make_study() -> Study {
    let arms =
        [("stock", ArmRole::Baseline), ("same", ArmRole::SameAsBaseline), (SICK, ArmRole::Change)]
            .map(|(name, role)| fixture::arm(name, role, &[]));
    let mut study = fixture::study(arms.to_vec());
    study.name = "simulated".to_owned();
    study.question = "Does anything happen to the second arm?".to_owned();
    let mut load = fixture::load("closed", StudyArrivals::Closed);
    load.connections = 8;
    load.duration = Duration::from_secs(12);
    study.loads = vec![load];
    study.blocks.slice = Some(Duration::from_millis(100));
    study
}

/// Parses an argument that may be left out.
fn parse_number(
    arguments: &[String],
    index: usize,
    otherwise: u64,
) -> Result<u64, std::num::ParseIntError> {
    match arguments.get(index) {
        Some(text) => text.parse(),
        None => Ok(otherwise),
    }
}

fn percent(part: f64, count: f64) -> String {
    format!("{:.1} %", 100.0 * part / count)
}

/// Prints the table of docs/statistics.md.
fn verdicts(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let (studies, first, instances) = (
        parse_number(arguments, 0, 1000)?,
        parse_number(arguments, 1, 1)?,
        parse_number(arguments, 3, 8)?,
    );
    let wanted = arguments.get(2).map_or("", |row| row);
    let mut out = io::stdout().lock();
    writeln!(out, "{HEAD}")?;
    for row in NOISES.iter().filter(|row| row.name.contains(wanted)) {
        let study = noisy(row, instances as u32);
        let mut tallies: BTreeMap<Metric, VerdictTally> = BTreeMap::new();
        for seed in first..first + studies {
            let Ok(findings) = simulate((&study, false), &row.model(seed)) else {
                tallies.entry(Metric::Rate).or_default().errors += 1;
                continue;
            };
            let comparisons = findings.loads[0].comparisons.iter();
            for comparison in
                comparisons.filter(|comparison| comparison.metric != Metric::CpuPerRequest)
            {
                tallies.entry(comparison.metric).or_default().add(comparison, row.effect);
            }
        }
        for (metric, tallies) in &tallies {
            writeln!(out, "| {}, {metric:?} {}", row.name, tallies.cells())?;
        }
    }
    Ok(())
}

/// True states of the winner: label, its ratio when alone, and the share by which each other running arm lengthens its
/// requests.
const TRUTHS: [(&str, f64, f64); 4] = [
    ("1.30 and undisturbed", 1.30, 0.0),
    ("1.03 and undisturbed", 1.03, 0.0),
    ("1.30, 3 % longer for each neighbour", 1.30, 0.03),
    ("1.30, 10 % longer for each neighbour", 1.30, 0.10),
];

/// Prints the table of docs/alone.md: how often a ratio is reported to hold.
fn alone(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let (studies, first) = (parse_number(arguments, 0, 100)?, parse_number(arguments, 1, 1)?);
    let wanted = arguments.get(2).map_or("", |row| row);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| row | the winner is in truth | studies | holds | does not hold | not shown | half-width, median |\n\
         |---|---|---|---|---|---|---|"
    )?;
    for row in NOISES.iter().filter(|row| row.effect.is_some() && row.name.contains(wanted)) {
        let study = noisy(row, 8);
        for (truth, ratio, crowding) in TRUTHS {
            let (mut said, mut widths) = ([0; 4], Vec::new());
            for seed in first..first + studies {
                let mut model = row.model(seed);
                let winner = ArmModel { crowding, ..model.others.slower(1.0 / ratio) };
                model.arms.insert(SICK.to_owned(), winner);
                let check = simulate((&study, true), &model)?.alone.ok_or("no check")?;
                said[check.verdict as usize] += 1;
                let (low, high) = check.change.1;
                widths.push((high / low).ln() / 2.0);
            }
            widths.sort_by(f64::total_cmp);
            let width = widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN);
            let [holds, not, open, _] = said.map(|count| 100.0 * f64::from(count) / studies as f64);
            writeln!(
                out,
                "| {} | {truth} | {studies} | {holds:.0} % | {not:.0} % | {open:.0} % | ±{:.1} % |",
                row.name,
                100.0 * width
            )?;
        }
    }
    Ok(())
}

/// True speeds of an arm relative to the baseline, in the studies that end when everything is decided.
const FACTORS: [f64; 2] = [1.0, 1.05];

/// Prints the table of docs/statistics.md about studies that end when everything is decided.
fn until(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let (studies, first, seconds) = (
        parse_number(arguments, 0, 1000)?,
        parse_number(arguments, 1, 1)?,
        parse_number(arguments, 3, 24)?,
    );
    let wanted = arguments.get(2).map_or("", |row| row);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| row | the arm is in truth | studies | blocks of {} | time of the run | better | worse | equivalent | given up \
         | open at the end | interval covers |\n|---|---|---|---|---|---|---|---|---|---|---|",
        seconds * 10 / 6
    )?;
    for row in NOISES.iter().filter(|row| row.effect.is_some() && row.name.contains(wanted)) {
        let mut study = noisy(row, 8);
        study.loads[0].duration = Duration::from_secs(seconds);
        let planned = weir_proposers::budget::length_of(&study).as_secs_f64();
        study.until = Until::Decided;
        for factor in FACTORS {
            let mut ended = Ended::default();
            for seed in first..first + studies {
                let mut model = row.model(seed);
                let arm = model.others.slower(1.0 / factor);
                model.arms.insert(SICK.to_owned(), arm);
                ended.add(&study, &model, factor)?;
            }
            let count = studies as f64;
            let mut cells = vec![row.name.to_owned(), format!("{factor:.2}"), studies.to_string()];
            cells.push(percent(ended.blocks, count));
            cells.push(percent(ended.took / planned, count));
            cells.extend(ended.said.map(|part| percent(f64::from(part), count)));
            cells.push(percent(f64::from(ended.covered), count));
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
    }
    Ok(())
}

/// Results of studies that end when everything is decided.
#[derive(Default)]
struct Ended {
    /// Sum over the studies of the measured blocks as a share of the most that were planned.
    blocks: f64,
    /// Sum of the studies' lengths, seconds.
    took: f64,
    /// Number of studies that are better, worse, equivalent, given up, and open at the end.
    said: [u32; 5],
    covered: u32,
}

impl Ended {
    fn add(&mut self, study: &Study, model: &Model, factor: f64) -> Result<(), LabError> {
        let folder = make_folder();
        let summary = run_in((study, false), model, folder.path().join("run"))?;
        let findings = weir_analysis::analyze(&Run::read(&summary.folder)?);
        let load = &findings.loads[0];
        let comparison = load.comparison(SICK, Metric::Rate);
        let (Some(comparison), Some(last)) = (comparison, load.looks.last()) else {
            return Ok(());
        };
        let most = last.planned.last().copied().unwrap_or(1);
        self.blocks += f64::from(last.blocks) / f64::from(most);
        self.took += summary.took.as_secs_f64();
        let outcome = match comparison.verdict {
            Verdict::Better => 0,
            Verdict::Worse => 1,
            Verdict::Equivalent => 2,
            _ if !last.is_last => 3,
            _ => 4,
        };
        self.said[outcome] += 1;
        let (low, high) = comparison.interval;
        self.covered += u32::from(low <= factor && factor <= high);
        Ok(())
    }
}

/// True speeds of a change relative to the baseline, in studies with `compare: overall`.
const SPEEDS: [f64; 3] = [1.0, 1.0 / 1.05, 1.05];

/// Prints the table of docs/compare.md: verdicts on all figures together.
fn overall(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let (studies, first, seconds) = (
        parse_number(arguments, 0, 100)?,
        parse_number(arguments, 1, 1)?,
        parse_number(arguments, 3, 20)?,
    );
    let wanted = arguments.get(2).map_or("", |row| row);
    let mut study = make_study();
    study.arms.retain(|arm| arm.role != ArmRole::SameAsBaseline);
    let mut open = fixture::load("open", StudyArrivals::UpToShareOfSlowest(0.6));
    open.connections = 64;
    study.loads.push(open);
    for load in &mut study.loads {
        load.duration = Duration::from_secs(seconds);
    }
    study.compare = Compare::Overall;
    study.blocks.slice = None;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| row | speed of the change | studies | worse | better | equivalent | open | bound of rate, p50, p99 (median) |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    let rows = NOISES.iter().filter(|row| row.rate.is_none() && row.effect.is_some());
    for row in rows.filter(|row| row.name.contains(wanted)) {
        for speed in SPEEDS {
            let (mut counts, mut bounds) = ([0; 4], [const { Vec::new() }; 3]);
            for seed in first..first + studies {
                let mut model = row.model(seed);
                let change = model.others.slower(1.0 / speed);
                model.arms.insert(SICK.to_owned(), change);
                let overall = simulate((&study, false), &model)?.overall.ok_or("no verdict")?;
                counts[match overall.verdict {
                    Verdict::Worse => 0,
                    Verdict::Better => 1,
                    Verdict::Equivalent => 2,
                    _ => 3,
                }] += 1;
                for (bounds, case) in bounds.iter_mut().zip(&overall.cases) {
                    bounds.push(case.by.unwrap_or(f64::INFINITY));
                }
            }
            let shares = counts.map(|count| percent(f64::from(count), studies as f64));
            let medians = bounds.map(|mut bounds| {
                bounds.sort_by(f64::total_cmp);
                let median = bounds.get(bounds.len() / 2).copied().unwrap_or(f64::NAN);
                format!("{:.1} %", 100.0 * median)
            });
            writeln!(
                out,
                "| {} | {speed:.2} | {studies} | {} | {} |",
                row.name,
                shares.join(" | "),
                medians.join(", ")
            )?;
        }
    }
    Ok(())
}

/// Makes a study of 24 s, which is 40 blocks.
fn noisy(row: &NoiseRow, instances: u32) -> Study {
    let mut study = make_study();
    let load = &mut study.loads[0];
    if let Some(rate) = row.rate {
        *load = fixture::load("open", StudyArrivals::Constant(rate));
        load.connections = 64;
    }
    load.duration = Duration::from_secs(24);
    study.blocks.instances = instances;
    study
}

const HEAD: &str = "| row, metric | studies | errors | interval covers 1 (A/A) | covers the effect | half-width, median | \
false better/worse (A/A) | sick: worse | equivalent | better | power stated |\n|---|---|---|---|---|---|---|---|---|---|---|";

/// Results for one metric of a row's studies.
#[derive(Default)]
struct VerdictTally {
    errors: u32,
    same: u32,
    same_covered: u32,
    same_false: u32,
    sick: u32,
    sick_covered: Option<u32>,
    /// Number of studies by [`Verdict`]: worse, equivalent, better.
    said: [u32; 3],
    half_widths: Vec<f64>,
    power: f64,
}

impl VerdictTally {
    fn add(&mut self, found: &Comparison, effect: Option<f64>) {
        let (low, high) = found.interval;
        if found.arm == "same" {
            self.same += 1;
            self.same_covered += u32::from(low <= 1.0 && 1.0 <= high);
            self.same_false += u32::from(matches!(found.verdict, Verdict::Better | Verdict::Worse));
            self.half_widths.push((high / low).ln() / 2.0);
            return;
        }
        self.sick += 1;
        let verdicts = [Verdict::Worse, Verdict::Equivalent, Verdict::Better];
        for (count, verdict) in self.said.iter_mut().zip(verdicts) {
            *count += u32::from(found.verdict == verdict);
        }
        if let Some(effect) = effect {
            *self.sick_covered.get_or_insert(0) += u32::from(low <= effect && effect <= high);
            self.power += power(effect - 1.0, found.minimum_detectable, 0.05);
        }
    }

    fn cells(&self) -> String {
        let (same, sick) = (f64::from(self.same.max(1)), f64::from(self.sick.max(1)));
        let mut widths = self.half_widths.clone();
        widths.sort_by(f64::total_cmp);
        let width = widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN);
        let mut cells = vec![
            self.same.to_string(),
            self.errors.to_string(),
            percent(f64::from(self.same_covered), same),
            self.sick_covered.map_or("–".to_owned(), |count| percent(f64::from(count), sick)),
            format!("±{:.2} %", 100.0 * width),
            percent(f64::from(self.same_false), same),
        ];
        cells.extend(self.said.map(|count| percent(f64::from(count), sick)));
        cells.push(match self.sick_covered {
            Some(_) => percent(self.power, sick),
            None => "–".to_owned(),
        });
        format!("| {} |", cells.join(" | "))
    }
}

/// Runs a study on a host of this model, in a temporary folder that is in memory if possible.
fn simulate(study: (&Study, bool), model: &Model) -> Result<Findings, LabError> {
    let folder = make_folder();
    let summary = run_in(study, model, folder.path().join("run"))?;
    Ok(weir_analysis::analyze(&Run::read(&summary.folder)?))
}

fn make_folder() -> TempDir {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    folder.expect("a folder can be made")
}

/// Runs a study, with or without measuring arms alone afterwards, on a host of this model, in a folder that must not
/// exist yet.
fn run_in(
    (study, check_alone): (&Study, bool),
    model: &Model,
    folder: PathBuf,
) -> Result<Summary, LabError> {
    let options = Options {
        folder,
        launcher: Launcher::new("weir".into()),
        weir_version: "simulated".to_owned(),
        remarks: Vec::new(),
        catalog: Catalog::builtin(),
        places: PlaceSpec::simulated(model.clone()),
        allow_host_settings: false,
        node_image: None,
        check_alone,
        generator_carries: None,
        samples: None,
        where_time_goes: false,
        time: None,
        stop: Arc::default(),
    };
    weir_lab::run(study, "", &options, &mut |_| {})
}
