//! Health of nodes, as the cluster reports it.

use std::time::Duration;

use k8s_openapi::api::core::v1;
use kube::Api;

use crate::error::KubeError;
use crate::inner::Inner;

/// Time limit for the cluster to report the state of a node.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// Returns the cluster's message about a node that is gone or not ready; `None`: the node is fine, or may not be read.
pub fn lost(inner: &Inner, node: &str) -> Option<String> {
    inner.within(ANSWER, of(inner, node))?.unwrap_or(None)
}

/// Asynchronous version of [`lost`]; fails if nodes may not be read.
pub(crate) async fn of(inner: &Inner, node: &str) -> Result<Option<String>, kube::Error> {
    let api: Api<v1::Node> = Api::all(inner.client.clone());
    Ok(match api.get_opt(node).await? {
        None => Some("the cluster has no such node any more".to_owned()),
        Some(node) => not_ready(&node),
    })
}

/// Returns the reason why a node is not ready; `None` if it is ready.
fn not_ready(node: &v1::Node) -> Option<String> {
    let mut conditions = node.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    (ready.status != "True").then(|| {
        let words: Vec<&str> = [&ready.reason, &ready.message]
            .into_iter()
            .filter_map(|text| text.as_deref())
            .collect();
        format!("it is not ready: {}", words.join(": "))
    })
}

/// Replaces an error of an operation on a node by [`KubeError::Node`] if the node is lost.
pub fn explained(inner: &Inner, node: &str, error: KubeError) -> KubeError {
    match error {
        KubeError::Overdue { .. } | KubeError::Unreachable { .. } | KubeError::Request { .. } => {
            match lost(inner, node) {
                Some(why) => KubeError::Node { node: node.to_owned(), why },
                None => error,
            }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ready(status: &str) -> Value {
        json!([{"type": "MemoryPressure", "status": "False"}, {"type": "Ready",
            "status": status, "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}])
    }

    #[test]
    fn a_node_is_lost_when_it_is_not_ready() {
        for (conditions, expected) in [
            (ready("True"), None),
            (json!([]), None),
            (
                ready("Unknown"),
                Some("it is not ready: NodeStatusUnknown: Kubelet stopped posting node status."),
            ),
            (json!([{"type": "Ready", "status": "False"}]), Some("it is not ready: ")),
        ] {
            let node: v1::Node = serde_json::from_value(
                json!({"metadata": {}, "status": {"conditions": conditions}}),
            )
            .unwrap();
            let reason = not_ready(&node);
            assert_eq!(reason.as_deref(), expected, "{conditions}");
        }
    }
}
