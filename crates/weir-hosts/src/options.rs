//! Options of a run beside its study: hosts, programs and the way to end it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_agent::local;
use weir_kube::{Cluster, PodsOf, ProxyPods};
use weir_model::record::{PlacesUsed, Remark};
use weir_parameters::Catalog;
use weir_simulation::Model;
use weir_sut::Launcher;

use crate::pod_samples::ArmPods;
use crate::pods::Pods;

/// Options of a run beside its study.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run's folder; a new run creates it.
    pub folder: PathBuf,
    /// Starts processes; see `weir_sut::launch`.
    pub launcher: Launcher,
    /// Exact version of weir.
    pub weir_version: String,
    /// Remarks about the study itself (see `weir_study::remarks`).
    pub remarks: Vec<Remark>,
    /// Every parameter that the study may name.
    pub catalog: Catalog,
    /// Hosts of the roles.
    pub places: PlaceSpec,
    /// True if settings of a whole host may be changed while the run lasts.
    pub allow_host_settings: bool,
    /// Image of weir for pods that set the kernel of a cluster's nodes while the run lasts; `None`: not allowed.
    pub node_image: Option<String>,
    /// True if baseline and winner are measured one at a time when the plan is done. A resumed run keeps its first
    /// choice.
    pub check_alone: bool,
    /// Time share given for the study, as the user typed it. It goes only into the header: the study already has the
    /// resulting times.
    pub time: Option<String>,
    /// Requests per second that a thread of the generator can send, if `weir load --calibrate` has measured it.
    pub generator_carries: Option<f64>,
    /// Interval at which the counters of every host are sampled during a trial; `None`: never.
    pub samples: Option<Duration>,
    /// True if the run measures where the time of requests goes: proxies log every request, and samples contain some of
    /// these.
    pub where_time_goes: bool,
    /// Set when the user wants to end the run in order: measurements so far are kept. Nobody else sets it.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Returns true if something can be sampled: a model has no counters.
    pub fn is_sampled(&self) -> bool {
        self.samples.is_some() && self.places.model.is_none()
    }
}

/// Role of a host in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The load engine.
    Generator,
    /// The proxies of all arms.
    Proxy,
    /// The origin server.
    Origin,
}

/// All roles, in the order in which tables of them are kept.
pub const ROLES: [Role; 3] = [Role::Generator, Role::Proxy, Role::Origin];

/// Hosts that the user named for the roles; a role without one is on this host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlaceSpec {
    /// Host names as for ssh(1), in the order generator, proxy, origin; empty: this host. A load is divided among all
    /// generators.
    hosts: [Vec<String>; 3],
    /// Further arguments for ssh(1).
    pub ssh_options: Vec<String>,
    /// Path of the weir to run on other hosts, instead of a copy of this one.
    pub remote: Option<PathBuf>,
    /// Pods of the generators; the other roles do not depend on them.
    pub pods: Option<Pods>,
    /// The cluster whose objects the study's arms change.
    pub cluster: Option<Cluster>,
    /// Pods of the proxy in the cluster, if named.
    pub proxy_pods: Option<ProxyPods>,
    /// Model of a host with all roles, instead of real hosts.
    pub model: Option<Arc<Model>>,
}

impl PlaceSpec {
    /// Places all roles on this host. Other hosts are reached with these arguments for ssh(1) and run `remote`.
    pub fn new(ssh_options: Vec<String>, remote: Option<PathBuf>) -> PlaceSpec {
        PlaceSpec { ssh_options, remote, ..PlaceSpec::default() }
    }

    /// Places all roles on a simulated host: nothing is started, sent or waited for.
    pub fn simulated(model: Model) -> PlaceSpec {
        PlaceSpec { model: Some(Arc::new(model)), ..PlaceSpec::default() }
    }

    /// Sets the cluster whose objects arms may change.
    pub fn in_cluster(self, cluster: Cluster) -> PlaceSpec {
        PlaceSpec { cluster: Some(cluster), ..self }
    }

    /// Sets the pods of the proxy in the cluster; they are sampled.
    pub fn of_proxy(self, pods: Option<ProxyPods>) -> PlaceSpec {
        PlaceSpec { proxy_pods: pods, ..self }
    }

    /// Returns true if the proxy's pods are named.
    pub fn has_proxy_pods(&self) -> bool {
        self.proxy_pods.is_some()
    }

    /// Returns the named pods of the proxy, which are of all arms; `None` if no pods are named.
    pub fn pods_of_proxy(&self) -> Option<ArmPods> {
        Some(ArmPods {
            cluster: self.cluster.clone()?,
            of: PodsOf::Labelled(self.proxy_pods.clone()?),
            arm: String::new(),
        })
    }

    /// Returns true if there is a cluster whose objects arms may change.
    pub fn has_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// Places the generators in pods.
    pub fn with_pods(self, pods: Pods) -> PlaceSpec {
        PlaceSpec { pods: Some(pods), ..self }
    }

    /// Returns the places of a resumed run, with the same ssh options.
    pub fn again(&self, used: &PlacesUsed) -> PlaceSpec {
        PlaceSpec {
            hosts: [
                used.generator.iter().chain(&used.more_generators).cloned().collect(),
                used.proxy.iter().cloned().collect(),
                used.origin.iter().cloned().collect(),
            ],
            ..self.clone()
        }
    }

    /// Returns the options of the command line that name these hosts.
    pub fn flags(&self) -> Vec<String> {
        let names = ["generator", "proxy", "origin"];
        let hosts = names.iter().zip(&self.hosts).filter(|(_, hosts)| !hosts.is_empty());
        hosts.map(|(role, hosts)| format!("--place {role}={}", hosts.join(","))).collect()
    }

    /// Returns true if all roles are on this host.
    pub fn is_here(&self) -> bool {
        self.pods.is_none() && self.hosts.iter().all(Vec::is_empty)
    }

    /// Returns true if the load is sent from this host.
    pub fn sends_from_here(&self) -> bool {
        self.pods.is_none() && self.host_of(Role::Generator).is_none()
    }

    /// Places a role on a host; for the generator, adds the host.
    pub fn put(&mut self, role: Role, host: String) {
        self.hosts[role as usize].push(host);
    }

    /// Returns the host of a role, of several generators the first; `None`: this one.
    pub fn host_of(&self, role: Role) -> Option<&str> {
        self.hosts[role as usize].first().map(String::as_str)
    }

    /// Returns the hosts of all generators.
    pub fn generators(&self) -> Vec<Option<&str>> {
        match &self.hosts[Role::Generator as usize][..] {
            [] => vec![None],
            hosts => hosts.iter().map(|host| Some(&**host)).collect(),
        }
    }
}

impl fmt::Display for PlaceSpec {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pods) = &self.pods {
            return write!(to, "{} generators in pods of {}", pods.count(), pods.cluster());
        }
        let generators: Vec<&str> =
            self.generators().into_iter().map(|host| host.unwrap_or(local::PLACE)).collect();
        write!(
            to,
            "the generator{} on {}, the proxies on {} and the origin server on {}",
            if generators.len() > 1 { "s" } else { "" },
            generators.join(", "),
            self.host_of(Role::Proxy).unwrap_or(local::PLACE),
            self.host_of(Role::Origin).unwrap_or(local::PLACE)
        )
    }
}
