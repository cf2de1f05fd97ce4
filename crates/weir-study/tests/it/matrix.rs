//! Tests of loads as a matrix, their scale, the network, and published response times.

use std::time::Duration;

use proptest::prelude::*;
use weir_model::study::{NetworkKind, NetworkSpec, Study, StudyArrivals};
use weir_parameters::Catalog;
use weir_study::{Scale, StudyErrors, parse_scaled, remarks};

use crate::{context, read};

/// Returns a study with these loads, and with `rest` at its end.
fn text(loads: &str, rest: &str) -> String {
    format!(
        "weir: 1\nname: m\nquestion: Where?\n\
         proxy: {{kind: nginx, settings: {{worker_processes: 1}}}}\n\
         loads:\n{loads}\n{rest}\n"
    )
}

fn scaled(text: &str, scale: &str) -> Result<Study, StudyErrors> {
    let scale: Scale = scale.parse().expect("a scale");
    parse_scaled(text, "study.yaml", &Catalog::builtin(), &context(), scale)
}

fn names(study: &Study) -> Vec<&str> {
    study.loads.iter().map(|load| &*load.name).collect()
}

const SMALL: &str = "- {connections: 100..300 step 100, rate: [50, 1k], duration: 1m, timeout: 3s}";

#[test]
fn every_combination_is_a_load_that_knows_its_place() {
    let study = read(&text(SMALL, "")).expect("it is right");
    #[rustfmt::skip]
    let expected = [
        "c100-r50", "c100-r1000", "c200-r50", "c200-r1000", "c300-r50", "c300-r1000",
    ];
    assert_eq!(names(&study), expected);
    let last = &study.loads[5];
    assert_eq!((last.connections, last.arrivals.clone()), (300, StudyArrivals::Constant(1000.0)));
    assert_eq!(last.timeout, Duration::from_secs(3));
    let cell = last.cell.as_ref().expect("a cell");
    assert_eq!((cell.connections, cell.rate, &*cell.matrix), (300, Some(1000.0), ""));
}

#[test]
fn one_axis_and_names_make_a_matrix_too() {
    let loads = "- {name: closed, closed: true, connections: [5, 10], duration: 1m}\n\
                 - {name: open, rate: 100..300 step 200, connections: 7, duration: 1m}\n\
                 - {name: share, rate: 50% of slowest, connections: [1, 2], duration: 1m}\n\
                 - {name: alone, rate: 9, connections: 3, duration: 1m}";
    let study = read(&text(loads, "")).unwrap_or_else(|e| panic!("{}", e.render(false)));
    #[rustfmt::skip]
    let expected = [
        "closed-c5", "closed-c10", "open-c7-r100", "open-c7-r300", "share-c1", "share-c2", "alone",
    ];
    assert_eq!(names(&study), expected);
    assert_eq!(study.loads[6].cell, None);
    assert_eq!(study.loads[4].arrivals, StudyArrivals::ShareOfSlowest(0.5));
}

#[test]
fn a_scale_changes_numbers_and_names_and_keeps_the_place() {
    let study = scaled(&text(SMALL, ""), "25%").expect("it is right");
    assert_eq!(names(&study)[0], "c25-r13");
    assert_eq!(study.scale, Some(0.25));
    let cell = study.loads[0].cell.as_ref().expect("a cell");
    assert_eq!((cell.connections, cell.rate), (100, Some(50.0)));
    let study_remarks = remarks(&study, &Catalog::builtin(), &context());
    assert!(study_remarks[0].text.contains("0.25 times"), "{study_remarks:?}");
    assert_eq!(scaled(&text(SMALL, ""), "1x").expect("right").scale, None);
}

#[test]
fn cells_that_become_the_same_are_measured_once_and_that_is_said() {
    let study = scaled(&text(SMALL, ""), "0.5%").expect("it is right");
    assert_eq!(names(&study), ["c1-r1", "c1-r5", "c2-r1", "c2-r5"]);
    assert!(study.left_out[0].starts_with("2 of the loads of a matrix"), "{:?}", study.left_out);
}

#[test]
fn a_scale_that_the_machine_has_no_room_for_is_an_error_of_the_study() {
    let errors = scaled(&text(SMALL, ""), "100x").expect_err("too many");
    // Once for all cells, where the connections stand.
    assert_eq!(errors.errors().len(), 1, "{errors}");
    assert_eq!(errors.errors()[0].text, "100..300 step 100");
}

#[test]
fn what_is_no_matrix_is_refused_with_its_place() {
    let loads = "- {connections: 100..1000, rate: 5, duration: 1m}\n\
                 - {connections: [1, 1, x], rate: 5, duration: 1m}\n\
                 - {connections: 1..10 step 4, rate: 5, duration: 1m}\n\
                 - {connections: 9..1 step 1, rate: 5, duration: 1m}\n\
                 - {connections: 1..1000000 step 1, rate: 5, duration: 1m}\n\
                 - {connections: 1..30 step 1, rate: 1..30 step 1, duration: 1m}\n\
                 - {connections: 1, rate: [1.5, 2], duration: 1m}\n\
                 - {connections: [], rate: 2, duration: 1m}\n\
                 - {connections: 1, rate: 2, duration: 1m}";
    insta::assert_snapshot!(read(&text(loads, "")).expect_err("wrong").render(false));
}

#[test]
fn the_network_has_defaults_and_bounds() {
    assert_eq!(read(&text(SMALL, "")).expect("right").network, NetworkSpec::default());
    let network =
        read(&text(SMALL, "network: {kind: namespaces, mtu: 9000}")).expect("right").network;
    assert_eq!((network.kind, network.mtu), (NetworkKind::Namespaces, 9000));
    let wrong = [
        "network: {kind: vlan}",
        "network: {mtu: 575}",
        "network: {mtu: 65536}",
        "network: {kind: loopback, mtu: 1500}",
        "network: {name: x}",
    ];
    let messages: Vec<String> = wrong
        .map(|rest| read(&text(SMALL, rest)).expect_err(rest).errors()[0].message.clone())
        .into();
    insta::assert_debug_snapshot!(messages);
}

#[test]
fn published_times_are_read_whatever_the_scale() {
    let sections = "arms: [{name: b, settings: {backlog: 4096}}]\n\
                published:\n  source: s\n  metric: m\n  response-times:\n  \
                - {arm: baseline, connections: 200..300, p50: 200ms..300ms, p99.9: 1s}\n  \
                - {arm: b, load: c300-r1000, unchanged: true}\n  \
                dated: {b: it is old}";
    let study =
        scaled(&text(SMALL, sections), "50%").unwrap_or_else(|e| panic!("{}", e.render(false)));
    let published = study.published.expect("there");
    let [first, second] = &published.times[..] else {
        panic!("{:?}", published.times);
    };
    assert_eq!((first.connections, first.quantiles.len()), (Some((200, 300)), 2));
    assert_eq!(first.quantiles[0].high, Duration::from_millis(300));
    assert_eq!(first.quantiles[1].quantile, 0.999);
    assert_eq!((second.unchanged, second.load.as_deref()), (true, Some("c150-r500")));
    assert_eq!(published.dated["b"], "it is old");
}

#[test]
fn published_times_that_say_nothing_or_cannot_be_are_refused() {
    let sections = "published:\n  source: s\n  metric: m\n  response-times:\n  \
                - {arm: baseline}\n  \
                - {arm: nobody, p50: 1s}\n  \
                - {arm: baseline, load: c1-r1, p50: 1s}\n  \
                - {arm: baseline, p50: 1s, p99: 1ms}\n  \
                - {arm: baseline, p50: 3s..2s}\n  \
                - {arm: baseline, p50: 1s..soon}\n  \
                - {arm: baseline, connections: 9..1, p50: 1s, unchanged: true}\n  \
                dated: {nobody: x}";
    insta::assert_snapshot!(read(&text(SMALL, sections)).expect_err("wrong").render(false));
}

proptest! {
    /// For any axes, a matrix is refused, or has each combination once and stays within the bound.
    #[test]
    fn a_matrix_is_bounded_and_its_names_are_unique(
        (from, count, step) in (1_u64..5000, 1_u64..600, 1_u64..300),
        rates in prop::collection::btree_set(1_u64..100_000, 1..40),
        percent in 1_u32..300,
    ) {
        let to = from + count * step;
        let rates: Vec<String> = rates.iter().map(u64::to_string).collect();
        let loads = format!(
            "- {{connections: {from}..{to} step {step}, rate: [{}], duration: 1m, optional: true}}",
            rates.join(", ")
        );
        if let Ok(study) = scaled(&text(&loads, ""), &format!("{percent}%")) {
            prop_assert!(study.loads.len() <= 400);
            let mut unique = names(&study);
            unique.sort_unstable();
            unique.dedup();
            prop_assert_eq!(unique.len(), study.loads.len());
            prop_assert!(study.loads.iter().all(|load| load.connections >= 1));
        }
    }
}
