//! Tests of the answer of a matrix of loads, and of arms whose levels are not in force.

use weir_model::record::{Inert, ProxyRecord, Record, RunHeader};
use weir_model::study::{LoadSpec, MatrixCell, Metric};
use weir_stats::SplitMix64;

use weir_analysis::findings::{Comparison, Verdict};
use weir_analysis::fixture::{build_header, build_trials, normal, run, three_arms};

use super::AnalyzedRun;

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
    let mut header = build_header(three_arms());
    header.study.arms[2].changes.insert("backlog".to_owned(), "32768".to_owned());
    let equal =
        build_trials(&header, "closed", 24, |moment| 1e4 * (1.0 + 0.002 * normal(moment.rng)));
    let (_folder, mut run) = run(&header, equal);
    let plain = AnalyzedRun::of(&run).answer();
    assert!(plain.contains("no difference"), "{plain}");
    run.records.push(proxy("keepalive", &["backlog"]));
    let findings = AnalyzedRun::of(&run);
    let expected = "keepalive is inert (net.core.somaxconn is 128).";
    assert_eq!(findings.answer(), expected);
    assert!(findings.inert[0].whole);
    // A resumed run starts its proxies again: what they say last counts.
    run.records.push(proxy("keepalive", &[]));
    assert_eq!(AnalyzedRun::of(&run).inert, []);
    run.header.study.arms[2].changes.insert("gzip".to_owned(), "off".to_owned());
    run.records.push(proxy("keepalive", &["backlog"]));
    let findings = AnalyzedRun::of(&run);
    assert!(!findings.inert[0].whole);
    assert_eq!(findings.answer(), plain, "the other change may have an effect");
}

/// A study with a closed load at each of `cells` numbers of connections.
fn of_matrix(cells: u32) -> RunHeader {
    let mut header = build_header(three_arms());
    let spec = header.study.loads[0].clone();
    let loads = (1..=cells).map(|number| LoadSpec {
        name: format!("c{number}"),
        cell: Some(MatrixCell { matrix: String::new(), connections: number, rate: None }),
        ..spec.clone()
    });
    header.study.loads = loads.collect();
    header.study.objective.metric = Metric::Rate;
    header
}

#[test]
fn a_matrix_is_answered_in_one_sentence_by_counts() {
    let header = of_matrix(3);
    let mut all = Vec::new();
    for connections in [1, 2] {
        // The change doubles the rate of the second load alone.
        let load = format!("c{connections}");
        all.extend(build_trials(&header, &load, 24, |moment| {
            let factor = if moment.arm == 2 && connections == 2 { 2.0 } else { 1.0 };
            1e4 * factor * (1.0 + 0.002 * normal(moment.rng))
        }));
    }
    let (_folder, run) = run(&header, all);
    let answer = AnalyzedRun::of(&run).answer();
    let expected = "Over 2 of 2 loads of the matrix, by the completed rate: keepalive: better on average (1.40 times, \
                    95 % interval 1.40 to 1.40), better in 1 (2.00 to 2.00 times), no difference beyond 2 % in 1. Of the \
                    loads called better or worse, at most 5 % are so by chance, on average (Benjamini-Hochberg).";
    assert_eq!(answer, expected);
}

#[test]
fn of_many_equal_loads_none_is_called_better_or_worse() {
    let header = of_matrix(60);
    let mut rng = SplitMix64::new(43);
    let all = header.study.loads.iter().flat_map(|load| {
        build_trials(&header, &load.name, 24, |_| 1e4 * (1.0 + 0.02 * normal(&mut rng)))
    });
    let (_folder, run) = run(&header, all.collect());
    let findings = AnalyzedRun::of(&run);
    let changes =
        findings.loads.iter().filter_map(|load| load.comparison("keepalive", Metric::Rate));
    let changes: Vec<&Comparison> = changes.collect();
    let by_chance = changes.iter().filter(|found| found.p <= 0.05).count();
    assert!(by_chance > 0, "one in twenty of them");
    for found in changes {
        let is_claim = matches!(found.verdict, Verdict::Better | Verdict::Worse);
        assert!(!is_claim && found.family == 60, "{found:?}");
        assert!(found.p_holm > 0.05, "{found:?}");
    }
    let answer = &findings.answer();
    assert!(
        answer.contains("keepalive: no difference beyond 2 % on average (1.00 times"),
        "{answer}"
    );
    assert!(!answer.contains("better") && !answer.contains("Benjamini"), "{answer}");
}
