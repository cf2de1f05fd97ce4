//! A trial is one of a bypass only if the bypass carried it.

use weir_model::record::{CountersRecord, PartRecord, Record, Validity};
use weir_model::study::{ArmRole, ProxyRole};
use weir_record::Run;

use crate::blocks::LoadData;
use crate::tests::fixture::*;

const BLOCKS: u32 = 8;

/// A run of an arm of TCP and one with a level of `transport`, in a continuous trial whose counters
/// are these, by hop: redirected bytes and bytes by TCP.
fn run_of(level: &str, counted: &[(&str, u64, u64)]) -> (tempfile::TempDir, Run) {
    let mut arms = vec![
        arm("tcp", ArmRole::Baseline, 0),
        arm("past", ArmRole::Change, 0),
    ];
    let transport = ("transport".to_owned(), level.to_owned());
    arms[1].settings.extend([transport]);
    let header = header(arms);
    let (folder, mut run) = run(&header, trials(&header, "closed", BLOCKS, |_| 1e4));
    let mut record = CountersRecord {
        session: 0,
        load: "closed".to_owned(),
        arm: "past".to_owned(),
        first_block: 0,
        counted: [("requests".to_owned(), 9)].into(),
    };
    for (hop, past, by_tcp) in counted {
        let named = [("redirected_bytes", past), ("tcp_bytes", by_tcp)];
        let named = named.map(|(name, count)| (format!("sockmap.{hop}.{name}"), *count));
        record.counted.extend(named);
    }
    let part = PartRecord {
        session: 0,
        load: "closed".to_owned(),
        first_block: 0,
        blocks: BLOCKS / 2,
        threads: 1,
        io: "epoll".to_owned(),
        starved: 0,
        listen_overflows: 0,
        late_ns: 0,
        errors: Vec::new(),
        arms: Vec::new(),
    };
    run.records.push(Record::Part(Box::new(part)));
    run.records.push(Record::Counters(record));
    (folder, run)
}

/// What is said of a block of the arm, as far as the trial's counters go.
fn said(run: &Run, arm: &str, block: u32) -> Vec<(Validity, String)> {
    let data = LoadData::gather(run, &run.header.study.loads[0]);
    let mut judged = data.blocks[block as usize].iter().flatten();
    let judged = judged.find(|judged| judged.trial.arm == arm).unwrap();
    judged
        .reasons
        .iter()
        .map(|found| {
            assert!(found.reason.rule.starts_with("bypass-"));
            (found.reason.validity, found.reason.seen.clone())
        })
        .collect()
}

#[test]
fn bytes_that_went_past_tcp_are_no_reason_to_doubt() {
    let counted = [("inbound", 700, 300), ("outbound", 500, 500)];
    let (_folder, run) = run_of("sockmap", &counted);
    assert_eq!(said(&run, "past", 0), []);
}

#[test]
fn a_hop_that_carried_nothing_is_invalid_and_one_that_carried_less_than_half_suspect() {
    let counted = [("inbound", 0, 5), ("outbound", 499, 501)];
    let (_folder, run) = run_of("sockmap", &counted);
    let said_of = said(&run, "past", 1);
    let grades: Vec<_> = said_of.iter().map(|(validity, _)| *validity).collect();
    assert_eq!(
        grades,
        [Validity::Invalid, Validity::Suspect],
        "{said_of:?}"
    );
    assert!(said_of[0].1.contains("inbound"), "{said_of:?}");
    assert!(said_of[1].1.contains("only 50 %"), "{said_of:?}");
    assert_eq!(said(&run, "tcp", 1), [], "of the arm alone");
    assert_eq!(said(&run, "past", BLOCKS - 1), [], "of that trial alone");
}

#[test]
fn one_byte_past_tcp_is_not_none() {
    let (_folder, run) = run_of("sockmap-inbound", &[("inbound", 1, u64::MAX)]);
    assert_eq!(said(&run, "past", 0)[0].0, Validity::Suspect);
}

#[test]
fn sockets_that_found_no_place_are_told_from_the_first_one() {
    let (_folder, mut run) = run_of("sockmap", &[("inbound", 10, 0), ("outbound", 10, 0)]);
    let mut refuse = |sockets: u64| {
        let Some(Record::Counters(own)) = run.records.last_mut() else {
            panic!("the last record is the counters'");
        };
        let named = [("sockets", 10), ("refused", sockets)];
        let named = named.map(|(name, count)| (format!("sockmap.inbound.{name}"), count));
        own.counted.extend(named);
        said(&run, "past", 0)
    };
    assert_eq!(refuse(0), []);
    let said_of = refuse(30);
    assert_eq!(said_of.len(), 1, "of one hop: {said_of:?}");
    let (validity, seen) = &said_of[0];
    assert_eq!(*validity, Validity::Suspect);
    let begins = "30 sockets of the inbound hop (75 %)";
    assert!(seen.starts_with(begins), "{seen}");
    assert_eq!(refuse(1).len(), 1);
}

#[test]
fn a_hop_that_nobody_counted_carried_nothing() {
    let (_folder, run) = run_of("sockmap", &[("inbound", 10, 0)]);
    let said_of = said(&run, "past", 0);
    assert_eq!(said_of.len(), 1);
    assert_eq!(said_of[0].0, Validity::Invalid);
    assert!(said_of[0].1.contains("outbound"), "{said_of:?}");
}

#[test]
fn a_level_is_judged_by_its_own_hops() {
    let inbound = [("inbound", 10, 0), ("outbound", 0, 10)];
    assert_eq!(said(&run_of("sockmap-inbound", &inbound).1, "past", 0), []);
    assert_eq!(
        said(&run_of("sockmap-outbound", &inbound).1, "past", 0).len(),
        1
    );
    assert_eq!(said(&run_of("tcp", &[]).1, "past", 0), []);
}

#[test]
fn a_server_of_files_has_one_hop() {
    let (_folder, mut run) = run_of("sockmap", &[("inbound", 10, 0)]);
    run.header.study.proxy.role = ProxyRole::StaticFiles { size: 1024 };
    assert_eq!(said(&run, "past", 0), []);
}

#[test]
fn the_load_is_judged_by_it() {
    let (_folder, run) = run_of("sockmap-inbound", &[]);
    let findings = crate::analyze(&run);
    let reasons = &findings.loads[0].reasons;
    let counted = reasons.iter().find(|r| r.reason.rule == "bypass-idle");
    let counted = counted.unwrap();
    assert_eq!(counted.arms, ["past"]);
    assert_eq!(counted.trials, BLOCKS / 2);
    assert_eq!(counted.reason.validity, Validity::Invalid);
}
