//! Tests of the activity of resting arms.

use weir_model::record::{ArmConnections, ConnectionCounts, PartRecord, ProxyRecord, Record};
use weir_record::Run;

use weir_analysis::fixture::{SLICE_NS, build_header, build_trials, run, three_arms};

use super::AnalyzedRun;

/// Sentences about a run whose second arm used a share of a CPU while it rested, for 1.4 s at most, and closed
/// connections.
fn rests(share: f64, lost: u64, timeouts: &[(&str, &str)]) -> Vec<String> {
    let header = build_header(three_arms());
    let mut all = build_trials(&header, "closed", 10, |_| 20_000.0);
    for trial in &mut all {
        for slice in &mut trial.slices {
            slice.rest_ns = 1_400_000_000;
            if trial.arm == "stock-again" {
                slice.rest_cpu_ns = (share * 1.4e9) as u64;
            }
        }
    }
    let (_folder, mut run): (_, Run) = run(&header, all);
    let arm = "stock-again".to_owned();
    run.records.push(Record::Part(Box::new(PartRecord {
        load: "closed".to_owned(),
        blocks: 10,
        arms: vec![ArmConnections {
            arm: arm.clone(),
            asking: ConnectionCounts { lost_at_rest: lost, ..ConnectionCounts::default() },
            ..ArmConnections::default()
        }],
        ..PartRecord::default()
    })));
    let effective = timeouts.iter();
    run.records.push(Record::Proxy(ProxyRecord {
        session: 0,
        arm,
        address: String::new(),
        program: String::new(),
        effective: effective.map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect(),
        nofile: 1024,
        pid: 1,
        inert: Vec::new(),
        asked: Vec::new(),
        objects: Vec::new(),
    }));
    let findings = AnalyzedRun::of(&run);
    let rests = findings.loads[0].rests.iter().map(weir_sentences::describe_resting_arm);
    let rests: Vec<String> = rests.collect();
    assert!(rests.iter().all(|sentence| findings.answer().contains(sentence)));
    rests
}

#[test]
fn an_arm_that_works_or_closes_connections_while_it_rests_is_named() {
    assert!(rests(0.01, 0, &[("keepalive_timeout", "1s")]).is_empty());
    assert_eq!(
        rests(0.03, 0, &[]),
        [
            "The arm stock-again used 3.0 % of a CPU while it rested, beside the arm that was measured."
        ]
    );
    assert_eq!(
        rests(0.0, 37, &[("keepalive_timeout", "1s")]),
        [
            "The arm stock-again closed 37 connections while it rested, for up to 1.4 s (its keepalive_timeout is 1s), \
             and they were opened again at once."
        ]
    );
    // HAProxy has several that may end an idle connection; the most special one does.
    let timeouts = [("timeout_client", "50s"), ("timeout_http_keep_alive", "1s")];
    assert_eq!(
        rests(0.0, 37, &timeouts),
        [
            "The arm stock-again closed 37 connections while it rested, for up to 1.4 s (its timeout_http_keep_alive is \
             1s), and they were opened again at once."
        ]
    );
    assert_eq!(
        rests(0.0, 1, &[]),
        [
            "The arm stock-again closed 1 connection while it rested, for up to 1.4 s, and it was opened again at once."
        ]
    );
}

#[test]
fn what_interrupts_take_of_the_proxys_cpus_is_a_figure() {
    let header = build_header(three_arms());
    let [none, share] = [0, SLICE_NS / 5].map(|irq_ns| {
        let mut all = build_trials(&header, "closed", 10, |_| 20_000.0);
        all.iter_mut()
            .flat_map(|trial| &mut trial.slices)
            .for_each(|slice| slice.proxy_irq_ns = irq_ns);
        let (_folder, run) = run(&header, all);
        AnalyzedRun::of(&run).loads[0].arms[1].interrupts
    });
    assert_eq!(none, None);
    let cpus = header.cpus.proxy.cpus().len() as f64;
    assert!((share.unwrap() * cpus - 0.2).abs() < 1e-9, "{share:?}");
}
