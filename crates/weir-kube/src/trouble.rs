//! Reasons why a pod does not run, derived from the cluster's reports.

use k8s_openapi::api::core::v1::{ContainerState, Event, Pod};

/// Reason why a pod does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub why: String,
    pub hint: Option<&'static str>,
    /// True if waiting is useless.
    pub is_final: bool,
}

const IMAGE: &str = "write the image with `weir kube image weir.tar`, push it where the nodes can pull it, and name it with --image";
const ROOM: &str = "ask for fewer --generators or less of --pod-cpus and --pod-memory, choose other nodes with --node-selector and \
                    --toleration, or add --share-nodes: generators then share nodes with each other and with the proxy";
const EVICTED: &str =
    "the node ran out of something: choose another node, or ask for more --pod-memory";

const MEND: &str =
    "weir has not changed its template: mend it first, such as with `kubectl rollout undo`";
/// Advice for a workload's pods that fit no node.
pub const PLACES: &str = "a node must satisfy all that the pods ask for: node_selector, pod_affinity, pod_anti_affinity, spread, requests \
                      and host ports; its taints need tolerations; `kubectl get nodes --show-labels` shows what nodes have";
const SYSCTLS: &str = "whoever runs the node can let pods set it (--allowed-unsafe-sysctls of the kubelet); settings that Kubernetes \
                       calls safe need nothing, see `weir parameters NAME`";

impl Trouble {
    /// Adapts the advice to a pod of somebody else's workload, since advice about weir's own pods does not apply there.
    pub fn of_workload(self, is_changed: bool) -> Trouble {
        let about_sysctls = self.hint.filter(|hint| *hint == SYSCTLS);
        let hint = match (is_changed, self.is_final) {
            (false, _) => about_sysctls.or(Some(MEND)),
            (true, true) => about_sysctls,
            (true, false) => Some(PLACES),
        };
        Trouble { hint, ..self }
    }
}

/// Reasons for a container's waiting that do not pass by themselves, each with a description and advice.
const WAITING: [(&str, &str, Option<&str>); 7] = [
    ("ErrImagePull", "its image cannot be pulled", Some(IMAGE)),
    ("ImagePullBackOff", "its image cannot be pulled", Some(IMAGE)),
    ("InvalidImageName", "its image has no valid name", Some(IMAGE)),
    ("ErrImageNeverPull", "its image is not on the node", Some(IMAGE)),
    ("CreateContainerConfigError", "its container cannot be made", None),
    ("CreateContainerError", "its container cannot be made", None),
    ("RunContainerError", "its container cannot be started", None),
];

/// Returns the reason why a pod does not run; `None`: it runs, or no reason is known.
pub fn of_pod(pod: &Pod) -> Option<Trouble> {
    let status = pod.status.as_ref()?;
    match status.reason.as_deref() {
        Some("Evicted" | "Preempting" | "Preempted") => {
            let why = format!("it was evicted: {}", join_words(&[&status.message]));
            return Some(Trouble { why, hint: Some(EVICTED), is_final: true });
        }
        Some("NodeLost" | "NodeShutdown" | "Terminated" | "Shutdown") => {
            let why =
                format!("its node went away: {}", join_words(&[&status.reason, &status.message]));
            return Some(Trouble { why, hint: None, is_final: true });
        }
        _ => {}
    }
    // Init containers end, and only one that fails keeps a pod from running.
    let first = status
        .init_container_statuses
        .iter()
        .flatten()
        .filter_map(|container| container.state.as_ref())
        .filter(|state| state.terminated.as_ref().is_none_or(|end| end.exit_code != 0));
    let containers =
        status.container_statuses.iter().flatten().filter_map(|container| container.state.as_ref());
    for state in first.chain(containers) {
        if let Some(trouble) = of_container(state) {
            return Some(trouble);
        }
    }
    if pod.metadata.deletion_timestamp.is_some() {
        let why = "it is being deleted".to_owned();
        return Some(Trouble { why, hint: None, is_final: true });
    }
    if status.phase.as_deref() == Some("Failed") {
        let why = format!("it failed: {}", join_words(&[&status.reason, &status.message]));
        let is_forbidden = status.reason.as_deref() == Some("SysctlForbidden");
        return Some(Trouble { why, hint: is_forbidden.then_some(SYSCTLS), is_final: true });
    }
    if status.phase.as_deref() == Some("Succeeded") {
        let why = "its process has ended".to_owned();
        return Some(Trouble { why, hint: None, is_final: true });
    }
    let mut conditions = status.conditions.iter().flatten();
    let unscheduled = conditions.find(|one| {
        one.type_ == "PodScheduled" && one.reason.as_deref() == Some("Unschedulable")
    })?;
    // An autoscaler may bring a node.
    let why = format!("no node can take it: {}", join_words(&[&unscheduled.message]));
    Some(Trouble { why, hint: Some(ROOM), is_final: false })
}

fn join_words(parts: &[&Option<String>]) -> String {
    let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_deref()).collect();
    parts.join(": ")
}

fn of_container(state: &ContainerState) -> Option<Trouble> {
    if let Some(ended) = &state.terminated {
        let why = match ended.reason.as_deref() {
            Some("OOMKilled") => {
                "it was killed because it used more memory than its limit".to_owned()
            }
            reason => {
                let message = ended.message.as_deref().unwrap_or_default().trim();
                format!(
                    "its process ended with exit code {} ({}){}{message}",
                    ended.exit_code,
                    reason.unwrap_or("no reason is given"),
                    if message.is_empty() { "" } else { ": " }
                )
            }
        };
        let hint = (ended.reason.as_deref() == Some("OOMKilled"))
            .then_some("give it more with --pod-memory");
        return Some(Trouble { why, hint, is_final: true });
    }
    let waiting = state.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let (_, why, hint) = WAITING.into_iter().find(|(known, ..)| *known == reason)?;
    let message = waiting.message.as_deref().unwrap_or_default();
    Some(Trouble { why: format!("{why}: {reason}: {message}"), hint, is_final: true })
}

/// Returns the reason why a Job creates no pods, from its events: quota, limits, a policy.
pub(crate) fn of_job(events: &[Event]) -> Option<Trouble> {
    let refused =
        events.iter().rev().find(|event| event.reason.as_deref() == Some("FailedCreate"))?;
    Some(Trouble {
        why: format!(
            "the cluster refuses its pods: {}",
            refused.message.as_deref().unwrap_or_default()
        ),
        hint: Some(
            "a quota, a limit range or an admission policy of the namespace stands against it: choose another namespace with \
             --on kubernetes:CONTEXT/NAMESPACE, or ask for less",
        ),
        is_final: true,
    })
}

/// Returns the reason why a workload's new pods are not created, from the cluster's message.
pub fn of_refused_pods(said: &str) -> Trouble {
    Trouble {
        why: format!("the cluster refuses them: {said}"),
        hint: Some(
            "a quota, a limit range or an admission policy of the namespace stands against them; Pod Security must allow \
             `privileged` for `sysctls: init-container`",
        ),
        is_final: true,
    }
}

/// Formats an event as a line.
pub fn line(event: &Event) -> String {
    let times = match event.count {
        Some(count) if count > 1 => format!(" ({count} times)"),
        _ => String::new(),
    };
    let kind = event.type_.as_deref().unwrap_or_default();
    let reason = event.reason.as_deref().unwrap_or_default();
    let message = event.message.as_deref().unwrap_or_default().trim();
    format!("{kind} {reason}: {message}{times}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap()
    }

    fn container(state: Value) -> Value {
        json!({"phase": "Pending", "containerStatuses": [{"name": "weir", "image": "", "imageID": "",
            "ready": false, "restartCount": 0, "state": state}]})
    }

    fn init(state: Value) -> Value {
        let mut status = container(state);
        status["initContainerStatuses"] = status["containerStatuses"].take();
        status["containerStatuses"] = json!([]);
        status
    }

    #[test]
    fn each_way_not_to_run_has_its_words() {
        for (status, why, is_final) in [
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
                "evicted: low on memory",
                true,
            ),
            (json!({"phase": "Failed", "reason": "NodeLost"}), "its node went away", true),
            (
                container(
                    json!({"waiting": {"reason": "ErrImagePull", "message": "no such host"}}),
                ),
                "cannot be pulled: ErrImagePull: no such host",
                true,
            ),
            (
                container(json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})),
                "more memory than its limit",
                true,
            ),
            (container(json!({"terminated": {"exitCode": 2}})), "exit code 2", true),
            (
                init(
                    json!({"terminated": {"exitCode": 2, "reason": "Error", "message": "sh: read-only\n"}}),
                ),
                "exit code 2 (Error): sh: read-only",
                true,
            ),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                    "reason": "Unschedulable", "message": "0/1 nodes are available"}]}),
                "no node can take it: 0/1 nodes are available",
                false,
            ),
        ] {
            let trouble = of_pod(&pod(status.clone())).unwrap();
            assert!(trouble.why.contains(why), "{status}: {}", trouble.why);
            assert_eq!(trouble.is_final, is_final, "{status}");
        }
        for fine in [
            json!({"phase": "Running"}),
            json!({"phase": "Pending"}),
            container(json!({"waiting": {"reason": "ContainerCreating"}})),
            init(json!({"terminated": {"exitCode": 0, "reason": "Completed"}})),
        ] {
            assert_eq!(of_pod(&pod(fine.clone())), None, "{fine}");
        }
    }

    fn event(reason: &str, message: &str) -> Event {
        serde_json::from_value(
            json!({"metadata": {}, "involvedObject": {}, "reason": reason, "message": message,
            "type": "Warning", "count": 3}),
        )
        .unwrap()
    }

    #[test]
    fn a_quota_is_told_from_the_events_of_the_job() {
        let events =
            [event("SuccessfulCreate", "made"), event("FailedCreate", "exceeded quota: small")];
        assert!(of_job(&events).unwrap().why.contains("exceeded quota: small"));
        assert_eq!(of_job(&events[..1]), None);
        assert_eq!(line(&events[1]), "Warning FailedCreate: exceeded quota: small (3 times)");
    }
}
