//! Tests of `weir run` with loads like those of `weir load`: a mix of requests with slots and expectations, a pipeline,
//! Poisson arrivals, a second flow; a rate that grows, and a trace.

use weir_record::Run;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::{Sandbox, slices};

const ARMS: [&str; 2] = ["baseline", "log-off"];

/// Returns a study with these loads, of nginx that serves a file of 1 KiB, with slices of a second.
fn study(loads: &str) -> String {
    format!(
        "weir: 1
name: loads
question: Is a study asked what weir load asks?
proxy:
  kind: nginx
  role: {{static-files: {{size: 1KiB}}}}
  settings: {{worker_processes: 1}}
loads:
{loads}
a/a: false
arms:
  - {{name: log-off, settings: {{access_log: off}}}}
blocks: {{slice: 1s, discard: 20%, at-least: 6, instances: 1}}
objective: {{metric: response-p50}}
"
    )
}

/// Returns the number of requests due for an arm in each slice.
fn list_due(run: &Run, load: &str, arm: &str) -> Vec<u64> {
    slices(run, load, arm).into_iter().map(|slice| slice.due).collect()
}

fn offered(run: &Run, load: &str, arm: &str) -> Vec<u64> {
    slices(run, load, arm).into_iter().map(|slice| slice.offered).collect()
}

const MIX: &str = "
  - name: mix
    rate: 300
    arrivals: poisson:7
    connections: 4
    pipeline: 4
    requests:
      - {path: /, weight: 3, expect: {status: 200, size: 1KiB}}
      - {path: '/none-{{sequence}}', expect: {status: 404}}
    flows:
      - {name: beside, rate: 50, connections: 2, request: {method: HEAD}, expect: status=200}
    duration: 24s";

#[test]
fn a_mix_with_slots_expectations_a_pipeline_and_a_second_flow() {
    let sandbox = Sandbox::new();
    let (_, run) = sandbox.measure(&study(MIX));
    assert_eq!(run.pilot("mix").and_then(|pilot| pilot.rate), Some(350.0));
    for arm in ARMS {
        let trials = run.trials_of("mix", arm);
        let mut classes = [0_u64; 6];
        for trial in &trials {
            // One that is not as expected would be an error.
            assert_eq!(trial.errors, [], "{arm}");
            classes.iter_mut().zip(&trial.status_classes).for_each(|(sum, count)| *sum += count);
        }
        // 75 of 300 requests per second are for what is not there, beside 50 of the other flow.
        let (answered, missing) = (classes[2] as f64, classes[4] as f64);
        let share = missing / (answered + missing);
        assert!((share - 75.0 / 350.0).abs() < 0.03, "{arm}: {classes:?}");
        let due = list_due(&run, "mix", arm);
        let mean = due.iter().sum::<u64>() as f64 / due.len() as f64;
        assert!((mean - 280.0).abs() < 20.0, "{arm}: {mean}");
        // Evenly spaced, all would be 280, or one more.
        let widest = due.iter().map(|count| (*count as f64 - mean).abs()).fold(0.0, f64::max);
        assert!(widest > 5.0, "{arm}: {due:?}");
    }
    let parts: Vec<_> = run.parts("mix").flat_map(|part| &part.arms).collect();
    assert!(parts.iter().all(|arm| arm.asking.wanted == 6), "{parts:?}");
    let report = sandbox.read("report.md");
    let beside = "beside it beside with 2 connections";
    report.has_all(&["a mix of 2 requests", beside]);
}

#[test]
fn a_rate_that_grows_and_a_trace_are_the_same_in_every_slice() {
    let sandbox = Sandbox::new();
    let trace = sandbox.write("times", "0\n0.1\n0.5\n0.5\n0.75\n7\n");
    let loads = format!(
        "
  - {{name: grows, rate: 0..400, connections: 8, duration: 24s}}
  - {{name: trace, trace: {}, connections: 8, duration: 24s}}",
        trace.display()
    );
    sandbox.write("study.yaml", &study(&loads));
    // It is about the slices of the plan, and long enough without stretches after it.
    sandbox.call("run study.yaml --out 'a run' --samples off").with_code(0);
    sandbox.assert_clean();
    let run = sandbox.records();
    for arm in ARMS {
        // 200 in a slice, 8 of them before it is measured. What is due is the schedule's, however busy the machine.
        let grows = list_due(&run, "grows", arm);
        assert!(grows.len() >= 12, "{arm}: {grows:?}");
        assert!(grows.iter().all(|count| *count == 192), "{arm}: {grows:?}");
        // What comes 7 s after the first arrival has no place in a slice.
        let trace = list_due(&run, "trace", arm);
        assert!(trace.iter().all(|count| *count == 3), "{arm}: {trace:?}");
    }
    let [trace, grows] =
        ["trace", "grows"].map(|load| run.pilot(load).and_then(|pilot| pilot.rate));
    assert_eq!(trace, Some(3.75));
    assert!(grows.is_some_and(|rate| (rate - 240.0).abs() < 1e-6));
}

#[test]
fn rates_of_a_matrix_share_a_trial_and_each_has_what_is_its_own() {
    let sandbox = Sandbox::new();
    let text = study("\n  - {connections: 4, rate: [100, 400], duration: 4s}")
        .replace("slice: 1s", "slice: 100ms")
        .replace("instances: 1", "instances: 2");
    let (_, run) = sandbox.measure(&text);
    for (load, sibling, rate) in [("c4-r100", "c4-r400", 100.0), ("c4-r400", "c4-r100", 400.0)] {
        assert_eq!(run.blocks(load).len(), 10, "{load}");
        for arm in ARMS {
            // What was due is the schedule's, however busy the machine; 80 ms of each slice are measured.
            let due: Vec<f64> =
                slices(&run, load, arm).into_iter().map(|slice| slice.due as f64).collect();
            assert_eq!(due.len(), 20, "{load} {arm}");
            assert!(
                due.iter().all(|due| (due - rate * 0.08).abs() <= 1.0),
                "{load} {arm}: {due:?}"
            );
            let sent: u64 = offered(&run, load, arm).iter().sum();
            assert!(sent > 0, "{load} {arm}");
            let trials = run.trials_of(load, arm);
            assert!(trials.iter().all(|trial| trial.rate_intended == Some(rate)));
        }
        let parts: Vec<_> = run.parts(load).collect();
        let places: Vec<_> = parts.iter().map(|part| (part.first_block, part.blocks)).collect();
        assert_eq!(places, [(0, 5), (5, 5)], "{load}");
        assert!(parts.iter().all(|part| part.with[0].load == sibling));
    }
    // In turns, and not one after the other.
    let loads: Vec<&str> = run.trials().map(|trial| trial.load.as_str()).collect();
    let changes = loads.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes >= 10, "{loads:?}");
    let report = sandbox.read("report.md");
    assert!(report.contains("of 2 loads of the matrix"), "{report}");
}
