//! New pods of a workload that no node can have: how long that is borne.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use kube::ResourceExt;

use crate::error::KubeError;
use crate::inner::Inner;
use crate::object_ref::ObjectRef;
use crate::pods;
use crate::trouble::PLACES;

/// How long the scheduler must find no node until that is believed. It looks again at once when something changes.
const UNPLACED: Duration = Duration::from_secs(15);
/// How long events may be asked for.
const ANSWER: Duration = Duration::from_secs(20);
/// What autoscalers of nodes note of a pod for which they bring a node: that of Kubernetes, and Karpenter.
const BRINGS_NODE: [&str; 2] = ["TriggeredScaleUp", "Nominated"];

/// Since when a new pod has had no node, while nothing was on the way that could change it.
#[derive(Default)]
pub(crate) struct Unplaced(Option<Instant>);

impl Unplaced {
    /// Whether to wait longer is in vain. `pod` is one that no node can have now; `is_making_room`: older pods are going.
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

/// Whether the scheduler has other pods go for it.
fn has_nomination(pod: &v1::Pod) -> bool {
    let status = pod.status.as_ref();
    let nominated = status.and_then(|status| status.nominated_node_name.as_deref());
    nominated.is_some_and(|node| !node.is_empty())
}

/// Whether an autoscaler has said that it brings a node.
fn brings_node(inner: &Inner, pod: &v1::Pod) -> bool {
    let namespace = pod.namespace().unwrap_or_default();
    let name = pod.name_any();
    let events = inner.within(ANSWER, pods::events_in(inner, &namespace, &name));
    let events = events.unwrap_or_default();
    let mut reasons = events.iter().filter_map(|event| event.reason.as_deref());
    reasons.any(|reason| BRINGS_NODE.contains(&reason))
}

/// That no node can have a pod of a DaemonSet, which has a pod for each node that its pods can have.
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
