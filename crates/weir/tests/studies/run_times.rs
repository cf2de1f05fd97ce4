//! Tests of `weir run --where-time-goes`: the time of requests by part, from each proxy's own log, with planted causes.

use weir_analysis::findings::{Findings, TimePart, TimeRow, ToldBy, WhereTimeGoes};
use weir_record::Run;
use weir_testkit::program::{HasAll, Running};
use weir_testkit::sandbox::{Sandbox, study};

/// Delay of the origin server before each answer, microseconds.
const DELAY_US: f64 = 20_000.0;

fn measure(sandbox: &Sandbox, text: &str) -> Run {
    sandbox.write("study.yaml", text);
    let words = ["run", "study.yaml", "--out", "a run", "--where-time-goes"];
    Running::start(&mut sandbox.weir(&words)).end().with_code(0);
    sandbox.assert_clean();
    sandbox.records()
}

fn times_of<'f>(findings: &'f Findings, arm: &str) -> &'f WhereTimeGoes {
    let mut all = findings.where_time_goes.iter();
    all.find(|times| times.arm == arm)
        .unwrap_or_else(|| panic!("nothing of {arm}: {:?}", findings.where_time_goes))
}

fn time_of(row: &TimeRow, wanted: TimePart) -> f64 {
    let measured = row.parts.iter().find(|(part, _)| *part == wanted);
    measured.unwrap_or_else(|| panic!("no {wanted:?} in {row:?}")).1
}

#[test]
fn a_slow_origin_is_where_the_time_goes_behind_every_proxy() {
    let sandbox = Sandbox::new();
    let text = study(
        "{kind: nginx, settings: {worker_processes: 1}}",
        "- {name: l, rate: 200, connections: 30, connection: per-request, duration: 21s}",
        "origin: {delay: 20ms}\na/a: false\nbaseline: nginx\narms:\n\
         - {name: off, settings: {access_log: off}}\n\
         - {name: haproxy, proxy: haproxy}\n- {name: quiet, proxy: haproxy, settings: {access_log: off}}\n\
         - {name: envoy, proxy: envoy, settings: {access_log: on}}\n- {name: httpd, proxy: httpd}\n- {name: caddy, proxy: caddy}\n",
    ).replace("slice: 50ms", "slice: 250ms");
    let run = measure(&sandbox, &text);
    sandbox.read("report.md").has_all(&["## Where the time goes", "y the proxy's own log"]);
    let findings = weir_analysis::analyze(&run);
    assert_eq!(findings.inert, [], "the levels of logs are as they were asked for");
    for (arm, resolution_us, knows_origin) in [
        ("nginx", 1000, true),
        ("off", 1000, true),
        ("haproxy", 1000, true),
        ("quiet", 1000, true),
        ("envoy", 1, true),
        ("httpd", 1, false),
        ("caddy", 1, false),
    ] {
        let times = times_of(&findings, arm);
        assert_eq!(
            (times.resolution_us, times.knows_origin),
            (resolution_us, knows_origin),
            "{arm}"
        );
        let (looked_at, stand_for) = times.requests;
        assert!(looked_at >= 50 && stand_for >= looked_at - 1, "{times:?}");
        let quantiles: Vec<Option<f64>> = times.rows.iter().map(|row| row.quantile).collect();
        assert_eq!(quantiles, [None, Some(0.5), Some(0.9), Some(0.99), Some(0.999)]);
        for row in &times.rows[..2] {
            let origin = if knows_origin {
                time_of(row, TimePart::Origin)
            } else {
                time_of(row, TimePart::ProxyAndOrigin)
            };
            // A clock of whole milliseconds that is read once in a while.
            assert!(origin >= DELAY_US - 1500.0, "{arm}: {row:?}");
            let parts: f64 = row.parts.iter().map(|(_, us)| us).sum();
            assert!(parts >= row.seen_us - 1.0, "{arm}: {row:?}");
        }
    }
    check_kernel(&findings);
    sandbox.read("report.html").has_all(&["Where the time goes", "class=\"part\"", "accept queue"]);
    // The log is given back to the disk, and goes with the work folder.
    let requests = sandbox.read("samples/requests.csv");
    assert!(requests.starts_with("t_s,host,arm,total_us,client_us,"));
}

/// Checks the source of the kernel's part: eBPF programs, if they are allowed.
fn check_kernel(findings: &Findings) {
    let times = times_of(findings, "nginx");
    let sent = times.retransmitted.as_ref();
    match sent.map(|sent| sent.by) {
        Some(ToldBy::Ebpf) => {
            let accept = times.accept.as_ref().expect("each request has a connection");
            assert_eq!(accept.by, ToldBy::Ebpf);
            // A connection for each request that was answered, and some that were not measured.
            assert!(accept.connections >= times.requests.1, "{times:?}");
            let [p50, .., p999] = accept.below_us.expect("of each connection");
            assert!(0 < p50 && p50 <= p999, "{accept:?}");
        }
        // No programs at tracepoints are allowed here.
        by => {
            assert_ne!(times.accept.as_ref().map(|accept| accept.by), Some(ToldBy::Ebpf), "{by:?}");
        }
    }
}

#[test]
fn a_queue_for_the_origin_is_told_from_the_origin() {
    let sandbox = Sandbox::new();
    // One connection to the origin carries 50/s, so most of 20 requests wait for it.
    let text = study(
        "{kind: haproxy, settings: {nbthread: 1, server_maxconn: 1}}",
        "- {name: l, closed: true, connections: 20, duration: 6s}",
        "origin: {delay: 20ms}\n",
    )
    .replace("slice: 50ms", "slice: 250ms");
    let run = measure(&sandbox, &text);
    let findings = weir_analysis::analyze(&run);
    let arm = &run.header.study.arms[0].name;
    let times = times_of(&findings, arm);
    let mean = &times.rows[0];
    let [queue, origin] = [TimePart::Queue, TimePart::Origin].map(|kind| time_of(mean, kind));
    assert!(queue > 3.0 * origin && origin >= DELAY_US - 1500.0, "{mean:?}");
}

#[test]
fn without_samples_nothing_can_be_told() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "study.yaml",
        &study("{kind: nginx}", "- {name: l, closed: true, connections: 1, duration: 1s}", ""),
    );
    let ended = sandbox.call("run study.yaml --out 'a run' --where-time-goes --samples off");
    ended.with_code(2).says(&["--samples off"]);
}
