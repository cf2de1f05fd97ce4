use weir_model::fixture::arm;
use weir_model::record::RunHeader;
use weir_model::sample::SampleRow;
use weir_record::Sample;

use super::*;
use crate::analyze;
use crate::fixture::{build_header, build_trials, normal, run};

const SOMAXCONN: (&str, &str) = ("net.core.somaxconn", "8192");

fn build_study() -> RunHeader {
    let keepalive = ("origin_keepalive", "64");
    let mut header = build_header(vec![
        arm("stock", ArmRole::Baseline, &[]),
        arm("again", ArmRole::SameAsBaseline, &[]),
        arm("kept", ArmRole::Change, &[keepalive]),
        arm("backlog", ArmRole::Change, &[SOMAXCONN]),
        arm("launched", ArmRole::Change, &[keepalive, ("launcher", "onload")]),
    ]);
    header.study.loads.truncate(1);
    header
}

/// Returns the frontier of arms that carry this many requests, each of whose proxies has that much memory.
fn frontier(rates: [f64; 5], memory: [u64; 5]) -> FrontierFindings {
    let header = build_study();
    let trials = build_trials(&header, "closed", 40, |moment| {
        rates[moment.arm] * (1.0 + 0.005 * normal(moment.rng))
    });
    let (_folder, mut run) = run(&header, trials);
    let table = Counters::builtin().table("processes").expect("a table");
    let (keys, columns): (Vec<&str>, Vec<&str>) =
        (table.keys().collect(), table.values().collect());
    let role = keys.iter().position(|key| *key == "role").expect("a key");
    let resident = columns.iter().position(|column| *column == "resident_bytes").expect("a column");
    for (arm, bytes) in header.study.arms.iter().zip(memory) {
        // Two workers, read twice; the generator's memory is no cost of the proxy.
        for (at_ns, role_name, bytes) in [
            (1, "proxy", bytes / 4),
            (2, "proxy", bytes / 2),
            (2, "proxy", bytes / 2),
            (2, "generator", 1 << 40),
        ] {
            let mut row = SampleRow {
                table: "processes".to_owned(),
                at_ns,
                arm: arm.name.clone(),
                keys: vec![String::new(); keys.len()],
                values: vec![None; columns.len()],
            };
            row.keys[role] = role_name.to_owned();
            row.values[resident] = Some(bytes);
            run.samples.rows.push(Sample { host: "here".to_owned(), row });
        }
    }
    let mut frontiers = analyze(&run).frontiers;
    assert_eq!(frontiers.len(), 1);
    frontiers.remove(0)
}

fn dominated(found: &FrontierFindings) -> Vec<(&str, Option<&str>)> {
    found.arms.iter().map(|arm| (&*arm.arm, arm.dominated_by.as_deref())).collect()
}

const MIB: u64 = 1 << 20;

#[test]
fn arms_that_bring_nothing_for_what_they_cost_are_dominated() {
    let findings = frontier([1e4, 1e4, 2e4, 1e4, 3e4], [20 * MIB; 5]);
    let wanted =
        [("kept", None), ("stock", Some("kept")), ("launched", None), ("backlog", Some("stock"))];
    assert_eq!(dominated(&findings), wanted);
    let [kept, _, launched, backlog] = &findings.arms[..] else { panic!("{findings:?}") };
    assert_eq!((kept.memory, &kept.needs[..]), (Some(20 * MIB), &[][..]));
    assert_eq!(backlog.needs, [Privilege::NetworkSettings]);
    assert_eq!(launched.needs, [Privilege::Launcher]);
    let per_cpu = kept.per_cpu.expect("it was measured");
    assert!((per_cpu / 1.6e4 - 1.0).abs() < 0.3, "{per_cpu}");
}

#[test]
fn what_is_better_in_one_thing_and_worse_in_another_is_not_dominated() {
    let memory = [20 * MIB, 20 * MIB, 40 * MIB, 20 * MIB, 20 * MIB];
    let findings = frontier([1e4, 1e4, 2e4, 1e4, 3e4], memory);
    let wanted = [("kept", None), ("stock", None), ("launched", None), ("backlog", Some("stock"))];
    assert_eq!(dominated(&findings), wanted);
}

#[test]
fn where_a_comparison_is_open_nothing_is_dominated() {
    // 1.5 % is between the same and better.
    let findings = frontier([1e4, 1e4, 1.018e4, 1e4, 1e4], [20 * MIB; 5]);
    assert!(dominated(&findings).contains(&("stock", None)), "{findings:?}");
}
