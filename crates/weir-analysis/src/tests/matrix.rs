//! The answer of a matrix of loads, and of arms whose levels are not in force.

use weir_model::record::{Inert, ProxyRecord, Record};
use weir_model::study::{MatrixCell, Metric};

use super::fixture::{header, normal, run, three_arms, trials};
use crate::analyze;

pub(super) fn proxy(arm: &str, inert: &[&str]) -> Record {
    Record::Proxy(ProxyRecord {
        program: String::new(),
        session: 0,
        arm: arm.to_owned(),
        address: String::new(),
        effective: Default::default(),
        nofile: 0,
        pid: 0,
        inert: inert
            .iter()
            .map(|id| Inert {
                id: (*id).to_owned(),
                requested: "32768".to_owned(),
                effective: "listen backlog 128".to_owned(),
                why: "net.core.somaxconn is 128".to_owned(),
            })
            .collect(),
        asked: Vec::new(),
        objects: Vec::new(),
    })
}

#[test]
fn an_inert_arm_is_called_so_and_not_without_difference() {
    let mut header = header(three_arms());
    header.study.arms[2]
        .changes
        .insert("backlog".to_owned(), "32768".to_owned());
    let equal = trials(&header, "closed", 24, |moment| {
        1e4 * (1.0 + 0.002 * normal(moment.rng))
    });
    let (_folder, mut run) = run(&header, equal);
    let plain = analyze(&run).answer;
    assert!(plain.contains("no difference"), "{plain}");
    run.records.push(proxy("keepalive", &["backlog"]));
    let findings = analyze(&run);
    let expected = "keepalive is inert (net.core.somaxconn is 128).";
    assert_eq!(findings.answer, expected);
    assert!(findings.inert[0].whole);
    // A resumed run starts its proxies again: what they say last counts.
    run.records.push(proxy("keepalive", &[]));
    assert_eq!(analyze(&run).inert, []);
    run.header.study.arms[2]
        .changes
        .insert("gzip".to_owned(), "off".to_owned());
    run.records.push(proxy("keepalive", &["backlog"]));
    let findings = analyze(&run);
    assert!(!findings.inert[0].whole);
    assert_eq!(
        findings.answer, plain,
        "the other change may have an effect"
    );
}

#[test]
fn a_matrix_is_answered_in_one_sentence_by_counts() {
    let mut header = header(three_arms());
    let spec = header.study.loads[0].clone();
    header.study.loads.clear();
    let mut all = Vec::new();
    for connections in [100, 200, 300] {
        let mut load = spec.clone();
        load.name = format!("c{connections}");
        load.cell = Some(MatrixCell {
            matrix: String::new(),
            connections,
            rate: None,
        });
        header.study.loads.push(load);
    }
    header.study.objective.metric = Metric::Rate;
    for connections in [100, 200] {
        // The change doubles the rate at 200 connections alone.
        let load = format!("c{connections}");
        all.extend(trials(&header, &load, 24, |moment| {
            let factor = if moment.arm == 2 && connections == 200 {
                2.0
            } else {
                1.0
            };
            1e4 * factor * (1.0 + 0.002 * normal(moment.rng))
        }));
    }
    let (_folder, run) = run(&header, all);
    let answer = analyze(&run).answer;
    let expected = "Over 2 of 2 loads of the matrix, by the completed rate: keepalive: better in 1 (2.00 to \
                    2.00 times), no difference beyond 2 % in 1.";
    assert_eq!(answer, expected);
}
