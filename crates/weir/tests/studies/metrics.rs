//! Tests of `weir run --metrics` with a real Prometheus, which reads what the run folder has.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use weir_model::record::Phase;
use weir_record::Run;
use weir_testkit::program::{HasAll, Running, within};
use weir_testkit::prometheus::{Prometheus, free_address};
use weir_testkit::sandbox::Sandbox;

const STUDY: &str = "\
weir: 1
name: tried
question: Is it so?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
  - {name: open, rate: 500, connections: 4, duration: 6s}
arms:
  - {name: keeps-origin, settings: {origin_keepalive: 16}}
blocks: {slice: 100ms, at-least: 6}
";

/// Returns counts of an arm in the records of measured blocks: due, completed, blocks.
fn recorded(run: &Run, arm: &str) -> [u64; 3] {
    let mut counts = [0; 3];
    for trial in run.trials_in(|phase| phase == Phase::Measurement).filter(|trial| trial.arm == arm)
    {
        counts[0] += trial.slices.iter().map(|slice| slice.due).sum::<u64>();
        counts[1] += trial.slices.iter().map(|slice| slice.completed).sum::<u64>();
        counts[2] += 1;
    }
    counts
}

/// Returns the p99 of all response times of an arm, by the histograms of the run folder, seconds.
fn p99(run: &Run, arm: &str) -> f64 {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for trial in run.trials_in(|phase| phase == Phase::Measurement).filter(|trial| trial.arm == arm)
    {
        for (value, count) in run.histogram(&trial.response_time) {
            *counts.entry(*value).or_default() += count;
        }
    }
    let total: u64 = counts.values().sum();
    let mut below = 0;
    let quantile = counts.into_iter().find(|(_, count)| {
        below += count;
        below as f64 >= 0.99 * total as f64
    });
    quantile.expect("response times").0 as f64 / 1e9
}

/// Returns the sum of series when weir was scraped last.
#[track_caller]
fn last(prometheus: &Prometheus, series: &str) -> f64 {
    prometheus.last(&format!("sum({series})")).unwrap_or_else(|| panic!("{series}"))
}

/// Returns the highest value of a series in the last hour.
#[track_caller]
fn most(prometheus: &Prometheus, labels: &str, name: &str) -> f64 {
    let query = format!("max_over_time({name}{{{labels}}}[1h])");
    prometheus.number(&query).unwrap_or_else(|| panic!("{query}"))
}

#[test]
fn prometheus_counts_what_the_run_folder_has() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    let address = free_address();
    let scrapers =
        [true, false].map(|is_native| (is_native, Prometheus::start(address, is_native)));
    let metrics = address.to_string();
    let line = ["run", "study.yaml", "--out", "run", "--metrics", &metrics];
    Running::start(&mut sandbox.weir(&line)).end().with_code(0);
    let run = Run::read(&sandbox.path("run")).expect("a run");
    for (is_native, prometheus) in &scrapers {
        for arm in ["baseline", "keeps-origin"] {
            let labels = format!(
                "run=\"run\",study=\"tried\",load=\"open\",arm=\"{arm}\",phase=\"measurement\""
            );
            let [due, completed, blocks] = recorded(&run, arm);
            assert!(due > 0 && blocks >= 6, "{arm}: {due} {blocks}");
            assert_eq!(
                last(prometheus, &format!("weir_requests_due_total{{{labels}}}")),
                due as f64
            );
            assert_eq!(
                last(prometheus, &format!("weir_requests_completed_total{{{labels}}}")),
                completed as f64
            );
            assert_eq!(last(prometheus, &format!("weir_blocks_total{{{labels}}}")), blocks as f64);
            let (suffix, width) = if *is_native { ("", 1.1) } else { ("_bucket", 1.68) };
            let times = format!("weir_request_duration_seconds{suffix}{{{labels}}}");
            let query = format!("histogram_quantile(0.99, {times})");
            let quantile = prometheus.last(&query).unwrap_or_else(|| panic!("{query}"));
            let of_folder = p99(&run, arm);
            within(quantile, of_folder / width..of_folder * width);
        }
        for (query, least) in [
            ("count(node_cpu_seconds_total)", 6.0),
            ("count(node_netstat_Tcp_RetransSegs)", 1.0),
            ("count(weir_listeners_queue{role=\"proxy\"})", 1.0),
            ("sum(weir_phase{phase=\"trial\"})", 1.0),
            ("count(weir_verdict_ratio{arm=\"keeps-origin\"})", 1.0),
        ] {
            within(prometheus.last(query).unwrap_or_else(|| panic!("{query}")), least..);
        }
        for query in dashboard_queries() {
            assert!(!prometheus.results_at_last(&query).is_empty(), "native: {is_native}: {query}");
        }
        for expression in alert_expressions() {
            // Evaluated: whether it fires depends on the machine.
            prometheus.results_at_last(&expression);
        }
    }
}

#[test]
fn a_past_run_is_filled_in_by_promtool_and_by_remote_write() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    sandbox.call("run study.yaml --out run --quiet").with_code(0);
    let run = Run::read(&sandbox.path("run")).expect("a run");
    let mut prometheus = [(); 3].map(|()| Prometheus::start(free_address(), false));
    sandbox.call("metrics run -o run.om").with_code(0);
    let mut promtool = Command::new("promtool");
    promtool.args(["tsdb", "create-blocks-from", "openmetrics"]).arg(sandbox.path("run.om"));
    let output = promtool.arg(prometheus[0].data()).output().expect("promtool");
    assert!(output.status.success(), "{output:?}");
    prometheus[0].restart();
    for (version, receiver) in [(1, &prometheus[1]), (2, &prometheus[2])] {
        let url = format!("http://{}/api/v1/write", receiver.address());
        let line = format!("metrics run --remote-write {url} --remote-write-version {version}");
        sandbox.call(&line).with_code(0).says(&["samples were delivered"]);
    }
    for prometheus in &prometheus {
        for arm in ["baseline", "keeps-origin"] {
            let labels = format!("run=\"run\",study=\"tried\",arm=\"{arm}\",phase=\"measurement\"");
            let [due, completed, blocks] = recorded(&run, arm);
            assert_eq!(most(prometheus, &labels, "weir_requests_due_total"), due as f64);
            assert_eq!(
                most(prometheus, &labels, "weir_requests_completed_total"),
                completed as f64
            );
            assert_eq!(most(prometheus, &labels, "weir_blocks_total"), blocks as f64);
            let buckets =
                format!("max_over_time(weir_request_duration_seconds_bucket{{{labels}}}[1h])");
            let query = format!("histogram_quantile(0.99, {buckets})");
            let of_folder = p99(&run, arm);
            let quantile = prometheus.number(&query).expect("a quantile");
            within(quantile, of_folder / 1.68..of_folder * 1.68);
        }
        let query = "count(max_over_time(node_cpu_seconds_total[1h]))";
        within(prometheus.number(query).expect("samples"), 6.0..);
    }
    // The time stamps are the run's: before its end and not before its begin.
    let text = std::fs::read_to_string(sandbox.path("run.om")).expect("a file");
    let begun: jiff::Timestamp = run.header.started_at.parse().expect("a time");
    let times = text.lines().filter(|line| line.starts_with("weir_blocks_total{"));
    let times: Vec<f64> = times
        .map(|line| line.rsplit(' ').next().expect("a time").parse().expect("a time"))
        .collect();
    let begun_s = begun.as_millisecond() as f64 / 1e3;
    assert!(times.iter().all(|at| (begun_s..begun_s + 120.0).contains(at)), "{times:?}");
    assert!(times.iter().any(|at| *at > begun_s + 3.0), "{times:?}");
    let refused = format!("metrics run --remote-write http://{}/write", free_address());
    let ended = sandbox.call(&refused).with_code(1);
    ended.stderr.has_all(&["samples were not delivered", "Connection refused"]);
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Every query of the dashboard, with its variables filled in.
fn dashboard_queries() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/weir.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let targets = list(&dashboard["panels"]).into_iter().flat_map(|panel| list(&panel["targets"]));
    let annotations = list(&dashboard["annotations"]["list"]);
    let queries: Vec<String> = targets
        .chain(annotations)
        .map(|query| query["expr"].as_str().expect("a query").to_owned())
        .map(|query| query.replace("$run", ".*").replace("$__rate_interval", "1m"))
        .collect();
    assert!(queries.len() > 20 && queries.iter().all(|query| !query.contains('$')), "{queries:?}");
    queries
}

/// Every expression of the alerts.
fn alert_expressions() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/alerts.yaml");
    let checked =
        Command::new("promtool").args(["check", "rules", path]).output().expect("promtool");
    assert!(checked.status.success(), "{checked:?}");
    let text = std::fs::read_to_string(path).expect("the alerts");
    let expressions = text.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    expressions.map(str::to_owned).collect()
}
