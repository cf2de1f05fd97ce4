//! What of the network and the hosts, as they were before the first trial, would spoil the figures: a sentence each.
//!
//! `weir doctor` judges settings of a proxy's host against a load; nothing here is about settings of the kernel or the
//! proxy, so neither repeats the other.

use std::collections::BTreeSet;

use weir_model::flow::ArrivalsSpec;
use weir_model::quantity::CpuSet;
use weir_model::record::{CardFacts, HeldUp, HostRecord, LinkEnd, Surroundings};
use weir_model::study::{CpuRoles, LoadSpec, ProxyRole, Study};

/// A load that plans more than this share of what one connection carried is near the limit: queues of a link grow long
/// before it is full, and its answers have headers beside their content.
const NEAR: f64 = 0.7;
/// CPUs that stand still for more than this share of the time do so in most slices as well.
const STANDS_STILL: f64 = 0.05;
/// Slices are a tenth of a second or longer, and counters are read at their edges: an error of this is felt, nanoseconds.
const CLOCK_ERROR_NS: u64 = 5_000_000;
/// The governor that leaves the frequency alone (kernel Documentation/admin-guide/pm/cpufreq.rst).
const STEADY: &str = "performance";

/// What the reader of the figures must know.
pub fn remarks(found: &Surroundings, cpus: &CpuRoles, study: &Study) -> Vec<String> {
    let mut remarks: Vec<String> = study
        .loads
        .iter()
        .filter_map(|load| near_limit(found, load, study))
        .collect();
    for host in &found.hosts {
        let host = Host { record: host, cpus };
        remarks.extend(host.frequency());
        remarks.extend(host.cores());
        remarks.extend(host.nodes());
        remarks.extend(
            host.record
                .facts
                .cards
                .iter()
                .flat_map(|card| host.card(card)),
        );
        remarks.extend(host.stands_still());
        remarks.extend(host.clock());
    }
    remarks
}

/// Content per second that a load plans to have answered, at most; `None` where its rate or its answers are not known.
fn planned(load: &LoadSpec, study: &Study) -> Option<f64> {
    let own = || match study.proxy.role {
        _ if !study.proxy.kind.is_started() => None,
        ProxyRole::StaticFiles { size } => Some(size),
        ProxyRole::ReverseProxy => Some(study.origin.size),
    };
    let size = load.size.or_else(own)?;
    let rates = load.flows().filter_map(|flow| match &flow.arrivals {
        ArrivalsSpec::Constant(rate) => Some(*rate),
        ArrivalsSpec::Varied(segments) => {
            let ends = segments
                .iter()
                .flat_map(|segment| [segment.from, segment.to]);
            ends.max_by(f64::total_cmp)
        }
        _ => None,
    });
    let rate: f64 = rates.sum();
    (rate > 0.0).then_some(rate * size as f64)
}

fn near_limit(found: &Surroundings, load: &LoadSpec, study: &Study) -> Option<String> {
    let planned = planned(load, study)?;
    let carried = found.proxy_to_generator_bytes_per_s()?;
    (planned > NEAR * carried).then(|| {
        format!(
            "load `{}` plans answers of {}, and one connection from the proxy to the generator carried {} before the \
             first trial: the network may be the limit",
            load.name,
            megabytes(planned),
            megabytes(carried)
        )
    })
}

fn megabytes(bytes_per_s: f64) -> String {
    format!("{:.0} MB/s", bytes_per_s / 1e6)
}

/// A host with the CPUs of its roles.
struct Host<'a> {
    record: &'a HostRecord,
    cpus: &'a CpuRoles,
}

impl<'a> Host<'a> {
    /// The roles that are here, with their CPUs.
    fn roles(&self) -> impl Iterator<Item = (LinkEnd, &'a CpuSet)> {
        let cpus = self.cpus;
        self.record.roles.iter().map(move |&role| {
            let own = match role {
                LinkEnd::Generator => &cpus.generator,
                LinkEnd::Proxy => &cpus.proxy,
                LinkEnd::Origin => &cpus.origin,
            };
            (role, own)
        })
    }

    /// The same, of roles with the same CPUs the first alone.
    fn distinct_roles(&self) -> impl Iterator<Item = (LinkEnd, &'a CpuSet)> {
        let mut seen: Vec<&CpuSet> = Vec::new();
        self.roles().filter(move |(_, cpus)| {
            let is_new = !seen.contains(cpus);
            seen.push(cpus);
            is_new
        })
    }

    /// The proxy with each other role, where both are here: they exchange bytes, and one is measured.
    fn pairs(&self) -> impl Iterator<Item = [(LinkEnd, &'a CpuSet); 2]> {
        let proxy = self.roles().find(|(role, _)| *role == LinkEnd::Proxy);
        let others = self.roles().filter(|(role, _)| *role != LinkEnd::Proxy);
        others.filter_map(move |other| Some([proxy?, other]))
    }

    fn name(&self) -> &str {
        &self.record.host
    }

    /// The nodes that some CPUs are at.
    fn nodes_of(&self, cpus: &CpuSet) -> BTreeSet<u32> {
        let nodes = self.record.facts.nodes.iter();
        let touched = nodes.filter(|(_, own)| !own.shared_with(cpus).is_empty());
        touched.map(|(node, _)| *node).collect()
    }

    fn frequency(&self) -> Vec<String> {
        let changing = self
            .record
            .facts
            .governors
            .iter()
            .filter(|(name, _)| *name != STEADY);
        let said = changing.map(|(name, cpus)| {
            format!(
                "the governor `{name}` changes the frequency of CPU {cpus} of {}: rates and CPU time per request follow \
                 it (`cpupower -c {cpus} frequency-set -g {STEADY}`)",
                self.name()
            )
        });
        said.collect()
    }

    /// Roles that share a core without sharing a CPU.
    fn cores(&self) -> Vec<String> {
        let pairs = self.pairs().filter_map(|[(one, own), (other, theirs)]| {
            let apart = |core: &&CpuSet| {
                let (a, b) = (core.shared_with(own), core.shared_with(theirs));
                !a.is_empty() && !b.is_empty() && !a.iter().any(|cpu| b.contains(cpu))
            };
            let cores: Vec<String> = self
                .record
                .facts
                .siblings
                .iter()
                .filter(apart)
                .map(|core| format!("CPU {core}"))
                .collect();
            (!cores.is_empty()).then(|| {
                format!(
                    "{one} and {other} share cores of {}: {} are threads of one core each, so either is slower while \
                     the other is busy",
                    self.name(),
                    crate::listed(&cores)
                )
            })
        });
        pairs.collect()
    }

    /// NUMA nodes that are crossed between or within roles.
    fn nodes(&self) -> Vec<String> {
        let host = self.name();
        let spread = self.distinct_roles().filter_map(|(role, cpus)| {
            let nodes = self.nodes_of(cpus);
            (nodes.len() > 1).then(|| {
                format!("the {role}'s CPUs {cpus} are at NUMA nodes {} of {host}: memory is slower from one to another", numbers(&nodes))
            })
        });
        let between = self.pairs().filter_map(|[(one, own), (other, theirs)]| {
            let (a, b) = (self.nodes_of(own), self.nodes_of(theirs));
            (!a.is_empty() && !b.is_empty() && a.is_disjoint(&b)).then(|| {
                format!(
                    "{one} and {other} are at different NUMA nodes of {host} ({} and {}): all bytes between them cross",
                    numbers(&a),
                    numbers(&b)
                )
            })
        });
        spread.chain(between).collect()
    }

    /// A card whose interrupts burden some of a role's CPUs more than others, or that is at another node.
    fn card(&self, card: &CardFacts) -> Vec<String> {
        let (host, name) = (self.name(), &card.name);
        let mut said = Vec::new();
        for (role, cpus) in self.distinct_roles() {
            let served = card.interrupts.as_ref().filter(|_| !card.spreads);
            if let Some(served) = served.filter(|served| {
                let shared = served.shared_with(cpus).len();
                shared > 0 && (shared < cpus.cpus().len() || served.cpus().len() == 1)
            }) {
                said.push(format!(
                    "interrupts of {name} on {host} go to CPU {served}, and the {role} has CPU {cpus}: packets take \
                     time of some of its CPUs alone (more queues, RPS, or CPUs apart)"
                ));
            }
            let nodes = self.nodes_of(cpus);
            if let Some(node) = card
                .node
                .filter(|node| !nodes.is_empty() && !nodes.contains(node))
            {
                said.push(format!(
                    "{name} is at NUMA node {node} of {host}, and the {role}'s CPUs are at {}: all its packets cross",
                    numbers(&nodes)
                ));
            }
        }
        said
    }

    fn stands_still(&self) -> Vec<String> {
        let facts = &self.record.facts;
        let of = |role: LinkEnd| match role {
            LinkEnd::Generator => facts.held_up.generator,
            LinkEnd::Proxy => facts.held_up.proxy,
            LinkEnd::Origin => facts.held_up.origin,
        };
        let said = self.distinct_roles().filter_map(|(role, cpus)| {
            let HeldUp { late_ns, others_ns, .. } = of(role)?;
            let watched = facts.watched_ns as f64 * cpus.cpus().len() as f64;
            let share = (late_ns + others_ns) as f64 / watched.max(1.0);
            (share > STANDS_STILL).then(|| {
                format!(
                    "the {role}'s CPU {cpus} of {} was held up for {:.0} % of {:.1} s before the first trial, by other \
                     processes or the hypervisor: high quantiles will show it",
                    self.name(),
                    share * 100.0,
                    facts.watched_ns as f64 / 1e9
                )
            })
        });
        said.collect()
    }

    fn clock(&self) -> Option<String> {
        let (_, error) = self
            .record
            .clock
            .filter(|(_, error)| *error > CLOCK_ERROR_NS)?;
        Some(format!(
            "the clock of {} is known to {:.0} ms only: its counters may belong to other slices",
            self.name(),
            error as f64 / 1e6
        ))
    }
}

fn numbers(nodes: &BTreeSet<u32>) -> String {
    let numbers: Vec<String> = nodes.iter().map(u32::to_string).collect();
    crate::listed(&numbers)
}

#[cfg(test)]
mod tests {
    use weir_model::fixture::{self, arm};
    use weir_model::record::{Carried, HoldUps, HostFacts, LinkRecord, RoundTrips};
    use weir_model::study::{ArmRole, StudyArrivals};

    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    /// All roles on one host of these facts: generator 0, origin 1, proxy 2-3.
    fn said(facts: HostFacts) -> Vec<String> {
        let record = HostRecord {
            host: "this host".to_owned(),
            roles: vec![LinkEnd::Generator, LinkEnd::Proxy, LinkEnd::Origin],
            clock: None,
            facts,
        };
        said_of(record)
    }

    fn said_of(record: HostRecord) -> Vec<String> {
        let found = Surroundings {
            hosts: vec![record],
            ..Surroundings::default()
        };
        let cpus = CpuRoles {
            generator: set("0"),
            origin: set("1"),
            proxy: set("2-3"),
        };
        remarks(&found, &cpus, &fixture::study(Vec::new()))
    }

    /// One remark, with these words in it.
    #[track_caller]
    fn one(said: &[String], words: &[&str]) {
        assert_eq!(said.len(), 1, "{said:?}");
        let all = words.iter().all(|words| said[0].contains(words));
        assert!(all, "{said:?}");
    }

    fn governors(of: &[(&str, &str)]) -> HostFacts {
        let of = of
            .iter()
            .map(|(name, cpus)| ((*name).to_owned(), set(cpus)));
        HostFacts {
            governors: of.collect(),
            ..HostFacts::default()
        }
    }

    #[test]
    fn a_quiet_host_with_a_steady_clock_is_not_mentioned() {
        assert!(said(HostFacts::default()).is_empty());
        assert!(said(governors(&[("performance", "0-3")])).is_empty());
    }

    #[test]
    fn a_frequency_that_changes_is_said_with_its_cpus() {
        let facts = governors(&[("performance", "0-1"), ("powersave", "2-3")]);
        one(&said(facts), &["`powersave`", "CPU 2-3", "cpupower -c 2-3"]);
    }

    #[test]
    fn cores_are_shared_by_roles_only_through_cpus_that_are_not_the_same() {
        let cores = |cores: &[&str]| HostFacts {
            siblings: cores.iter().map(|core| set(core)).collect(),
            ..HostFacts::default()
        };
        let facts = cores(&["0,2", "1,3"]);
        let both = said(facts);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(
            both[0].starts_with("proxy and generator share cores"),
            "{both:?}"
        );
        assert!(both[1].contains("CPU 1,3"), "{both:?}");
        // Its own pair, and one of generator and origin server, which affects all arms alike.
        assert!(said(cores(&["2-3", "0-1"])).is_empty());
    }

    #[test]
    fn nodes_that_bytes_cross_are_said() {
        let nodes = |nodes: &[&str]| HostFacts {
            nodes: (0..).zip(nodes.iter().map(|cpus| set(cpus))).collect(),
            ..HostFacts::default()
        };
        assert!(said(nodes(&["0-3"])).is_empty());
        one(
            &said(nodes(&["0-2", "3"])),
            &["proxy's CPUs 2-3", "0 and 1"],
        );
        assert_eq!(
            said(nodes(&["0-1", "2-3"])).len(),
            2,
            "to each of the other two"
        );
    }

    #[test]
    fn a_card_is_said_where_it_burdens_some_cpus_of_a_role() {
        let card = |interrupts: &str, spreads| HostFacts {
            cards: vec![CardFacts {
                name: "eth0".to_owned(),
                interrupts: Some(set(interrupts)),
                spreads,
                ..CardFacts::default()
            }],
            ..HostFacts::default()
        };
        one(
            &said(card("3", false)),
            &["eth0", "CPU 3", "proxy has CPU 2-3"],
        );
        assert!(said(card("3", true)).is_empty(), "they are passed on");
        assert!(said(card("4-7", false)).is_empty(), "nobody's");
        assert!(said(card("0-3", false)).is_empty(), "everybody's alike");
        one(&said(card("0", false)), &["generator has CPU 0"]);
        let mut facts = card("4", false);
        facts.cards[0].node = Some(1);
        facts.nodes = [(0, set("0-3")), (1, set("4-7"))].into();
        assert_eq!(said(facts).len(), 3, "all its packets cross");
    }

    #[test]
    fn hold_ups_are_said_by_their_share_of_the_cpus_time() {
        let facts = |late_ns, others_ns| HostFacts {
            held_up: HoldUps {
                proxy: Some(HeldUp {
                    times: 1,
                    late_ns,
                    others_ns,
                }),
                ..HoldUps::default()
            },
            watched_ns: 200_000_000,
            ..HostFacts::default()
        };
        // Two CPUs.
        assert!(said(facts(10_000_000, 9_000_000)).is_empty());
        one(
            &said(facts(20_000_000, 60_000_000)),
            &["proxy's CPU 2-3", "20 %"],
        );
    }

    #[test]
    fn a_clock_that_is_not_known_well_is_said() {
        let clock = |error| HostRecord {
            host: "far".to_owned(),
            clock: Some((7, error)),
            ..HostRecord::default()
        };
        assert!(said_of(clock(CLOCK_ERROR_NS)).is_empty());
        one(&said_of(clock(30_000_000)), &["clock of far", "30 ms"]);
    }

    #[test]
    fn a_load_that_plans_nearly_what_the_link_carried_is_said() {
        let link = |back| LinkRecord {
            from: LinkEnd::Generator,
            to: LinkEnd::Proxy,
            peer: String::new(),
            trips: RoundTrips::default(),
            mtu: None,
            forth: None,
            back: Some(Carried {
                bytes_per_s: back,
                cpus: 1.0,
            }),
        };
        let said = |arrivals, size, back| {
            let mut load = fixture::load("wide", arrivals);
            load.size = size;
            let mut study = fixture::study(vec![arm("stock", ArmRole::Baseline, &[])]);
            study.origin.size = 100;
            study.loads = vec![load];
            let found = Surroundings {
                links: vec![link(back)],
                ..Surroundings::default()
            };
            let cpus = CpuRoles {
                generator: set("0"),
                origin: set("0"),
                proxy: set("1"),
            };
            remarks(&found, &cpus, &study)
        };
        let rate = |rate| StudyArrivals::Constant(rate);
        let full = said(rate(1_000.0), Some(1_000_000), 1.2e9);
        one(&full, &["load `wide`", "1000 MB/s", "1200 MB/s"]);
        assert!(said(rate(1_000.0), Some(1_000_000), 2e9).is_empty());
        assert!(
            said(rate(1_000.0), None, 1e6).is_empty(),
            "answers are small"
        );
        one(&said(rate(10_000.0), None, 1e6), &["1 MB/s"]);
        assert!(said(StudyArrivals::Closed, Some(1_000_000), 1.0).is_empty());
    }
}
