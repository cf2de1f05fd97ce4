//! Patches as commands for kubectl.

use serde_json::{Value, json};
use weir_kube::ObjectRef;

/// Returns true if Kubernetes has a strategic merge patch for the object.
pub(super) fn is_workload(object: &ObjectRef) -> bool {
    object.api == "apps/v1"
}

/// Converts a value for a strategic patch of a workload. Null for an element of a list becomes its deletion. For an
/// object that replaces `other`, the fields that only `other` has become null.
pub(super) fn in_strategic(at: &str, value: Value, other: Option<&Value>) -> Value {
    let last = at.rsplit('/').next().unwrap_or_default();
    let element = last.strip_prefix('[').and_then(|step| step.strip_suffix(']')?.split_once('='));
    match (element, value) {
        (Some((field, is)), Value::Null) => {
            json!({"$patch": "delete", field: is.replace("~1", "/").replace("~0", "~")})
        }
        (None, Value::Object(mut map)) => {
            for field in other.and_then(Value::as_object).into_iter().flatten() {
                map.entry(field.0.clone()).or_insert(Value::Null);
            }
            Value::Object(map)
        }
        (_, value) => value,
    }
}

/// Returns the command for a JSON merge patch (RFC 7396); for a workload, a strategic one, which keeps the other fields
/// of its containers.
pub(super) fn merge((object, patch): (&ObjectRef, &Value)) -> String {
    let kind = if is_workload(object) { "strategic" } else { "merge" };
    command(object, kind, patch)
}

/// Returns the command for a JSON patch (RFC 6902) that does nothing unless the present value is `now`.
pub(super) fn replace(object: &ObjectRef, at: &str, (now, wanted): (&Value, &Value)) -> String {
    let patch = json!([
        {"op": "test", "path": at, "value": now},
        {"op": "replace", "path": at, "value": wanted},
    ]);
    command(object, "json", &patch)
}

fn command(object: &ObjectRef, kind: &str, patch: &Value) -> String {
    let ObjectRef { api, resource, namespace, name, .. } = object;
    let group = api.rsplit_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    let quoted = patch.to_string().replace('\'', r"'\''");
    format!(
        "kubectl patch {resource}{group}/{name} --namespace {namespace} --type {kind} --patch '{quoted}'\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_of_a_workload_changes_its_place_and_nothing_else() {
        let spread =
            "/spec/template/spec/topologySpreadConstraints/[topologyKey=kubernetes.io~1hostname]";
        let selector = "/spec/template/spec/nodeSelector";
        let element = json!({"topologyKey": "kubernetes.io/hostname", "maxSkew": 1});
        let opposite = json!({"pool": "b", "zone": "c"});
        for (at, value, expected) in [
            (spread, element.clone(), element),
            (
                spread,
                Value::Null,
                json!({"$patch": "delete", "topologyKey": "kubernetes.io/hostname"}),
            ),
            (selector, json!({"pool": "a"}), json!({"pool": "a", "zone": null})),
            (selector, Value::Null, Value::Null),
            ("/spec/template/spec/tolerations", json!([]), json!([])),
            ("/spec/replicas", json!(2), json!(2)),
        ] {
            assert_eq!(in_strategic(at, value, Some(&opposite)), expected, "{at}");
        }
        let alone = json!({"pool": "a"});
        assert_eq!(in_strategic(selector, alone.clone(), None), alone);
    }
}
