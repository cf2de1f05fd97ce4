//! Sentences about the machines that a workload needs.

use weir_analysis::findings::{
    NeedUnknown, NodeBound, Nodes, SizeBasis, SizeFindings, Workload, WorkloadVariable,
};
use weir_model::record::Validity;
use weir_sentences::size::{describe_size, describe_size_basis, explain_need_unknown};

use super::Row;

fn build_findings(nodes: Result<(u32, NodeBound), NeedUnknown>, is_capacity: bool) -> SizeFindings {
    let workload = Workload { rate: 30_000.0, connections: Some(300_000.0) };
    SizeFindings {
        arm: "stock".to_owned(),
        runs: vec!["monday".to_owned()],
        validity: Validity::Valid,
        workload,
        basis: SizeBasis {
            windows: 14,
            rates: (500.0, 4_700.0),
            connections: (50.0, 100_000.0),
            carried: 4_656.0,
            is_capacity,
            busiest: Some(0.97),
            cpus: 1,
            memory_bytes: 24_000_000_000,
        },
        one: Vec::new(),
        nodes: nodes.ok().map(|(count, bound)| Nodes {
            count,
            bound,
            each: Workload {
                rate: 30_000.0 / f64::from(count),
                connections: Some(300_000.0 / f64::from(count)),
            },
            needs: Vec::new(),
        }),
        why_no_nodes: nodes.err(),
    }
}

fn nodes(count: u32, bound: NodeBound, is_capacity: bool) -> String {
    describe_size(&build_findings(Ok((count, bound)), is_capacity))
}

pub(super) fn rows() -> Vec<Row> {
    let beyond = |variable| NeedUnknown::BeyondTwice { variable, measured: 4_656.0, wanted: 30e3 };
    let unknown = NeedUnknown::NotVaried(WorkloadVariable::Connections);
    vec![
        ("One machine is enough", nodes(1, NodeBound::Rate, true)),
        ("Machines by a capacity", nodes(7, NodeBound::Rate, true)),
        ("Machines by a rate that was carried", nodes(7, NodeBound::Rate, false)),
        ("Machines by connections", nodes(3, NodeBound::Connections, true)),
        ("Machines by memory", nodes(9, NodeBound::Memory, true)),
        ("An unknown number of machines", describe_size(&build_findings(Err(unknown), true))),
        (
            "What a size rests on, one machine",
            describe_size_basis(&build_findings(Ok((1, NodeBound::Rate)), true)),
        ),
        (
            "What a size rests on, several machines",
            describe_size_basis(&build_findings(Ok((7, NodeBound::Rate)), true)),
        ),
        ("A need that was not sampled", explain_need_unknown(NeedUnknown::FewWindows(0))),
        ("A need that is hardly known", explain_need_unknown(NeedUnknown::FewWindows(3))),
        ("A need of two variables at once", explain_need_unknown(NeedUnknown::Entangled)),
        (
            "A need at another rate",
            explain_need_unknown(NeedUnknown::NotVaried(WorkloadVariable::Rate)),
        ),
        ("A need beyond the rates", explain_need_unknown(beyond(WorkloadVariable::Rate))),
        (
            "A need beyond the connections",
            explain_need_unknown(beyond(WorkloadVariable::Connections)),
        ),
        ("Too little memory", explain_need_unknown(NeedUnknown::TooLittleMemory)),
    ]
}
