//! Tests of the growth of resources with the rate, on made-up records.

use tempfile::TempDir;
use weir_limits::Resource;
use weir_model::record::*;
use weir_model::study::{Arm, ArmRole, LoadSpec, MatrixCell, StudyArrivals};
use weir_record::Run;

use crate::analyze;
use crate::findings::{GrowthFindings, ResourceGrowth, Shape, UnknownGrowth};
use crate::fixture::{arm, run_with_records};

/// Length of a block, seconds.
const SECONDS: u64 = 2;

fn load(rate: f64) -> LoadSpec {
    let mut load =
        weir_model::fixture::load(&format!("c10-r{rate}"), StudyArrivals::Constant(rate));
    load.cell =
        Some(MatrixCell { matrix: String::new(), connections: load.connections, rate: Some(rate) });
    load
}

/// A trial in which each request takes `cpu_ns`; `lost` is the share that is not answered.
fn build_trial(load: &LoadSpec, (arm, block): (&str, u32), cpu_ns: f64, lost: f64) -> TrialRecord {
    let rate = load.rate().unwrap();
    let due = (rate * SECONDS as f64) as u64;
    let completed = (due as f64 * (1.0 - lost)) as u64;
    let sockets = SocketCounts { in_use: 22, ..SocketCounts::default() };
    let slice = SliceRecord {
        // Arms take turns.
        index: u64::from(block) * 2,
        measured_ns: SECONDS * 1_000_000_000,
        whole_ns: SECONDS * 1_000_000_000,
        offered: due,
        due,
        sent: due,
        completed,
        completed_whole: completed,
        received_bytes: completed * 1_100,
        // One block is not quite like the other.
        proxy_cpu_ns: (cpu_ns * (1.0 + 0.004 * f64::from(block % 5))) as u64,
        proxy_cpus_idle_ns: SECONDS * 1_000_000_000,
        sockets_after: Some(sockets),
        ..SliceRecord::default()
    };
    TrialRecord {
        rate_intended: Some(rate),
        slices: vec![slice],
        status_classes: [0, 0, completed, 0, 0, 0],
        ..weir_model::fixture::trial(&load.name, arm, block)
    }
}

/// A run whose proxy has the given CPU time, nanoseconds a second, at each rate.
fn grown(
    rates: &[f64],
    cpu_ns: impl Fn(f64) -> f64,
    lost: impl Fn(f64) -> f64,
) -> Vec<GrowthFindings> {
    let (_folder, run) = run_at(rates, cpu_ns, lost);
    analyze(&run).growth
}

/// Like [`grown`], but returns the run, and the folder that it is in.
pub(super) fn run_at(
    rates: &[f64],
    cpu_ns: impl Fn(f64) -> f64,
    lost: impl Fn(f64) -> f64,
) -> (TempDir, Run) {
    let loads: Vec<LoadSpec> = rates.iter().map(|rate| load(*rate)).collect();
    let arms: Vec<Arm> =
        vec![arm("stock", ArmRole::Baseline, 0), arm("again", ArmRole::SameAsBaseline, 0)];
    let header = weir_model::fixture::header(weir_model::study::Study {
        loads: loads.clone(),
        ..weir_model::fixture::study(arms)
    });
    let mut trials = Vec::new();
    let mut parts = Vec::new();
    for spec in &loads {
        let rate = spec.rate().unwrap();
        let block_cpu_ns = cpu_ns(rate) * SECONDS as f64;
        for arm in ["stock", "again"] {
            trials.extend(
                (0..6).map(|block| build_trial(spec, (arm, block), block_cpu_ns, lost(rate))),
            );
        }
        parts.push(Record::Part(Box::new(PartRecord {
            load: spec.name.clone(),
            blocks: 6,
            ..PartRecord::default()
        })));
    }
    run_with_records(&header, trials, |_, _| Vec::new(), &parts)
}

fn of(found: &GrowthFindings, resource: Resource) -> &ResourceGrowth {
    let mut all = found.resources.iter();
    all.find(|growth| growth.resource == resource).expect("it is asked about")
}

const RATES: [f64; 5] = [100.0, 200.0, 300.0, 400.0, 500.0];

#[test]
fn what_grows_in_proportion_is_linear_and_has_its_slope() {
    let findings = grown(&RATES, |rate| 200_000.0 * rate, |_| 0.0);
    // Of the arm that is the baseline once more nobody asks.
    let [growth] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!((growth.arm.as_str(), growth.windows, growth.in_turns), ("stock", 30, true));
    assert_eq!((growth.rates, growth.loads.len()), ((100.0, 500.0), 5));
    let cpu = of(growth, Resource::Cpu);
    assert_eq!((cpu.shape, cpu.linear, cpu.points.len()), (Shape::Linear, Some(true), 30));
    // 200 µs for each request: 0.2 CPUs for 1,000 requests/s.
    let (slope, (low, high)) = cpu.slope.unwrap();
    assert!(low < slope && slope < high && (slope - 0.2).abs() < 0.005, "{cpu:?}");
    assert_eq!(of(growth, Resource::Connections).shape, Shape::Constant);
    let memory = of(growth, Resource::Memory);
    assert_eq!((memory.shape, memory.linear), (Shape::Unknown, None));
    assert_eq!(memory.why_unknown, Some(UnknownGrowth::InTurns));
    let resources: Vec<Resource> = growth.known().iter().map(|growth| growth.resource).collect();
    assert_eq!(resources, [Resource::Cpu, Resource::Network, Resource::Connections]);
}

#[test]
fn where_the_slope_changes_there_is_a_bend() {
    let findings = grown(&RATES, |rate| 1e5 * rate + 4e5 * (rate - 300.0).max(0.0), |_| 0.0);
    let cpu = of(&findings[0], Resource::Cpu);
    assert_eq!((cpu.shape, cpu.linear), (Shape::Bend, Some(false)));
    let bend = cpu.bend.unwrap();
    let (at, (low, high)) = bend.at;
    assert!(low <= at && at <= high && (at - 300.0).abs() < 15.0, "{bend:?}");
    assert!((bend.before - 0.1).abs() < 0.01 && (bend.after - 0.5).abs() < 0.03, "{bend:?}");
    assert!((bend.value - 0.03).abs() < 0.003, "{bend:?}");
}

#[test]
fn too_few_rates_and_rates_that_were_not_carried_say_nothing() {
    let few = grown(&RATES[..3], |rate| 2e5 * rate, |_| 0.0);
    let cpu = of(&few[0], Resource::Cpu);
    assert_eq!((cpu.shape, cpu.slope), (Shape::Unknown, None));
    assert_eq!(cpu.why_unknown, Some(UnknownGrowth::TooFewWindows(18)));
    assert!(grown(&RATES[..2], |rate| 2e5 * rate, |_| 0.0).is_empty());
    // Above 400/s a tenth is not answered, and what that takes is no growth.
    let findings = grown(&RATES, |rate| 2e5 * rate, |rate| if rate > 400.0 { 0.1 } else { 0.0 });
    assert_eq!((findings[0].windows, findings[0].rates), (24, (100.0, 400.0)));
}
