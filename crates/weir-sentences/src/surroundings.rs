//! Properties of the network and the hosts that would spoil the figures.

use std::collections::BTreeSet;

use weir_analysis::surroundings::{STEADY_GOVERNOR, SurroundingsRemark};

use crate::names::join_names;

/// Returns a remark, as a clause.
pub fn describe_surroundings(remark: &SurroundingsRemark) -> String {
    match remark {
        SurroundingsRemark::LinkNearLimit { load, planned_bytes_per_s, carried_bytes_per_s } => {
            format!(
                "load `{load}` plans answers of {:.0} MB/s, and one connection from the proxy to the generator carried \
                 {:.0} MB/s before the first trial: the network may be the limit",
                planned_bytes_per_s / 1e6,
                carried_bytes_per_s / 1e6
            )
        }
        SurroundingsRemark::Governor { host, governor, cpus } => format!(
            "the governor `{governor}` changes the frequency of CPU {cpus} of {host}: rates and CPU time per request \
             follow it (`cpupower -c {cpus} frequency-set -g {STEADY_GOVERNOR}`)"
        ),
        SurroundingsRemark::SharedCores { host, peer, cores } => {
            let cores: Vec<String> = cores.iter().map(|core| format!("CPU {core}")).collect();
            format!(
                "proxy and {peer} share cores of {host}: {} are threads of one core each, so either is slower while \
                 the other is busy",
                join_names(&cores)
            )
        }
        SurroundingsRemark::CrossedNodes { host, peer, proxy_nodes, peer_nodes } => format!(
            "proxy and {peer} are at different NUMA nodes of {host} ({} and {}), and all bytes cross between these",
            list_nodes(proxy_nodes),
            list_nodes(peer_nodes)
        ),
        SurroundingsRemark::SeveralNodes { host, role, cpus, nodes } => format!(
            "the {role}'s CPUs {cpus} are at NUMA nodes {} of {host}: memory is slower from one to another",
            list_nodes(nodes)
        ),
        SurroundingsRemark::CardInterrupts { host, card, interrupts, role, cpus } => format!(
            "interrupts of {card} on {host} go to CPU {interrupts}, and the {role} has CPU {cpus}: packets take time of \
             some of its CPUs alone (use more queues, RPS, or separate CPUs)"
        ),
        SurroundingsRemark::FarCard { host, card, card_node, role, nodes } => format!(
            "{card} is at NUMA node {card_node} of {host}, and the {role}'s CPUs are at {}: all its packets cross between nodes",
            list_nodes(nodes)
        ),
        SurroundingsRemark::HeldUp { host, role, cpus, share, watched_ns } => format!(
            "the {role}'s CPU {cpus} of {host} was held up for {:.0} % of {:.1} s before the first trial, by other \
             processes or the hypervisor: high quantiles will show it",
            share * 100.0,
            *watched_ns as f64 / 1e9
        ),
        SurroundingsRemark::UncertainClock { host, error_ns } => format!(
            "the clock of {host} is known to {:.0} ms only: its counters may belong to other slices",
            *error_ns as f64 / 1e6
        ),
    }
}

/// Returns "0", "0 and 1", "0, 1 and 2".
fn list_nodes(nodes: &BTreeSet<u32>) -> String {
    let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
    join_names(&nodes)
}
