//! State of a flow on one thread.

use std::collections::VecDeque;

use weir_model::load::Assignment;
use weir_stats::SplitMix64;

use super::lists::{Kind, List};
use crate::plan::{Flow, Plan};
use crate::reactor::ConnId;
use crate::schedule::{Schedule, Share};
use crate::tls::Connector;

/// Due requests that wait for their own connection; used only with [`Assignment::PerConnection`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Owed {
    /// Arrival number of the oldest of these requests.
    pub(super) number: u64,
    pub(super) count: u32,
}

/// State of a flow on one thread.
pub(super) struct FlowState {
    /// First connection of the flow on this thread; its connections are consecutive.
    pub(super) first: ConnId,
    pub(super) connections: u32,
    /// Number of connections that are open now.
    pub(super) open: u32,
    /// Index of the first connection among the flow's connections on all threads of all generators.
    pub(super) offset: u64,
    /// Index of the flow's first stream in [`Engine::in_flight`].
    pub(super) rings: usize,
    /// Index among the flows of its arm.
    pub(super) place: usize,
    pub(super) free: List,
    pub(super) awaited: List,
    pub(super) aging: List,
    /// Connections with requests outstanding.
    pub(super) busy: u32,
    pub(super) schedule: Option<Schedule>,
    /// TLS connector; `None` for plaintext.
    pub(super) connector: Option<Connector>,
    /// Arrivals not yet sent, with the number of their slice, oldest slice first.
    pub(super) shares: VecDeque<(usize, Share)>,
    /// Requests that wait for their connection, by connection; empty unless arrivals belong to connections.
    pub(super) owed: Vec<Owed>,
    /// Number of requests that may still be sent.
    pub(super) budget: u64,
    /// Number of requests sent in a closed loop.
    pub(super) sent: u64,
    pub(super) random: SplitMix64,
    pub(super) to_open: VecDeque<ConnId>,
    /// Minimum time between the openings of two connections, nanoseconds; 0 if unlimited.
    pub(super) connect_gap: u64,
    pub(super) next_connect: u64,
}

impl FlowState {
    /// Creates the state of a flow, with indices as if it were the first of its thread.
    pub(super) fn new(plan: &Plan, flow: &Flow, thread: usize) -> FlowState {
        let total = u64::from(flow.connections);
        let deal = plan.deal();
        let connections = deal.share(total, thread) as u32;
        let mut schedule = flow.schedule(plan.ramp_up);
        if let Some(schedule) = &mut schedule {
            schedule.prepare(plan.end());
        }
        let per_connection = flow.assignment == Assignment::PerConnection && schedule.is_some();
        FlowState {
            first: 0,
            connections,
            open: 0,
            offset: deal.share_before(total, thread),
            rings: 0,
            place: 0,
            free: List::new(Kind::Free),
            awaited: List::new(Kind::Awaited),
            aging: List::new(Kind::Aging),
            busy: 0,
            schedule,
            connector: flow.tls.as_ref().map(|tls| tls.for_thread()),
            shares: VecDeque::with_capacity(64),
            owed: if per_connection {
                vec![Owed::default(); connections as usize]
            } else {
                Vec::new()
            },
            budget: flow.limit.map_or(u64::MAX, |total| deal.share(total, thread)),
            sent: 0,
            random: SplitMix64::new(0x7765_6972 + deal.number(thread)),
            to_open: VecDeque::with_capacity(connections as usize),
            // Each thread keeps the pace of its share of the connections.
            connect_gap: flow
                .connect_rate
                .map_or(0, |rate| (1e9 * deal.all() as f64 / rate) as u64),
            next_connect: 0,
        }
    }

    /// Returns the range of a connection's streams in `Engine::in_flight`.
    #[inline]
    pub(super) fn streams_of(&self, id: ConnId, depth: u16) -> std::ops::Range<usize> {
        let depth = usize::from(depth);
        let start = self.rings + (id - self.first) as usize * depth;
        start..start + depth
    }
}
