//! Rules about pods of a cluster: the facts that trigger each rule, and that nothing else does.

use weir_doctor::{LoadDemand, Reading, Room, Severity, Unread, examine_cluster};
use weir_kube::{
    Budget, ClusterFacts, ContainerFacts, KubeProxy, NodeFacts, PodFacts, Scaler, Scaling,
};

/// Two Guaranteed pods of a Deployment, with a disruption budget, on a node whose kubelet gives them exclusive CPUs.
fn fine() -> ClusterFacts {
    ClusterFacts {
        context: "lab".to_owned(),
        namespace: "ingress".to_owned(),
        pods: vec![build_pod("web-1"), build_pod("web-2")],
        nodes: vec![NodeFacts {
            name: "n1".to_owned(),
            cpus: Some(8.0),
            cpu_manager: Some("static".to_owned()),
            allowed_sysctls: Some(Vec::new()),
        }],
        scalers: Vec::new(),
        budgets: Some(vec![Budget {
            name: "web".to_owned(),
            pods: vec!["web-1".to_owned(), "web-2".to_owned()],
            allowed: 1,
        }]),
        kube_proxy: Some(KubeProxy {
            mode: "nftables".to_owned(),
            conntrack_for_each_cpu: 32_768,
            conntrack_at_least: 131_072,
        }),
        unread: Vec::new(),
    }
}

fn build_pod(name: &str) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        workload: Some(("Deployment".to_owned(), "web".to_owned())),
        node: Some("n1".to_owned()),
        qos: Some("Guaranteed".to_owned()),
        containers: vec![ContainerFacts {
            name: "nginx".to_owned(),
            cpu_request: Some(2.0),
            ..ContainerFacts::default()
        }],
        ..PodFacts::default()
    }
}

fn may_run_on(facts: &mut ClusterFacts, cpus: &str, policy: Option<&str>) {
    facts.nodes[0].cpu_manager = policy.map(str::to_owned);
    for pod in &mut facts.pods {
        pod.containers[0].cpus = Some(cpus.parse().expect("CPUs"));
    }
}

const ASKED: LoadDemand =
    LoadDemand { connections: Some(100_000), rate: None, connections_per_second: Some(500.0) };

fn scaler(kind: &str, does: Scaling) -> Vec<Scaler> {
    vec![Scaler { name: "it".to_owned(), target: (kind.to_owned(), "web".to_owned()), does }]
}

#[test]
fn each_rule_is_set_off_by_what_it_is_about_and_by_nothing_else() {
    type Change = fn(&mut ClusterFacts);
    #[rustfmt::skip]
    let table: &[(Change, &[&str])] = &[
        (|_| {}, &[]),
        (|facts| facts.pods[1].qos = Some("BestEffort".to_owned()), &["pods-best-effort", "cpus-not-exclusive"]),
        (|facts| facts.pods[0].qos = Some("Burstable".to_owned()), &["pods-burstable", "cpus-not-exclusive"]),
        (|facts| facts.pods[0].containers[0].cpu_request = Some(1.5), &["cpus-not-exclusive"]),
        (|facts| facts.nodes[0].cpu_manager = Some("none".to_owned()), &["cpus-not-pinned"]),
        (|facts| facts.nodes[0].cpu_manager = None, &[]),
        // What a container tells goes before the policy.
        (|facts| may_run_on(facts, "2-3", None), &[]),
        (|facts| may_run_on(facts, "0-7", None), &["cpus-not-pinned"]),
        (|facts| may_run_on(facts, "0-7", Some("static")), &["cpus-not-pinned"]),
        (|facts| may_run_on(facts, "2-3", Some("none")), &[]),
        // All CPUs of a node are nobody's own under the policy `none`.
        (|facts| { may_run_on(facts, "0-1", Some("none")); facts.nodes[0].cpus = Some(2.0); },
         &["node-conntrack-too-small", "cpus-not-pinned"]),
        (|facts| { may_run_on(facts, "0-1", Some("static")); facts.nodes[0].cpus = Some(2.0); },
         &["node-conntrack-too-small"]),
        (|facts| facts.pods[0].containers[0].cpu_limit = Some(2.0), &["cpu-limited"]),
        (|facts| facts.pods[1].containers[0].was_killed_for_memory = true, &["killed-for-memory"]),
        (|facts| facts.pods[1].has_host_network = true, &["host-network"]),
        (|facts| facts.pods[1].reason = Some("SysctlForbidden".to_owned()), &["sysctl-forbidden"]),
        (|facts| facts.pods[1].reason = Some("Evicted".to_owned()), &[]),
        (|facts| facts.scalers = scaler("Deployment", Scaling::Replicas { least: 2, most: 8 }), &["autoscaled"]),
        (|facts| facts.scalers = scaler("Deployment", Scaling::Replicas { least: 2, most: 2 }), &[]),
        (|facts| facts.scalers = scaler("StatefulSet", Scaling::Replicas { least: 2, most: 8 }), &[]),
        (|facts| facts.scalers = scaler("Deployment", Scaling::Requests("Auto".to_owned())), &["vertically-autoscaled"]),
        (|facts| facts.scalers = scaler("Deployment", Scaling::Requests("Off".to_owned())), &[]),
        (|facts| facts.budgets = Some(Vec::new()), &["no-disruption-budget"]),
        (|facts| facts.budgets = None, &[]),
        (|facts| facts.budgets.as_mut().unwrap()[0].allowed = 0, &["evictions-refused"]),
        (|facts| facts.pods.iter_mut().for_each(|pod| pod.workload = None), &[]),
        (|facts| facts.kube_proxy.as_mut().unwrap().mode = "iptables".to_owned(), &["kube-proxy-iptables"]),
        // 2 × 100,000 + 500 × 120: 260,000 of 8 × 32,768, which is 262,144.
        (|facts| facts.nodes[0].cpus = Some(7.0), &["node-conntrack-too-small"]),
        (|facts| facts.kube_proxy.as_mut().unwrap().conntrack_for_each_cpu = 0, &[]),
        (|facts| facts.kube_proxy = None, &[]),
    ];
    for (at, (change, expected)) in table.iter().enumerate() {
        let mut facts = fine();
        change(&mut facts);
        let examination = examine_cluster(&facts, ASKED);
        let ids: Vec<String> = examination.findings.iter().map(|one| one.problem.id()).collect();
        assert_eq!(ids, *expected, "row {at}");
        for finding in &examination.findings {
            assert!(!finding.evidence.is_empty(), "{finding:?}");
            assert!(finding.source.starts_with("https://"), "{finding:?}");
            let is_error = finding.severity == Severity::Error;
            assert_eq!(is_error, finding.problem.id() == "node-conntrack-too-small", "{finding:?}");
        }
    }
}

#[test]
fn commands_name_context_and_namespace_and_quote_what_is_foreign() {
    let mut facts = fine();
    facts.context = "arn:aws/prod; rm".to_owned();
    facts.scalers = scaler("Deployment", Scaling::Replicas { least: 2, most: 8 });
    facts.unread = vec![("node n1".to_owned(), "forbidden".to_owned())];
    let examination = examine_cluster(&facts, LoadDemand::default());
    let command = &examination.findings[0].change[0];
    assert_eq!(
        command,
        r#"kubectl --context 'arn:aws/prod; rm' --namespace ingress patch horizontalpodautoscaler it --patch '{"spec":{"minReplicas":2,"maxReplicas":2}}'"#
    );
    let Room::TrackedConnections { amount, table } = &examination.room[0] else {
        panic!("{examination:?}");
    };
    assert_eq!((*amount, &*table.node, table.cpus), (262_144, "n1", 8.0));
    let pods = Reading::Pods {
        namespace: "ingress".to_owned(),
        context: "arn:aws/prod; rm".to_owned(),
        pods: 2,
    };
    let nodes = Reading::Nodes { names: vec!["n1".to_owned()] };
    assert_eq!(examination.looked_at, [pods, nodes]);
    let unread = Unread { what: "node n1".to_owned(), why: "forbidden".to_owned() };
    assert_eq!(examination.unread, [unread]);
}
