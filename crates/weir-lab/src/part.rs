//! What is known of a continuous trial when it has ended, and belongs to none of its blocks:
//! connections, handshakes, memory, the generator's own troubles.

use std::collections::BTreeMap;

use weir_agent::message::FlowEnd;
use weir_model::record::{ArmConnections, PartRecord};
use weir_model::study::{LoadSpec, Study};

use crate::measure::TrialEnd;

/// Where a continuous trial stands in its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) session: u32,
    pub(crate) first_block: u32,
    pub(crate) blocks: u32,
}

/// The record of a continuous trial of all arms.
pub(crate) fn record(study: &Study, load: &LoadSpec, place: Place, end: TrialEnd) -> PartRecord {
    let TrialEnd {
        load: of_load,
        watch,
        answered,
    } = end;
    let of_arm = |(index, flow): (usize, FlowEnd)| ArmConnections {
        arm: study.arms[index].name.clone(),
        answered: answered.get(index).copied().unwrap_or(0),
        asking: flow.asking,
        held: flow.held,
        tls: flow.tls,
        listen_overflows: watch.arm_overflows.get(index).copied(),
        proxy_memory_bytes: watch.memory.get(index).copied().unwrap_or(0),
    };
    PartRecord {
        session: place.session,
        load: load.name.clone(),
        first_block: place.first_block,
        blocks: place.blocks,
        threads: of_load.threads,
        io: of_load.io,
        starved: of_load.starved,
        listen_overflows: watch.listen_overflows,
        late_ns: watch.late_ns,
        errors: of_load.errors,
        arms: of_load.arms.into_iter().enumerate().map(of_arm).collect(),
    }
}

/// What a proxy counted between two looks at its counters. One that was not there before began at 0.
pub(crate) fn counted(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let since = |(name, now): (&String, &u64)| {
        let then = before.get(name).copied().unwrap_or(0);
        (name.clone(), now.saturating_sub(then))
    };
    after.iter().map(since).collect()
}
