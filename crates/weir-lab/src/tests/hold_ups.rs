//! Tests on a machine that stands still now and then, with meters on its CPUs and without.

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_model::study::{Metric, StudyArrivals};
use weir_simulation::{HoldUps, Model, NOISES};

use super::bench::{Bench, load};

fn host(seed: u64, meters: bool) -> Model {
    let name =
        if meters { "open loop, hold-ups, meters" } else { "open loop, hold-ups, no meters" };
    let mut rows = NOISES.iter();
    rows.find(|row| row.name == name).unwrap().model(seed)
}

/// Runs a study of two equal arms for 12 s in an open loop: ten requests beyond the p99 of a block.
fn study(model: Model) -> LoadFindings {
    let seed = model.seed;
    let mut bench = Bench::new(&["stock", "same"], 12, model);
    bench.study.loads = vec![load("open", StudyArrivals::Constant(6_000.0), 12)];
    bench.study.blocks.seed = seed;
    bench.findings().loads.swap_remove(0)
}

fn p99(load: &LoadFindings) -> &Comparison {
    load.comparison("same", Metric::ResponseP99).unwrap()
}

fn typical_ns(load: &LoadFindings) -> u64 {
    load.arms[0].tails[0].typical_ns.unwrap()
}

#[test]
fn with_meters_the_interval_of_the_p99_of_equal_arms_is_narrower_and_the_rest_is_as_it_was() {
    let mut widths = [Vec::new(), Vec::new()];
    for seed in 1..=3 {
        let [without, with] = [false, true].map(|meters| study(host(seed, meters)));
        assert_eq!(without.hold_ups, None, "nobody knows without meters");
        let hold_ups = with.hold_ups.as_ref().unwrap();
        assert!(hold_ups.left_out);
        assert!((5..hold_ups.of / 3).contains(&hold_ups.slices), "{hold_ups:?}");
        // No block is lost, and what bears hold-ups rests on all requests.
        assert_eq!(with.blocks_used, with.blocks);
        for (load, widths) in [&without, &with].into_iter().zip(&mut widths) {
            let (low, high) = p99(load).interval;
            widths.push((high / low).ln());
            assert!(!matches!(p99(load).verdict, Verdict::Better | Verdict::Worse));
        }
        assert_eq!(p99(&without).pooled, p99(&with).pooled);
        assert_eq!(without.arms[0].response_ns, with.arms[0].response_ns);
        let [p50_without, p50_with] =
            [&without, &with].map(|load| load.comparison("same", Metric::ResponseP50).cloned());
        assert_eq!(p50_without, p50_with);
        assert!(typical_ns(&with) < typical_ns(&without));
    }
    let [without, with] = widths.map(|mut widths| {
        widths.sort_by(f64::total_cmp);
        widths[widths.len() / 2]
    });
    assert!(with < 0.75 * without, "{with} against {without}");
}

#[test]
fn nothing_is_left_out_on_a_machine_that_hardly_runs() {
    let mut model = host(3, true);
    model.machine.hold_ups =
        model.machine.hold_ups.map(|hold_ups| HoldUps { per_s: 30.0, ..hold_ups });
    let load = study(model);
    let hold_ups = load.hold_ups.as_ref().unwrap();
    assert!(2 * hold_ups.slices > hold_ups.of && !hold_ups.left_out, "{hold_ups:?}");
    assert_ne!(p99(&load).verdict, Verdict::Invalid);
}
