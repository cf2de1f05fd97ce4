//! Remarks on properties of the network and the hosts, before the first trial, that would spoil the figures; one
//! sentence each.
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
const STEADY: &str = "performance";

/// Returns the remarks that a reader of the figures must know.
pub fn remarks(found: &Surroundings, cpus: &CpuRoles, study: &Study) -> Vec<String> {
    let mut remarks: Vec<String> =
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

fn near_limit(found: &Surroundings, load: &LoadSpec, study: &Study) -> Option<String> {
    let (planned, name) = (planned(load, study)?, &load.name);
    let carried = found.proxy_to_generator_bytes_per_s()?;
    (planned > NEAR * carried).then(|| {
        let [planned, carried] = [planned / 1e6, carried / 1e6];
        format!(
            "load `{name}` plans answers of {planned:.0} MB/s, and one connection from the proxy to the generator carried \
             {carried:.0} MB/s before the first trial: the network may be the limit"
        )
    })
}

/// A host with the CPUs of its roles.
struct Host<'a> {
    record: &'a HostRecord,
    cpus: &'a CpuRoles,
}

impl<'a> Host<'a> {
    fn judge(&self, remarks: &mut Vec<String>) {
        let (facts, host) = (&self.record.facts, &self.record.host);
        for (governor, cpus) in facts.governors.iter().filter(|(name, _)| *name != STEADY) {
            remarks.push(format!(
                "the governor `{governor}` changes the frequency of CPU {cpus} of {host}: rates and CPU time per request \
                 follow it (`cpupower -c {cpus} frequency-set -g {STEADY}`)"
            ));
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
                let nodes = numbers(&nodes);
                remarks.push(format!(
                    "the {role}'s CPUs {cpus} are at NUMA nodes {nodes} of {host}: memory is slower from one to another"
                ));
            }
            remarks.extend(facts.cards.iter().flat_map(|card| self.card(card, role, cpus)));
            remarks.extend(self.stands_still(role, cpus));
        }
        let error = self.record.clock.map_or(0, |(_, error)| error);
        if error > CLOCK_ERROR_NS {
            let ms = error as f64 / 1e6;
            remarks.push(format!(
                "the clock of {host} is known to {ms:.0} ms only: its counters may belong to other slices"
            ));
        }
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
    fn shared_cores(&self, proxy: &CpuSet, (role, own): (LinkEnd, &CpuSet)) -> Option<String> {
        let cores = self.record.facts.siblings.iter().filter(|core| {
            let (a, b) = (core.shared_with(proxy), core.shared_with(own));
            !a.is_empty() && !b.is_empty() && !a.iter().any(|cpu| b.contains(cpu))
        });
        let cores: Vec<String> = cores.map(|core| format!("CPU {core}")).collect();
        (!cores.is_empty()).then(|| {
            format!(
                "proxy and {role} share cores of {}: {} are threads of one core each, so either is slower while the other \
                 is busy",
                self.record.host,
                crate::listed(&cores)
            )
        })
    }

    fn crossed_nodes(&self, proxy: &CpuSet, (role, own): (LinkEnd, &CpuSet)) -> Option<String> {
        let (a, b) = (self.nodes_of(proxy), self.nodes_of(own));
        (!a.is_empty() && !b.is_empty() && a.is_disjoint(&b)).then(|| {
            format!(
                "proxy and {role} are at different NUMA nodes of {} ({} and {}): all bytes between them cross",
                self.record.host,
                numbers(&a),
                numbers(&b)
            )
        })
    }

    /// Returns remarks about a network card whose interrupts burden some of a role's CPUs more than others, or that is
    /// at another node.
    fn card(&self, card: &CardFacts, role: LinkEnd, cpus: &CpuSet) -> Vec<String> {
        let (host, name, mut remarks) = (&self.record.host, &card.name, Vec::new());
        let served = card.interrupts.as_ref().filter(|served| {
            let shared = served.shared_with(cpus).len();
            let burdens = shared < cpus.cpus().len() || served.cpus().len() == 1;
            !card.spreads && shared > 0 && burdens
        });
        remarks.extend(served.map(|served| {
            format!(
                "interrupts of {name} on {host} go to CPU {served}, and the {role} has CPU {cpus}: packets take time of \
                 some of its CPUs alone (use more queues, RPS, or separate CPUs)"
            )
        }));
        let nodes = self.nodes_of(cpus);
        remarks.extend(card.node.filter(|node| !nodes.is_empty() && !nodes.contains(node)).map(|node| {
            format!(
                "{name} is at NUMA node {node} of {host}, and the {role}'s CPUs are at {}: all its packets cross",
                numbers(&nodes)
            )
        }));
        remarks
    }

    fn stands_still(&self, role: LinkEnd, cpus: &CpuSet) -> Option<String> {
        let (facts, host) = (&self.record.facts, &self.record.host);
        let held_up = match role {
            LinkEnd::Generator => facts.held_up.generator,
            LinkEnd::Proxy => facts.held_up.proxy,
            LinkEnd::Origin => facts.held_up.origin,
        }?;
        let watched = facts.watched_ns as f64 * cpus.cpus().len() as f64;
        let share = held_up.late_ns.saturating_add(held_up.others_ns) as f64 / watched.max(1.0);
        (share > STANDS_STILL).then(|| {
            format!(
                "the {role}'s CPU {cpus} of {host} was held up for {:.0} % of {:.1} s before the first trial, by other \
                 processes or the hypervisor: high quantiles will show it",
                share.min(1.0) * 100.0,
                facts.watched_ns as f64 / 1e9
            )
        })
    }
}

fn numbers(nodes: &BTreeSet<u32>) -> String {
    let numbers: Vec<String> = nodes.iter().map(u32::to_string).collect();
    crate::listed(&numbers)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use weir_model::fixture::{self, arm};
    use weir_model::study::{ArmRole, StudyArrivals};

    use super::*;

    fn remarks_on(found: &Value, study: &Study) -> Vec<String> {
        let cpus = json!({"generator": "0", "origin": "1", "proxy": "2-3"});
        let surroundings = serde_json::from_value(found.clone()).unwrap();
        remarks(&surroundings, &serde_json::from_value(cpus).unwrap(), study)
    }

    /// Asserts that each remark contains its expected words, and that there are no others.
    #[track_caller]
    fn expect(found: &Value, study: &Study, expected: &[&str]) {
        let remarks = remarks_on(found, study);
        assert_eq!(remarks.len(), expected.len(), "{found}: {remarks:?}");
        for (remark, words) in remarks.iter().zip(expected) {
            let has_all = words.split('|').all(|words| remark.contains(words));
            assert!(has_all, "{found}: {remark} instead of {words}");
        }
    }

    fn card(interrupts: &str, spreads: bool) -> Value {
        json!({"name": "eth0", "queues": [1, 1], "interrupts": interrupts, "spreads": spreads})
    }

    fn held_up(late_ns: u64, others_ns: u64) -> Value {
        json!({"proxy": {"times": 1, "late_ns": late_ns, "others_ns": others_ns}})
    }

    #[test]
    fn what_spoils_figures_is_said_and_nothing_else() {
        let far_card = json!({"nodes": {"0": "0-3", "1": "4-7"}, "cards": [{"name": "eth0", "queues": [1, 1], "node": 1}]});
        #[rustfmt::skip]
        let hosts: [(Value, &[&str]); 19] = [
            (json!({}), &[]),
            (json!({"governors": {"performance": "0-3"}}), &[]),
            (json!({"governors": {"performance": "0-1", "powersave": "2-3"}}), &["`powersave`|CPU 2-3|cpupower -c 2-3"]),
            (json!({"siblings": ["0,2", "1,3"]}), &["proxy and generator share cores|CPU 0,2", "origin server|CPU 1,3"]),
            // Its own pair, and one of generator and origin server, which affects all arms alike.
            (json!({"siblings": ["2-3", "0-1"]}), &[]),
            (json!({"nodes": {"0": "0-3"}}), &[]),
            (json!({"nodes": {"0": "0-2", "1": "3"}}), &["proxy's CPUs 2-3|0 and 1"]),
            (json!({"nodes": {"0": "0-1", "1": "2-3"}}), &["proxy and generator", "proxy and origin server"]),
            (json!({"cards": [card("3", false)]}), &["eth0|CPU 3|proxy has CPU 2-3"]),
            (json!({"cards": [card("3", true)]}), &[]),
            (json!({"cards": [card("4-7", false)]}), &[]),
            // All CPUs alike.
            (json!({"cards": [card("0-3", false)]}), &[]),
            (json!({"cards": [card("0", false)]}), &["generator has CPU 0"]),
            (far_card, &["generator's CPUs", "proxy's CPUs", "origin server's CPUs"]),
            // Two CPUs, so this is of 400 ms.
            (json!({"watched_ns": 200_000_000, "held_up": held_up(10_000_000, 9_000_000)}), &[]),
            (json!({"watched_ns": 200_000_000, "held_up": held_up(20_000_000, 60_000_000)}), &["proxy's CPU 2-3|20 %"]),
            (json!({"held_up": {}}), &[]),
            (json!({"unmeasured": [{"what": "NUMA nodes", "why": "not there"}]}), &[]),
            (json!({"watched_ns": 200_000_000}), &[]),
        ];
        let study = fixture::study(Vec::new());
        for (facts, expected) in hosts {
            let host =
                json!({"host": "h", "roles": ["generator", "proxy", "origin"], "facts": facts});
            expect(&json!({"hosts": [host]}), &study, expected);
        }
        for (error, expected) in [(CLOCK_ERROR_NS, &[][..]), (30_000_000, &["clock of far|30 ms"])]
        {
            let host = json!({"host": "far", "roles": [], "clock": [7, error], "facts": {}});
            expect(&json!({"hosts": [host]}), &study, expected);
        }
    }

    #[test]
    fn a_load_that_plans_nearly_what_the_link_carried_is_said() {
        let rate = StudyArrivals::Constant;
        #[rustfmt::skip]
        let cases: [(_, _, f64, &[&str]); 5] = [
            (rate(1_000.0), Some(1_000_000), 1.2e9, &["load `wide`|1000 MB/s|1200 MB/s"]),
            (rate(1_000.0), Some(1_000_000), 2e9, &[]),
            // The origin server's answers are small.
            (rate(1_000.0), None, 1e6, &[]),
            (rate(10_000.0), None, 1e6, &["1 MB/s"]),
            (StudyArrivals::Closed, Some(1_000_000), 1.0, &[]),
        ];
        for (arrivals, size, back, expected) in cases {
            let mut study = fixture::study(vec![arm("stock", ArmRole::Baseline, &[])]);
            study.origin.size = 100;
            study.loads = vec![fixture::load("wide", arrivals)];
            study.loads[0].size = size;
            let trips = json!({"by": "echo", "count": 1, "p50_ns": 1, "p99_ns": 1});
            let back = json!({"bytes_per_s": back, "cpus": 1.0});
            let link = json!({"from": "generator", "to": "proxy", "peer": "", "trips": trips, "back": back});
            expect(&json!({"links": [link]}), &study, expected);
        }
    }
}
