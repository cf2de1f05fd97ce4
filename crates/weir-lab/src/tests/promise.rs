//! Tests of the estimated length of a run against its length by the simulated clock, and of the part without load.

use std::time::Duration;

use weir_model::study::{MatrixCell, StudyArrivals};
use weir_simulation::{ArmModel, Model};

use super::bench::{Bench, load};
use crate::Event;

const ARMS: [&str; 8] = ["stock", "same", "a", "b", "c", "d", "e", "f"];

/// Name, number of arms, number of loads, seconds of each load, whether the loads are cells of a matrix, and a change
/// of the bench.
type Row = (&'static str, usize, usize, u64, bool, fn(&mut Bench));

#[rustfmt::skip]
const ROWS: [Row; 8] = [
    ("20 s, four arms", 4, 1, 20, false, |_| {}),
    ("20 s, four arms, with a pilot", 4, 1, 20, false, |bench| bench.study.blocks.slice = None),
    ("a minute, eight arms", 8, 1, 60, false, |bench| bench.study.blocks.slice = None),
    ("a slow pilot", 4, 1, 20, false, |bench| {
        // Eight connections at 25 ms: a residue of 200 ms asks for slices of 2 s, which 20 s do not have.
        bench.study.blocks.slice = None;
        bench.model.others = ArmModel::default().slower(50.0);
    }),
    ("one instance", 3, 2, 20, false, |bench| bench.study.blocks.instances = 1),
    ("long slices", 3, 1, 90, false, |bench| bench.study.blocks.slice = Some(Duration::from_secs(1))),
    ("five rates", 3, 5, 10, true, |_| {}),
    ("five rates, with a pilot", 3, 5, 10, true, |bench| bench.study.blocks.slice = None),
];

fn make_bench((_, arms, loads, seconds, is_matrix, change): Row) -> Bench {
    let mut bench = Bench::new(&ARMS[..arms], seconds, Model::default());
    if is_matrix {
        let cells = (1..=loads).map(|number| {
            let rate = 100.0 * number as f64;
            let mut cell = load(&format!("r{rate}"), StudyArrivals::Constant(rate), seconds);
            cell.cell =
                Some(MatrixCell { matrix: String::new(), connections: 8, rate: Some(rate) });
            cell
        });
        bench.study.loads = cells.collect();
    } else {
        let closed =
            (0..loads).map(|number| load(&format!("l{number}"), StudyArrivals::Closed, seconds));
        bench.study.loads = closed.collect();
    }
    change(&mut bench);
    bench
}

#[test]
fn a_promise_includes_everything_and_holds() {
    for row in ROWS {
        let bench = make_bench(row);
        let mut promised = Duration::ZERO;
        let summary = bench.run(&mut |event, _| {
            if let Event::Takes { takes, .. } = event {
                promised = *takes;
            }
        });
        let took = summary.unwrap().took.as_secs_f64();
        let loads: Duration = bench.study.loads.iter().map(|load| load.duration).sum();
        let before = weir_proposers::budget::length_of(&bench.study).as_secs_f64();
        let (promised, loads) = (promised.as_secs_f64(), loads.as_secs_f64());
        let promises = format!(
            "{}: {promised:.1} s promised, {before:.1} before, {took:.1} taken, {loads} of load",
            row.0
        );
        assert!((promised / took - 1.0).abs() < 0.1, "{promises}");
        assert!((before / took - 1.0).abs() < 0.1, "{promises}");
        // A load ends with its last whole block, which may leave a little of its time.
        assert!(took - loads < 0.2 * took, "{promises}");
    }
}
