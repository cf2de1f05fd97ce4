//! New pods of a workload that fit no node, and how long weir waits for a node.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use kube::ResourceExt;
use weir_kube::KubeError;
use weir_kube::ObjectRef;
use weir_kube::inner::Inner;
use weir_kube::pods;
use weir_kube::trouble::PLACES;

/// Time for which the scheduler must find no node before that counts. It tries again at once when something changes.
const UNPLACED: Duration = Duration::from_secs(15);
/// Time limit for reading events.
const ANSWER: Duration = Duration::from_secs(20);
/// Reasons of the events with which node autoscalers announce a new node for a pod: Kubernetes' own, and Karpenter's.
const BRINGS_NODE: [&str; 2] = ["TriggeredScaleUp", "Nominated"];

/// Time since which a new pod has had no node, and nothing in progress could change that.
#[derive(Default)]
pub(crate) struct Unplaced(Option<Instant>);

impl Unplaced {
    /// Returns true if further waiting is useless. `pod` is a pod that fits no node now, and `is_making_room` is true
    /// while older pods are being deleted.
    pub(crate) fn is_vain(
        &mut self,
        inner: &Inner,
        pod: Option<&v1::Pod>,
        is_making_room: bool,
    ) -> bool {
        let Some(pod) = pod.filter(|pod| !is_making_room && !has_nomination(pod)) else {
            self.0 = None;
            return false;
        };
        let since = *self.0.get_or_insert_with(Instant::now);
        if since.elapsed() <= UNPLACED {
            return false;
        }
        let brings = brings_node(inner, pod);
        if brings {
            // Events are asked for once in a while.
            self.0 = None;
        }
        !brings
    }
}

/// Returns true if the scheduler evicts other pods to make room for this one.
fn has_nomination(pod: &v1::Pod) -> bool {
    let status = pod.status.as_ref();
    let nominated = status.and_then(|status| status.nominated_node_name.as_deref());
    nominated.is_some_and(|node| !node.is_empty())
}

/// Returns true if an autoscaler has announced a new node for the pod.
fn brings_node(inner: &Inner, pod: &v1::Pod) -> bool {
    let namespace = pod.namespace().unwrap_or_default();
    let name = pod.name_any();
    let events =
        inner.within(ANSWER, pods::events_in(inner, &namespace, &name)).unwrap_or_default();
    let mut reasons = events.iter().filter_map(|event| event.reason.as_deref());
    reasons.any(|reason| BRINGS_NODE.contains(&reason))
}

/// Creates the error for a DaemonSet that has no pods because no node satisfies their requirements; a DaemonSet has one
/// pod for each suitable node.
pub(crate) fn of_daemon_set(object: &ObjectRef) -> KubeError {
    KubeError::Pods {
        what: format!("{object} has no pods"),
        why:
            "no node satisfies what they ask for, so it is to have none (desiredNumberScheduled 0)"
                .to_owned(),
        hint: Some(PLACES),
        events: Vec::new(),
    }
}
