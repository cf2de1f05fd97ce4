//! Tests of remarks on the network and the hosts.

use serde_json::{Value, json};
use weir_analysis::surroundings::remarks;
use weir_model::fixture::{self, arm};
use weir_model::study::{ArmRole, Study, StudyArrivals};

fn remarks_on(found: &Value, study: &Study) -> Vec<String> {
    let cpus = json!({"generator": "0", "origin": "1", "proxy": "2-3"});
    let roles = serde_json::from_value(cpus).expect("CPUs");
    let surroundings = serde_json::from_value(found.clone()).expect("surroundings");
    remarks(&surroundings, &roles, study)
        .iter()
        .map(weir_sentences::describe_surroundings)
        .collect()
}

/// Asserts that each remark contains its expected words, and that there are no others.
#[track_caller]
fn expect(found: &Value, study: &Study, expected: &[&str]) {
    let remarks = remarks_on(found, study);
    assert_eq!(remarks.len(), expected.len(), "{found}: {remarks:?}");
    for (remark, words) in remarks.iter().zip(expected) {
        let has_all = words.split('|').all(|words| remark.contains(words));
        assert!(has_all, "{found}: {remark} instead of {words}");
    }
}

fn card(interrupts: &str, spreads: bool) -> Value {
    json!({"name": "eth0", "queues": [1, 1], "interrupts": interrupts, "spreads": spreads})
}

fn held_up(late_ns: u64, others_ns: u64) -> Value {
    json!({"proxy": {"times": 1, "late_ns": late_ns, "others_ns": others_ns}})
}

#[test]
fn what_spoils_figures_is_said_and_nothing_else() {
    let far_card = json!({"nodes": {"0": "0-3", "1": "4-7"}, "cards": [{"name": "eth0", "queues": [1, 1], "node": 1}]});
    #[rustfmt::skip]
    let hosts: [(Value, &[&str]); 19] = [
        (json!({}), &[]),
        (json!({"governors": {"performance": "0-3"}}), &[]),
        (json!({"governors": {"performance": "0-1", "powersave": "2-3"}}), &["`powersave`|CPU 2-3|cpupower -c 2-3"]),
        (json!({"siblings": ["0,2", "1,3"]}), &["proxy and generator share cores|CPU 0,2", "origin server|CPU 1,3"]),
        // Its own pair, and one of generator and origin server, which affects all arms alike.
        (json!({"siblings": ["2-3", "0-1"]}), &[]),
        (json!({"nodes": {"0": "0-3"}}), &[]),
        (json!({"nodes": {"0": "0-2", "1": "3"}}), &["proxy's CPUs 2-3|0 and 1"]),
        (json!({"nodes": {"0": "0-1", "1": "2-3"}}), &["proxy and generator", "proxy and origin server"]),
        (json!({"cards": [card("3", false)]}), &["eth0|CPU 3|proxy has CPU 2-3"]),
        (json!({"cards": [card("3", true)]}), &[]),
        (json!({"cards": [card("4-7", false)]}), &[]),
        // All CPUs alike.
        (json!({"cards": [card("0-3", false)]}), &[]),
        (json!({"cards": [card("0", false)]}), &["generator has CPU 0"]),
        (far_card, &["generator's CPUs", "proxy's CPUs", "origin server's CPUs"]),
        // Two CPUs, so this is of 400 ms.
        (json!({"watched_ns": 200_000_000, "held_up": held_up(10_000_000, 9_000_000)}), &[]),
        (json!({"watched_ns": 200_000_000, "held_up": held_up(20_000_000, 60_000_000)}), &["proxy's CPU 2-3|20 %"]),
        (json!({"held_up": {}}), &[]),
        (json!({"unmeasured": [{"what": "NUMA nodes", "why": "not there"}]}), &[]),
        (json!({"watched_ns": 200_000_000}), &[]),
    ];
    let study = fixture::study(Vec::new());
    for (facts, expected) in hosts {
        let host = json!({"host": "h", "roles": ["generator", "proxy", "origin"], "facts": facts});
        expect(&json!({"hosts": [host]}), &study, expected);
    }
    for (error, expected) in [(5_000_000, &[][..]), (30_000_000, &["clock of far|30 ms"])] {
        let host = json!({"host": "far", "roles": [], "clock": [7, error], "facts": {}});
        expect(&json!({"hosts": [host]}), &study, expected);
    }
}

#[test]
fn a_load_that_plans_nearly_what_the_link_carried_is_said() {
    let rate = StudyArrivals::Constant;
    #[rustfmt::skip]
    let cases: [(_, _, f64, &[&str]); 5] = [
        (rate(1_000.0), Some(1_000_000), 1.2e9, &["load `wide`|1000 MB/s|1200 MB/s"]),
        (rate(1_000.0), Some(1_000_000), 2e9, &[]),
        // The origin server's answers are small.
        (rate(1_000.0), None, 1e6, &[]),
        (rate(10_000.0), None, 1e6, &["1 MB/s"]),
        (StudyArrivals::Closed, Some(1_000_000), 1.0, &[]),
    ];
    for (arrivals, size, back, expected) in cases {
        let mut study = fixture::study(vec![arm("stock", ArmRole::Baseline, &[])]);
        study.origin.size = 100;
        study.loads = vec![fixture::load("wide", arrivals)];
        study.loads[0].size = size;
        let trips = json!({"by": "echo", "count": 1, "p50_ns": 1, "p99_ns": 1});
        let back = json!({"bytes_per_s": back, "cpus": 1.0});
        let link =
            json!({"from": "generator", "to": "proxy", "peer": "", "trips": trips, "back": back});
        expect(&json!({"links": [link]}), &study, expected);
    }
}
