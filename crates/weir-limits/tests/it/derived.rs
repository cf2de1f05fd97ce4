//! Quantities from rows: differences, gauges, keys, shares, roles, and the reasons why a quantity is unknown.

use std::collections::BTreeMap;

use weir_limits::{
    Absent, Evidence, Fact, Figure, Grown, HostSamples, Quantities, Resource, Role, Trial, Window,
    growth,
};
use weir_model::sample::{Counters, MissingCounter, SampleRow};

use crate::series;

const S: u64 = 1_000_000_000;

fn row(table: &str, at_s: u64, keys: &[&str], cells: &[(&str, u64)]) -> SampleRow {
    series::row(table, at_s * S, keys, cells)
}

fn quantity(from: &str) -> Quantities {
    let text = format!("quantities:\n  - {{name: q, means: m, from: {from}}}\n");
    Quantities::parse("q", &text, Counters::builtin()).unwrap_or_else(|error| panic!("{error}"))
}

fn trial() -> Trial {
    Trial { figures: BTreeMap::from([(Figure::RateCompleted, 50.0)]), ..Trial::default() }
}

fn derive(from: &str, hosts: &[HostSamples], trial: &Trial) -> Result<Fact, Absent> {
    let window = Window { hosts, from_ns: 10 * S, until_ns: 20 * S, arm: "a", trial };
    let mut evidence = Evidence::of(&quantity(from), Counters::builtin(), &window, None);
    match evidence.quantities.remove("q") {
        Some(fact) => Ok(fact),
        None => Err(evidence.absent.remove("q").expect("a reason")),
    }
}

fn host(rows: Vec<SampleRow>) -> HostSamples {
    HostSamples { roles: vec![Role::Proxy], rows, ..HostSamples::default() }
}

fn value(from: &str, rows: Vec<SampleRow>) -> Result<f64, Absent> {
    derive(from, &[host(rows)], &trial()).map(|fact| fact.value)
}

/// Two CPUs over ten seconds, with a sample before the window and one after it.
fn cpus() -> Vec<SampleRow> {
    let mut rows = Vec::new();
    for at in [0, 10, 15, 20, 30] {
        for (cpu, user) in [("0", 3), ("1", 1)] {
            let cells = [("user_ns", at * user * 100), ("idle_ns", at * (4 - user) * 100)];
            rows.push(row("cpus", at, &[cpu], &cells));
        }
    }
    rows
}

#[test]
fn rows_of_the_window_become_what_is_asked_for() {
    let user = "samples: {table: cpus, columns: [user_ns], take";
    for (from, expected) in [
        (format!("{{{user}: difference}}}}"), 4000.0),
        (format!("{{{user}: rate}}}}"), 400.0),
        (format!("{{{user}: rate, scale: 0.5}}}}"), 200.0),
        // 50 requests in each of ten seconds.
        (format!("{{{user}: per_request}}}}"), 8.0),
        (format!("{{{user}: rate, keys: busiest}}}}"), 300.0),
        (format!("{{{user}: rate, keys: least}}}}"), 100.0),
        (format!("{{{user}: rate, keys: mean}}}}"), 200.0),
        (format!("{{{user}: rate, where: {{cpu: '1'}}}}}}"), 100.0),
        (format!("{{{user}: difference, share_of: [user_ns, idle_ns]}}}}"), 0.5),
        (format!("{{{user}: difference, share_of: [user_ns, idle_ns], keys: busiest}}}}"), 0.75),
    ] {
        assert_eq!(value(&from, cpus()), Ok(expected), "{from}");
    }
    let listeners: Vec<SampleRow> = [(10, 4, 8), (15, 6, 2), (20, 1, 3)]
        .into_iter()
        .flat_map(|(at, a, b)| {
            [("1", a), ("2", b)].map(|(port, queue)| {
                row("listeners", at, &["proxy", port], &[("queue", queue), ("backlog", 16)])
            })
        })
        .collect();
    let queue = "samples: {table: listeners, columns: [queue], role: proxy, take";
    for (from, expected) in [
        (format!("{{{queue}: last}}}}"), 4.0),
        (format!("{{{queue}: most, keys: busiest}}}}"), 8.0),
        (format!("{{{queue}: least}}}}"), 4.0),
        (format!("{{{queue}: mean}}}}"), 8.0),
        (format!("{{{queue}: most, keys: busiest, share_of: [backlog]}}}}"), 0.5),
    ] {
        assert_eq!(value(&from, listeners.clone()), Ok(expected), "{from}");
    }
}

#[test]
fn a_role_has_its_own_rows_cpus_and_hosts() {
    let both = [build_network("proxy", 5), build_network("generator", 7)].concat();
    let mut here = host(both);
    here.roles.push(Role::Generator);
    let here = [here];
    assert_eq!(derive(&take_opens("proxy"), &here, &trial()).map(|fact| fact.value), Ok(5.0));
    assert_eq!(derive(&take_opens("generator"), &here, &trial()).map(|fact| fact.value), Ok(7.0));
    assert!(derive(&take_opens("origin"), &here, &trial()).is_err());
    // A namespace that roles share is the proxy's.
    assert_eq!(value(&take_opens("proxy"), build_network("shared", 3)), Ok(3.0));
    let mut shared = host(build_network("shared", 3));
    shared.roles.push(Role::Origin);
    assert!(derive(&take_opens("origin"), &[shared], &trial()).is_err());
    // Rows of another arm are not this one's; those of no arm are everybody's.
    let mut arms = build_network("proxy", 5);
    arms[0].arm = "a".to_owned();
    let other_arm = build_network("proxy", 9).into_iter();
    arms.extend(other_arm.map(|row| SampleRow { arm: "b".to_owned(), ..row }));
    assert_eq!(value(&take_opens("proxy"), arms), Ok(5.0));
    let mut pinned = host(cpus());
    pinned.cpus.insert(Role::Proxy, vec![1]);
    let user = "{samples: {table: cpus, columns: [user_ns], take: rate, role: proxy}}";
    assert_eq!(derive(user, &[pinned], &trial()).map(|fact| fact.value), Ok(100.0));
}

fn build_network(role: &str, per_s: u64) -> Vec<SampleRow> {
    [10, 20].map(|at| row("network", at, &[role], &[("active_opens", at * per_s)])).to_vec()
}

fn take_opens(role: &str) -> String {
    format!("{{samples: {{table: network, columns: [active_opens], take: rate, role: {role}}}}}")
}

#[test]
fn what_cannot_be_known_is_unknown_with_its_reason() {
    let user = "{samples: {table: cpus, columns: [user_ns], take: rate}}";
    let column = "cpus.user_ns";
    type Change = fn(&mut Vec<SampleRow>);
    let cases: [(&str, Change, Absent); 5] = [
        ("reset", |rows| rows[4].values[0] = Some(3), Absent::WentBack(column.to_owned())),
        ("empty", |rows| rows[4].values[0] = None, Absent::NotSampled(column.to_owned())),
        ("one CPU went", |rows| drop(rows.remove(7)), Absent::CameOrWent("cpus".to_owned())),
        (
            "once",
            |rows| rows.retain(|row| row.at_ns != 15 * S && row.at_ns != 20 * S),
            Absent::SampledOnce(column.to_owned()),
        ),
        ("none", Vec::clear, Absent::NotSampled(column.to_owned())),
    ];
    for (name, change, expected) in cases {
        let mut rows = cpus();
        change(&mut rows);
        assert_eq!(value(user, rows), Err(expected), "{name}");
    }
    // The clock stood still.
    let mut still = cpus();
    still[4].at_ns = 10 * S;
    still[5].at_ns = 10 * S;
    assert_eq!(value(user, still), Err(Absent::Clock("cpus".to_owned())));
}

#[test]
fn another_process_and_a_silent_sampler_are_told() {
    let user = "{samples: {table: cpus, columns: [user_ns], take: rate}}";
    // The same pid, another process: its counters began anew and are higher all the same.
    let user_rate = "{samples: {table: processes, columns: [user_ns], take: rate, role: proxy}}";
    assert_eq!(value(user_rate, vec![build_process(10, 1), build_process(20, 1)]), Ok(1.0));
    let restarted = value(user_rate, vec![build_process(10, 1), build_process(20, 2)]);
    assert_eq!(restarted, Err(Absent::CameOrWent("processes".to_owned())));
    let begun = "{samples: {table: processes, columns: [started_ticks], take: begun, role: proxy}}";
    let mut rows = vec![build_process(10, 1), build_process(20, 1)];
    assert_eq!(value(begun, rows.clone()), Ok(0.0));
    let keys = ["proxy", "8", "x"];
    rows.push(row("processes", 20, &keys, &[("started_ticks", 5)]));
    assert_eq!(value(begun, rows), Ok(1.0));
    // The sampler's own reason comes first.
    let mut silent = host(Vec::new());
    silent.missing.push(MissingCounter {
        table: "cpus".to_owned(),
        column: String::new(),
        role: String::new(),
        why: "no permission".to_owned(),
    });
    let user_share = derive(user, &[silent.clone()], &trial()).map(|fact| fact.value);
    assert_eq!(
        user_share,
        Err(Absent::Missing { column: "cpus.".to_owned(), why: "no permission".to_owned() })
    );
    // Of several pods of a proxy it is known for those that can be read.
    let both = [host(cpus()), silent];
    let of_proxy = user.replace("take", "role: proxy, take");
    let fact = derive(&of_proxy, &both, &trial()).map(|fact| (fact.value, fact.read_of));
    assert_eq!(fact, Ok((400.0, Some((1, 2)))));
    let fact = derive(&of_proxy, &both[..1], &trial()).map(|fact| fact.read_of);
    assert_eq!(fact, Ok(None));
}

fn build_process(at: u64, started: u64) -> SampleRow {
    row("processes", at, &["proxy", "7", "x"], &[("user_ns", at), ("started_ticks", started)])
}

/// CPU time of the proxy that could not be read is not attributed to others.
#[test]
fn what_others_had_is_told_where_all_of_the_proxy_was_read() {
    let mut rows = Vec::new();
    for at in [10, 20] {
        let cpu = ["user_ns", "system_ns", "softirq_ns", "irq_ns", "steal_ns", "idle_ns"];
        rows.push(row("cpus", at, &["0"], &cpu.map(|name| (name, at * 100))));
        let cells = ["user_ns", "system_ns", "started_ticks"]
            .map(|name| (name, if name == "started_ticks" { 1 } else { at * 50 }));
        rows.push(row("processes", at, &["proxy", "7", "x"], &cells));
    }
    let mut unread = host(Vec::new());
    unread.missing = ["cpus", "processes"]
        .map(|table| MissingCounter { table: table.to_owned(), ..MissingCounter::default() })
        .into();
    let both = [host(rows), unread];
    // Half of what the CPU worked, which is a third of its time.
    let share_of_others =
        derive("{trial: others_cpu}", &both[..1], &trial()).map(|fact| fact.value);
    assert!(share_of_others.is_ok_and(|part| (part - 1.0 / 6.0).abs() < 1e-9));
    let share_of_others = derive("{trial: others_cpu}", &both, &trial());
    assert!(share_of_others.is_err(), "{share_of_others:?}");
}

#[test]
fn the_trial_tells_errors_settings_and_lost_syns() {
    let mut measured = trial();
    measured.requests = 1000;
    measured.errors = Some(BTreeMap::from([("timeout".to_owned(), 5)]));
    measured.settings = BTreeMap::from([
        ("gzip".to_owned(), "on".to_owned()),
        ("level".to_owned(), "9".to_owned()),
    ]);
    let lost = build_trial(&[(2, 99_000), (1004, 900), (3010, 90), (7005, 10)]);
    // An overloaded queue has all times, and no modes.
    let overload = build_trial(&(1..400).map(|tenth| (tenth * 20, 250)).collect::<Vec<_>>());
    let all = "{modes: [1, 3, 7]}";
    for (from, trial, expected) in [
        ("{errors: [timeout]}", &measured, Some(0.005)),
        ("{errors: [connect]}", &measured, Some(0.0)),
        ("{errors: [connect]}", &trial(), None),
        ("{setting: [compression, gzip]}", &measured, Some(1.0)),
        ("{setting: [level]}", &measured, Some(9.0)),
        ("{setting: [no]}", &measured, None),
        ("{trial: rate_completed}", &measured, Some(50.0)),
        ("{trial: saturated}", &measured, None),
        (all, &lost, Some(0.0099)),
        (all, &overload, Some(0.0)),
        (all, &measured, None),
    ] {
        let derived = derive(from, &[], trial).map(|fact| fact.value).ok();
        assert_eq!(derived, expected, "{from}");
    }
}

fn build_trial(times: &[(u64, u64)]) -> Trial {
    Trial {
        response_times: times.iter().map(|(ms, count)| (ms * 1_000_000, *count)).collect(),
        ..Trial::default()
    }
}

#[test]
fn how_resources_grow_is_told_from_windows_at_several_rates() {
    let quantities = Quantities::builtin();
    let windows: Vec<Evidence> =
        (1..=8).flat_map(|level| (0..3).map(move |again| build_window(level, again))).collect();
    let grown = growth(quantities, &windows, 1);
    assert_eq!(find_growth(&grown, "cpu").resource, Resource::Cpu);
    assert_eq!(find_growth(&grown, "cpu").points.len(), windows.len());
    let cpu = find_growth(&grown, "cpu").growth.expect("enough windows");
    assert!(cpu.is_linear() && cpu.slope.low <= 1.02e-4 && 1e-4 <= cpu.slope.high, "{cpu:?}");
    let bend = find_growth(&grown, "memory").growth.and_then(|memory| memory.bend).expect("a bend");
    assert!(
        bend.at.low <= 4000.0 && 4000.0 <= bend.at.high && bend.after > 2.0 * bend.before,
        "{bend:?}"
    );
    for quantity in ["bytes", "connections"] {
        assert!(find_growth(&grown, quantity).growth.is_none());
    }
}

fn build_window(level: u32, again: u32) -> Evidence {
    let rate = 1000.0 * f64::from(level);
    let noise = 1.0 + 0.01 * f64::from((level * 7 + again * 5) % 3);
    let memory = 5e6 + 100.0 * rate + 400.0 * (rate - 4000.0).max(0.0);
    let values = [("rate", rate), ("cpu", 1e-4 * rate * noise), ("memory", memory * noise)];
    let facts = values.map(|(name, value)| {
        let fact =
            Fact { value, at_low_load: None, unit: String::new(), from: Vec::new(), read_of: None };
        (name.to_owned(), fact)
    });
    Evidence { quantities: facts.into(), ..Evidence::default() }
}

fn find_growth<'a>(grown: &'a [Grown], quantity: &str) -> &'a Grown {
    grown.iter().find(|one| one.quantity == quantity).expect("it is asked about")
}

/// In control groups of version 1, the group with the quota has no memory controller, and the group with the memory no
/// quota.
#[test]
fn a_group_without_a_controller_does_not_hide_the_one_that_has_it() {
    let mut rows = Vec::new();
    for at_s in [11, 13] {
        let held = [("throttled_us", (at_s - 11) * 500_000)];
        rows.push(row("cgroups", at_s, &["proxy", "/quota"], &held));
        let memory = [("memory_bytes", 1000)];
        rows.push(row("cgroups", at_s, &["proxy", "/memory"], &memory));
    }
    let from = "{samples: {table: cgroups, columns: [throttled_us], role: proxy, take: rate, keys: busiest, scale: 1.0e-6}}";
    let fact = derive(from, &[host(rows)], &trial()).expect("it is known");
    assert_eq!(fact.value, 0.5);
}
