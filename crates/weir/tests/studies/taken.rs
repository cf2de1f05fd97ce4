//! Tests of proofs of an arm's limiter: taking a part of it away proves it, and taking a part of another resource does
//! not. With a real nginx.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use weir_analysis::limiter::is_proof;
use weir_hosts::{Options, PlaceSpec};
use weir_model::fixture;
use weir_model::quantity::CpuSet;
use weir_model::study::{
    Arm, ArmRole, BlockSpec, CpuRoles, DelaySpec, Metric, OriginSpec, Reduction, Study,
    StudyArrivals, TakenFrom,
};
use weir_parameters::Catalog;
use weir_sut::Launcher;
use weir_testkit::program::in_three_tries;

/// Share that is taken away, per cent: more than any noise does.
const PERCENT: u32 = 40;
/// Delay of a slow origin.
const DELAY: Duration = Duration::from_millis(200);

/// Runs a trial for each part to take away. Returns the rate as a multiple of the unchanged rate, and true if that is a
/// proof.
fn measure_without(
    origin: OriginSpec,
    connections: u32,
    slice: Duration,
    from: &[TakenFrom],
) -> Vec<(f64, bool)> {
    // Two that take time of the same CPU see each other.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let nginx = [("worker_processes", "1"), ("origin_keepalive", "16")];
    let lacking = from.iter().map(|&from| Arm {
        taken: Some(Reduction { from, percent: PERCENT }),
        ..fixture::arm(&format!("{from:?}"), ArmRole::Change, &nginx)
    });
    let mut arms = vec![fixture::arm("as-it-is", ArmRole::Baseline, &nginx)];
    arms.extend(lacking);
    let mut load = fixture::load("closed", StudyArrivals::Closed);
    load.main.connections = connections;
    load.duration = Duration::from_secs(1);
    let cpus = weir_probe::allowed_cpus().expect("known");
    let cpu = CpuSet::new(vec![cpus.cpus()[0]]).expect("one");
    let study = Study {
        loads: vec![load],
        origin,
        blocks: BlockSpec {
            slice: Some(slice),
            instances: 1,
            at_least: 10,
            ..BlockSpec::default()
        },
        // Whoever of them needs most of it: all of a closed loop's time on one CPU is that CPU's.
        cpus: Some(CpuRoles { proxy: cpu.clone(), generator: cpu.clone(), origin: cpu }),
        ..fixture::study(arms.clone())
    };
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        folder: folder.path().join("run"),
        launcher: Launcher::new(PathBuf::from(env!("CARGO_BIN_EXE_weir"))),
        weir_version: "0".to_owned(),
        remarks: Vec::new(),
        catalog: Catalog::builtin(),
        places: PlaceSpec::default(),
        allow_host_settings: false,
        node_image: None,
        check_alone: false,
        time: None,
        generator_carries: None,
        samples: None,
        where_time_goes: false,
        stop: Default::default(),
    };
    weir_lab::run(&study, "", &options, &mut |_| {}).expect("a run");
    let run = weir_record::Run::read(&options.folder).expect("its folder");
    let findings = weir_analysis::analyze(&run);
    let outcomes = arms.iter().filter(|arm| arm.taken.is_some()).map(|arm| {
        let comparison =
            findings.loads[0].comparison(&arm.name, Metric::Rate).expect("it was compared");
        (comparison.ratio, is_proof(arm.taken, comparison))
    });
    outcomes.collect()
}

/// Tests two requests at a time, each of which takes 200 ms: 10/s. A process that waits for a CPU at each step is
/// slower with less of its time; on a crowded machine by tens of milliseconds, which must not matter here.
#[test]
fn an_origin_that_limits_is_told_from_cpus_that_do_not() {
    in_three_tries(an_origin_limits);
}

fn an_origin_limits() {
    let origin = OriginSpec {
        delay: DelaySpec::Fixed(DELAY),
        concurrency: Some(2),
        ..OriginSpec::default()
    };
    let shares = measure_without(origin, 2, 5 * DELAY, &[TakenFrom::Origin, TakenFrom::Proxy]);
    let [(slower, true), (same, false)] = shares[..] else {
        panic!("{shares:?}");
    };
    // 333 ms instead of 200.
    assert!((0.5..0.7).contains(&slower), "{shares:?}");
    assert!(same > 0.85, "{shares:?}");
}

/// Tests the CPU, which all processes share, so it is the limit of a closed loop, however crowded the machine is.
#[test]
fn a_cpu_that_limits_is_proven_by_taking_its_time() {
    in_three_tries(a_cpu_limits);
}

fn a_cpu_limits() {
    let shares =
        measure_without(OriginSpec::default(), 16, Duration::from_millis(400), &[TakenFrom::Proxy]);
    assert!(matches!(shares[..], [(_, true)]), "{shares:?}");
}
