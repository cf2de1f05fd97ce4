//! Windows in pieces: quantities over time, and workers.

use weir_limits::{HostSamples, Quantities, Role, Trial, Window, over_time, workers};
use weir_model::sample::{Counters, SampleRow};

const S: u64 = 1_000_000_000;

pub(crate) fn row(table: &str, at_ns: u64, keys: &[&str], cells: &[(&str, u64)]) -> SampleRow {
    let schema = Counters::builtin().table(table).expect("a table");
    SampleRow {
        table: table.to_owned(),
        at_ns,
        arm: String::new(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        values: schema
            .values()
            .map(|name| cells.iter().find(|(column, _)| *column == name).map(|(_, value)| *value))
            .collect(),
    }
}

/// One sample per second, its tables one after the other: a full worker, one that begins in the middle, a process with
/// two threads, an idle master, and the generator.
fn rows() -> Vec<SampleRow> {
    let mut rows = Vec::new();
    for at in 0..5 {
        let (ns, later) = (at * S, at * S + 3_000_000);
        let mut processes =
            vec![("proxy", "1", at * 1000), ("proxy", "2", at * S), ("proxy", "3", at * S / 2)];
        processes.push(("generator", "9", at * S));
        if at >= 2 {
            processes.push(("proxy", "4", at * S / 4));
        }
        for (role, pid, used) in processes {
            rows.push(row("processes", ns, &[role, pid, "nginx"], &cpu_cells(used)));
        }
        for (tid, part) in [("31", 10), ("32", 5)] {
            rows.push(row(
                "threads",
                later,
                &["proxy", "3", tid, "envoy"],
                &cpu_cells(at * S / part),
            ));
        }
        rows.push(row("network", later, &["proxy"], &[("time_wait", 10 * at)]));
    }
    rows
}

fn cpu_cells(used: u64) -> [(&'static str, u64); 2] {
    [("user_ns", used), ("system_ns", 0)]
}

fn window<T>(look: impl FnOnce(&Window<'_>) -> T) -> T {
    let hosts = [HostSamples { roles: vec![Role::Proxy], rows: rows(), ..HostSamples::default() }];
    look(&Window { hosts: &hosts, from_ns: 0, until_ns: 10 * S, arm: "", trial: &Trial::default() })
}

#[test]
fn workers_are_told_one_by_one_and_the_busiest_first() {
    let busiest = window(|window| workers(Counters::builtin(), window));
    let names: Vec<&str> = busiest.iter().map(|one| &*one.name).collect();
    // Of the process with threads these stand for it.
    assert_eq!(names, ["nginx 2", "envoy 32", "nginx 4", "envoy 31"]);
    assert_eq!(busiest[0].points.len(), 4);
    assert!(busiest[0].points.iter().all(|(_, cpus)| (cpus - 1.0).abs() < 1e-6));
    // It is told from its second sample on.
    let (at, cpus) = busiest[2].points[0];
    assert_eq!(busiest[2].points.len(), 2);
    assert!((at - 3.003).abs() < 1e-9 && (cpus - 0.25).abs() < 1e-6);
}

#[test]
fn what_is_shown_over_time_is_known_of_each_piece() {
    let series = window(|window| over_time(Quantities::builtin(), Counters::builtin(), window));
    let find = |name: &str| series.iter().find(|one| one.quantity == name);
    let values: Vec<f64> =
        find("time_wait").expect("it was sampled").points.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, [10.0, 20.0, 30.0, 40.0]);
    // A process came in the second piece, so that one says nothing of all of them.
    let cpus = &find("proxy_cpus").expect("it was sampled").points;
    let seconds: Vec<f64> = cpus.iter().map(|(at, _)| at.round()).collect();
    assert_eq!(seconds, [1.0, 3.0, 4.0]);
    assert!(find("retransmitted").is_none() && find("rate").is_none());
    let text =
        "quantities:\n  - {name: q, means: m, series: true, from: {trial: rate_completed}}\n";
    let refused = Quantities::parse("q", text, Counters::builtin()).expect_err("no samples");
    assert!(refused.to_string().contains("only what is sampled"), "{refused}");
}
