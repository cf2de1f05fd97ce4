//! Hosts of a run, and the roles of each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use weir_agent::message::{FactsJob, FindProgram, NetworksJob, Program, Settle};
use weir_agent::server::networks;
use weir_model::quantity::CpuSet;
use weir_model::record::PlacesUsed;
use weir_model::room;
use weir_model::study::{Arm, CpuRoles, ExternalSpec, ProxyKind, ProxyRole, ProxySpec, Study};
use weir_simulation::World;

use crate::cpus;
use crate::error::HostError;
use crate::host::Host;
use crate::options::{Options, ROLES, Role};
use crate::pods::Pods;

mod addresses;

pub use addresses::is_own;

/// All hosts of a run and their roles.
pub struct Hosts {
    hosts: Vec<Host>,
    /// Index of the host of each role; for the generators, of the first.
    of: [usize; 3],
    /// Indexes of the hosts of all generators, among which a load is divided: at least one.
    generators: Vec<usize>,
    /// Pods of the generators; `None` if they are not pods.
    pods: Option<Pods>,
    /// Number of source addresses towards each arm, if all arms have network namespaces of their own.
    networks: Option<u8>,
    /// Cache of proxies' programs: arms share them, and finding one runs it.
    programs: RefCell<BTreeMap<(ProxyKind, Option<PathBuf>), Program>>,
}

impl Hosts {
    /// Returns the time of the run's clock.
    pub fn now(&self) -> Duration {
        self.host(Role::Proxy).now()
    }

    /// Connects to each host and gets its description.
    pub fn open(options: &Options) -> Result<Hosts, HostError> {
        if let Some(model) = &options.places.model {
            let world = Rc::new(RefCell::new(World::new(model)));
            // The first has all roles; the others generate load as well.
            let hosts = (0..model.generators.max(1)).map(|_| Host::simulated(&world));
            let hosts: Vec<Host> = hosts.collect::<Result<_, _>>()?;
            let generators = (0..hosts.len()).collect();
            return Ok(Hosts::of(hosts, [0; 3], generators));
        }
        if let Some(pods) = &options.places.pods {
            let mut hosts = vec![Host::here(options)?];
            hosts.extend(Host::in_pods(pods, options)?);
            let generators = (1..hosts.len()).collect();
            let mut opened = Hosts::of(hosts, [1, 0, 0], generators);
            opened.pods = Some(pods.clone());
            return Ok(opened);
        }
        let places = &options.places;
        let mut names: Vec<Option<&str>> = Vec::new();
        let generators: Vec<usize> =
            places.generators().into_iter().map(|name| index_or_push(&mut names, name)).collect();
        let [proxy, origin] =
            [Role::Proxy, Role::Origin].map(|role| index_or_push(&mut names, places.host_of(role)));
        let hosts = names
            .iter()
            .map(|name| match name {
                None => Host::here(options),
                Some(name) => Host::distant(name, options),
            })
            .collect::<Result<_, _>>()?;
        Ok(Hosts::of(hosts, [generators[0], proxy, origin], generators))
    }

    fn of(hosts: Vec<Host>, of: [usize; 3], generators: Vec<usize>) -> Hosts {
        Hosts { hosts, of, generators, pods: None, networks: None, programs: RefCell::default() }
    }

    pub fn host(&self, role: Role) -> &Host {
        &self.hosts[self.of[role as usize]]
    }

    /// Returns the pods of the generators; `None` if they are not pods.
    pub fn pods(&self) -> Option<&Pods> {
        self.pods.as_ref()
    }

    /// Returns the hosts of all generators.
    pub fn generators(&self) -> impl ExactSizeIterator<Item = &Host> + Clone {
        self.places(Role::Generator).iter().map(|&place| &self.hosts[place])
    }

    /// Returns the indexes of a role's hosts.
    fn places(&self, role: Role) -> &[usize] {
        match role {
            Role::Generator => &self.generators,
            _ => std::slice::from_ref(&self.of[role as usize]),
        }
    }

    /// Returns the index of each generator's host among all hosts.
    pub fn places_of_generators(&self) -> &[usize] {
        &self.generators
    }

    /// Returns every host once, with its roles.
    pub fn each(&self) -> impl ExactSizeIterator<Item = (&Host, Vec<Role>)> {
        self.hosts.iter().enumerate().map(|(place, host)| {
            (host, ROLES.into_iter().filter(|role| self.places(*role).contains(&place)).collect())
        })
    }

    /// Returns true if all roles are on one host.
    pub fn together(&self) -> bool {
        self.share(Role::Generator, Role::Proxy) && self.share(Role::Generator, Role::Origin)
    }

    /// Returns true if all hosts of two roles, all generators included, are the same host.
    pub fn share(&self, one: Role, other: Role) -> bool {
        let mut all = self.places(one).iter().chain(self.places(other));
        all.all(|place| self.is_same(*place, self.of[one as usize]))
    }

    /// Returns true if some host has both roles.
    pub fn meet(&self, one: Role, other: Role) -> bool {
        let other_places = self.places(other);
        self.places(one).iter().any(|place| other_places.contains(place))
    }

    /// Returns true if two indexes are of the same host. All simulated generators are in the world of the proxies.
    fn is_same(&self, one: usize, other: usize) -> bool {
        one == other || [one, other].iter().all(|place| self.hosts[*place].is_simulated())
    }

    fn name_of(&self, role: Role) -> Option<String> {
        self.host(role).name().map(str::to_owned)
    }

    /// Returns the places for the run's header.
    pub fn used(&self) -> PlacesUsed {
        let more = self.generators().skip(1);
        PlacesUsed {
            generator: self.name_of(Role::Generator),
            more_generators: more.map(|host| host.called().to_owned()).collect(),
            proxy: self.name_of(Role::Proxy),
            origin: self.name_of(Role::Origin),
            cluster: self.pods().map(Pods::cluster),
            proxy_pods: None,
        }
    }

    /// Returns the reason why arms cannot have network namespaces; `None` if they can.
    pub fn no_networks(&self) -> Option<String> {
        if self.together() {
            let host = &self.hosts[0];
            let why = host.is.no_networks.clone();
            match host.name() {
                Some(name) => why.map(|why| format!("{name}: {why}")),
                None => why,
            }
        } else {
            Some(
                "the generator, the proxy and the origin server are not all on one host".to_owned(),
            )
        }
    }

    /// Creates a namespace for the generator and one for the origin server; arms get theirs when they start.
    pub fn make_networks(&mut self, study: &Study, mtu: u32) -> Result<(), HostError> {
        let local_ports = self.host(Role::Generator).is.local_ports;
        let sources =
            study.loads.iter().map(|load| room::sources(load, local_ports)).max().unwrap_or(1);
        let job = NetworksJob { mtu, sources };
        self.host(Role::Proxy).ask(job)?;
        self.networks = Some(sources);
        Ok(())
    }

    /// Returns the addresses from which the generator can send to the arm in a slot, which weir may not have started;
    /// empty: the kernel's choice.
    pub fn sources(&self, slot: usize, external: Option<&ExternalSpec>) -> Vec<Ipv4Addr> {
        let is_far = external.is_some_and(|external| {
            !external.addresses().all(|at| matches!(at.ip(), IpAddr::V4(ip) if ip.is_loopback()))
        });
        if is_far {
            // From loopback there is no way to another host.
            return Vec::new();
        }
        match self.networks {
            Some(count) => networks::source_addresses(slot, count),
            None if self.together() => {
                (1..=room::MOST_SOURCES as u8).map(|last| Ipv4Addr::new(127, 0, 0, last)).collect()
            }
            None => Vec::new(),
        }
    }

    /// Returns the CPUs of each role: those that the study names, or a share of the available ones. The proxy's are as
    /// many as the arm with most needs.
    pub fn cpu_roles(&self, study: &Study) -> Result<CpuRoles, HostError> {
        let most = study.arms.iter().filter_map(Arm::cpu_count).max().unwrap_or(0);
        let Some(roles) = &study.cpus else {
            let roles = self.shared_out()?;
            if most <= roles.proxy.cpus().len() || !self.together() {
                return Ok(roles);
            }
            let in_order = self.by_core(&self.cpus_of(Role::Proxy))?;
            return Ok(cpus::share_out_for(most, &in_order).unwrap_or(roles));
        };
        let named = [&roles.generator, &roles.proxy, &roles.origin];
        for (wanted, role) in named.into_iter().zip(ROLES) {
            for host in self.places(role).iter().map(|place| &self.hosts[*place]) {
                let allowed = &host.is.cpus;
                if wanted.shared_with(allowed).len() != wanted.cpus().len() {
                    return Err(HostError::Cpus {
                        wanted: wanted.to_string(),
                        allowed: allowed.to_string(),
                        host: host.called().to_owned(),
                    });
                }
            }
        }
        Ok(roles.clone())
    }

    /// Gives each arm whose number of CPUs is a setting that many of the proxies' CPUs.
    ///
    /// # Errors
    /// The proxies have fewer, or the host does not say which CPUs are threads of one core.
    pub fn place_arms(&self, study: &mut Study, roles: &CpuRoles) -> Result<(), HostError> {
        if study.arms.iter().all(|arm| arm.cpu_count().is_none()) {
            return Ok(());
        }
        let in_order = self.by_core(&roles.proxy)?;
        for arm in &mut study.arms {
            let Some(count) = arm.cpu_count() else { continue };
            let first = in_order.get(..count).and_then(|cpus| CpuSet::new(cpus.to_vec()));
            arm.cpus = Some(first.ok_or_else(|| HostError::TooFewCpus {
                arm: arm.name.clone(),
                count,
                proxies: roles.proxy.to_string(),
            })?);
        }
        Ok(())
    }

    /// Returns CPUs of the proxies' host in the order of [`cpus::by_core`].
    fn by_core(&self, set: &CpuSet) -> Result<Vec<u32>, HostError> {
        let (generator, origin, towards) = (None, None, Vec::new());
        let job = FactsJob { generator, proxy: Some(set.clone()), origin, towards };
        Ok(cpus::by_core(set, &self.host(Role::Proxy).ask(job)?))
    }

    fn cpus_of(&self, role: Role) -> CpuSet {
        self.host(role).is.cpus.clone()
    }

    fn shared_out(&self) -> Result<CpuRoles, HostError> {
        if self.together() {
            return Ok(CpuRoles::share_out(&self.cpus_of(Role::Proxy)));
        }
        let mut roles = CpuRoles {
            generator: self.cpus_of(Role::Generator),
            proxy: self.cpus_of(Role::Proxy),
            origin: self.cpus_of(Role::Origin),
        };
        // Two on one host: the one that is measured, or asks, gets what it can.
        if self.meet(Role::Generator, Role::Origin) {
            (roles.generator, roles.origin) = cpus::split(&self.cpus_of(Role::Origin));
        } else if self.meet(Role::Proxy, Role::Origin) {
            (roles.proxy, roles.origin) = cpus::split(&roles.proxy);
        } else if self.meet(Role::Proxy, Role::Generator) {
            (roles.proxy, roles.generator) = cpus::split(&roles.proxy);
        }
        // All generators use the same numbers, so each has as large a share of a load. Pods have as many CPUs each, by
        // whatever numbers: see `Host::own_cpus`.
        let count = roles.generator.cpus().len();
        for host in self.generators() {
            if self.pods.is_some() && host.is.cpus.cpus().len() == count {
                continue;
            }
            let both = roles.generator.shared_with(&host.is.cpus);
            roles.generator = CpuSet::new(both).ok_or_else(|| HostError::Cpus {
                host: host.called().to_owned(),
                wanted: format!("{} for every generator", roles.generator),
                allowed: host.is.cpus.to_string(),
            })?;
        }
        Ok(roles)
    }

    /// Keeps the agents, which have little to do, off the proxy's CPUs.
    pub fn settle(&self, roles: &CpuRoles) -> Result<(), HostError> {
        // Messages are read on this host, wherever they come from.
        let cpus_of_run = self.own_cpus(roles);
        for (host, here) in self.each() {
            if let Some(cpus) = cpus_of_run {
                host.read_on(cpus);
            }
            if let Some(cpus) = beside_proxy(&here, roles).filter(|_| host.is_kept()) {
                host.ask(Settle(host.own_cpus(cpus)))?;
            }
        }
        Ok(())
    }

    /// Returns the CPUs of this host to which weir itself keeps; `None` if no role is here, or the proxies have it
    /// alone.
    pub fn own_cpus<'r>(&self, roles: &'r CpuRoles) -> Option<&'r CpuSet> {
        let (_, here) = self.each().find(|(host, _)| host.is_this_one())?;
        beside_proxy(&here, roles)
    }

    /// Returns the program of a proxy, after running it once to find its version.
    pub fn program_of(&self, proxy: &ProxySpec) -> Result<Program, HostError> {
        if !proxy.is_started() {
            // Its program is on somebody else's host.
            let name = proxy.kind.name().to_owned();
            return Ok(Program { name, version: String::new(), sum: String::new() });
        }
        let key = (proxy.kind, proxy.executable.clone());
        if let Some(known) = self.programs.borrow().get(&key) {
            return Ok(known.clone());
        }
        let (kind, executable) = key.clone();
        let program = self
            .host(Role::Proxy)
            .ask(FindProgram { kind, executable })
            .map_err(HostError::Program)?;
        self.programs.borrow_mut().insert(key, program.clone());
        Ok(program)
    }

    /// Returns true if weir runs an origin server for the study.
    pub fn has_origin(study: &Study) -> bool {
        let mut proxies = study.arms.iter().map(|arm| study.proxy_of(arm));
        study.origin.address.is_none()
            && proxies.any(|proxy| proxy.role == ProxyRole::ReverseProxy && proxy.is_started())
    }

    /// Returns true if two roles are on one host and, if one of them is the proxy, a proxy is there too: weir starts
    /// it, or it listens at an address of this host.
    pub fn share_in(&self, study: &Study, one: Role, other: Role) -> bool {
        let mut proxies = study.arms.iter().map(|arm| study.proxy_of(arm));
        let has_proxy = proxies.any(|proxy| match &proxy.external {
            Some(external) => external.addresses().any(|one| is_own(one.ip())),
            None => true,
        });
        self.meet(one, other) && (has_proxy || ![one, other].contains(&Role::Proxy))
    }
}

/// Returns the CPUs of a host with these roles that are not reserved for the proxies; `None` if all are.
fn beside_proxy<'r>(here: &[Role], roles: &'r CpuRoles) -> Option<&'r CpuSet> {
    match here {
        [Role::Proxy] => None,
        all if all.contains(&Role::Generator) => Some(&roles.generator),
        _ => Some(&roles.origin),
    }
}

/// Properties of the roles' hosts that a study is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// CPUs available to the proxies.
    pub cpus: CpuSet,
    /// Maximum number of descriptors of a process, the lowest of all generators.
    pub most_descriptors: u64,
    /// True if each thread of the generators can have its own table of descriptors.
    pub own_tables: bool,
    /// Number of local ports for each source address, of all generators together.
    pub local_ports: u64,
    /// True if all roles are on one host.
    pub one_machine: bool,
}

/// Gets the properties of the hosts of all roles. Agents that are started for this end again.
///
/// # Errors
/// A host cannot be reached.
pub fn facts(options: &Options) -> Result<Facts, HostError> {
    let places = Hosts::open(options)?;
    let generators: Vec<_> = places.generators().map(|host| &host.is).collect();
    Ok(Facts {
        cpus: places.host(Role::Proxy).is.cpus.clone(),
        most_descriptors: generators.iter().map(|is| is.most_descriptors).min().unwrap_or(0),
        own_tables: generators.iter().all(|is| is.own_tables),
        local_ports: generators.iter().map(|is| is.local_ports).sum(),
        one_machine: places.together(),
    })
}

/// Returns the index of a name, which is added if it is new.
fn index_or_push<'n>(names: &mut Vec<Option<&'n str>>, name: Option<&'n str>) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::Arc;

    use weir_parameters::Catalog;
    use weir_sut::Launcher;

    use super::*;
    use crate::options::PlaceSpec;
    use weir_model::fixture::{arm, study};
    use weir_model::study::ArmRole;

    fn options(folder: &Path) -> Options {
        Options {
            folder: folder.join("run"),
            launcher: Launcher::new("weir".into()),
            weir_version: "0".to_owned(),
            remarks: Vec::new(),
            catalog: Catalog::builtin(),
            places: PlaceSpec::default(),
            allow_host_settings: false,
            node_image: None,
            check_alone: false,
            generator_carries: None,
            samples: None,
            where_time_goes: false,
            time: None,
            stop: Arc::default(),
        }
    }

    #[test]
    fn a_proxy_on_a_machine_that_is_not_the_runs_shares_no_cpus() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = Hosts::open(&options(folder.path())).unwrap();
        for (address, expected) in
            [("127.0.0.1:80", true), ("[::1]:80", true), ("192.0.2.7:80", false)]
        {
            let mut tested = study(vec![arm("stock", ArmRole::Baseline, &[])]);
            tested.proxy.external = Some(ExternalSpec::at(address.parse().unwrap()));
            let shares_proxy = hosts.share_in(&tested, Role::Proxy, Role::Generator);
            assert_eq!(shares_proxy, expected, "{address}");
            assert!(hosts.share_in(&tested, Role::Origin, Role::Generator), "{address}");
        }
    }

    #[test]
    fn a_program_is_run_once_however_many_arms_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nginx");
        let text = "#!/bin/sh\necho >> \"$0.asked\"\necho 'nginx version: nginx/1.22.1' >&2\n";
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let places = Hosts::open(&options(folder.path())).unwrap();
        let mut proxy = study(Vec::new()).proxy;
        proxy.executable = Some(program.clone());
        for _ in 0..3 {
            let nginx = places.program_of(&proxy).unwrap();
            assert_eq!(nginx.version, "nginx/1.22.1");
        }
        let calls = fs::read_to_string(program.with_extension("asked")).unwrap();
        assert_eq!(calls, "\n");

        proxy.executable = Some(folder.path().join("another"));
        assert!(places.program_of(&proxy).is_err(), "another is not this one");
    }
}
