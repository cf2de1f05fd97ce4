//! What a run needs to know beside its study: where, with what, and how it is ended.

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

/// What a run needs to know beside its study.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run's folder: not there yet for a new run.
    pub folder: PathBuf,
    /// Starts processes; see `weir_sut::launch`.
    pub launcher: Launcher,
    /// Exact version of weir.
    pub weir_version: String,
    /// What is worth saying about the study itself (see `weir_study::remarks`).
    pub remarks: Vec<Remark>,
    /// Every parameter that the study may name.
    pub catalog: Catalog,
    /// Which host each role is on.
    pub places: PlaceSpec,
    /// Whether settings of a whole host may be changed while the run lasts.
    pub allow_host_settings: bool,
    /// The image of weir for pods that set the kernel of a cluster's nodes while the run lasts; `None`: nobody has allowed it.
    pub node_image: Option<String>,
    /// Whether baseline and winner are measured one at a time when the plan is done. A run that goes on
    /// does as it began.
    pub check_alone: bool,
    /// The share of its time that the study was given, as it was typed. It stands in the header alone: the study
    /// already has the times that it led to.
    pub time: Option<String>,
    /// Requests per second that a thread of the generator can send, where `weir load --calibrate` has found that out.
    pub generator_carries: Option<f64>,
    /// How often the counters of every host are read while a trial goes on; `None`: not at all.
    pub samples: Option<Duration>,
    /// Whether it is looked at where the time of requests goes: proxies log every request, and samples have some of
    /// these.
    pub where_time_goes: bool,
    /// The user's wish to end the run in order: what was measured is kept. Nobody else sets it.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Whether anything is there that can be sampled: a model has no counters.
    pub(crate) fn is_sampled(&self) -> bool {
        self.samples.is_some() && self.places.model.is_none()
    }
}

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
pub(crate) const ROLES: [Role; 3] = [Role::Generator, Role::Proxy, Role::Origin];

/// Which host each role is on, as it was asked for; a role that is not named is on this host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlaceSpec {
    /// Hosts as ssh(1) takes them, in the order generator, proxy, origin; none: this one. A load is dealt to all generators.
    hosts: [Vec<String>; 3],
    /// Further words for ssh(1).
    pub(crate) ssh_options: Vec<String>,
    /// The weir to run there, instead of a copy of this one.
    pub(crate) remote: Option<PathBuf>,
    /// Generators in pods; the other roles are where they would be.
    pub(crate) pods: Option<Pods>,
    /// The cluster whose objects the study's arms change.
    pub(crate) cluster: Option<Cluster>,
    /// The proxy's pods there, where it is known which they are.
    pub(crate) proxy_pods: Option<ProxyPods>,
    /// The model of a host that all roles are on, instead of any that exists.
    pub(crate) model: Option<Arc<Model>>,
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

    /// All roles on a host that is only modelled: nothing is started, sent or waited for.
    pub fn simulated(model: Model) -> PlaceSpec {
        PlaceSpec {
            model: Some(Arc::new(model)),
            ..PlaceSpec::default()
        }
    }

    /// The same with a cluster whose objects arms may change.
    pub fn in_cluster(self, cluster: Cluster) -> PlaceSpec {
        PlaceSpec {
            cluster: Some(cluster),
            ..self
        }
    }

    /// The same where these pods of the cluster are the proxy's: they are sampled.
    pub fn of_proxy(self, pods: Option<ProxyPods>) -> PlaceSpec {
        PlaceSpec {
            proxy_pods: pods,
            ..self
        }
    }

    /// Whether it is known which pods are the proxy's.
    pub fn has_proxy_pods(&self) -> bool {
        self.proxy_pods.is_some()
    }

    /// The proxy's pods, whichever arm they are of; `None`: nobody has said which they are.
    pub(crate) fn pods_of_proxy(&self) -> Option<ArmPods> {
        Some(ArmPods {
            cluster: self.cluster.clone()?,
            of: PodsOf::Labelled(self.proxy_pods.clone()?),
            arm: String::new(),
        })
    }

    /// Whether there is a cluster whose objects arms may change.
    pub fn has_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// The same with the generators in pods.
    pub fn with_pods(self, pods: Pods) -> PlaceSpec {
        PlaceSpec {
            pods: Some(pods),
            ..self
        }
    }

    /// The places of a run that goes on, reached with the same words.
    pub(crate) fn again(&self, used: &PlacesUsed) -> PlaceSpec {
        PlaceSpec {
            hosts: [
                used.generator
                    .iter()
                    .chain(&used.more_generators)
                    .cloned()
                    .collect(),
                used.proxy.iter().cloned().collect(),
                used.origin.iter().cloned().collect(),
            ],
            ..self.clone()
        }
    }

    /// Whether all roles are on this host.
    pub fn is_here(&self) -> bool {
        self.pods.is_none() && self.hosts.iter().all(Vec::is_empty)
    }

    /// Whether the load is sent from this host.
    pub fn sends_from_here(&self) -> bool {
        self.pods.is_none() && self.host_of(Role::Generator).is_none()
    }

    /// Puts a role on a host; the generator on one more.
    pub fn put(&mut self, role: Role, host: String) {
        self.hosts[role as usize].push(host);
    }

    /// The host of a role, of several generators the first; `None`: this one.
    pub fn host_of(&self, role: Role) -> Option<&str> {
        self.hosts[role as usize].first().map(String::as_str)
    }

    /// The hosts of all generators.
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
            return write!(
                to,
                "{} generators in pods of {}",
                pods.count(),
                pods.cluster()
            );
        }
        let name = |host: Option<&str>| host.unwrap_or(local::PLACE).to_owned();
        let generators = self.generators();
        write!(
            to,
            "the generator{} on {}, the proxies on {} and the origin server on {}",
            if generators.len() > 1 { "s" } else { "" },
            generators
                .into_iter()
                .map(name)
                .collect::<Vec<_>>()
                .join(", "),
            name(self.host_of(Role::Proxy)),
            name(self.host_of(Role::Origin))
        )
    }
}
