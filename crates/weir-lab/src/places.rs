//! Where the generator, the proxies and the origin server are, and how each is reached.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_agent::message::{Ask, Description, NetworksJob, Program};
use weir_agent::ssh::{self, SshPlace};
use weir_agent::{AgentError, Client, local, server};
use weir_model::quantity::CpuSet;
use weir_model::record::PlacesUsed;
use weir_model::study::{CpuRoles, ProxyKind, ProxyRole, ProxySpec, Study};

use crate::run::Options;
use crate::{LabError, cpus, flows};

/// How long it may take to have an agent on another host, a copy of weir included.
const CONNECT: Duration = Duration::from_secs(90);

/// One of the three that a trial has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The load engine.
    Generator,
    /// The proxies of all arms.
    Proxy,
    /// The origin server.
    Origin,
}

/// All three, in the order in which they are kept.
const ROLES: [Role; 3] = [Role::Generator, Role::Proxy, Role::Origin];

/// A host and the agent there.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) agent: Client,
    pub(crate) is: Description,
    /// As ssh(1) takes it; `None`: this host.
    name: Option<String>,
    /// Where others reach a distant one.
    address: Option<IpAddr>,
}

impl Host {
    /// What errors call it.
    pub(crate) fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(local::PLACE)
    }

    /// A path there, as scp(1) names it.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        match &self.name {
            Some(name) => PathBuf::from(format!("{name}:{}", path.display())),
            None => path.to_owned(),
        }
    }
}

/// Where everything is.
pub(crate) struct Places {
    hosts: Vec<Host>,
    /// The host of each role.
    of: [usize; 3],
    /// Source addresses towards each arm, where all have network namespaces of their own.
    networks: Option<u8>,
    /// Programs of proxies that were asked for: arms share them, and to ask runs them.
    programs: RefCell<BTreeMap<(ProxyKind, Option<PathBuf>), Program>>,
}

impl Places {
    /// Starts an agent at each host, and asks what it is.
    pub(crate) fn open(options: &Options) -> Result<Places, LabError> {
        let mut names: Vec<Option<&str>> = Vec::new();
        let of = ROLES.map(|role| {
            let name = options.places.host_of(role);
            let known = names.iter().position(|known| *known == name);
            known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        });
        let mut hosts = Vec::new();
        for name in &names {
            let (agent, address) = match name {
                None => (this_host(options)?, None),
                Some(name) => distant(name, options)?,
            };
            let is = agent.ask(Ask::Describe)?;
            if name.is_some() {
                let rows = options.catalog.user_rows().to_vec();
                agent.ask::<()>(Ask::Rows(rows))?;
            }
            hosts.push(Host {
                agent,
                is,
                name: name.map(str::to_owned),
                address,
            });
        }
        Ok(Places {
            hosts,
            of,
            networks: None,
            programs: RefCell::default(),
        })
    }

    pub(crate) fn host(&self, role: Role) -> &Host {
        &self.hosts[self.of[role as usize]]
    }

    pub(crate) fn agent(&self, role: Role) -> &Client {
        &self.host(role).agent
    }

    /// Every agent once, with the roles of its host.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&Client, Vec<Role>)> {
        self.hosts.iter().enumerate().map(|(place, host)| {
            let here = ROLES
                .into_iter()
                .filter(|&role| self.of[role as usize] == place);
            (&host.agent, here.collect())
        })
    }

    /// Whether all roles are on one host.
    pub(crate) fn together(&self) -> bool {
        self.hosts.len() == 1
    }

    /// Whether two roles are on the same host.
    pub(crate) fn share(&self, one: Role, other: Role) -> bool {
        self.of[one as usize] == self.of[other as usize]
    }

    /// For the run's header.
    pub(crate) fn used(&self) -> PlacesUsed {
        let name = |role| self.host(role).name.clone();
        PlacesUsed {
            generator: name(Role::Generator),
            proxy: name(Role::Proxy),
            origin: name(Role::Origin),
        }
    }

    /// Where a role listens without a namespace of its own, for `asker` to ask it there: loopback for
    /// one on the same host, else the address that ssh finds the host at. This host has none of that
    /// kind, and is asked at the address that it reaches the other from.
    ///
    /// # Errors
    /// Nobody here knows an address of one of the two hosts.
    pub(crate) fn address(&self, role: Role, asker: Role) -> Result<IpAddr, LabError> {
        if self.share(role, asker) {
            return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        let unknown = |host: &Host| LabError::Address {
            host: host.called().to_owned(),
        };
        let (host, other) = (self.host(role), self.host(asker));
        match (&host.name, other.address) {
            (Some(_), _) => host.address.ok_or_else(|| unknown(host)),
            (None, None) => Err(unknown(other)),
            (None, Some(other)) => source_towards(other).ok_or_else(|| unknown(host)),
        }
    }

    /// Why arms cannot have network namespaces here; `None`: they can.
    pub(crate) fn no_networks(&self) -> Option<String> {
        match self.together() {
            true => {
                let host = &self.hosts[0];
                let why = host.is.no_networks.clone();
                match &host.name {
                    Some(name) => why.map(|why| format!("{name}: {why}")),
                    None => why,
                }
            }
            false => Some(
                "the generator, the proxy and the origin server are not all on one host".to_owned(),
            ),
        }
    }

    /// Makes a namespace for the generator, one for the origin server and one for each arm.
    pub(crate) fn make_networks(&mut self, study: &Study, mtu: u32) -> Result<(), LabError> {
        let local_ports = self.host(Role::Generator).is.local_ports;
        let wanted = study
            .loads
            .iter()
            .map(|load| flows::sources_for(load, local_ports));
        let sources = wanted.max().unwrap_or(1);
        let job = NetworksJob {
            arms: study.arms.len(),
            mtu,
            sources,
        };
        self.agent(Role::Proxy).ask::<()>(Ask::Networks(job))?;
        self.networks = Some(sources);
        Ok(())
    }

    /// Addresses that the generator can ask an arm from; empty: the kernel's choice.
    pub(crate) fn sources(&self, arm: usize) -> Vec<Ipv4Addr> {
        match self.networks {
            Some(count) => server::networks::source_addresses(arm, count),
            None if self.together() => (1..=flows::MOST_SOURCES as u8)
                .map(|last| Ipv4Addr::new(127, 0, 0, last))
                .collect(),
            None => Vec::new(),
        }
    }

    /// The CPUs of each role: those that the study names, or a share of those that there are.
    pub(crate) fn cpu_roles(&self, study: &Study) -> Result<CpuRoles, LabError> {
        let of = |role| &self.host(role).is.cpus;
        let Some(roles) = &study.cpus else {
            return Ok(self.shared_out());
        };
        let named = [
            (&roles.generator, Role::Generator),
            (&roles.proxy, Role::Proxy),
            (&roles.origin, Role::Origin),
        ];
        for (wanted, role) in named {
            let allowed = of(role);
            if wanted.shared_with(allowed).len() != wanted.cpus().len() {
                let (wanted, allowed) = (wanted.to_string(), allowed.to_string());
                let host = self.host(role).called().to_owned();
                return Err(LabError::Cpus {
                    wanted,
                    allowed,
                    host,
                });
            }
        }
        Ok(roles.clone())
    }

    fn shared_out(&self) -> CpuRoles {
        let of = |role| self.host(role).is.cpus.clone();
        let [generator, proxy, origin] = self.of;
        if self.together() {
            return cpus::share_out(&of(Role::Proxy));
        }
        let mut roles = CpuRoles {
            generator: of(Role::Generator),
            proxy: of(Role::Proxy),
            origin: of(Role::Origin),
        };
        // Two on one host: the one that is measured, or asks, gets what it can.
        if generator == origin {
            (roles.generator, roles.origin) = cpus::split(&roles.generator);
        } else if proxy == origin {
            (roles.proxy, roles.origin) = cpus::split(&roles.proxy);
        } else if proxy == generator {
            (roles.proxy, roles.generator) = cpus::split(&roles.proxy);
        }
        roles
    }

    /// Keeps the agents, which have little to do, off the proxy's CPUs.
    pub(crate) fn settle(&self, roles: &CpuRoles) -> Result<(), LabError> {
        // Messages are read on this host, wherever they come from.
        let own = self.own_cpus(roles);
        for (agent, here) in self.each() {
            if let Some(cpus) = own {
                agent.keep_to(cpus);
            }
            if let Some(cpus) = beside_proxy(&here, roles) {
                agent.ask::<()>(Ask::Settle(CpuSet::clone(cpus)))?;
            }
        }
        Ok(())
    }

    /// The CPUs of this host that weir itself is to keep to; `None`: no role is here, or the proxies
    /// have it for themselves.
    pub(crate) fn own_cpus<'r>(&self, roles: &'r CpuRoles) -> Option<&'r CpuSet> {
        let mut hosts = self.each().zip(&self.hosts);
        let ((_, here), _) = hosts.find(|(_, host)| host.name.is_none())?;
        beside_proxy(&here, roles)
    }

    /// A proxy's program.
    pub(crate) fn program_of(&self, proxy: &ProxySpec) -> Result<Program, LabError> {
        let key = (proxy.kind, proxy.executable.clone());
        if let Some(known) = self.programs.borrow().get(&key) {
            return Ok(known.clone());
        }
        let (kind, executable) = key.clone();
        let asked = self
            .agent(Role::Proxy)
            .ask(Ask::Program { kind, executable });
        let program: Program = asked.map_err(LabError::Program)?;
        self.programs.borrow_mut().insert(key, program.clone());
        Ok(program)
    }

    /// Whether the study has an origin server at all.
    pub(crate) fn has_origin(study: &Study) -> bool {
        let mut proxies = study.arms.iter().map(|arm| study.proxy_of(arm));
        proxies.any(|proxy| proxy.role == ProxyRole::ReverseProxy && proxy.kind.is_started())
    }
}

/// The CPUs of a host with these roles that are not the proxies' alone.
fn beside_proxy<'r>(here: &[Role], roles: &'r CpuRoles) -> Option<&'r CpuSet> {
    match here {
        [Role::Proxy] => None,
        all if all.contains(&Role::Generator) => Some(&roles.generator),
        _ => Some(&roles.origin),
    }
}

/// What a study is to be checked against: what the hosts of its roles have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// CPUs that the proxies can have.
    pub cpus: CpuSet,
    /// Descriptors that a process of the generator may have at most.
    pub most_descriptors: u64,
    /// Whether each thread of the generator can have a table of descriptors of its own.
    pub own_tables: bool,
    /// Local ports of the generator for each source address.
    pub local_ports: u64,
    /// Whether all roles are on one host.
    pub one_machine: bool,
}

/// Asks the hosts of all roles what they have. The agents that are started for that end again.
///
/// # Errors
/// A host cannot be reached.
pub fn facts(options: &Options) -> Result<Facts, LabError> {
    let places = Places::open(options)?;
    let generator = &places.host(Role::Generator).is;
    Ok(Facts {
        cpus: places.host(Role::Proxy).is.cpus.clone(),
        most_descriptors: generator.most_descriptors,
        own_tables: generator.own_tables,
        local_ports: generator.local_ports,
        one_machine: places.together(),
    })
}

fn this_host(options: &Options) -> Result<Client, LabError> {
    let options = server::Options {
        weir: options.weir_version.clone(),
        launcher: options.launcher.clone(),
        catalog: options.catalog.clone(),
        silence: None,
        stop: Arc::default(),
    };
    local::start(options).map_err(|error| {
        LabError::Agent(AgentError::Lost {
            place: local::PLACE.to_owned(),
            words: error.to_string(),
        })
    })
}

fn distant(name: &str, options: &Options) -> Result<(Client, Option<IpAddr>), LabError> {
    let place = SshPlace {
        options: options.places.ssh_options.clone(),
        remote: options.places.remote.clone(),
        ..SshPlace::new(name)
    };
    // The very program that runs, even if its file has been replaced since.
    let weir = Path::new("/proc/self/exe");
    let connected = ssh::connect(&place, weir, &options.weir_version, CONNECT)?;
    if connected.hello.weir != options.weir_version {
        // Its load engine, or the way it sets up a proxy, may be another.
        return Err(LabError::Version {
            host: name.to_owned(),
            theirs: connected.hello.weir,
            ours: options.weir_version.clone(),
        });
    }
    let address = connected.address;
    Ok((ssh::client(name, connected), address))
}

/// The address that this host sends from to another.
fn source_towards(other: IpAddr) -> Option<IpAddr> {
    let any = match other {
        IpAddr::V4(_) => "0.0.0.0:0",
        IpAddr::V6(_) => "[::]:0",
    };
    // Connecting a datagram socket sends nothing: the kernel looks up the route.
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((other, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

impl fmt::Display for PlaceSpec {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |role| self.host_of(role).unwrap_or(local::PLACE);
        write!(
            to,
            "the generator on {}, the proxies on {} and the origin server on {}",
            name(Role::Generator),
            name(Role::Proxy),
            name(Role::Origin)
        )
    }
}

/// Which host each role is on, as it was asked for; a role that is not named is on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlaceSpec {
    /// Hosts as ssh(1) takes them, in the order generator, proxy, origin.
    hosts: [Option<String>; 3],
    /// Further words for ssh(1).
    ssh_options: Vec<String>,
    /// The weir to run there, instead of a copy of this one.
    remote: Option<PathBuf>,
}

impl PlaceSpec {
    /// All roles on this host; others are reached with these words for ssh(1) and this weir there.
    pub fn new(ssh_options: Vec<String>, remote: Option<PathBuf>) -> PlaceSpec {
        PlaceSpec {
            ssh_options,
            remote,
            ..PlaceSpec::default()
        }
    }

    /// The places of a run that goes on, reached with the same words.
    pub(crate) fn again(&self, used: &PlacesUsed) -> PlaceSpec {
        PlaceSpec {
            hosts: [&used.generator, &used.proxy, &used.origin].map(Clone::clone),
            ..self.clone()
        }
    }

    /// Whether all roles are on this host.
    pub fn is_here(&self) -> bool {
        self.hosts.iter().all(Option::is_none)
    }

    /// Puts a role on a host.
    pub fn put(&mut self, role: Role, host: String) {
        self.hosts[role as usize] = Some(host);
    }

    /// The host of a role; `None`: this one.
    pub fn host_of(&self, role: Role) -> Option<&str> {
        self.hosts[role as usize].as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use weir_parameters::Catalog;
    use weir_sut::Launcher;

    use super::*;
    use weir_model::fixture::study;

    #[test]
    fn a_program_is_run_once_however_many_arms_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nginx");
        let text = "#!/bin/sh\necho >> \"$0.asked\"\necho 'nginx version: nginx/1.22.1' >&2\n";
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let options = Options {
            folder: folder.path().join("run"),
            launcher: Launcher::new("weir".into()),
            weir_version: "0".to_owned(),
            remarks: Vec::new(),
            catalog: Catalog::builtin(),
            places: PlaceSpec::default(),
            allow_host_settings: false,
            stop: Arc::default(),
        };
        let places = Places::open(&options).unwrap();
        let mut proxy = study(Vec::new()).proxy;
        proxy.executable = Some(program.clone());
        for _ in 0..3 {
            let found = places.program_of(&proxy).unwrap();
            assert_eq!(found.version, "nginx/1.22.1");
        }
        let asked = fs::read_to_string(program.with_extension("asked")).unwrap();
        assert_eq!(asked, "\n");

        proxy.executable = Some(folder.path().join("another"));
        assert!(
            places.program_of(&proxy).is_err(),
            "another is not this one"
        );
    }
}
