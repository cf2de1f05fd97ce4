//! State of the network between the roles and of their hosts, measured and read once before the first trial.
//!
//! Nothing here fails a run: values that cannot be determined are missing, with the reason.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use weir_agent::AgentError;
use weir_agent::message::{FactsJob, LinkFigures, LinkJob, LinkListener, LinkWay, NetworksJob};
use weir_model::quantity::CpuSet;
use weir_model::record::{
    Carried, HostFacts, HostRecord, LinkEnd, LinkRecord, NetworkUsed, Remark, Surroundings,
    Unmeasured,
};
use weir_model::study::{CpuRoles, ExternalSpec, ProxyKind, Study};

use crate::host::Host;
use crate::hosts::Hosts;
use crate::options::Role;

/// Maximum number of addresses of servers not started by weir that are measured. Each takes a tenth of a second, and
/// longer if it does not answer.
const MOST_EXTERNAL: usize = 3;

/// Reason given for values that were not measured any more.
const INTERRUPTED: &str = "the run was stopped";

/// Hosts, roles and network whose state is measured.
pub struct Around<'a> {
    pub study: &'a Study,
    pub hosts: &'a Hosts,
    pub roles: &'a CpuRoles,
    pub network: NetworkUsed,
    /// Set when the user wants to end the run.
    pub interrupted: &'a AtomicBool,
}

impl Around<'_> {
    /// Measures the state, and returns it with remarks about conditions that distort results. Hosts are read first,
    /// while they are idle.
    pub fn look(&self) -> (Surroundings, Vec<Remark>) {
        let mut surroundings =
            Surroundings { hosts: self.look_at_hosts(), ..Surroundings::default() };
        let started = self.starts_a_proxy();
        let origin = started && Hosts::has_origin(self.study);
        let ways = [(started, Role::Generator, Role::Proxy), (origin, Role::Proxy, Role::Origin)];
        for (_, from, to) in ways.into_iter().filter(|(is_there, ..)| *is_there) {
            for host in self.askers(from) {
                self.add((from, host, to), self.between(from, host, to), &mut surroundings);
            }
        }
        let external = self.external();
        for &at in external.iter().take(MOST_EXTERNAL) {
            let (from, to) = (Role::Generator, Role::Proxy);
            for host in self.askers(from) {
                let link = self.measure(from, host, LinkWay::Connect(at));
                self.add((from, host, to), link, &mut surroundings);
            }
        }
        if external.len() > MOST_EXTERNAL {
            let links = format!("links to {} more addresses", external.len() - MOST_EXTERNAL);
            let why = format!("{MOST_EXTERNAL} are looked at");
            surroundings.unmeasured.push(Unmeasured::new(links, why));
        }
        let spoilt = weir_analysis::surroundings::remarks(&surroundings, self.roles, self.study);
        let texts = spoilt.iter().map(weir_sentences::describe_surroundings);
        let remarks = texts.map(Remark::of_run).collect();
        (surroundings, remarks)
    }

    /// Returns the hosts of a role, each of which has a link of its own to the next role.
    fn askers(&self, role: Role) -> Vec<&Host> {
        match role {
            Role::Generator if self.network == NetworkUsed::Hosts => {
                self.hosts.generators().collect()
            }
            _ => vec![self.hosts.host(role)],
        }
    }

    fn starts_a_proxy(&self) -> bool {
        let kinds = self.study.proxy_kinds();
        kinds.into_iter().any(ProxyKind::is_started)
    }

    /// Returns the distinct addresses of proxies that weir does not start.
    fn external(&self) -> BTreeSet<SocketAddr> {
        self.study
            .arms
            .iter()
            .filter_map(|arm| self.study.proxy_of(arm).external.as_ref())
            .flat_map(ExternalSpec::addresses)
            .collect()
    }

    /// Adds the measured and unmeasured values of a link.
    fn add(
        &self,
        (from, host, to): (Role, &Host, Role),
        found: Result<LinkFigures, String>,
        to_all: &mut Surroundings,
    ) {
        let host = (self.askers(from).len() > 1).then(|| host.called().to_owned());
        let (from, to) = (end(from), end(to));
        let on = host.as_ref().map_or(String::new(), |host| format!(" on {host}"));
        let link = format!(" {from}{on} to {to}");
        let figures = match found {
            Ok(figures) => figures,
            Err(error) => return to_all.unmeasured.push(Unmeasured::new(link.trim_start(), error)),
        };
        for missing in figures.unmeasured {
            let figure = format!("{},{link}", missing.what);
            to_all.unmeasured.push(Unmeasured::new(figure.trim_start(), missing.why));
        }
        to_all.links.push(LinkRecord {
            from,
            to,
            peer: figures.peer.to_string(),
            host,
            trips: figures.trips,
            mtu: figures.mtu,
            forth: figures.forth.filter(is_rate),
            back: figures.back.filter(is_rate),
        });
    }

    /// Measures the link that an arm's bytes would take.
    fn between(&self, from: Role, host: &Host, to: Role) -> Result<LinkFigures, String> {
        let (hosts, theirs) = (self.hosts, self.cpus(to).clone());
        if let NetworkUsed::Namespaces { mtu } = self.network {
            return self.measure(
                from,
                host,
                LinkWay::Namespaces {
                    networks: NetworksJob { mtu, sources: 1 },
                    to: end(to),
                    cpus: theirs,
                },
            );
        }
        let address = hosts.address(to, from).map_err(said)?;
        let secret = RandomState::new().build_hasher().finish();
        let listener = LinkListener { address, cpus: theirs, secret };
        let at = hosts.host(to).ask(listener).map_err(said)?;
        if at.ip() != address {
            return Err(said(hosts.elsewhere(to, at, address.to_string())));
        }
        self.measure(from, host, LinkWay::Listener { at, secret })
    }

    fn measure(&self, from: Role, host: &Host, way: LinkWay) -> Result<LinkFigures, String> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(INTERRUPTED.to_owned());
        }
        let cpus = host.own_cpus(self.cpus(from));
        host.ask(LinkJob { way, cpus }).map_err(said)
    }

    fn cpus(&self, role: Role) -> &CpuSet {
        match role {
            Role::Generator => &self.roles.generator,
            Role::Proxy => &self.roles.proxy,
            Role::Origin => &self.roles.origin,
        }
    }

    fn look_at_hosts(&self) -> Vec<HostRecord> {
        let generator = self.hosts.host(Role::Generator);
        let mut records = Vec::new();
        for (host, mut here) in self.hosts.each() {
            here.retain(|role| self.is_there(*role));
            let answer = match (here.is_empty(), self.interrupted.load(Ordering::Relaxed)) {
                (true, _) => continue,
                (_, true) => Err(INTERRUPTED.to_owned()),
                (_, false) => host.ask(self.facts_job((host, &here))).map_err(said),
            };
            let mut facts = answer.unwrap_or_else(|error| HostFacts {
                unmeasured: vec![Unmeasured::new("everything", error)],
                ..HostFacts::default()
            });
            let clock = compare_clocks(host, generator).unwrap_or_else(|error| {
                facts.unmeasured.push(Unmeasured::new("clock", error));
                None
            });
            records.push(HostRecord {
                host: host.called().to_owned(),
                roles: here.into_iter().map(end).collect(),
                clock,
                facts,
            });
        }
        records
    }

    /// Returns true if a role is on a host of the run: a proxy may be elsewhere, and then has no origin server of
    /// weir's.
    fn is_there(&self, role: Role) -> bool {
        match role {
            Role::Generator => true,
            Role::Proxy => self.hosts.share_in(self.study, role, role),
            Role::Origin => Hosts::has_origin(self.study),
        }
    }

    fn facts_job(&self, (host, here): (&Host, &[Role])) -> FactsJob {
        let [generator, proxy, origin] = [Role::Generator, Role::Proxy, Role::Origin]
            .map(|role| here.contains(&role).then(|| host.own_cpus(self.cpus(role))));
        FactsJob {
            generator,
            proxy,
            origin,
            towards: here.iter().flat_map(|role| self.others(*role)).collect(),
        }
    }

    /// Returns the addresses of `other` for a role on another host; none if the study has no such role.
    fn ways(&self, other: Role, role: Role) -> BTreeSet<IpAddr> {
        if self.is_there(other) { self.hosts.ways(other, role) } else { BTreeSet::new() }
    }

    /// Returns the addresses on other hosts with which a role exchanges bytes.
    fn others(&self, role: Role) -> Vec<IpAddr> {
        match role {
            Role::Generator => self
                .external()
                .into_iter()
                .map(|at| at.ip())
                .filter(|at| !crate::hosts::is_own(*at))
                .chain(self.ways(Role::Proxy, role))
                .collect(),
            Role::Proxy => [Role::Generator, Role::Origin]
                .into_iter()
                .flat_map(|other| self.ways(other, role))
                .collect(),
            Role::Origin => self.ways(Role::Proxy, role).into_iter().collect(),
        }
    }
}

/// Returns how far a host's clock is ahead of the generator's, with the error, nanoseconds; `None` for the generator.
fn compare_clocks(host: &Host, generator: &Host) -> Result<Option<(i64, u64)>, AgentError> {
    if std::ptr::eq(host, generator) {
        return Ok(None);
    }
    // Both are known against this process's clock.
    let (own, error) = host.clock_offset_ns()?;
    let (theirs, more) = generator.clock_offset_ns()?;
    Ok(Some((own.wrapping_sub(theirs), error.saturating_add(more))))
}

/// Returns true for a rate that can be: a distant host may tell anything.
fn is_rate(carried: &Carried) -> bool {
    carried.bytes_per_s > 0.0 && carried.cpus >= 0.0
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn end(role: Role) -> LinkEnd {
    match role {
        Role::Generator => LinkEnd::Generator,
        Role::Proxy => LinkEnd::Proxy,
        Role::Origin => LinkEnd::Origin,
    }
}
