//! Pods of a workload.

use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use crate::error::KubeError;
use crate::inner::Inner;
use crate::object_ref::ObjectRef;

/// Reads a workload; fails if it does not exist.
pub fn read(inner: &Inner, object: &ObjectRef) -> Result<Value, KubeError> {
    object.now(inner)?.ok_or_else(|| KubeError::Request {
        doing: format!("cannot read {object}"),
        why: "there is no such object".to_owned(),
    })
}

/// Returns the label selector for a workload's pods.
fn selector(now: &Value) -> String {
    let labels = now["spec"]["selector"]["matchLabels"].as_object();
    let pairs: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    pairs.join(",")
}

/// Returns true if a pod is not being deleted.
pub fn stays(pod: &v1::Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

/// Reads a workload and its pods, except those that are being deleted.
pub fn with_pods(inner: &Inner, object: &ObjectRef) -> Result<(Value, Vec<v1::Pod>), KubeError> {
    let (now, mut pods) = with_all_pods(inner, object)?;
    pods.retain(stays);
    Ok((now, pods))
}

/// Reads a workload and all of its pods.
pub fn with_all_pods(
    inner: &Inner,
    object: &ObjectRef,
) -> Result<(Value, Vec<v1::Pod>), KubeError> {
    let now = read(inner, object)?;
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &object.namespace);
    let labelled = ListParams::default().labels(&selector(&now));
    let doing = format!("list pods of {object}");
    let list = inner.run(&doing, async {
        let list = api.list(&labelled).await;
        list.map_err(|error| inner.failed(&doing, error))
    })?;
    Ok((now, list.items))
}

/// Returns the running pods of a workload; fails if there are none.
pub fn running(inner: &Inner, object: &ObjectRef) -> Result<Vec<v1::Pod>, KubeError> {
    let (_, mut pods) = with_pods(inner, object)?;
    pods.retain(runs);
    if pods.is_empty() {
        Err(KubeError::Request {
            doing: format!("cannot ask the pods of {object}"),
            why: "none of them runs".to_owned(),
        })
    } else {
        Ok(pods)
    }
}

/// Returns true if a pod runs and is not being deleted.
pub fn runs(pod: &v1::Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase == Some("Running") && stays(pod)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_selected_by_all_labels() {
        let now = json!({"spec": {"selector": {"matchLabels": {"app": "a", "b": "c"}}}});
        assert_eq!(selector(&now), "app=a,b=c");
    }
}
