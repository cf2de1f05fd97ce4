//! Sentences about the machines that a workload needs.

use weir_analysis::findings::{
    NeedUnknown, NodeBound, Nodes, SizeBasis, SizeFindings, SizedResource, Workload,
    WorkloadVariable,
};

use crate::numbers;

/// Returns the answer: the number of machines, and why there are not fewer.
pub fn describe_size(found: &SizeFindings) -> String {
    let workload = describe_workload(found.workload);
    match (&found.nodes, found.why_no_nodes) {
        (Some(nodes), _) => describe_nodes(&workload, nodes, &found.basis),
        (None, Some(why)) => {
            format!("What {workload} need is not known: {}.", explain_need_unknown(why))
        }
        (None, None) => format!("What {workload} need is not known."),
    }
}

fn describe_nodes(workload: &str, nodes: &Nodes, basis: &SizeBasis) -> String {
    let machine = format!(
        "like the measured one ({} for the proxy, {})",
        numbers::counted(u64::from(basis.cpus), "CPU"),
        numbers::with_unit(basis.memory_bytes as f64, "bytes")
    );
    if nodes.count == 1 {
        return format!("{workload} fit on one machine {machine}.");
    }
    format!(
        "{} need {} {machine}, because {}. Each then has {}.",
        workload,
        numbers::counted(u64::from(nodes.count), "machine"),
        explain_bound(nodes.bound, basis),
        describe_workload(nodes.each)
    )
}

fn explain_bound(bound: NodeBound, basis: &SizeBasis) -> String {
    match bound {
        NodeBound::Rate if basis.is_capacity => format!(
            "one carries {} requests/s within the objective",
            numbers::rounded_rate(basis.carried)
        ),
        NodeBound::Rate => format!(
            "{} requests/s is the highest rate that one was seen to carry",
            numbers::rounded_rate(basis.carried)
        ),
        NodeBound::Connections => format!(
            "{} is the most connections that one was measured with",
            numbers::rounded_rate(basis.connections.1)
        ),
        NodeBound::Memory => "one has no memory for more".to_owned(),
    }
}

/// Returns "30,000 requests/s and 300,000 connections".
fn describe_workload(workload: Workload) -> String {
    let rate = format!("{} requests/s", numbers::rounded_rate(workload.rate));
    match workload.connections {
        Some(connections) => {
            format!("{rate} and {} connections", numbers::rounded_rate(connections))
        }
        None => rate,
    }
}

/// Returns what the answer rests on: the measurements, and what is assumed.
pub fn describe_size_basis(found: &SizeFindings) -> String {
    let basis = &found.basis;
    let (low, high) = basis.rates;
    let (fewest, most) = basis.connections;
    let measured = format!(
        "{} of {} from {} to {} requests/s, with {} connections",
        numbers::counted(u64::from(basis.windows), "measurement"),
        found.arm,
        numbers::rounded_rate(low),
        numbers::rounded_rate(high),
        describe_range(fewest, most)
    );
    let shared = found.nodes.as_ref().is_some_and(|nodes| nodes.count > 1);
    let assumed = if shared {
        "; that several machines share no limit (network, origin, balancer) was not measured"
    } else {
        ""
    };
    format!("{measured}{assumed}")
}

fn describe_range(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(numbers::rounded_rate);
    if low == high { low } else { format!("{low} to {high}") }
}

/// Names a resource in a table.
pub fn sized_resource_name(resource: SizedResource, basis: &SizeBasis) -> String {
    let name = match resource {
        SizedResource::CpuTime => "CPU time",
        SizedResource::Cpus => {
            let busiest = numbers::percent(basis.busiest.unwrap_or(1.0).min(1.0));
            return format!("CPUs, at most {busiest} busy");
        }
        SizedResource::Memory => "memory",
        SizedResource::Network => "network, busier direction",
        SizedResource::Sockets => "TCP sockets",
    };
    name.to_owned()
}

/// Explains why a need is not known, with the measurement that would tell.
pub fn explain_need_unknown(why: NeedUnknown) -> String {
    match why {
        NeedUnknown::FewWindows(0) => {
            "it was not sampled; measure without `--samples off`".to_owned()
        }
        NeedUnknown::FewWindows(count) => format!(
            "it is known in {} only; add a longer run, or one with more rates (`weir capacity`)",
            numbers::counted(u64::from(count), "measurement")
        ),
        NeedUnknown::Entangled => {
            "rate and connections changed together, so what each takes is not known; add a run that varies one of them"
                .to_owned()
        }
        NeedUnknown::NotVaried(WorkloadVariable::Connections) => {
            "all measurements had about the same number of connections; add a run of a study like `held-connections`, with \
             this proxy"
                .to_owned()
        }
        NeedUnknown::NotVaried(WorkloadVariable::Rate) => {
            "all measurements had about the same rate; add a run of `weir capacity`".to_owned()
        }
        NeedUnknown::BeyondTwice { variable, measured, wanted } => {
            let (unit, how) = match variable {
                WorkloadVariable::Rate => (" requests/s", "on more CPUs"),
                WorkloadVariable::Connections => (" connections", "with more connections"),
            };
            format!(
                "{}{unit} is more than twice the {} that were measured; measure {how}, at {} or more",
                numbers::rounded_rate(wanted),
                numbers::rounded_rate(measured),
                numbers::rounded_rate(wanted / 2.0)
            )
        }
        NeedUnknown::TooLittleMemory => "no machine of this size has the memory".to_owned(),
    }
}
