//! A machine that stands still now and then, with meters on its CPUs and without.

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{Metric, StudyArrivals};
use weir_simulation::{ArmModel, Distribution, HoldUps, Machine, Model};

use super::bench::{Bench, load};

/// Hold-ups from 1 ms on, about as they were seen on a virtual machine with two CPUs, and meters.
fn machine(per_s: f64, longest_ns: f64, meter_ns: f64) -> Machine {
    Machine {
        hold_ups: Some(HoldUps {
            per_s,
            length_ns: (1e6, longest_ns),
            meter_ns,
        }),
        ..Machine::default()
    }
}

/// Two equal arms for 12 s in an open loop.
fn study(seed: u64, machine: Machine) -> LoadFindings {
    let others = ArmModel {
        service: Distribution::LogNormal {
            median_ns: 80e3,
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
    bench.study.loads = vec![load("open", StudyArrivals::Constant(4000.0), 12)];
    bench.study.blocks.seed = seed;
    bench.findings().loads.swap_remove(0)
}

fn p99(load: &LoadFindings) -> &Comparison {
    let mut found = load.comparisons.iter();
    let is_it = |found: &&Comparison| found.metric == Metric::ResponseP99;
    found.find(is_it).unwrap()
}

/// What came of studies with such meters: median of the widths of the intervals of the p99's logarithm, intervals
/// that do not cover, and false verdicts.
fn tally(studies: u64, meter_ns: f64) -> (f64, u64, u64) {
    let (mut widths, mut misses, mut false_verdicts) = (Vec::new(), 0, 0);
    for seed in 0..studies {
        let load = study(seed, machine(1.5, 9e6, meter_ns));
        let found = p99(&load);
        let (low, high) = found.interval;
        widths.push((high / low).ln());
        misses += u64::from(low > 1.0 || high < 1.0);
        let differs = matches!(found.verdict, Verdict::Better | Verdict::Worse);
        false_verdicts += u64::from(differs);
    }
    widths.sort_by(f64::total_cmp);
    (widths[widths.len() / 2], misses, false_verdicts)
}

fn meters_help(studies: u64) {
    let [without, with] = [0.0, 2e6].map(|meter_ns| tally(studies, meter_ns));
    println!("{studies} studies: without meters {without:?}, with meters {with:?}");
    for (_, misses, false_verdicts) in [without, with] {
        // 5 %, and three standard deviations of chance.
        let most = 0.05 * studies as f64 + 3.0 * (0.0475 * studies as f64).sqrt();
        assert!(
            (misses as f64) <= most,
            "{misses} of {studies} intervals do not cover"
        );
        assert!(
            false_verdicts * 20 <= studies.max(20),
            "{false_verdicts} of {studies}"
        );
    }
    assert!(with.0 < 0.75 * without.0, "{with:?} against {without:?}");
}

#[test]
fn with_meters_the_interval_of_the_p99_of_equal_arms_is_narrower_and_covers() {
    meters_help(8);
}

#[test]
#[ignore = "slow: 400 studies"]
fn the_same_in_many_studies() {
    meters_help(200);
}

#[test]
fn left_out_trials_are_named_and_a_machine_that_hardly_runs_keeps_half_of_its_blocks() {
    // Hold-ups per second, the longest; whether more than 1 ms is borne.
    for (per_s, longest_ns, is_raised) in [(0.5, 9e6, false), (8.0, 2.5e6, true)] {
        let load = study(3, machine(per_s, longest_ns, 2e6));
        println!(
            "{per_s} {:?} {} {}",
            load.reasons, load.blocks, load.blocks_used
        );
        let found = load.reasons.iter();
        let mut found = found.filter(|counted| counted.reason.rule == "held-up");
        let counted = found.next().unwrap();
        assert_eq!(counted.reason.validity, Validity::Invalid);
        let named = load.left_out.iter();
        let named = named.filter(|left_out| left_out.rules.iter().any(|rule| rule == "held-up"));
        assert_eq!(named.count() as u32, counted.trials);
        let lost = load.blocks - load.blocks_used;
        assert!(0 < lost && lost < load.blocks.div_ceil(2), "{lost}");
        let seen = &counted.reason.seen;
        assert_eq!(seen.contains("half of the blocks"), is_raised, "{seen}");
        assert_eq!(load.validity, Validity::Valid);
    }
    // Nobody knows anything without meters.
    assert!(study(3, machine(8.0, 2.5e6, 0.0)).left_out.is_empty());
}
