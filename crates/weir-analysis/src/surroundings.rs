//! Properties of the network and the hosts, before the first trial, that would spoil the figures.
//!
//! `weir doctor` judges settings of a proxy's host for a load. This module is not about settings of the kernel or the
//! proxy, so the two do not overlap.

use std::collections::BTreeSet;

use weir_model::flow::ArrivalsSpec;
use weir_model::quantity::CpuSet;
use weir_model::record::{CardFacts, HostRecord, LinkEnd, Surroundings};
use weir_model::study::{CpuRoles, LoadSpec, ProxyRole, Study};

/// Share of the bytes that one connection carried, above which a load is near the limit: queues of a link grow long
/// before it is full, and answers have headers beside their content.
const NEAR: f64 = 0.7;
/// Share of the time above which a standstill of CPUs affects most slices as well.
const STANDS_STILL: f64 = 0.05;
/// Clock error that affects figures, nanoseconds. Slices are a tenth of a second or longer, and counters are read at
/// their edges.
const CLOCK_ERROR_NS: u64 = 5_000_000;
/// Governor that leaves the frequency alone (kernel Documentation/admin-guide/pm/cpufreq.rst).
pub const STEADY_GOVERNOR: &str = "performance";

/// A property of the network or of a host that would spoil the figures.
#[derive(Debug, Clone, PartialEq)]
pub enum SurroundingsRemark {
    /// A load plans nearly as much as one connection from the proxy to the generator carried before the first trial.
    LinkNearLimit {
        /// Name of the load.
        load: String,
        /// Content of the planned answers, bytes per second.
        planned_bytes_per_s: f64,
        /// Content that one connection carried, bytes per second.
        carried_bytes_per_s: f64,
    },
    /// A governor changes the frequency of CPUs.
    Governor {
        /// Name of the host.
        host: String,
        /// Name of the governor.
        governor: String,
        /// CPUs that it governs.
        cpus: CpuSet,
    },
    /// The proxy and another role have different threads of the same cores.
    SharedCores {
        /// Name of the host.
        host: String,
        /// The other role.
        peer: LinkEnd,
        /// Threads of each of these cores.
        cores: Vec<CpuSet>,
    },
    /// The proxy and another role are at different NUMA nodes.
    CrossedNodes {
        /// Name of the host.
        host: String,
        /// The other role.
        peer: LinkEnd,
        /// NUMA nodes of the proxy.
        proxy_nodes: BTreeSet<u32>,
        /// NUMA nodes of the other role.
        peer_nodes: BTreeSet<u32>,
    },
    /// The CPUs of a role are at several NUMA nodes.
    SeveralNodes {
        /// Name of the host.
        host: String,
        /// The role.
        role: LinkEnd,
        /// CPUs of the role.
        cpus: CpuSet,
        /// Their NUMA nodes.
        nodes: BTreeSet<u32>,
    },
    /// Interrupts of a network card burden some of a role's CPUs more than others.
    CardInterrupts {
        /// Name of the host.
        host: String,
        /// Name of the card.
        card: String,
        /// CPUs to which its interrupts go.
        interrupts: CpuSet,
        /// The role.
        role: LinkEnd,
        /// CPUs of the role.
        cpus: CpuSet,
    },
    /// A network card is at another NUMA node than a role's CPUs.
    FarCard {
        /// Name of the host.
        host: String,
        /// Name of the card.
        card: String,
        /// NUMA node of the card.
        card_node: u32,
        /// The role.
        role: LinkEnd,
        /// NUMA nodes of the role's CPUs.
        nodes: BTreeSet<u32>,
    },
    /// Other processes or the hypervisor held up a role's CPUs before the first trial.
    HeldUp {
        /// Name of the host.
        host: String,
        /// The role.
        role: LinkEnd,
        /// CPUs of the role.
        cpus: CpuSet,
        /// Share of the time of all these CPUs, 0..1.
        share: f64,
        /// Time for which they were watched, nanoseconds.
        watched_ns: u64,
    },
    /// The clock of a host is not known well enough.
    UncertainClock {
        /// Name of the host.
        host: String,
        /// Error of the clock, nanoseconds.
        error_ns: u64,
    },
}

/// Returns the remarks that a reader of the figures must know.
pub fn remarks(found: &Surroundings, cpus: &CpuRoles, study: &Study) -> Vec<SurroundingsRemark> {
    let mut remarks: Vec<SurroundingsRemark> =
        study.loads.iter().filter_map(|load| near_limit(found, load, study)).collect();
    for record in &found.hosts {
        Host { record, cpus }.judge(&mut remarks);
    }
    remarks
}

/// Returns the upper limit of the content, in bytes per second, that a load has answered; `None` if its rate or its
/// answers are not known.
fn planned(load: &LoadSpec, study: &Study) -> Option<f64> {
    let size = load.size.or_else(|| match study.proxy.role {
        _ if !study.proxy.is_started() => None,
        ProxyRole::StaticFiles { size } => Some(size),
        ProxyRole::ReverseProxy if study.origin.address.is_some() => None,
        ProxyRole::ReverseProxy => Some(study.origin.size),
    })?;
    let rates = load.flows().filter_map(|flow| match &flow.arrivals {
        ArrivalsSpec::Constant(rate) => Some(*rate),
        ArrivalsSpec::Varied(segments) => {
            segments.iter().map(|part| part.from.max(part.to)).max_by(f64::total_cmp)
        }
        _ => None,
    });
    let rate: f64 = rates.sum();
    (rate > 0.0).then_some(rate * size as f64)
}

fn near_limit(found: &Surroundings, load: &LoadSpec, study: &Study) -> Option<SurroundingsRemark> {
    let planned_bytes_per_s = planned(load, study)?;
    let carried_bytes_per_s = found.proxy_to_generator_bytes_per_s()?;
    (planned_bytes_per_s > NEAR * carried_bytes_per_s).then(|| SurroundingsRemark::LinkNearLimit {
        load: load.name.clone(),
        planned_bytes_per_s,
        carried_bytes_per_s,
    })
}

/// A host with the CPUs of its roles.
struct Host<'a> {
    record: &'a HostRecord,
    cpus: &'a CpuRoles,
}

impl<'a> Host<'a> {
    fn judge(&self, remarks: &mut Vec<SurroundingsRemark>) {
        let facts = &self.record.facts;
        for (governor, cpus) in facts.governors.iter().filter(|(name, _)| *name != STEADY_GOVERNOR)
        {
            remarks.push(SurroundingsRemark::Governor {
                host: self.name(),
                governor: governor.clone(),
                cpus: cpus.clone(),
            });
        }
        let proxy = self.roles().find(|(role, _)| *role == LinkEnd::Proxy);
        // It exchanges bytes with each of them, and is what is measured.
        for peer in self.roles().filter(|(role, _)| *role != LinkEnd::Proxy) {
            if let Some((_, proxy)) = proxy {
                remarks.extend(self.shared_cores(proxy, peer));
                remarks.extend(self.crossed_nodes(proxy, peer));
            }
        }
        for (role, cpus) in self.distinct_roles() {
            let nodes = self.nodes_of(cpus);
            if nodes.len() > 1 {
                let (host, cpus) = (self.name(), cpus.clone());
                remarks.push(SurroundingsRemark::SeveralNodes { host, role, cpus, nodes });
            }
            remarks.extend(facts.cards.iter().flat_map(|card| self.card(card, role, cpus)));
            remarks.extend(self.held_up(role, cpus));
        }
        let error_ns = self.record.clock.map_or(0, |(_, error)| error);
        if error_ns > CLOCK_ERROR_NS {
            remarks.push(SurroundingsRemark::UncertainClock { host: self.name(), error_ns });
        }
    }

    /// Returns the name of the host.
    fn name(&self) -> String {
        self.record.host.clone()
    }

    /// Returns the roles on this host, with their CPUs.
    fn roles(&self) -> impl Iterator<Item = (LinkEnd, &'a CpuSet)> {
        let cpus = self.cpus;
        self.record.roles.iter().map(move |&role| match role {
            LinkEnd::Generator => (role, &cpus.generator),
            LinkEnd::Proxy => (role, &cpus.proxy),
            LinkEnd::Origin => (role, &cpus.origin),
        })
    }

    /// Returns the roles on this host without those whose CPUs an earlier role has.
    fn distinct_roles(&self) -> impl Iterator<Item = (LinkEnd, &'a CpuSet)> {
        let mut earlier: Vec<&CpuSet> = Vec::new();
        self.roles().filter(move |(_, cpus)| {
            let is_new = !earlier.contains(cpus);
            earlier.push(cpus);
            is_new
        })
    }

    /// Returns the NUMA nodes that the CPUs belong to.
    fn nodes_of(&self, cpus: &CpuSet) -> BTreeSet<u32> {
        self.record
            .facts
            .nodes
            .iter()
            .filter(|(_, own)| !own.shared_with(cpus).is_empty())
            .map(|(node, _)| *node)
            .collect()
    }

    /// Returns a remark about cores that two roles share through different CPUs. Shared CPUs are reported elsewhere.
    fn shared_cores(
        &self,
        proxy: &CpuSet,
        (peer, cpus): (LinkEnd, &CpuSet),
    ) -> Option<SurroundingsRemark> {
        let cores = self.record.facts.siblings.iter().filter(|core| {
            let (a, b) = (core.shared_with(proxy), core.shared_with(cpus));
            !a.is_empty() && !b.is_empty() && !a.iter().any(|cpu| b.contains(cpu))
        });
        let cores: Vec<CpuSet> = cores.cloned().collect();
        let host = self.name();
        (!cores.is_empty()).then_some(SurroundingsRemark::SharedCores { host, peer, cores })
    }

    fn crossed_nodes(
        &self,
        proxy: &CpuSet,
        (peer, cpus): (LinkEnd, &CpuSet),
    ) -> Option<SurroundingsRemark> {
        let (proxy_nodes, peer_nodes) = (self.nodes_of(proxy), self.nodes_of(cpus));
        let are_known = !proxy_nodes.is_empty() && !peer_nodes.is_empty();
        (are_known && proxy_nodes.is_disjoint(&peer_nodes)).then(|| {
            SurroundingsRemark::CrossedNodes { host: self.name(), peer, proxy_nodes, peer_nodes }
        })
    }

    /// Returns remarks about a network card whose interrupts burden some of a role's CPUs more than others, or that is
    /// at another node.
    fn card(&self, card: &CardFacts, role: LinkEnd, cpus: &CpuSet) -> Vec<SurroundingsRemark> {
        let mut remarks = Vec::new();
        if let Some(interrupts) = &card.interrupts {
            let shared = interrupts.shared_with(cpus).len();
            let burdens = shared < cpus.cpus().len() || interrupts.cpus().len() == 1;
            if !card.spreads && shared > 0 && burdens {
                remarks.push(SurroundingsRemark::CardInterrupts {
                    host: self.name(),
                    card: card.name.clone(),
                    interrupts: interrupts.clone(),
                    role,
                    cpus: cpus.clone(),
                });
            }
        }
        let nodes = self.nodes_of(cpus);
        if let Some(card_node) = card.node
            && !nodes.is_empty()
            && !nodes.contains(&card_node)
        {
            let (host, card) = (self.name(), card.name.clone());
            remarks.push(SurroundingsRemark::FarCard { host, card, card_node, role, nodes });
        }
        remarks
    }

    fn held_up(&self, role: LinkEnd, cpus: &CpuSet) -> Option<SurroundingsRemark> {
        let facts = &self.record.facts;
        let held_up = match role {
            LinkEnd::Generator => facts.held_up.generator,
            LinkEnd::Proxy => facts.held_up.proxy,
            LinkEnd::Origin => facts.held_up.origin,
        }?;
        let watched = facts.watched_ns as f64 * cpus.cpus().len() as f64;
        let share = held_up.late_ns.saturating_add(held_up.others_ns) as f64 / watched.max(1.0);
        (share > STANDS_STILL).then(|| SurroundingsRemark::HeldUp {
            host: self.name(),
            role,
            cpus: cpus.clone(),
            share: share.min(1.0),
            watched_ns: facts.watched_ns,
        })
    }
}
