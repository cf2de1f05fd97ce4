//! Conditions that a controller writes to an object from which it configures a proxy.

use serde_json::Value;
use weir_kube::Cluster;
use weir_kube::KubeError;
use weir_kube::ObjectRef;

/// Condition types that, with status `False`, show that the object is rejected: those of the Gateway API's policies,
/// and of Contour's HTTPProxy.
const TAKEN: [&str; 2] = ["Accepted", "Valid"];

/// Returns the reason why a controller rejects the present object, in the controller's own words; `None`: it accepts
/// the object, or has not decided yet.
///
/// # Errors
/// The object cannot be read.
pub fn not_taken(cluster: &Cluster, object: &ObjectRef) -> Result<Option<String>, KubeError> {
    let now = object.now(&cluster.inner)?;
    Ok(now.as_ref().and_then(find_rejection))
}

/// Returns the first condition that rejects an object: one of its own, or of an object that it applies to
/// (`ancestors`).
fn find_rejection(now: &Value) -> Option<String> {
    let generation = &now["metadata"]["generation"];
    let status = &now["status"];
    let mut conditions = status["ancestors"]
        .as_array()
        .into_iter()
        .flatten()
        .chain([status])
        .filter_map(|of| of["conditions"].as_array())
        .flatten();
    let condition = conditions.find(|condition| {
        let is_current = condition.get("observedGeneration").is_none_or(|seen| seen == generation);
        let kind = condition["type"].as_str().unwrap_or_default();
        is_current && condition["status"] == "False" && TAKEN.contains(&kind)
    })?;
    // HTTPProxy tells the errors beside a message that only says that there are some.
    let mut words: Vec<String> = condition["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|error| text_of(error, "message"))
        .collect();
    if words.is_empty() {
        words.push(text_of(condition, "message"));
    }
    let (kind, reason) = (text_of(condition, "type"), text_of(condition, "reason"));
    Some(format!("{kind} is False, {reason}: {}", words.join("; ")))
}

fn text_of(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(seen: u32, kind: &str, status: &str) -> Value {
        json!({"metadata": {"generation": 2}, "status": {"ancestors": [{"conditions": [
            {"type": "Programmed", "status": "True", "observedGeneration": 2},
            {"type": kind, "status": status, "reason": "Invalid", "message": "out of range",
             "observedGeneration": seen},
        ]}]}})
    }

    #[test]
    fn a_condition_speaks_of_the_object_as_it_is_now() {
        let proxy = json!({"metadata": {"generation": 2}, "status": {"conditions": [
            {"type": "Valid", "status": "False", "reason": "ErrorPresent", "message": "see Errors",
             "errors": [{"message": "no service"}]},
        ]}});
        for (object, expected) in [
            (policy(2, "Accepted", "False"), Some("Accepted is False, Invalid: out of range")),
            (policy(1, "Accepted", "False"), None),
            (policy(2, "Accepted", "True"), None),
            (policy(2, "Merged", "False"), None),
            (proxy, Some("Valid is False, ErrorPresent: no service")),
            (json!({"metadata": {}, "data": {}}), None),
        ] {
            assert_eq!(find_rejection(&object).as_deref(), expected, "{object}");
        }
    }
}
