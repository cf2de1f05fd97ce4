//! Where the generator, the proxies and the origin server are, and how each is reached.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_agent::message::{Ask, Description, NetworksJob, Program};
use weir_agent::ssh::{self, SshPlace};
use weir_agent::{AgentError, Client, local, server};
use weir_model::quantity::CpuSet;
use weir_model::study::{CpuRoles, ProxyRole, Study};

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
    /// Where others reach it; `None`: it is this host, and nobody else takes part.
    pub(crate) address: Option<IpAddr>,
}

/// Where everything is.
pub(crate) struct Places {
    hosts: Vec<Host>,
    /// The host of each role.
    of: [usize; 3],
    /// Source addresses towards each arm, where all have network namespaces of their own.
    networks: Option<u8>,
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
            hosts.push(Host { agent, is, address });
        }
        let mut places = Places {
            hosts,
            of,
            networks: None,
        };
        places.address_this_host();
        Ok(places)
    }

    /// With others around, this host is reached at the address that it reaches them from.
    fn address_this_host(&mut self) {
        let distant = self.hosts.iter().find_map(|host| host.address);
        let Some(distant) = distant else { return };
        for host in self.hosts.iter_mut().filter(|host| host.address.is_none()) {
            host.address = source_towards(distant);
        }
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

    fn together(&self) -> bool {
        self.hosts.len() == 1
    }

    /// Where a role listens, or is asked, without a namespace of its own.
    pub(crate) fn address(&self, role: Role) -> IpAddr {
        match self.together() {
            true => IpAddr::V4(Ipv4Addr::LOCALHOST),
            false => {
                let own = self.host(role).address;
                own.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
            }
        }
    }

    /// Why arms cannot have network namespaces here; `None`: they can.
    pub(crate) fn no_networks(&self) -> Option<String> {
        match self.together() {
            true => self.hosts[0].is.no_networks.clone(),
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
                return Err(LabError::Cpus { wanted, allowed });
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
        for (agent, here) in self.each() {
            // Messages are read on this host, wherever they come from.
            if self.together() {
                agent.keep_to(&roles.generator);
            }
            let cpus = match &here[..] {
                [Role::Proxy] => continue,
                all if all.contains(&Role::Generator) => &roles.generator,
                _ => &roles.origin,
            };
            agent.ask::<()>(Ask::Settle(CpuSet::clone(cpus)))?;
        }
        Ok(())
    }

    /// The proxies' program.
    pub(crate) fn program(&self, study: &Study) -> Result<Program, LabError> {
        let ask = Ask::Program {
            kind: study.proxy.kind,
            executable: study.proxy.executable.clone(),
        };
        self.agent(Role::Proxy).ask(ask).map_err(LabError::Program)
    }

    /// Whether the study has an origin server at all.
    pub(crate) fn has_origin(study: &Study) -> bool {
        study.proxy.role == ProxyRole::ReverseProxy
    }
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

    /// Puts a role on a host.
    pub fn put(&mut self, role: Role, host: String) {
        self.hosts[role as usize] = Some(host);
    }

    /// The host of a role; `None`: this one.
    pub fn host_of(&self, role: Role) -> Option<&str> {
        self.hosts[role as usize].as_deref()
    }
}
