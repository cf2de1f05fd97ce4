//! Pods that the cluster refuses to create for a workload.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use serde_json::Value;
use weir_kube::ObjectRef;
use weir_kube::inner::Inner;
use weir_kube::pods;
use weir_kube::trouble::{self, Trouble};

/// Time for which the cluster must refuse new pods before the refusal counts.
const REFUSED: Duration = Duration::from_secs(5);
/// Time limit for reading events.
const ANSWER: Duration = Duration::from_secs(20);

/// The cluster's refusal of a workload's new pods: a quota, a policy. It may concern pods older than the change, or be
/// temporary, so it counts only after a while.
pub(crate) struct Refusals {
    /// Events about refusals before the change.
    before: Vec<String>,
    since: Option<Instant>,
}

impl Refusals {
    /// Records the refusals that exist before anything is changed.
    pub(crate) fn begin(inner: &Inner, object: &ObjectRef) -> Refusals {
        Refusals { before: refused(inner, object).iter().map(trouble::line).collect(), since: None }
    }

    /// Returns the present refusal, once it has lasted long enough.
    pub(crate) fn last(
        &mut self,
        inner: &Inner,
        object: &ObjectRef,
        now: &Value,
    ) -> Option<Trouble> {
        // A Deployment has a condition for it, a DaemonSet its events alone.
        let message = match object.resource.as_str() {
            "deployments" => replica_failure(now),
            _ => {
                let mut events = refused(inner, object)
                    .into_iter()
                    .filter(|event| !self.before.contains(&trouble::line(event)));
                events.next_back().and_then(|event| event.message)
            }
        };
        let Some(message) = message else {
            self.since = None;
            return None;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        (since.elapsed() > REFUSED).then(|| trouble::of_refused_pods(&message))
    }
}

/// Returns a Deployment's message about pods that its ReplicaSets could not create.
fn replica_failure(now: &Value) -> Option<String> {
    let mut conditions = now["status"]["conditions"].as_array()?.iter();
    let failure = conditions.find(|one| one["type"] == "ReplicaFailure" && one["status"] == "True");
    Some(failure?["message"].as_str().unwrap_or_default().to_owned())
}

/// Returns the events about a workload's pods that could not be created, oldest first.
fn refused(inner: &Inner, object: &ObjectRef) -> Vec<v1::Event> {
    let events = pods::events_in(inner, &object.namespace, &object.name);
    let mut events = inner.within(ANSWER, events).unwrap_or_default();
    events.retain(|event| event.reason.as_deref() == Some("FailedCreate"));
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_says_which_pods_it_could_not_make() {
        for (status, expected) in [("True", Some("forbidden")), ("False", None)] {
            let failed = json!({"status": {"conditions": [{"type": "Available", "status": "True"},
                {"type": "ReplicaFailure", "status": status, "message": "forbidden"}]}});
            assert_eq!(replica_failure(&failed).as_deref(), expected);
        }
        assert_eq!(replica_failure(&json!({"status": {}})), None);
    }
}
