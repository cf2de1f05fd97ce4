//! Tests of summaries of one screen: runs on a simulated host, and the real `weir report` of their folders.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_hosts::{Options, PlaceSpec};
use weir_lab::Event;
use weir_model::fixture;
use weir_model::limit::Limit;
use weir_model::load::Spacing;
use weir_model::record::{Outcome, Validity};
use weir_model::study::{Arm, ArmRole, LoadSpec, Study, StudyArrivals};
use weir_parameters::Catalog;
use weir_proposers::Announcement;
use weir_record::Run;
use weir_simulation::{ArmModel, Distribution, Model};
use weir_sut::Launcher;
use weir_testkit::program::{HasAll, flat};
use weir_testkit::sandbox::Sandbox;

/// Lines of a terminal.
const SCREEN: usize = 40;
/// Additional lines about an interrupted run.
const INTERRUPTED: usize = 2;

/// Eight arms with their speed, of which the first change is by far the fastest, and the last ones are slower.
const ARMS: [(&str, f64); 8] = [
    ("stock", 1.0),
    ("same", 1.0),
    ("much-faster", 0.5),
    ("faster", 0.95),
    ("equal", 1.0),
    ("slower", 1.06),
    ("slow", 1.2),
    ("slowest", 1.5),
];

fn arm(name: &str) -> Arm {
    match name {
        "stock" => fixture::arm(name, ArmRole::Baseline, &[]),
        "same" => fixture::arm(name, ArmRole::SameAsBaseline, &[]),
        _ => fixture::arm(name, ArmRole::Change, &[("access_log", name)]),
    }
}

fn load(name: &str, arrivals: StudyArrivals) -> LoadSpec {
    let mut load = fixture::load(name, arrivals);
    load.connections = 8;
    load.duration = Duration::from_secs(10);
    load
}

/// Returns eight arms under three loads.
fn comparison() -> (Study, Model) {
    let mut study = fixture::study(ARMS.iter().map(|(name, _)| arm(name)).collect());
    study.loads = vec![
        load("closed", StudyArrivals::Closed),
        load("open", StudyArrivals::ShareOfSlowest(0.5)),
        load("busy", StudyArrivals::ShareOfSlowest(0.8)),
    ];
    study.blocks.slice = Some(Duration::from_millis(100));
    let mut model = Model::default();
    for (name, factor) in ARMS {
        let arm = ArmModel::default().slower(factor);
        model.arms.insert(name.to_owned(), arm);
    }
    (study, model)
}

/// Returns the same on a machine whose hypervisor takes half of the time.
fn robbed() -> (Study, Model) {
    let (study, mut model) = comparison();
    model.machine.steal = 0.5;
    (study, model)
}

/// Returns a search for the capacities of two arms.
fn capacities() -> (Study, Model) {
    let mut study = fixture::study(["stock", "much-faster"].map(arm).to_vec());
    study.loads = vec![load("requests", StudyArrivals::Closed)];
    study.loads[0].main.connections = 64;
    study.loads[0].main.spacing = Spacing::Poisson { seed: 1 };
    study.blocks.slice = Some(Duration::from_millis(100));
    study.capacity = Limit::parse_all("p99 < 30ms, errors < 0.1%").expect("limits");
    study.search.hold = Duration::from_secs(10);
    let mut model = Model::default();
    for (name, services) in [("stock", 1000.0), ("much-faster", 2000.0)] {
        let mean_ns = 1e9 / services;
        let arm =
            ArmModel { service: Distribution::Exponential { mean_ns }, ..ArmModel::default() };
        model.arms.insert(name.to_owned(), arm);
    }
    (study, model)
}

/// Runs a study on a simulated host into `folder`; stops it as Ctrl-C does when `is_stopped` returns true.
fn simulate(
    (study, model): (Study, Model),
    folder: &Path,
    is_stopped: fn(&Event) -> bool,
) -> Outcome {
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options {
        folder: folder.to_owned(),
        launcher: Launcher::new("weir".into()),
        weir_version: "0".to_owned(),
        remarks: Vec::new(),
        catalog: Catalog::builtin(),
        places: PlaceSpec::simulated(model),
        allow_host_settings: false,
        node_image: None,
        check_alone: false,
        generator_carries: None,
        samples: Some(Duration::from_secs(1)),
        where_time_goes: false,
        time: None,
        stop: Arc::clone(&stop),
    };
    let summary = weir_lab::run(&study, "", &options, &mut |event: Event| {
        stop.fetch_or(is_stopped(&event), Ordering::Relaxed);
    });
    summary.expect("a run").outcome
}

/// Name of a run, its study, the condition that stops it, and words of its summary.
type Case = (&'static str, fn() -> (Study, Model), fn(&Event) -> bool, &'static [&'static str]);

const CASES: [Case; 5] = [
    (
        "compared",
        comparison,
        |_| false,
        &["▲ better", "▼ worse", "A/A: ", "# what much-faster changes"],
    ),
    ("invalid", robbed, |_| false, &["note: INVALID: "]),
    (
        "stopped",
        comparison,
        |event| matches!(event, Event::Block { done: 7, .. }),
        &["the run was interrupted", "weir run --resume "],
    ),
    (
        "searched",
        capacities,
        |_| false,
        &[
            "held (for)",
            "broke (after)",
            "▲ better",
            "--arm much-faster # what much-faster changes",
        ],
    ),
    (
        "stopped-search",
        capacities,
        |event| matches!(event, Event::Announced(Announcement::Bracket { bracket, .. }) if bracket.seconds > 20.0),
        &["the run was interrupted", "weir run --resume "],
    ),
];

#[test]
fn what_is_printed_at_the_end_of_a_run_fits_a_screen() {
    let sandbox = Sandbox::new();
    for (name, study, is_stopped, says) in CASES {
        println!("{name}");
        let folder = sandbox.path(name);
        let outcome = simulate(study(), &folder, is_stopped);
        let is_interrupted = outcome == Outcome::Interrupted;
        assert_eq!(is_interrupted, name.starts_with("stopped"));
        let run = Run::read(&folder).expect("a run");
        let findings = weir_analysis::analyze(&run);
        assert_eq!(findings.headline.validity == Validity::Invalid, name == "invalid");
        let shown = sandbox.call(&format!("report {name}")).with_code(0).stdout;
        let lines = shown.lines().count();
        assert!(lines <= SCREEN - INTERRUPTED, "{lines} lines:\n{shown}");
        let words = flat(&shown);
        let answer = weir_sentences::answer(&run.header.study, &findings);
        let answer: Vec<&str> = answer.split_whitespace().take(8).collect();
        words.has(&answer.join(" "));
        let validity = weir_report::words::validity(findings.headline.validity);
        shown.has_all(&[&format!("\n{validity}, judged by "), "/report.html\n"]);
        shown.has(&format!("weir report {name} --full "));
        words.has_all(says);
        let full = sandbox.call(&format!("report {name} --full")).with_code(0);
        assert!(full.stdout.lines().count() > lines, "{}", full.stdout);
        full.stdout.has_all(&["\nReport: ", "/report.html\n"]);
    }
}
