//! Tests of the machines that a workload needs, on made-up records.

use super::growth::run_at;
use crate::analyze;
use crate::findings::{
    NeedUnknown, NodeBound, SizeFindings, SizedResource, Workload, WorkloadVariable,
};
use crate::size::{SizeError, size};

const RATES: [f64; 5] = [100.0, 200.0, 300.0, 400.0, 500.0];

/// Sizes a workload from a run that carried 100 to 500 requests/s, each of which took 1 ms of CPU time.
fn of(rate: f64, connections: Option<f64>) -> SizeFindings {
    let (_folder, run) = run_at(&RATES, |rate| 1e6 * rate, |_| 0.0);
    let findings = analyze(&run);
    size(&[(run, findings)], "stock", Workload { rate, connections }).unwrap()
}

fn why_unknown(found: &SizeFindings, resource: SizedResource) -> Option<NeedUnknown> {
    found.one.iter().find(|need| need.resource == resource)?.why_unknown
}

#[test]
fn one_machine_is_predicted_up_to_twice_what_was_measured() {
    let findings = of(900.0, None);
    let (cpu_time, (low, high)) =
        SizeFindings::amount(&findings.one, SizedResource::CpuTime).unwrap();
    assert!((cpu_time - 0.9).abs() < 0.01 && low < 0.9 && high > 0.9, "{findings:?}");
    assert!((low / 0.9 - 1.0).abs() < 0.06 && (high / 0.9 - 1.0).abs() < 0.06, "{low} {high}");
    // At 500 requests/s half a CPU was busy, and nothing shows that more of it would be.
    let (cpus, _) = SizeFindings::amount(&findings.one, SizedResource::Cpus).unwrap();
    let per_cpu = findings.basis.busiest.unwrap();
    assert!((cpus * per_cpu - 0.9).abs() < 0.01, "{cpus} at {per_cpu}");
    assert!(!findings.basis.is_capacity);
    let nodes = findings.nodes.unwrap();
    assert_eq!((nodes.count, nodes.bound), (2, NodeBound::Rate));
    assert_eq!(nodes.each.rate, 450.0);
}

#[test]
fn beyond_that_machines_share_the_load() {
    let findings = of(5_000.0, None);
    let why = why_unknown(&findings, SizedResource::CpuTime).unwrap();
    assert!(matches!(why, NeedUnknown::BeyondTwice { .. }), "{why:?}");
    let nodes = findings.nodes.unwrap();
    assert_eq!(nodes.count, 10);
    let (each, _) = SizeFindings::amount(&nodes.needs, SizedResource::CpuTime).unwrap();
    assert!((each - 0.5).abs() < 0.01, "{each}");
}

#[test]
fn what_did_not_vary_is_not_invented() {
    let findings = of(400.0, Some(300_000.0));
    assert_eq!(why_unknown(&findings, SizedResource::Memory), Some(NeedUnknown::FewWindows(0)));
    let same = NeedUnknown::NotVaried(WorkloadVariable::Connections);
    assert_eq!((findings.nodes, findings.why_no_nodes), (None, Some(same)));
    let (_folder, run) = run_at(&RATES, |_| 1e6, |_| 1.0);
    let findings = analyze(&run);
    let runs = [(run, findings)];
    let workload = Workload { rate: 100.0, connections: None };
    let nothing = SizeError::NothingCarried("stock".to_owned());
    assert_eq!(size(&runs, "stock", workload), Err(nothing));
    assert_eq!(size(&runs, "other", workload), Err(SizeError::NoArm("other".to_owned())));
}
