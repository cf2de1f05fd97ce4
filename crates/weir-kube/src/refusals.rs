//! Pods that the cluster does not make for a workload.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use serde_json::Value;

use crate::inner::Inner;
use crate::object_ref::ObjectRef;
use crate::pods;
use crate::trouble::{self, Trouble};

/// How long the cluster must refuse new pods until that is believed.
const REFUSED: Duration = Duration::from_secs(5);
/// How long its events may be asked for.
const ANSWER: Duration = Duration::from_secs(20);

/// What the cluster says against new pods of a workload: a quota, a policy. It may be about pods that are older than the
/// change, or pass, so it counts once it is said for a while.
pub(crate) struct Refusals {
    /// Events about it at the beginning.
    before: Vec<String>,
    since: Option<Instant>,
}

impl Refusals {
    /// Looks at what is said before anything is changed.
    pub(crate) fn begin(inner: &Inner, object: &ObjectRef) -> Refusals {
        Refusals {
            before: refused(inner, object).iter().map(trouble::line).collect(),
            since: None,
        }
    }

    /// What is said now, once that has lasted.
    pub(crate) fn last(
        &mut self,
        inner: &Inner,
        object: &ObjectRef,
        now: &Value,
    ) -> Option<Trouble> {
        // A Deployment has a condition for it, a DaemonSet its events alone.
        let said = match object.resource.as_str() {
            "deployments" => replica_failure(now),
            _ => {
                let events = refused(inner, object).into_iter();
                let mut events =
                    events.filter(|event| !self.before.contains(&trouble::line(event)));
                events.next_back().and_then(|event| event.message)
            }
        };
        let Some(said) = said else {
            self.since = None;
            return None;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        (since.elapsed() > REFUSED).then(|| trouble::of_refused_pods(&said))
    }
}

/// What a Deployment says of pods that its ReplicaSets could not make.
fn replica_failure(now: &Value) -> Option<String> {
    let mut conditions = now["status"]["conditions"].as_array()?.iter();
    let failure = conditions.find(|one| one["type"] == "ReplicaFailure" && one["status"] == "True");
    Some(failure?["message"].as_str().unwrap_or_default().to_owned())
}

/// Events that say that a workload's pods could not be made, oldest first.
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
        let failed = |status: &str| {
            json!({"status": {"conditions": [{"type": "Available", "status": "True"},
                {"type": "ReplicaFailure", "status": status, "message": "forbidden"}]}})
        };
        assert_eq!(
            replica_failure(&failed("True")).as_deref(),
            Some("forbidden")
        );
        assert_eq!(replica_failure(&failed("False")), None);
        assert_eq!(replica_failure(&json!({"status": {}})), None);
    }
}
