//! Tests of studies of one number on simulated hosts: servers whose speed follows a known law of their workers.

use weir_analysis::findings::{ScalingAnswer, ScalingFindings};
use weir_model::study::{Arm, ArmRole, Settings};
use weir_simulation::Model;
use weir_stats::scaling::{Form, Parameter};

use super::bench::{Bench, arm, reports};

const WORKERS: [usize; 6] = [1, 2, 3, 4, 6, 8];

/// Measures arms with so many workers, each of which is slower by a factor that depends on their number.
fn measured(slower: impl Fn(f64) -> f64) -> (Bench, ScalingFindings) {
    let mut model = Model::default();
    model.machine.noise.white = 0.01;
    let mut names = Vec::new();
    for workers in WORKERS {
        let name = format!("worker_processes={workers}");
        let mut server = model.others.slower(slower(workers as f64));
        (server.workers, server.instance_sd) = (workers, 0.005);
        model.arms.insert(name.clone(), server);
        names.push(name);
    }
    let mut bench = Bench::new(&["stock"], 40, model);
    bench.study.loads[0].connections = 64;
    let arms = names.iter().zip(WORKERS).enumerate().map(|(index, (name, workers))| {
        let settings = Settings::from([("worker_processes".to_owned(), workers.to_string())]);
        let role = if index == 0 { ArmRole::Baseline } else { ArmRole::Change };
        let changes = if index == 0 { Settings::new() } else { settings.clone() };
        Arm { role, changes, settings, ..arm(name) }
    });
    bench.study.arms = arms.collect();
    let mut findings = bench.findings();
    assert_eq!(findings.scaling.len(), 1);
    (bench, findings.scaling.remove(0))
}

/// Returns the interval of a parameter of the answer.
fn interval(found: &ScalingFindings, wanted: Parameter) -> (f64, f64) {
    let best = found.measured.best().expect("a form");
    let parameter = best.parameter(wanted).expect("a parameter");
    (parameter.low.unwrap_or(0.0), parameter.high.unwrap_or(f64::INFINITY))
}

#[test]
fn a_server_that_keeps_its_workers_up_to_date_is_told_with_its_peak_and_drawn() {
    let (contention, coherence) = (0.03, 0.02);
    let (bench, found) = measured(|n| 1.0 + contention * (n - 1.0) + coherence * n * (n - 1.0));
    assert_eq!(found.measured.answer, ScalingAnswer::Named(Form::Universal));
    for (parameter, value) in
        [(Parameter::Contention, contention), (Parameter::Coherence, coherence)]
    {
        let (low, high) = interval(&found, parameter);
        assert!(low <= value && value <= high, "{parameter:?}: {low} to {high}");
    }
    let run = bench.read();
    let [terminal, markdown, page] = reports(&run, &weir_analysis::analyze(&run));
    for report in [&terminal, &markdown, &page] {
        assert!(report.contains("keeping each other up to date"), "{report}");
    }
    let chart = &page[page.find("id=\"scaling\"").expect("the section")..];
    let chart = &chart[..chart.find("</figure>").expect("a chart")];
    assert_eq!(chart.matches("<circle").count(), WORKERS.len());
}

#[test]
fn a_server_whose_workers_wait_for_nobody_grows_in_proportion() {
    let (_, found) = measured(|_| 1.0);
    assert_eq!(found.measured.best().map(|best| best.form), Some(Form::Linear));
    assert!(found.ceiling.is_none());
    let (low, high) = interval(&found, Parameter::PerUnit);
    assert!(low < 2_000.0 && 2_000.0 < high * 1.02 && high / low < 1.05, "{low} to {high}");
}
