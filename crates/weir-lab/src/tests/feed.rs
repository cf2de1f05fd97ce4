//! Test of the figures that those who watch a run get.

use std::collections::BTreeMap;

use weir_model::study::StudyArrivals;
use weir_simulation::Model;

use super::bench::{Bench, load};
use crate::Event;

#[test]
fn what_is_told_of_arms_adds_up_to_the_records() {
    let mut bench = Bench::new(&["stock", "close"], 12, Model::default());
    bench.study.loads.push(load("open", StudyArrivals::Constant(2000.0), 12));
    let mut counted = BTreeMap::new();
    let mut events = 0;
    let summary = bench.run(&mut |event, _| {
        let Event::Measured(measured) = event else { return };
        events += 1;
        let interval = &measured.interval;
        assert!(interval.response_time.p50 > 0, "{measured:?}");
        let key = (measured.load.clone(), measured.arm.clone(), measured.phase);
        let sums: &mut [u64; 4] = counted.entry(key).or_default();
        let added = [
            u64::from(measured.blocks),
            interval.due,
            interval.completed,
            measured.times.response.len(),
        ];
        sums.iter_mut().zip(added).for_each(|(sum, part)| *sum += part);
    });
    let took = summary.unwrap().took;
    let run = bench.read();
    let mut recorded = BTreeMap::new();
    for trial in run.trials_in(|_| true) {
        let key = (trial.load.clone(), trial.arm.clone(), trial.phase);
        let sums: &mut [u64; 4] = recorded.entry(key).or_default();
        sums[0] += 1;
        sums[1] += trial.slices.iter().map(|slice| slice.due).sum::<u64>();
        sums[2] += trial.slices.iter().map(|slice| slice.completed).sum::<u64>();
        sums[3] += trial.response_time.count;
    }
    assert!(recorded.len() >= 4);
    assert_eq!(counted, recorded);
    // An event a second for each of two arms, and some at the ends of trials.
    let most = 2 * (took.as_secs() as usize + 16);
    assert!(events < most, "{events} events in {took:?}");
    assert!(
        (events as u32) < run.trials_in(|_| true).count() as u32,
        "{events}: blocks are added up"
    );
}
