//! Tests of the headline and of published figures, as `--format json` has them.

use weir_model::record::{EndRecord, Observation, Outcome, Record, Validity, ValidityReason};
use weir_model::study::{MatrixCell, Metric, Published};

use super::world;
use crate::findings::{CountedReason, Findings, HeadlineReason, Incomplete, PublishedVerdict};
use crate::fixture::{build_header, build_trials, run, three_arms};
use crate::{analyze, conclude};

use Validity::{Invalid, Suspect, Valid};

#[test]
fn the_headline_is_the_worst_of_what_the_answer_rests_on() {
    let header = build_header(three_arms());
    let (_folder, run) = run(&header, Vec::new());
    // Validity of the closed load, which gives the objective's metric, and of the open one.
    let cases = [
        ([Valid, Valid], Valid, &[][..]),
        ([Suspect, Valid], Suspect, &[]),
        ([Valid, Suspect], Valid, &[]),
        ([Valid, Invalid], Valid, &["open"]),
        ([Invalid, Invalid], Invalid, &[]),
    ];
    for (each, validity, left_out) in cases {
        let mut findings = analyze(&run);
        for (load, validity) in findings.loads.iter_mut().zip(each) {
            load.validity = validity;
        }
        conclude(&header.study, &run.records, &mut findings);
        assert_eq!(findings.headline.validity, validity, "{each:?}");
        let reason = &findings.headline.reason;
        let nothing = HeadlineReason::NothingMeasured { load: "closed".to_owned() };
        assert_eq!(*reason, (validity != Valid).then_some(nothing), "{each:?}");
        assert_eq!(findings.headline.left_out, left_out, "{each:?}");
    }
    let mut none = Findings::default();
    conclude(&header.study, &run.records, &mut none);
    assert_eq!(none.headline.validity, Invalid);
}

#[test]
fn the_reason_beside_a_validity_is_one_that_leads_to_it() {
    let header = build_header(three_arms());
    let (_folder, run) = run(&header, Vec::new());
    let gravest = (Invalid, Observation::ProxySteal { share: 0.3 }, 1_500);
    let usual = (Suspect, Observation::Steal { share: 0.06 }, 2_000);
    let reasons = [gravest, usual].map(|(validity, observation, trials)| CountedReason {
        reason: ValidityReason { validity, subject: None, observation },
        trials,
        of: 2_000,
        arms: Vec::new(),
    });
    for (validity, expected) in [(Invalid, &reasons[0]), (Suspect, &reasons[1])] {
        let mut findings = analyze(&run);
        for load in &mut findings.loads {
            (load.validity, load.blocks) = (validity, 1);
            load.reasons = reasons.to_vec();
        }
        conclude(&header.study, &run.records, &mut findings);
        let trials = HeadlineReason::Trials {
            load: "closed".to_owned(),
            reason: Some(expected.clone()),
            lost_blocks: 1,
            blocks: 1,
        };
        assert_eq!(findings.headline.reason, Some(trials));
    }
}

#[test]
fn a_matrix_is_as_valid_as_most_of_its_loads() {
    let mut header = build_header(three_arms());
    header.study.loads = (0..20)
        .map(|connections| {
            let mut load = header.study.loads[0].clone();
            load.name = format!("c{connections}");
            load.cell = Some(MatrixCell { matrix: "m".to_owned(), connections, rate: None });
            load
        })
        .collect();
    let (_folder, run) = run(&header, Vec::new());
    for (suspect, invalid, validity) in [
        (0, 0, Valid),
        (1, 0, Valid),
        (0, 1, Valid),
        (1, 1, Suspect),
        (0, 10, Suspect),
        (0, 11, Invalid),
    ] {
        let mut findings = analyze(&run);
        for (index, load) in findings.loads.iter_mut().enumerate() {
            load.blocks_used = 1;
            load.validity = match index {
                index if index < invalid => Invalid,
                index if index < invalid + suspect => Suspect,
                _ => Valid,
            };
        }
        conclude(&header.study, &run.records, &mut findings);
        let [matrix] = &findings.matrices[..] else {
            panic!("{:?}", findings.matrices);
        };
        assert_eq!(matrix.validity, validity, "{suspect} and {invalid} of 20");
        assert_eq!((matrix.loads, matrix.used), (20, 20 - invalid as u32));
        assert_eq!(findings.headline.validity, validity);
        assert!(findings.headline.left_out.is_empty(), "cells are counted, not named");
    }
}

#[test]
fn a_run_that_did_not_end_as_planned_says_how() {
    let header = build_header(three_arms());
    let (_folder, run) = run(&header, Vec::new());
    use Outcome::{Complete, Failed, Interrupted};
    // Whether it says so, the outcome in its last record, and whether that is what was planned.
    for (is_complete, outcome, is_planned) in [
        (true, Some(Complete), true),
        (false, Some(Complete), false),
        (false, Some(Interrupted), false),
        (true, Some(Failed), false),
        (true, None, true),
        (false, None, false),
    ] {
        let records: Vec<Record> = outcome
            .map(|outcome| {
                let error = " no room\n".to_owned();
                Record::End(EndRecord { error, ..EndRecord::new("", outcome) })
            })
            .into_iter()
            .collect();
        let error = outcome.map_or("", |_| "no room").to_owned();
        let expected = (!is_planned).then_some(Incomplete { outcome, error });
        let mut findings = analyze(&run);
        findings.complete = is_complete;
        conclude(&header.study, &records, &mut findings);
        assert_eq!(findings.headline.incomplete, expected, "{records:?}");
    }
}

#[test]
fn published_effects_are_among_the_findings() {
    let mut header = build_header(three_arms());
    let figures = [("stock", 1000.0), ("keepalive", 2600.0), ("x64", 9.0)];
    header.study.published = Some(Published {
        source: "a paper".to_owned(),
        metric: "requests/s".to_owned(),
        figures: figures.map(|(arm, figure)| (arm.to_owned(), figure)).into(),
        by_load: Default::default(),
        times: Vec::new(),
        gains: Vec::new(),
        dated: Default::default(),
    });
    let (_folder, run) = run(&header, build_trials(&header, "closed", 30, world(0.01)));
    let findings = analyze(&run);
    let json = serde_json::to_value(&findings).unwrap();
    assert_eq!(json["headline"]["validity"], "VALID");
    let keepalive = &json["published"]["figures"][0]["rows"][1];
    assert_eq!(keepalive["verdict"], "confirmed");
    let published = findings.published.unwrap();
    let [table] = &published.figures[..] else {
        panic!("{published:?}");
    };
    assert_eq!(table.load.as_deref(), Some("closed"));
    assert_eq!(table.metric, Some(Metric::Rate));
    let rows: Vec<_> = table.rows.iter().map(|row| (&*row.arm, row.ratio, row.verdict)).collect();
    assert_eq!(
        rows,
        [
            ("stock", None, None),
            ("keepalive", Some(2.6), Some(PublishedVerdict::Confirmed)),
            ("x64", Some(0.009), Some(PublishedVerdict::NotMeasured)),
        ]
    );
    assert!((table.rows[1].measured.unwrap().value - 2.6).abs() < 0.05);
}
