//! Pods of a Kubernetes cluster as hosts.
//!
//! A run's generators are the pods of one Indexed Job. Their process waits and does nothing ([`Cluster::start`]); the
//! agent is started in them through the API server's exec stream ([`Generators::agent`]), so nothing listens, and
//! whoever may exec into a pod, and nobody else, has an agent there. What such an agent reads and writes is that of any
//! other agent, so `weir_agent::Client` serves it as it does one behind ssh.
//!
//! Everything blocks; what is asynchronous runs on a thread of this crate's own. No type of a Kubernetes library leaves
//! it. `docs/kubernetes.md` is for users.

mod asked;
mod changes;
mod cluster;
mod commands;
mod conditions;
mod configuration;
mod cpusets;
mod error;
mod exec;
mod facts;
mod generators;
mod health;
pub mod image;
mod ingress;
mod inner;
mod node;
mod object_ref;
mod objects;
mod pods;
mod pointer;
mod refusals;
mod remove;
mod rights;
mod samples;
mod trouble;
mod unplaced;
mod workload;

pub use asked::{NodeLabel, ProxyPods, Target, Toleration, Unclear, Wanted};
pub use changes::{Changes, Left, PutBack, left_by_the_dead, left_by_this_process, undo};
pub use cluster::Cluster;
pub use commands::{ask_port, in_pods};
pub use conditions::not_taken;
pub use configuration::configuration_files;
pub use error::KubeError;
pub use exec::{Connected, Session, client};
pub use facts::{
    Budget, ClusterFacts, ContainerFacts, KubeProxy, NodeFacts, PodFacts, Scaler, Scaling,
};
pub use generators::{Generators, pods_of_this_process};
pub use ingress::Served;
pub use node::{VALUE, nodes_of};
pub use object_ref::ObjectRef;
pub use pods::Pod;
pub use pointer::{put, take, whole};
pub use remove::{Removed, remove};
pub use rights::{Asks, Used, manifest, manifest_of, manifest_of_ingress, manifest_of_samples};
pub use samples::{PodsOf, ProxyPod, Talk};
pub use workload::{of_pods, replicas};

/// The pod that would set the kernel of a node of this name for a run, as a YAML document.
pub fn render_for_node(image: &str, namespace: &str, (run, node): (&str, &str)) -> String {
    objects::yaml(&objects::hand(
        image,
        objects::Place { namespace, run },
        node,
    ))
}

/// The objects that [`Cluster::start`] would make in a namespace for a run of this name, as YAML documents.
pub fn render(wanted: &Wanted, namespace: &str, run: &str) -> String {
    let place = objects::Place { namespace, run };
    let job = objects::job(wanted, place);
    let origin = objects::origin(wanted, place, None);
    [Some(job), origin]
        .iter()
        .flatten()
        .map(objects::yaml)
        .collect()
}
