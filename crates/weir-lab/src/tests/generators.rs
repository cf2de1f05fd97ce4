//! Tests of loads that several generators send together, compared with a single one.

use weir_model::record::{Record, TrialRecord};
use weir_model::study::StudyArrivals;
use weir_record::Run;
use weir_simulation::Model;

use super::bench::{Bench, load, reports};

fn run(generators: usize) -> Run {
    let model = Model { generators, ..Model::default() };
    let mut bench = Bench::new(&["stock", "same"], 12, model);
    bench.study.loads = vec![load("open", StudyArrivals::Constant(900.0), 12)];
    bench.findings();
    bench.read()
}

type Figure = fn(&TrialRecord) -> f64;

fn sum(trial: &TrialRecord, of: fn(&weir_model::record::SliceRecord) -> u64) -> u64 {
    trial.slices.iter().map(of).sum()
}

fn mean(run: &Run, figure: Figure) -> f64 {
    let figures: Vec<f64> = run.trials().map(figure).collect();
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[test]
fn four_generators_are_one_load() {
    let [one, four] = [1, 4].map(run);
    let trials: Vec<&TrialRecord> = four.trials().collect();
    for trial in &trials {
        let shares = &trial.generators;
        assert_eq!(shares.len(), 4);
        let due = sum(trial, |slice| slice.due);
        assert_eq!(shares.iter().map(|share| share.due).sum::<u64>(), due);
        let sent = sum(trial, |slice| slice.sent);
        assert_eq!(shares.iter().map(|share| share.sent).sum::<u64>(), sent);
        let completed = sum(trial, |slice| slice.completed);
        let completions = shares.iter().map(|share| share.completed);
        assert_eq!(completions.sum::<u64>(), completed);
        let timed = shares.iter().map(|share| share.timed).sum::<u64>();
        assert_eq!(timed, trial.response_time.count);
        let mut dues = shares.iter().map(|share| share.due);
        assert!(dues.all(|part| part.abs_diff(due / 4) * 20 <= due), "{shares:?}");
    }
    assert!(one.trials().all(|trial| trial.generators.is_empty()));

    // The schedule is the same one, whoever sends: so are rates, and what the arms make of them.
    let figures: [(Figure, f64); 3] = [
        (|trial| sum(trial, |slice| slice.due) as f64, 0.001),
        (|trial| trial.response_time.p50 as f64, 0.02),
        (|trial| trial.response_time.p99 as f64, 0.1),
    ];
    for (of, tolerance) in figures {
        let (one, four) = (mean(&one, of), mean(&four, of));
        assert!((four / one - 1.0).abs() < tolerance, "{four} and {one}");
    }

    let mut parts = four
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Part(part) => Some(part),
            _ => None,
        })
        .peekable();
    assert!(parts.peek().is_some());
    for part in parts {
        let apart: Vec<u64> = part.starts.iter().map(|start| start.after_ns).collect();
        assert_eq!(apart, [0; 4]);
    }
    let [_, report, _] = reports(&four, &weir_analysis::analyze(&four));
    assert!(report.contains("generators started apart"), "{report}");
}

#[test]
fn a_load_of_fewer_connections_than_generators_is_sent_by_as_many() {
    let model = Model { generators: 4, ..Model::default() };
    let mut bench = Bench::new(&["stock", "same"], 6, model);
    bench.study.loads[0].connections = 3;
    bench.findings();
    let run = bench.read();
    assert!(run.trials().all(|trial| trial.generators.len() == 3));
}
