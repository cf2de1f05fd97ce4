//! Windows in pieces: quantities over time, and workers.

use weir_limits::{HostSamples, Quantities, Role, Trial, Window, over_time, workers};
use weir_model::sample::{Counters, SampleRow};

const S: u64 = 1_000_000_000;

pub(crate) fn row(table: &str, at_ns: u64, keys: &[&str], cells: &[(&str, u64)]) -> SampleRow {
    let known = Counters::builtin().table(table).expect("a table");
    SampleRow {
        table: table.to_owned(),
        at_ns,
        arm: String::new(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        values: known
            .values()
            .map(|name| cells.iter().find(|(own, _)| *own == name).map(|(_, value)| *value))
            .collect(),
    }
}

/// One sample per second, its tables one after the other: a full worker, one that begins in the middle, a process with
/// two threads, an idle master, and the generator.
fn rows() -> Vec<SampleRow> {
    let mut rows = Vec::new();
    for at in 0..5 {
        let (ns, later) = (at * S, at * S + 3_000_000);
        let cpu = |used: u64| [("user_ns", used), ("system_ns", 0)];
        let mut process = |role: &str, pid: &str, used: u64| {
            rows.push(row("processes", ns, &[role, pid, "nginx"], &cpu(used)));
        };
        process("proxy", "1", at * 1000);
        process("proxy", "2", at * S);
        process("proxy", "3", at * S / 2);
        process("generator", "9", at * S);
        if at >= 2 {
            process("proxy", "4", at * S / 4);
        }
        for (tid, part) in [("31", 10), ("32", 5)] {
            rows.push(row("threads", later, &["proxy", "3", tid, "envoy"], &cpu(at * S / part)));
        }
        rows.push(row("network", later, &["proxy"], &[("time_wait", 10 * at)]));
    }
    rows
}

fn window<T>(look: impl FnOnce(&Window<'_>) -> T) -> T {
    let hosts = [HostSamples { roles: vec![Role::Proxy], rows: rows(), ..HostSamples::default() }];
    look(&Window { hosts: &hosts, from_ns: 0, until_ns: 10 * S, arm: "", trial: &Trial::default() })
}

#[test]
fn workers_are_told_one_by_one_and_the_busiest_first() {
    let found = window(|window| workers(Counters::builtin(), window));
    let names: Vec<&str> = found.iter().map(|one| &*one.name).collect();
    // Of the process with threads these stand for it.
    assert_eq!(names, ["nginx 2", "envoy 32", "nginx 4", "envoy 31"]);
    assert_eq!(found[0].points.len(), 4);
    assert!(found[0].points.iter().all(|(_, cpus)| (cpus - 1.0).abs() < 1e-6));
    // It is told from its second sample on.
    let (at, cpus) = found[2].points[0];
    assert_eq!(found[2].points.len(), 2);
    assert!((at - 3.003).abs() < 1e-9 && (cpus - 0.25).abs() < 1e-6);
}

#[test]
fn what_is_shown_over_time_is_known_of_each_piece() {
    let found = window(|window| over_time(Quantities::builtin(), Counters::builtin(), window));
    let of = |name: &str| {
        let mut all = found.iter();
        all.find(|one| one.quantity == name)
    };
    let values: Vec<f64> =
        of("time_wait").expect("it was sampled").points.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, [10.0, 20.0, 30.0, 40.0]);
    // A process came in the second piece, so that one says nothing of all of them.
    let cpus = &of("proxy_cpus").expect("it was sampled").points;
    let seconds: Vec<f64> = cpus.iter().map(|(at, _)| at.round()).collect();
    assert_eq!(seconds, [1.0, 3.0, 4.0]);
    assert!(of("retransmitted").is_none() && of("rate").is_none());
    let text =
        "quantities:\n  - {name: q, means: m, series: true, from: {trial: rate_completed}}\n";
    let refused = Quantities::parse("q", text, Counters::builtin()).expect_err("no samples");
    assert!(refused.to_string().contains("only what is sampled"), "{refused}");
}
