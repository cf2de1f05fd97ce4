//! Remarks on the network and the hosts before the first trial.

use std::collections::BTreeSet;

use weir_analysis::surroundings::SurroundingsRemark;
use weir_model::quantity::CpuSet;
use weir_model::record::LinkEnd;
use weir_sentences::describe_surroundings;

use super::Row;

fn cpus<const N: usize>(cpus: [u32; N]) -> CpuSet {
    CpuSet::new(cpus.to_vec()).expect("CPUs")
}

fn on_cpus() -> Vec<Row> {
    let host = "far".to_owned();
    vec![
        (
            "A governor",
            describe_surroundings(&SurroundingsRemark::Governor {
                host: host.clone(),
                governor: "powersave".to_owned(),
                cpus: cpus([2, 3]),
            }),
        ),
        (
            "Shared cores",
            describe_surroundings(&SurroundingsRemark::SharedCores {
                host: host.clone(),
                peer: LinkEnd::Origin,
                cores: vec![cpus([0, 2]), cpus([1, 3])],
            }),
        ),
        (
            "Proxy and peer at different nodes",
            describe_surroundings(&SurroundingsRemark::CrossedNodes {
                host: host.clone(),
                peer: LinkEnd::Generator,
                proxy_nodes: BTreeSet::from([0]),
                peer_nodes: BTreeSet::from([1, 2, 3]),
            }),
        ),
        (
            "A role at several nodes",
            describe_surroundings(&SurroundingsRemark::SeveralNodes {
                host: host.clone(),
                role: LinkEnd::Proxy,
                cpus: cpus([2, 3]),
                nodes: BTreeSet::from([0, 1]),
            }),
        ),
        (
            "CPUs that were held up",
            describe_surroundings(&SurroundingsRemark::HeldUp {
                host,
                role: LinkEnd::Proxy,
                cpus: cpus([2, 3]),
                share: 0.2,
                watched_ns: 200_000_000,
            }),
        ),
    ]
}

fn on_network() -> Vec<Row> {
    let (host, card) = ("far".to_owned(), "eth0".to_owned());
    vec![
        (
            "A load near the limit of the link",
            describe_surroundings(&SurroundingsRemark::LinkNearLimit {
                load: "wide".to_owned(),
                planned_bytes_per_s: 1e9,
                carried_bytes_per_s: 1.2e9,
            }),
        ),
        (
            "Interrupts on some of a role's CPUs",
            describe_surroundings(&SurroundingsRemark::CardInterrupts {
                host: host.clone(),
                card: card.clone(),
                interrupts: cpus([3]),
                role: LinkEnd::Proxy,
                cpus: cpus([2, 3]),
            }),
        ),
        (
            "A card at another node",
            describe_surroundings(&SurroundingsRemark::FarCard {
                host: host.clone(),
                card,
                card_node: 1,
                role: LinkEnd::Generator,
                nodes: BTreeSet::from([0]),
            }),
        ),
        (
            "An uncertain clock",
            describe_surroundings(&SurroundingsRemark::UncertainClock {
                host,
                error_ns: 30_000_000,
            }),
        ),
    ]
}

pub(super) fn rows() -> Vec<Row> {
    [on_cpus(), on_network()].concat()
}
