//! A machine that stands still now and then, with meters on its CPUs and without.

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{Metric, StudyArrivals};
use weir_simulation::{ArmModel, Distribution, HoldUps, Machine, Model};

use super::bench::{Bench, load};

/// Hold-ups as they were seen on a virtual machine with two CPUs, and meters of that many nanoseconds.
fn machine(per_s: f64, meter_ns: f64) -> Machine {
    Machine {
        hold_ups: Some(HoldUps {
            per_s,
            length_ns: (1e6, 9e6),
            meter_ns,
        }),
        ..Machine::default()
    }
}

/// Two equal arms for 12 s in an open loop.
fn study(seed: u64, machine: Machine) -> LoadFindings {
    let others = ArmModel {
        service: Distribution::LogNormal {
            median_ns: 150e3,
            sigma: 0.3,
        },
        ..ArmModel::default()
    };
    let model = Model {
        seed,
        machine,
        others,
        ..Model::default()
    };
    let mut bench = Bench::new(&["stock", "same"], 12, model);
    bench.study.loads = vec![load("open", StudyArrivals::Constant(2000.0), 12)];
    bench.study.blocks.seed = seed;
    bench.findings().loads.swap_remove(0)
}

fn p99(load: &LoadFindings) -> &Comparison {
    let mut found = load.comparisons.iter();
    let is_it = |found: &&Comparison| found.metric == Metric::ResponseP99;
    found.find(is_it).unwrap()
}

#[test]
fn with_meters_the_p99_of_equal_arms_is_nearer_and_its_interval_still_covers() {
    const STUDIES: u64 = 200;
    let widths = [0.0, 2e6].map(|meter_ns| {
        let (mut widths, mut misses, mut false_verdicts) = (Vec::new(), 0, 0);
        for seed in 0..STUDIES {
            let load = study(seed, machine(1.5, meter_ns));
            let found = p99(&load);
            let (low, high) = found.interval;
            widths.push((high / low).ln());
            misses += u64::from(low > 1.0 || high < 1.0);
            let differs = matches!(found.verdict, Verdict::Better | Verdict::Worse);
            false_verdicts += u64::from(differs);
        }
        widths.sort_by(f64::total_cmp);
        println!(
            "{meter_ns} {} {misses} {false_verdicts}",
            widths[widths.len() / 2]
        );
        // 5 % of 200, and what chance adds in one of a thousand such tests.
        assert!(misses <= 20, "{misses} of {STUDIES} intervals do not cover");
        assert!(false_verdicts <= STUDIES / 20, "{false_verdicts}");
        widths[widths.len() / 2]
    });
    let [without, with] = widths;
    assert!(with < 0.6 * without, "{with} against {without}");
}

#[test]
fn left_out_trials_are_named_and_a_machine_that_hardly_runs_keeps_half_of_its_blocks() {
    // Hold-ups per second; whether as much as 1 ms is borne.
    for (per_s, is_raised) in [(0.5, false), (20.0, true)] {
        let load = study(1, machine(per_s, 2e6));
        let found = load.reasons.iter();
        let mut found = found.filter(|counted| counted.reason.rule == "held-up");
        let counted = found.next().unwrap();
        assert_eq!(counted.reason.validity, Validity::Invalid);
        let named = load.left_out.iter();
        let named = named.filter(|left_out| left_out.rules == ["held-up"]);
        assert_eq!(named.count() as u32, counted.trials);
        let lost = load.blocks - load.blocks_used;
        assert!(0 < lost && lost < load.blocks.div_ceil(2), "{lost}");
        let seen = &counted.reason.seen;
        assert_eq!(seen.contains("half of the blocks"), is_raised, "{seen}");
        assert_eq!(load.validity, Validity::Valid);
    }
    // Nobody knows anything without meters.
    assert!(study(1, machine(20.0, 0.0)).left_out.is_empty());
}
