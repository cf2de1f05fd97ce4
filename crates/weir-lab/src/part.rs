//! What is known of a continuous trial when it has ended, and belongs to none of its blocks:
//! connections, handshakes, memory, the generator's own troubles.

use std::sync::{Arc, Mutex, PoisonError};

use weir_load::Outcome;
use weir_load::engine::FlowTotals;
use weir_model::load::Lifetime;
use weir_model::load_report::TlsReport;
use weir_model::record::{ArmConnections, ConnectionCounts, PartRecord};
use weir_model::study::{LoadSpec, Study};

/// Counters of the host at the begin and the end of a trial, read by the thread that switches the
/// load: opening the connections beforehand and closing them afterwards is not in them.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    overflows_before: Option<u64>,
    /// Listen queues that overflowed in between.
    overflows: u64,
    /// Memory of each arm's proxy at the end.
    memory: Vec<u64>,
    /// Requests answered, by arm.
    answered: Vec<u64>,
}

/// [`Edges`] as two threads know them.
pub(crate) type SharedEdges = Arc<Mutex<Edges>>;

impl Edges {
    /// Reads what is of interest at the begin of a slice: the first, or the end of the last.
    /// `processes` are those of each arm's proxy.
    pub(crate) fn read(edges: &SharedEdges, is_end: bool, processes: &[Vec<u32>]) {
        let overflows = weir_probe::listen_overflows();
        let mut edges = edges.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *edges.overflows_before.get_or_insert(overflows);
        edges.overflows = overflows.saturating_sub(before);
        if is_end {
            let of_arm = |pids: &Vec<u32>| {
                let each = pids.iter().map(|&pid| weir_probe::memory_bytes(pid));
                each.sum::<Result<u64, _>>().unwrap_or(0)
            };
            edges.memory = processes.iter().map(of_arm).collect();
        }
    }
}

/// Counts the answers that each arm gave, slice by slice.
#[derive(Debug)]
pub(crate) struct Answers(Vec<u64>);

impl Answers {
    pub(crate) fn of(arms: usize) -> Answers {
        Answers(vec![0; arms])
    }

    pub(crate) fn add(&mut self, arm: usize, answers: u64) {
        self.0[arm] += answers;
    }

    /// All slices have ended.
    pub(crate) fn tell(self, edges: &SharedEdges) {
        let mut edges = edges.lock().unwrap_or_else(PoisonError::into_inner);
        edges.answered = self.0;
    }
}

/// Where a continuous trial stands in its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) session: u32,
    pub(crate) first_block: u32,
    pub(crate) blocks: u32,
}

/// The record of a continuous trial of all arms.
pub(crate) fn record(
    study: &Study,
    load: &LoadSpec,
    place: Place,
    outcome: &Outcome,
    edges: &SharedEdges,
) -> PartRecord {
    let edges = edges.lock().unwrap_or_else(PoisonError::into_inner);
    // The flows that ask come first, in the order of the arms; then those that are held.
    let (asking, held) = outcome
        .flows
        .split_at(study.arms.len().min(outcome.flows.len()));
    let of_arm = |(index, asking): (usize, &FlowTotals)| ArmConnections {
        arm: study.arms[index].name.clone(),
        answered: edges.answered.get(index).copied().unwrap_or(0),
        asking: counts(asking, load.lifetime),
        held: held
            .get(index)
            .map_or_else(Default::default, |held| counts(held, Lifetime::Kept)),
        tls: load.tls.is_some().then(|| TlsReport::from(&asking.tls)),
        proxy_memory_bytes: edges.memory.get(index).copied().unwrap_or(0),
    };
    PartRecord {
        session: place.session,
        load: load.name.clone(),
        first_block: place.first_block,
        blocks: place.blocks,
        threads: outcome.cpu_ns.len() as u32,
        io: outcome.io.name().to_owned(),
        starved: outcome.starved,
        listen_overflows: edges.overflows,
        errors: outcome.errors.counts(),
        arms: asking.iter().enumerate().map(of_arm).collect(),
    }
}

/// Connections that are opened for each request are not open when nothing is asked.
fn counts(totals: &FlowTotals, lifetime: Lifetime) -> ConnectionCounts {
    let kept = |open: u64| match lifetime {
        Lifetime::Request => 0,
        _ => open,
    };
    ConnectionCounts {
        wanted: totals.connections,
        open_at_start: kept(totals.connected),
        open_at_end: kept(totals.open_at_end),
        opened: totals.connects,
    }
}
