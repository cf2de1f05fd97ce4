//! Generators in pods of a Kubernetes cluster.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_kube::{Cluster, Generators, Wanted};
use weir_model::quantity::CpuSet;
use weir_model::record::Remark;

use crate::LabError;

/// Generators in pods. They are made when they are needed first, serve whatever is opened with the same options, and are
/// removed with the last copy of this.
#[derive(Debug, Clone)]
pub struct Pods(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cluster: Cluster,
    wanted: Wanted,
    started: Mutex<Option<Generators>>,
    /// By its name and its node.
    seen: Mutex<BTreeMap<(String, String), SeenCpus>>,
}

/// The CPUs on which a pod may run, and those of them that its threads are kept to, if they are.
type SeenCpus = (CpuSet, Option<CpuSet>);

/// Copies of the same pods.
impl PartialEq for Pods {
    fn eq(&self, other: &Pods) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Pods {
    /// So many generators as `wanted` says, in a namespace that has been reached. Nothing is made yet.
    pub fn new(cluster: Cluster, wanted: Wanted) -> Pods {
        Pods(Arc::new(Shared {
            cluster,
            wanted,
            started: Mutex::new(None),
            seen: Mutex::default(),
        }))
    }

    /// Context and namespace, for records.
    pub(crate) fn cluster(&self) -> String {
        let cluster = &self.0.cluster;
        format!("{}/{}", cluster.context(), cluster.namespace())
    }

    /// The image that they run.
    pub(crate) fn image(&self) -> &str {
        &self.0.wanted.image
    }

    /// CPUs that each may use.
    pub(crate) fn cpus(&self) -> usize {
        self.0.wanted.cpus as usize
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.0.wanted.generators
    }

    /// Does something with all of them, running. They are made where that has not been done, unless `interrupted` is set
    /// meanwhile.
    ///
    /// # Errors
    /// They cannot be made, or do not run.
    pub(crate) fn with<T>(
        &self,
        interrupted: &AtomicBool,
        what: impl FnOnce(&Generators) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let mut started = self.started();
        let generators = match started.take() {
            Some(generators) => generators,
            None => self.0.cluster.start(&self.0.wanted, interrupted)?,
        };
        what(started.insert(generators))
    }

    /// What of where they run spoils figures.
    pub(crate) fn remarks(&self) -> Vec<Remark> {
        let started = self.started();
        let pods = started.iter().flat_map(Generators::pods);
        let mut nodes: Vec<&str> = pods.map(|pod| pod.node.as_str()).collect();
        nodes.sort_unstable();
        let shared = nodes.chunk_by(|a, b| a == b).filter(|pods| pods.len() > 1);
        let remark = |pods: &[&str]| {
            let (count, node) = (pods.len(), pods[0]);
            Remark::of_run(format!(
                "{count} generators run on node {node}: they take CPU time from each other, so the load may be late"
            ))
        };
        shared.map(remark).chain(self.of_cpus()).collect()
    }

    /// The CPUs on which a pod may run, as its agent says, and those of them that its threads are kept to, if they are.
    pub(crate) fn has_seen(&self, (pod, node): (&str, &str), cpus: &CpuSet, kept: Option<&CpuSet>) {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let both = (cpus.clone(), kept.cloned());
        seen.insert((pod.to_owned(), node.to_owned()), both);
    }

    /// Which pods have CPUs of their own, and which have not.
    fn of_cpus(&self) -> Vec<Remark> {
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, shared): (Vec<_>, Vec<_>) = seen
            .iter()
            .partition(|(_, (cpus, _))| cpus.cpus().len() <= self.cpus());
        let own = own
            .iter()
            .map(|((pod, node), (cpus, _))| format!("pod {pod}: CPUs {cpus} of node {node}"));
        let shared = shared.iter().map(|((pod, node), (cpus, kept))| match kept {
            Some(kept) => {
                format!("pod {pod}: CPUs {cpus} of node {node}, its threads on {kept}")
            }
            None => format!(
                "pod {pod}: CPUs {cpus} of node {node}, fewer than the threads of the pods there, so the kernel moves them"
            ),
        });
        let [own, shared] = [own.collect::<Vec<_>>(), shared.collect()].map(|all| all.join(", "));
        let own = (!own.is_empty())
            .then(|| format!("generators that run on no more CPUs than they asked for: {own}"));
        let shared = (!shared.is_empty()).then(|| {
            format!(
                "generators that have no CPUs of their own, but share them with whatever else runs there: {shared}; a kubelet with the \
                 CPU manager policy `static` gives them their own"
            )
        });
        own.into_iter().chain(shared).map(Remark::of_run).collect()
    }

    fn started(&self) -> MutexGuard<'_, Option<Generators>> {
        self.0
            .started
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
