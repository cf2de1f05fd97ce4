//! Tests that a trial counts as bypassed only if the bypass carried it.

use weir_model::record::{CountersRecord, Observation, PartRecord, Phase, Record, Validity};
use weir_model::study::{ArmRole, ProxyRole};
use weir_record::Run;

use crate::blocks::LoadData;
use crate::fixture::*;

use Validity::{Invalid as I, Suspect as S};

const BLOCKS: u32 = 8;

/// A run with an arm over TCP and one with a level of `transport`; a continuous trial of half of the blocks has these
/// counters.
fn run_of(level: &str, counted: &[(&str, u64)]) -> (tempfile::TempDir, Run) {
    let mut arms = vec![arm("tcp", ArmRole::Baseline, 0), arm("past", ArmRole::Change, 0)];
    let transport = ("transport".to_owned(), level.to_owned());
    arms[1].settings.extend([transport]);
    let header = build_header(arms);
    let (folder, mut run) = run(&header, build_trials(&header, "closed", BLOCKS, |_| 1e4));
    let prefixed = counted.iter().map(|(name, count)| (format!("sockmap.{name}"), *count));
    run.records.retain(|record| !matches!(record, Record::Part(_)));
    run.records.push(Record::Part(Box::new(PartRecord {
        load: "closed".to_owned(),
        blocks: BLOCKS / 2,
        ..PartRecord::default()
    })));
    run.records.push(Record::Counters(CountersRecord {
        phase: Phase::Measurement,
        session: 0,
        load: "closed".to_owned(),
        arm: "past".to_owned(),
        first_block: 0,
        counted: prefixed.chain([("requests".to_owned(), 9)]).collect(),
    }));
    (folder, run)
}

/// Rule, hop and validity of each reason against a trial.
type ReasonSummary = (&'static str, String, Validity);

fn reasons_against(run: &Run, arm: &str, block: u32) -> Vec<ReasonSummary> {
    let data = LoadData::gather(run, &run.header.study.loads[0]);
    data.blocks[block as usize]
        .iter()
        .flatten()
        .find(|judged| judged.trial.arm == arm)
        .unwrap()
        .reasons
        .iter()
        .map(|judged| match &judged.reason.observation {
            Observation::BypassIdle { hop, .. } | Observation::BypassRefused { hop, .. } => {
                (judged.reason.rule(), hop.clone(), judged.reason.validity)
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Level, counters, and the expected reasons.
type Row = (
    &'static str,
    &'static [(&'static str, u64)],
    &'static [(&'static str, &'static str, Validity)],
);

#[test]
fn each_hop_of_a_level_is_judged_by_what_was_counted_on_it() {
    const IN: &str = "inbound.redirected_bytes";
    const IN_TCP: &str = "inbound.tcp_bytes";
    const OUT: &str = "outbound.redirected_bytes";
    const OUT_TCP: &str = "outbound.tcp_bytes";
    const SOCKETS: &str = "inbound.sockets";
    const REFUSED: &str = "inbound.refused";
    #[rustfmt::skip]
    let cases: &[Row] = &[
        ("sockmap", &[(IN, 700), (IN_TCP, 300), (OUT, 500), (OUT_TCP, 500)], &[]),
        ("sockmap", &[(IN_TCP, 5), (OUT, 499), (OUT_TCP, 501)], &[("bypass-idle", "inbound", I), ("bypass-idle", "outbound", S)]),
        ("sockmap-inbound", &[(IN, 1), (IN_TCP, u64::MAX)], &[("bypass-idle", "inbound", S)]),
        ("sockmap", &[(IN, 10), (OUT, 10), (SOCKETS, 10), (REFUSED, 0)], &[]),
        ("sockmap", &[(IN, 10), (OUT, 10), (SOCKETS, 10), (REFUSED, 1)], &[("bypass-refused", "inbound", S)]),
        ("sockmap", &[(IN, 10), (OUT, 10), (SOCKETS, 10), (REFUSED, 30)], &[("bypass-refused", "inbound", S)]),
        // Nobody counted it.
        ("sockmap", &[(IN, 10)], &[("bypass-idle", "outbound", I)]),
        ("sockmap-inbound", &[(IN, 10), (OUT_TCP, 10)], &[]),
        ("sockmap-outbound", &[(IN, 10), (OUT_TCP, 10)], &[("bypass-idle", "outbound", I)]),
        ("tcp", &[], &[]),
    ];
    for (level, counted, expected) in cases {
        let (_folder, run) = run_of(level, counted);
        let reasons = reasons_against(&run, "past", 1);
        let summaries: Vec<_> =
            reasons.iter().map(|(rule, hop, validity)| (*rule, &**hop, *validity)).collect();
        assert_eq!(summaries, *expected, "{level} {counted:?}");
        assert_eq!(reasons_against(&run, "tcp", 1), [], "of the arm alone");
        assert_eq!(reasons_against(&run, "past", BLOCKS - 1), [], "of that trial alone");
    }
    let (_folder, mut run) = run_of("sockmap", &[(IN, 10)]);
    run.header.study.proxy.role = ProxyRole::StaticFiles { size: 1024 };
    assert_eq!(reasons_against(&run, "past", 0), [], "a server of files has one hop");
}

#[test]
fn the_load_is_judged_by_it() {
    let (_folder, run) = run_of("sockmap", &[]);
    let findings = crate::analyze(&run);
    let reasons = &findings.loads[0].reasons;
    let counted = reasons.iter().find(|r| r.reason.rule() == "bypass-idle").unwrap();
    assert_eq!(counted.arms, ["past"]);
    assert_eq!(counted.trials, BLOCKS / 2, "two hops are one trial");
    assert_eq!(counted.reason.validity, Validity::Invalid);
}
