//! CPUs that containers may run on, as a process in them sees them: the CPUs that the kubelet really gave.

use std::time::Duration;

use k8s_openapi::api::core::v1;
use kube::Api;
use weir_model::quantity::CpuSet;

use crate::commands;
use crate::error::KubeError;
use crate::facts::{ClusterFacts, PodFacts};
use crate::inner::Inner;
use crate::workload;

/// Maximum number of containers that are queried.
const MOST: usize = 16;
/// Time limit for all containers together.
const WITHIN: Duration = Duration::from_secs(20);
/// Field of a process's status that lists its CPUs (proc_pid_status(5)).
const ALLOWED: &str = "Cpus_allowed_list:";

/// Queries the containers that get CPUs of their own from the kubelet's policy `static`. `pods` are the pods of
/// `facts`, in the same order.
pub(crate) async fn read(inner: &Inner, pods: &[v1::Pod], facts: &mut ClusterFacts) {
    let containers: Vec<(usize, usize)> = facts
        .pods
        .iter()
        .zip(pods)
        .enumerate()
        .filter(|(_, (facts, pod))| facts.may_have_own_cpus() && workload::runs(pod))
        .flat_map(|(pod, (facts, _))| {
            facts
                .containers
                .iter()
                .enumerate()
                .filter(|(_, container)| container.whole_cpus().is_some())
                .map(move |(container, _)| (pod, container))
        })
        .take(MOST)
        .collect();
    let until = tokio::time::Instant::now() + WITHIN;
    for (index, container) in containers {
        let pod = &facts.pods[index];
        let query = query_cpus(inner, &facts.namespace, (pod, container));
        let answer = match tokio::time::timeout_at(until, query).await {
            Ok(answer) => answer.map_err(|error| error.to_string().replace('\n', " ")),
            Err(_) => Err(format!("not within {} s", WITHIN.as_secs())),
        };
        let subject =
            format!("CPUs of container {} of pod {}", pod.containers[container].name, pod.name);
        let cpus = facts.note(subject, answer);
        facts.pods[index].containers[container].cpus = cpus;
    }
}

async fn query_cpus(
    inner: &Inner,
    namespace: &str,
    (pod, container): (&PodFacts, usize),
) -> Result<CpuSet, KubeError> {
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
    let container = &*pod.containers[container].name;
    let command = ["cat", "/proc/self/status"].map(str::to_owned);
    let text = commands::run_command(inner, &api, (&pod.name, container), &command).await?;
    parse_allowed(&text).ok_or_else(|| KubeError::Request {
        doing: format!("cannot read /proc/self/status in pod `{}`", pod.name),
        why: format!("it has no {ALLOWED}"),
    })
}

fn parse_allowed(status: &str) -> Option<CpuSet> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix(ALLOWED))?;
    list.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_process_are_in_its_status() {
        for (status, expected) in [
            (
                "Name:\tcat\nCpus_allowed:\tf\nCpus_allowed_list:\t0-2,5\nMems_allowed:\t1\n",
                Some("0-2,5"),
            ),
            ("Name:\tcat\n", None),
            ("Cpus_allowed_list:\t\n", None),
        ] {
            let cpus = parse_allowed(status).map(|cpus| cpus.to_string());
            assert_eq!(cpus.as_deref(), expected, "{status}");
        }
    }
}
