//! Tests of loads that several generators send together, compared with a single one.

use weir_model::record::{Record, TrialRecord};
use weir_model::study::StudyArrivals;
use weir_record::Run;
use weir_simulation::{Distribution, Model};

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

/// Response times at a rate at which the generator itself is late would be the generator's.
#[test]
fn a_rate_that_may_fall_does_so_until_the_generator_is_punctual() {
    // Rates above which the generator is late, as shares of what an arm carries.
    let (up_to, exactly) =
        (StudyArrivals::UpToShareOfSlowest(0.6), StudyArrivals::ShareOfSlowest(0.6));
    let rows = [
        (f64::INFINITY, &up_to, 0),
        (0.4, &up_to, 1),
        (0.2, &up_to, 2),
        (0.0, &up_to, 3),
        (0.0, &exactly, 0),
    ];
    for (late_above, arrivals, falls) in rows {
        let late = Distribution::Exponential { mean_ns: 2e6 };
        let carried = 2_000.0;
        let mut model = Model::default();
        model.generator.late_above = Some((late_above * carried, late));
        let mut bench = Bench::new(&["stock", "same"], 6, model);
        bench.study.blocks.slice = None;
        bench.study.loads.push(load("open", arrivals.clone(), 6));
        let findings = bench.findings();
        let run = bench.read();
        let mut pilots = run.records.iter().filter_map(|record| match record {
            Record::Pilot(pilot) if pilot.load == "open" => Some(pilot),
            _ => None,
        });
        let pilot = pilots.next().unwrap();
        let closed =
            findings.loads[0].arms.iter().map(|arm| arm.rate_completed).fold(f64::MAX, f64::min);
        let wanted = 0.6 * closed * 0.5_f64.powi(falls);
        let rate = pilot.rate.unwrap();
        assert!((rate / wanted - 1.0).abs() < 0.02, "{late_above} {closed}: {pilot:?}");
        assert_eq!(pilot.late_rates.len() as i32, falls, "{late_above} {closed}: {pilot:?}");
        assert_eq!(findings.loads[1].rate_intended, Some(rate), "{late_above}");
    }
}
