//! Tests of `weir run` with bursts of new connections: every slice gets its own, and a listen queue shorter than a
//! burst is distinguished from one that is not.

use weir_model::record::NetworkUsed;
use weir_testkit::sandbox::{Sandbox, slices};

const STUDY: &str = "\
weir: 1
name: bursts
question: Which listen queue is too short for a hundred clients at once?
proxy:
  kind: nginx
  settings: {worker_processes: 1}
loads:
  - name: bursts
    rate: 200
    burst: 100
    connections: 100
    connection: per-request
    duration: 12s
a/a: false
arms:
  - {name: short-queue, settings: {backlog: 1}}
blocks: {slice: 500ms, at-least: 6, instances: 1}
objective: {metric: response-p50}
";

#[test]
fn every_slice_gets_its_burst_and_only_a_short_queue_overflows() {
    let sandbox = Sandbox::new();
    let (_, run) = sandbox.measure(STUDY);
    for arm in ["baseline", "short-queue"] {
        for slice in slices(&run, "bursts", arm) {
            // What is due is the schedule's; what is sent in time depends on how busy the machine is.
            assert_eq!(slice.due, 100, "{arm}");
            // Nothing is left unmeasured: the quiet time before the burst counts.
            assert_eq!(slice.measured_ns, 500_000_000);
        }
    }
    let report = sandbox.read("report.md");
    assert!(report.contains("in bursts of 100, one every 500 ms"));
    if !matches!(run.header.network, NetworkUsed::Namespaces { .. }) {
        eprintln!("skipped: without network namespaces no arm has a count of its own");
        return;
    }
    let [baseline, short_queue] = ["baseline", "short-queue"].map(|name| {
        run.parts("bursts")
            .flat_map(|part| &part.arms)
            .filter(|arm| arm.arm == name)
            .filter_map(|arm| arm.listen_overflows)
            .sum::<u64>()
    });
    assert_eq!(baseline, 0, "511 hold a hundred");
    assert!(short_queue > 0);
    assert!(report.contains("never for baseline"));
}
