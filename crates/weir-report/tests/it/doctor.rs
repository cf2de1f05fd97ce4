//! Whole examinations by `weir doctor`, as displayed.

use std::sync::LazyLock;

use proptest::prelude::*;
use weir_doctor::{Facts, Listener, LoadDemand, examine, examine_cluster};
use weir_kube::{ClusterFacts, KubeProxy, NodeFacts, PodFacts};
use weir_report::doctor::text;
use weir_testkit::doctor_host::Host;

fn shown(host: &Host) -> String {
    text(&host.examined(), 100, false)
}

#[test]
fn debian_as_it_is_installed_without_a_load() {
    insta::assert_snapshot!(shown(&Host::debian()));
}

#[test]
fn debian_as_it_is_installed_under_study_a_s_load() {
    let host = Host::debian().asking(1000, 1000.0);
    let mut facts = host.facts();
    facts.listeners =
        Some(vec![Listener { address: "0.0.0.0:80".parse().unwrap(), waiting: 3, backlog: 511 }]);
    insta::assert_snapshot!(text(&examine(&facts), 100, false));
}

#[test]
fn a_host_that_was_tuned_by_wrong_advice() {
    insta::assert_snapshot!(shown(&Host::tuned()));
}

#[test]
fn a_container_with_half_a_cpu() {
    let host = Host::debian().asking(200, 100.0);
    for (file, text) in [("cpu.max", "50000 100000\n"), ("memory.max", "134217728\n")] {
        let folder = "/sys/fs/cgroup/system.slice/nginx.service";
        host.write(&format!("{folder}/{file}"), text);
    }
    host.sysctl("net/netfilter/nf_conntrack_count", "61000");
    host.sysctl("net/netfilter/nf_conntrack_max", "65536");
    host.counters("42 42 0");
    insta::assert_snapshot!(shown(&host));
}

#[test]
fn pods_of_a_cluster_and_what_could_not_be_read() {
    let facts = ClusterFacts {
        context: "arn:aws/prod; rm".to_owned(),
        namespace: "ingress".to_owned(),
        pods: vec![PodFacts::default(), PodFacts::default()],
        nodes: vec![NodeFacts {
            name: "n1".to_owned(),
            cpus: Some(8.0),
            cpu_manager: None,
            allowed_sysctls: None,
        }],
        kube_proxy: Some(KubeProxy {
            mode: "nftables".to_owned(),
            conntrack_for_each_cpu: 32_768,
            conntrack_at_least: 131_072,
        }),
        unread: vec![("node n1".to_owned(), "forbidden".to_owned())],
        ..ClusterFacts::default()
    };
    let shown = text(&examine_cluster(&facts, LoadDemand::default()), 200, false);
    for words in [
        "262,144 tracked connections on a node: node n1: 8 CPUs",
        "namespace ingress of context arn:aws/prod; rm: 2 pods; nodes: n1",
        "not known: node n1: forbidden",
        "nothing was changed",
    ] {
        assert!(shown.contains(words), "{words}:\n{shown}");
    }
}

static DEBIAN: LazyLock<Facts> = LazyLock::new(|| Host::debian().facts());

proptest! {
    /// Any load can be displayed.
    #[test]
    fn no_load_stops_it(connections in 1_u64..1_000_000_000, rate in 1.0..1e9) {
        let mut facts = DEBIAN.clone();
        facts.asked = LoadDemand {
            connections: Some(connections),
            rate: Some(rate),
            connections_per_second: Some(rate),
        };
        prop_assert!(text(&examine(&facts), 80, true).ends_with("nothing was changed\n"));
    }
}
