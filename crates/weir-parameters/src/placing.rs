//! Placement of pods: labels and tolerations as levels (text) and as JSON in objects of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Prefix of the cluster's own taints. The cluster adds tolerations of them to pods: all pods of a DaemonSet have some,
/// and the admission plugin DefaultTolerationSeconds adds two.
pub(crate) const OF_CLUSTER: &str = "node.kubernetes.io/";
/// Effects of a taint.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Maximum length of a label's name and of its value.
const LONGEST: usize = 63;
/// Maximum length of the prefix of a name, a DNS subdomain (RFC 1123).
const LONGEST_PREFIX: usize = 253;

/// Returns true if a text has only letters, digits and the characters in `between`, and begins and ends with a letter
/// or digit.
fn is_word(text: &str, between: &[u8], longest: usize) -> bool {
    text.len() <= longest
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || between.contains(&byte))
        && [text.bytes().next(), text.bytes().next_back()]
            .into_iter()
            .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns true if a text is the key of a label: a name with an optional prefix before a `/`.
fn is_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(|text| {
        let is_lower = text.bytes().all(|byte| !byte.is_ascii_uppercase());
        is_lower && is_word(text, b"-.", LONGEST_PREFIX)
    }) && is_word(name, b"-_.", LONGEST)
}

fn is_value(text: &str) -> bool {
    is_word(text, b"-_.", LONGEST)
}

/// Spells labels as `key=value,key=value` in the order of the keys, each once.
pub(crate) fn labels(text: &str) -> Option<String> {
    let mut all = BTreeMap::new();
    for pair in text.split(',') {
        let (key, value) = pair.trim().split_once('=')?;
        let fits = is_key(key) && (value.is_empty() || is_value(value));
        if !fits || all.insert(key, value).is_some() {
            return None;
        }
    }
    Some(joined(all.iter().map(|(key, value)| format!("{key}={value}"))))
}

/// Converts labels to a JSON object.
pub(crate) fn labels_json(level: &str) -> Value {
    let pairs = level
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), Value::from(value)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// Converts a JSON object of labels to a level. Other values are returned as JSON.
pub(crate) fn labels_told(value: &Value) -> String {
    let pairs =
        value.as_object().into_iter().flatten().map(|(key, value)| Some((key, value.as_str()?)));
    let pairs: Option<BTreeMap<&String, &str>> = pairs.collect();
    match pairs.filter(|_| value.is_object()) {
        Some(pairs) => joined(pairs.iter().map(|(key, value)| format!("{key}={value}"))),
        None => value.to_string(),
    }
}

/// Spells tolerations as `key=value:Effect,key:Effect`, sorted.
pub(crate) fn tolerations(text: &str) -> Option<String> {
    let all: Option<BTreeSet<String>> = text
        .split(',')
        .map(str::trim)
        .map(|text| {
            let (taint, effect) = text.rsplit_once(':')?;
            let (key, value) = match taint.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (taint, None),
            };
            let fits = is_key(key) && !key.starts_with(OF_CLUSTER) && value.is_none_or(is_value);
            (fits && EFFECTS.contains(&effect)).then(|| text.to_owned())
        })
        .collect();
    all.map(joined)
}

/// Converts tolerations to a JSON list.
pub(crate) fn tolerations_json(level: &str) -> Value {
    Value::Array(
        level
            .split(',')
            .filter_map(|text| {
                let (taint, effect) = text.rsplit_once(':')?;
                Some(match taint.split_once('=') {
                    Some((key, value)) => {
                        json!({"key": key, "operator": "Equal", "value": value, "effect": effect})
                    }
                    None => json!({"key": taint, "operator": "Exists", "effect": effect}),
                })
            })
            .collect(),
    )
}

/// Converts a JSON list of tolerations to a level, without those of the cluster's own taints. A toleration that no
/// level stands for is included as JSON.
pub(crate) fn tolerations_told(value: &Value) -> String {
    match value.as_array() {
        Some(all) => {
            let tolerations = all.iter().filter(|toleration| !is_of_cluster(toleration));
            joined(tolerations.map(write_toleration).collect::<BTreeSet<String>>())
        }
        None => value.to_string(),
    }
}

fn is_of_cluster(toleration: &Value) -> bool {
    toleration["key"].as_str().unwrap_or_default().starts_with(OF_CLUSTER)
}

fn write_toleration(toleration: &Value) -> String {
    let [key, value, effect, operator] = ["key", "value", "effect", "operator"]
        .map(|name| toleration[name].as_str().unwrap_or_default());
    let is_plain =
        !key.is_empty() && !effect.is_empty() && toleration.get("tolerationSeconds").is_none();
    match operator {
        "Exists" if is_plain => format!("{key}:{effect}"),
        "Equal" | "" if is_plain => format!("{key}={value}:{effect}"),
        _ => toleration.to_string(),
    }
}

fn joined(all: impl IntoIterator<Item = String>) -> String {
    all.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_back_from_what_it_stands_as() {
        type Grammar = (fn(&str) -> Option<String>, fn(&str) -> Value, fn(&Value) -> String);
        let of_labels: Grammar = (labels, labels_json, labels_told);
        let of_taints: Grammar = (tolerations, tolerations_json, tolerations_told);
        for ((check, to_json, told), text, canonical) in [
            (of_labels, "pool=ingress", Some("pool=ingress")),
            (of_labels, "zone=a, example.org/pool=x_1", Some("example.org/pool=x_1,zone=a")),
            (
                of_labels,
                "node-role.kubernetes.io/ingress=",
                Some("node-role.kubernetes.io/ingress="),
            ),
            (of_labels, "pool", None),
            (of_labels, "pool=a,pool=b", None),
            (of_labels, "pool=a;b", None),
            (of_labels, "Example.org/pool=a", None),
            (of_labels, "a/b/c=d", None),
            (of_labels, "-pool=a", None),
            (of_labels, "", None),
            (of_taints, "dedicated=ingress:NoSchedule", Some("dedicated=ingress:NoSchedule")),
            (of_taints, "b:NoExecute,a=1:NoSchedule", Some("a=1:NoSchedule,b:NoExecute")),
            (of_taints, "dedicated=ingress", None),
            (of_taints, "dedicated=ingress:Never", None),
            (of_taints, "dedicated=:NoSchedule", None),
            (of_taints, "node.kubernetes.io/not-ready:NoExecute", None),
            (of_taints, ":NoSchedule", None),
        ] {
            let level = check(text);
            assert_eq!(level.as_deref(), canonical, "{text}");
            if let Some(level) = level {
                assert_eq!(told(&to_json(&level)), level);
                assert_eq!(check(&level), Some(level));
            }
        }
    }

    #[test]
    fn tolerations_that_the_cluster_adds_are_nobodys_setting() {
        for (found, expected) in [
            (
                json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 300}, {"key": "a", "value": "1", "effect": "NoSchedule"}]),
                "a=1:NoSchedule",
            ),
            (json!([{"key": "node.kubernetes.io/disk-pressure", "operator": "Exists"}]), ""),
            (json!([{"operator": "Exists"}]), r#"{"operator":"Exists"}"#),
        ] {
            assert_eq!(tolerations_told(&found), expected);
        }
        assert_eq!(labels_told(&json!({"a": 1})), r#"{"a":1}"#);
    }
}
