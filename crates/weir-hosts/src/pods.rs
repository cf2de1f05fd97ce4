//! Generators in pods of a Kubernetes cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_kube::{Cluster, Generators, PodRequest};
use weir_model::quantity::CpuSet;
use weir_model::record::Remark;

use crate::error::HostError;

/// Generators in pods. They are created at the first use, serve all hosts opened with the same options, and are removed
/// with the last copy of this value.
#[derive(Debug, Clone)]
pub struct Pods(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cluster: Cluster,
    wanted: PodRequest,
    started: Mutex<Option<Generators>>,
    /// CPUs of each pod, by its name and its node.
    seen: Mutex<BTreeMap<(String, String), SeenCpus>>,
}

/// CPUs on which a pod may run, and the CPUs to which its threads are bound, if any.
type SeenCpus = (CpuSet, Option<CpuSet>);

/// Two values are equal if they are copies of the same pods.
impl PartialEq for Pods {
    fn eq(&self, other: &Pods) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Pods {
    /// Prepares as many generators as `wanted` has, in a namespace that has been reached. No pod is created yet.
    pub fn new(cluster: Cluster, wanted: PodRequest) -> Pods {
        Pods(Arc::new(Shared {
            cluster,
            wanted,
            started: Mutex::new(None),
            seen: Mutex::default(),
        }))
    }

    /// Returns context and namespace, for records.
    pub fn cluster(&self) -> String {
        let cluster = &self.0.cluster;
        format!("{}/{}", cluster.context(), cluster.namespace())
    }

    /// Returns the image that the pods run.
    pub fn image(&self) -> &str {
        &self.0.wanted.image
    }

    /// Returns the number of CPUs that each pod may use.
    pub fn cpus(&self) -> usize {
        self.0.wanted.cpus as usize
    }

    /// Returns the number of pods.
    pub fn count(&self) -> u32 {
        self.0.wanted.generators
    }

    /// Calls a function with all pods running. They are created if necessary, unless `interrupted` is set meanwhile.
    ///
    /// # Errors
    /// The pods cannot be created, or do not run.
    pub fn with<T>(
        &self,
        interrupted: &AtomicBool,
        what: impl FnOnce(&Generators) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let mut started = self.started();
        let generators = match started.take() {
            Some(generators) => generators,
            None => self.0.cluster.start(&self.0.wanted, interrupted)?,
        };
        what(started.insert(generators))
    }

    /// Returns remarks about the pods' nodes and CPUs that distort results.
    pub fn remarks(&self) -> Vec<Remark> {
        let started = self.started();
        let pods = started.iter().flat_map(Generators::pods);
        let mut nodes: Vec<&str> = pods.map(|pod| pod.node.as_str()).collect();
        nodes.sort_unstable();
        let shared = nodes.chunk_by(|a, b| a == b).filter(|pods| pods.len() > 1);
        shared.map(|pods| {
            let (count, node) = (pods.len(), pods[0]);
            Remark::of_run(format!(
                "{count} generators run on node {node}: they take CPU time from each other, so the load may be late"
            ))
        }).chain(self.of_cpus()).collect()
    }

    /// Notes the CPUs on which a pod may run, as reported by its agent, and the CPUs to which its threads are bound, if
    /// any.
    pub fn has_seen(&self, (pod, node): (&str, &str), cpus: &CpuSet, kept: Option<&CpuSet>) {
        let mut cpus_by_pod = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let both = (cpus.clone(), kept.cloned());
        cpus_by_pod.insert((pod.to_owned(), node.to_owned()), both);
    }

    /// Returns remarks about which pods have CPUs of their own and which have not.
    fn of_cpus(&self) -> Vec<Remark> {
        let cpus_by_pod = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (exclusive, shared): (Vec<_>, Vec<_>) =
            cpus_by_pod.iter().partition(|(_, (cpus, _))| cpus.cpus().len() <= self.cpus());
        let of_exclusive = exclusive
            .iter()
            .map(|((pod, node), (cpus, _))| format!("pod {pod}: CPUs {cpus} of node {node}"));
        let of_shared = shared.iter().map(|((pod, node), (cpus, kept))| match kept {
            Some(kept) => {
                format!("pod {pod}: CPUs {cpus} of node {node}, its threads on {kept}")
            }
            None => format!(
                "pod {pod}: CPUs {cpus} of node {node}, fewer than the threads of the pods there, so the kernel moves them"
            ),
        });
        let [own, shared] =
            [of_exclusive.collect::<Vec<_>>(), of_shared.collect()].map(|all| all.join(", "));
        let remark_of_own = (!own.is_empty())
            .then(|| format!("generators that run on no more CPUs than they asked for: {own}"));
        let remark_of_shared = (!shared.is_empty()).then(|| {
            format!(
                "generators that have no CPUs of their own, but share them with whatever else runs there: {shared}; a kubelet with the \
                 CPU manager policy `static` gives them their own"
            )
        });
        remark_of_own.into_iter().chain(remark_of_shared).map(Remark::of_run).collect()
    }

    fn started(&self) -> MutexGuard<'_, Option<Generators>> {
        self.0.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Assigns CPUs to the threads of each of weir's pods. Each pod has `each` threads, and is given by its node and the
/// CPUs that it may use there; no CPU is assigned twice. `None`: pods of a node that share CPUs have more threads than
/// CPUs, so the kernel moves the threads.
pub fn deal(pods: &[(&str, &CpuSet)], each: usize) -> Vec<Option<CpuSet>> {
    let mut dealt = vec![None; pods.len()];
    let mut used: BTreeSet<(&str, u32)> = BTreeSet::new();
    let mut crowded: BTreeSet<&str> = BTreeSet::new();
    // Whoever may use the fewest chooses first.
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by_key(|place| pods[*place].1.cpus().len());
    for place in order {
        let (node, allowed) = pods[place];
        let cpus: Vec<u32> = allowed
            .cpus()
            .iter()
            .copied()
            .filter(|cpu| !used.contains(&(node, *cpu)))
            .take(each)
            .collect();
        // A pod with fewer CPUs than threads has them to itself, or it would have none left.
        if cpus.len() < each.min(allowed.cpus().len()) {
            crowded.insert(node);
            continue;
        }
        used.extend(cpus.iter().map(|cpu| (node, *cpu)));
        dealt[place] = CpuSet::new(cpus);
    }
    for (place, dealt) in dealt.iter_mut().enumerate() {
        let (node, allowed) = pods[place];
        let is_alone = pods.iter().enumerate().all(|(other, (of, cpus))| {
            other == place || *of != node || allowed.shared_with(cpus).is_empty()
        });
        if crowded.contains(node) && !is_alone {
            *dealt = None;
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_a_node_have_no_cpu_in_common_while_others_are_free() {
        for (pods, each, expected) in [
            (&["a 0-3", "a 0-3"][..], 1, &["0", "1"][..]),
            (&["a 0-3", "a 0-3"], 2, &["0-1", "2-3"]),
            (&["a 0-3", "b 0-3"], 2, &["0-1", "0-1"]),
            (&["a 0-1", "b 0-1", "a 0-1"], 1, &["0", "0", "1"]),
            // Fewer CPUs than threads.
            (&["a 0-1", "a 0-1", "a 0-1"], 1, &["-", "-", "-"]),
            (&["a 0-3", "b 0-1", "a 0-3"], 3, &["-", "0-1", "-"]),
            (&["a 0", "a 0"], 1, &["-", "-"]),
            // The kubelet has given some CPUs of their own.
            (&["a 2", "a 3"], 1, &["2", "3"]),
            (&["a 0-2", "a 3", "a 0-2"], 1, &["0", "3", "1"]),
            (&["a 0", "a 3", "a 0"], 1, &["-", "3", "-"]),
            (&["a 0-3", "a 0"], 1, &["1", "0"]),
            // A quota lets it use more CPUs than it sees.
            (&["a 0-1"], 4, &["0-1"]),
        ] {
            let all: Vec<(&str, CpuSet)> = pods
                .iter()
                .map(|text| {
                    let (node, cpus) = text.split_once(' ').expect("a node and CPUs");
                    (node, cpus.parse::<CpuSet>().expect("CPUs"))
                })
                .collect();
            let node_cpus: Vec<(&str, &CpuSet)> =
                all.iter().map(|(node, cpus)| (*node, cpus)).collect();
            let dealt: Vec<String> = deal(&node_cpus, each)
                .into_iter()
                .map(|own| own.map_or("-".to_owned(), |own| own.to_string()))
                .collect();
            assert_eq!(dealt, expected, "{pods:?}");
        }
    }
}
