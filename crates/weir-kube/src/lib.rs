//! Pods of a Kubernetes cluster as hosts.
//!
//! A run's generators are the pods of one Indexed Job. Their process only waits ([`Cluster::start`]); agents are
//! started in them through the API server's exec stream ([`Generators::agent`]). Nothing listens, therefore, and
//! whoever may exec into a pod can have an agent there, and nobody else. Such an agent speaks the same protocol as any
//! other, so `weir_agent::Client` handles it like one behind ssh.
//!
//! All functions block; asynchronous work runs on a thread of this crate. Types of Kubernetes libraries are part of the
//! public interface for `weir-objects` alone. The users' documentation is `docs/kubernetes.md`.

mod asked;
mod cluster;
pub mod commands;
mod configuration;
mod cpusets;
mod error;
mod exec;
mod facts;
pub mod generators;
pub mod health;
pub mod image;
mod ingress;
pub mod inner;
mod object_ref;
pub mod objects;
pub mod pods;
mod remove;
mod rights;
mod samples;
pub mod trouble;
pub mod workload;

pub use asked::{NodeLabel, PodRequest, ProxyPods, Target, Toleration, Unclear};
pub use cluster::Cluster;
pub use commands::{ask_port, in_pods};
pub use configuration::configuration_files;
pub use error::KubeError;
pub use exec::{Connected, Session, client};
pub use facts::{
    Budget, ClusterFacts, ContainerFacts, KubeProxy, NodeFacts, PodFacts, Scaler, Scaling,
};
pub use generators::{Generators, pods_of_this_process};
pub use ingress::Served;
pub use object_ref::ObjectRef;
pub use pods::Pod;
pub use remove::{Removed, remove};
pub use rights::{Asks, Used, manifest, manifest_of, manifest_of_ingress, manifest_of_samples};
pub use samples::{PodsOf, ProxyPod, Talk};

/// Renders the pod that would change kernel settings of a node for a run, as a YAML document.
pub fn render_for_node(image: &str, namespace: &str, (run, node): (&str, &str)) -> String {
    objects::yaml(&objects::hand(image, objects::RunScope { namespace, run }, node))
}

/// Renders the objects that [`Cluster::start`] would create in a namespace for a run of this name, as YAML documents.
pub fn render(wanted: &PodRequest, namespace: &str, run: &str) -> String {
    let scope = objects::RunScope { namespace, run };
    let job = objects::job(wanted, scope);
    let origin = objects::origin(wanted, scope, None);
    [Some(job), origin].iter().flatten().map(objects::yaml).collect()
}
