//! Tests that a search leaves out trials in which the machine stood still.

use weir_model::limit::Limit;
use weir_model::record::*;
use weir_model::study::{ArmRole, Study, StudyArrivals};

use crate::analyze;
use crate::fixture::{arm, run_with_records};

/// Gives the proxy's CPU to other processes for this time.
fn by_others(slice: &mut SliceRecord, nanoseconds: u64) {
    slice.held_up.proxy = Some(HeldUp { others_ns: nanoseconds, ..HeldUp::default() });
}

/// Gives the proxy's CPU to the hypervisor for this time.
fn by_hypervisor(slice: &mut SliceRecord, nanoseconds: u64) {
    slice.proxy_steal_ns = nanoseconds;
}

/// Rates of the curve of four trials of a second each, which were held up for these milliseconds.
fn curve(hold_up: fn(&mut SliceRecord, u64), milliseconds: [u64; 4]) -> Vec<f64> {
    let load = weir_model::fixture::load("closed", StudyArrivals::Closed);
    let header = weir_model::fixture::header(Study {
        loads: vec![load],
        capacity: Limit::parse_all("p99 < 30ms, errors < 1%").unwrap(),
        ..weir_model::fixture::study(vec![arm("stock", ArmRole::Baseline, 0)])
    });
    let trials = (0..).zip(milliseconds).map(|(block, ms)| {
        let rate = 100.0 * f64::from(block + 1_u32);
        let mut slice = SliceRecord {
            measured_ns: 1_000_000_000,
            whole_ns: 1_000_000_000,
            due: rate as u64,
            sent: rate as u64,
            offered: rate as u64,
            completed: rate as u64,
            completed_whole: rate as u64,
            ..SliceRecord::default()
        };
        hold_up(&mut slice, ms * 1_000_000);
        TrialRecord {
            rate_intended: Some(rate),
            slices: vec![slice],
            bad: vec![0.0, 0.0],
            ..weir_model::fixture::trial("closed", "stock", block)
        }
    });
    let (_folder, run) = run_with_records(
        &header,
        trials.collect(),
        |trial, _| vec![1_000_000; trial.slices[0].completed as usize],
        &[],
    );
    let capacity = analyze(&run).capacity.unwrap();
    capacity.arms[0].curve.iter().map(|point| point.rate).collect()
}

#[test]
fn a_trial_in_which_the_machine_stood_still_is_no_point_of_the_curve() {
    // A limit of 30 ms, and 3 % of a second.
    for (milliseconds, points) in [
        ([0, 59, 0, 0], vec![100.0, 200.0, 300.0, 400.0]),
        ([0, 61, 0, 0], vec![100.0, 300.0, 400.0]),
        // Most of the time: that is how the machine is.
        ([61, 61, 0, 61], vec![100.0, 200.0, 300.0, 400.0]),
    ] {
        for hold_up in [by_others, by_hypervisor] {
            assert_eq!(curve(hold_up, milliseconds), points, "{milliseconds:?}");
        }
    }
}
