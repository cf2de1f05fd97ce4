//! Tests of bursts of an open load, which must fit connections and slices.

use std::time::Duration;

use weir_model::bursts::Bursts;
use weir_model::study::Study;
use weir_parameters::Catalog;
use weir_study::{Scale, StudyErrors, parse_scaled};

use crate::context;

/// Reads a study with `load` after a closed one, and with the line `slice`, at a scale.
fn read_study(load: &str, slice: &str, scale: &str) -> Result<Study, StudyErrors> {
    let text = format!(
        "weir: 1\n\
         name: b\n\
         question: Does the queue matter?\n\
         proxy: {{kind: nginx, settings: {{worker_processes: 1}}}}\n\
         loads:\n\
         - {{name: closed, closed: true, connections: 20, duration: 10m}}\n\
         - {{{load}, duration: 10m}}\n\
         arms:\n\
         - {{name: long-queue, settings: {{backlog: 4096}}}}\n\
         {slice}\n"
    );
    let scale: Scale = scale.parse().expect("a scale");
    parse_scaled(&text, "study.yaml", &Catalog::builtin(), &context(), scale)
}

fn refused(load: &str, slice: &str) -> String {
    read_study(load, slice, "1").expect_err(load).render(false)
}

const RIGHT: &str = "name: open, rate: 100, burst: 500, connections: 500";
const FIVE: &str = "blocks: {slice: 5s}";

#[test]
fn bursts_that_fit_are_read() {
    let study = read_study(RIGHT, FIVE, "1").expect("it is right");
    let bursts = Bursts::of(&study.loads[1]).expect("it has bursts");
    assert_eq!((bursts.size, bursts.rate), (500, 100.0));
    assert_eq!(bursts.period(), Duration::from_secs(5));
    assert_eq!(Bursts::of(&study.loads[0]), None);
}

#[test]
fn a_scale_makes_smaller_bursts_as_often() {
    for scale in ["1%", "10%", "33.3%", "50%"] {
        let study = read_study(RIGHT, FIVE, scale).expect(scale);
        let bursts = Bursts::of(&study.loads[1]).expect("it has bursts");
        assert_eq!(bursts.in_slice(Duration::from_secs(5)), Some(1), "{scale}");
        assert_eq!(bursts.size, study.loads[1].connections);
    }
    let third = read_study(RIGHT, FIVE, "33.3%").expect("it is right");
    let Bursts { size, rate } = Bursts::of(&third.loads[1]).expect("it has bursts");
    assert_eq!(size, 166);
    assert!((rate - 33.2).abs() < 1e-9, "{rate}");
}

#[test]
fn bursts_that_would_come_to_some_arms_alone_are_refused() {
    insta::assert_snapshot!(refused(RIGHT, "blocks: {slice: 6s}"));
    insta::assert_snapshot!("bursts_without_a_slice", refused(RIGHT, ""));
}

#[test]
fn bursts_that_cannot_be_are_refused() {
    #[rustfmt::skip]
    let rows = [
        ("name: open, rate: 100, burst: 500, connections: 499",
         "bursts of 500 requests need 500 connections, and the load has 499"),
        ("name: open, closed: true, burst: 500, connections: 500", "a closed load has no bursts"),
        ("name: open, rate: 50% of slowest, burst: 500, connections: 500",
         "needs its rate in requests per second"),
        ("name: open, rate: 100, burst: 1, connections: 500",
         "`1` is not a whole number from 2 to 1000000"),
        ("rate: [100, 150], burst: 500, connections: 500", "slices of 5s do not hold whole bursts"),
    ];
    for (load, words) in rows {
        let report = refused(load, FIVE);
        assert!(report.contains(words), "{report}");
        assert!(report.contains("--> study.yaml:7:"), "{report}");
    }
}
