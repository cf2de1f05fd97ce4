//! A place in an object: written like a JSON pointer (RFC 6901), in which `[name=VALUE]` is the element of a list with
//! that field. A number is the index of an existing element.

use serde_json::{Map, Value, json};
use weir_kube::ObjectRef;

/// Splits a place before the first element of a list, or before the position within a text (behind `#`), since a merge
/// patch (RFC 7396) cannot express anything within either. The second part is empty if the place is within neither.
pub fn split_whole(at: &str) -> (&str, &str) {
    let end = at.find('#').unwrap_or(at.len());
    let mut from = 0;
    while let Some(found) = at[from..end].find('/') {
        let word = at[from + found + 1..end].split('/').next().unwrap_or_default();
        if word.starts_with('[') || word.parse::<usize>().is_ok() {
            return at.split_at(from + found);
        }
        from += found + 1;
    }
    at.split_at(end)
}

/// Returns the place and the former value that a merge patch needs to put back a place of an object. If the place is
/// within a list or a text, this is the whole list or text. If parents of the place are missing too, it is the outermost
/// missing one, because custom resources keep empty parents.
pub fn former_of(reference: &ObjectRef, object: &Value, at: &str) -> (String, Value) {
    let (whole, _) = split_whole(at);
    let group = reference.group();
    let keeps_empty =
        group.contains('.') && !group.ends_with(".k8s.io") && whole.starts_with("/spec/");
    let missing = whole
        .match_indices('/')
        .skip(1)
        .map(|(end, _)| &whole[..end])
        .filter(|_| keeps_empty)
        .find(|at| get(object, at).is_none());
    let at = missing.unwrap_or(whole);
    (at.to_owned(), get(object, at).cloned().unwrap_or_default())
}

/// A step from a value to one within it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Element { field: String, is: String },
}

/// A place in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectPath(Vec<Step>);

/// Sets the value at a place, a pointer as for [`crate::Changes::set`], and creates missing parents. Returns false if
/// another value is in the way.
pub fn set_at(object: &mut Value, at: &str, value: Value) -> bool {
    ObjectPath::parse(at).set(object, value)
}

/// Returns the value at a place.
pub(crate) fn get<'v>(object: &'v Value, at: &str) -> Option<&'v Value> {
    ObjectPath::parse(at).get(object)
}

/// Removes the value at a place, a pointer as for [`crate::Changes::set`]. For a place within an element of a list, the
/// whole element is removed, and with the last element the list, unless the list is `object` itself.
pub fn remove_at(object: &mut Value, at: &str) {
    ObjectPath::parse(at).remove(object);
}

impl ObjectPath {
    pub(crate) fn parse(text: &str) -> ObjectPath {
        let steps = text.split('/').skip(1).map(|word| {
            let key = word.replace("~1", "/").replace("~0", "~");
            let inside = key.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
            match inside.and_then(|inside| inside.split_once('=')) {
                Some((field, is)) => Step::Element { field: field.to_owned(), is: is.to_owned() },
                None => Step::Key(key),
            }
        });
        ObjectPath(steps.collect())
    }

    /// Returns the value at this place.
    pub(crate) fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, step| step.within(value))
    }

    /// Sets the value at this place, and creates missing parents. Returns false if another value is in the way.
    #[must_use]
    pub(crate) fn set(&self, object: &mut Value, value: Value) -> bool {
        let mut at = object;
        for step in &self.0 {
            match step.within_or_made(at) {
                Some(next) => at = next,
                None => return false,
            }
        }
        *at = value;
        true
    }

    /// Removes the value at this place. For a place within an element of a list, the whole element is removed, and with
    /// the last element the list.
    pub(crate) fn remove(&self, object: &mut Value) {
        remove(self.removed(), object);
    }

    /// Returns the steps to the value that a removal removes.
    fn removed(&self) -> &[Step] {
        let last = self.0.iter().rposition(|step| matches!(step, Step::Element { .. }));
        &self.0[..last.map_or(self.0.len(), |last| last + 1)]
    }

    /// Returns true if a removal at this place also removes another place.
    pub(crate) fn takes(&self, other: &ObjectPath) -> bool {
        other.0.starts_with(self.removed())
    }

    /// Restores the value at this place from `former`, and removes parents that were created for it. An element that is
    /// missing is inserted again as a whole, at its former position.
    pub(crate) fn put_back(&self, object: &mut Value, former: &Value) {
        put_back(&self.0, object, Some(former));
    }
}

impl Step {
    fn within<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Step::Key(key) => match value {
                Value::Array(elements) => elements.get(key.parse::<usize>().ok()?),
                value => value.as_object()?.get(key),
            },
            Step::Element { field, is } => {
                let mut elements = value.as_array()?.iter();
                elements.find(|element| element[field] == **is)
            }
        }
    }

    fn within_or_made<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        match self {
            Step::Key(key) => {
                if value.is_null() {
                    *value = Value::Object(Map::new());
                }
                match value {
                    Value::Array(elements) => elements.get_mut(key.parse::<usize>().ok()?),
                    value => Some(value.as_object_mut()?.entry(key).or_insert(Value::Null)),
                }
            }
            Step::Element { field, is } => {
                if value.is_null() {
                    *value = json!([]);
                }
                let elements = value.as_array_mut()?;
                let position = elements.iter().position(|element| element[field] == **is);
                let index = position.unwrap_or_else(|| {
                    elements.push(json!({field: is}));
                    elements.len() - 1
                });
                elements.get_mut(index)
            }
        }
    }

    /// Inserts an element at its position in `former`.
    fn insert(&self, into: &mut Value, element: &Value, former: &Value) {
        if into.is_null() {
            *into = json!([]);
        }
        if let Value::Array(elements) = into {
            let position = former
                .as_array()
                .into_iter()
                .flatten()
                .take_while(|other| *other != element)
                .count();
            elements.insert(position.min(elements.len()), element.clone());
        }
    }

    fn remove(&self, from: &mut Value) {
        match (self, from) {
            (Step::Key(key), Value::Object(map)) => drop(map.remove(key)),
            (Step::Element { field, is }, Value::Array(elements)) => {
                elements.retain(|element| element[field] != **is);
            }
            _ => {}
        }
    }

    /// Returns true if a value contains nothing but the way to this step.
    fn made(&self, value: &Value) -> bool {
        match value {
            Value::Object(map) => match self {
                Step::Element { field, .. } => map.keys().all(|key| key == field),
                Step::Key(_) => map.is_empty(),
            },
            Value::Array(elements) => elements.is_empty(),
            other => other.is_null(),
        }
    }
}

fn remove(steps: &[Step], from: &mut Value) {
    let Some((step, rest)) = steps.split_first() else {
        return;
    };
    if rest.is_empty() {
        return step.remove(from);
    }
    if step.within(from).is_none() {
        return;
    }
    if let Some(there) = step.within_or_made(from) {
        remove(rest, there);
        if matches!(there, Value::Array(elements) if elements.is_empty()) {
            step.remove(from);
        }
    }
}

fn put_back(steps: &[Step], now: &mut Value, former: Option<&Value>) {
    let Some((step, rest)) = steps.split_first() else {
        return;
    };
    let before = former.and_then(|former| step.within(former));
    if let (Step::Element { .. }, Some(former), Some(before), None) =
        (step, former, before, step.within(now))
    {
        return step.insert(now, before, former);
    }
    match (before, rest.is_empty()) {
        (None, true) => step.remove(now),
        (Some(before), true) => {
            if let Some(there) = step.within_or_made(now) {
                before.clone_into(there);
            }
        }
        (_, false) if before.is_none() && step.within(now).is_none() => {}
        (_, false) => {
            let Some(there) = step.within_or_made(now) else {
                return;
            };
            put_back(rest, there, before);
            if before.is_none() && step.made(there) {
                step.remove(now);
            }
        }
    }
}

/// Key of an object that stands for the value at another place of the same object.
const FROM: &str = "$from";

/// Replaces each `{"$from": POINTER}` within a value by the value at that place of an object.
///
/// # Errors
/// The first place without a value.
pub(crate) fn resolved(value: &Value, object: &Value) -> Result<Value, String> {
    match value {
        Value::Object(map) => match map.get(FROM).and_then(Value::as_str) {
            Some(at) => ObjectPath::parse(at).get(object).cloned().ok_or_else(|| at.to_owned()),
            None => map
                .iter()
                .map(|(key, value)| Ok((key.clone(), resolved(value, object)?)))
                .collect::<Result<Map<_, _>, String>>()
                .map(Value::Object),
        },
        Value::Array(elements) => elements
            .iter()
            .map(|value| resolved(value, object))
            .collect::<Result<Vec<_>, String>>()
            .map(Value::Array),
        other => Ok(other.clone()),
    }
}

/// Returns the places and values that the cluster has added to the sent object, if they did not exist before: defaults
/// that accompany a change.
pub(crate) fn added(sent: &Value, answer: &Value, former: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    add("", (sent, answer), Some(former), &mut all);
    all
}

fn add(
    at: &str,
    (sent, answer): (&Value, &Value),
    former: Option<&Value>,
    all: &mut Vec<(String, Value)>,
) {
    let (Value::Object(sent), Value::Object(answer)) = (sent, answer) else {
        return;
    };
    for (key, value) in answer {
        let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        match sent.get(key) {
            Some(sent) => {
                add(&at, (sent, value), former.and_then(|former| former.get(key)), all);
            }
            None if former.is_none() => all.push((at, value.clone())),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read_and_put_back_to_the_byte() {
        let sysctls = "/spec/template/spec/securityContext/sysctls/[name=net.core.somaxconn]/value";
        let with_other_sysctl = json!({"spec": {"template": {"spec": {"securityContext":
            {"sysctls": [{"name": "a", "value": "1"}]}}}}});
        for (at, object) in [
            ("/data/keep-alive", json!({"kind": "ConfigMap"})),
            ("/data/keep-alive", json!({"data": {}})),
            ("/data/keep-alive", json!({"data": {"keep-alive": "7", "b": "1"}})),
            ("/data/a~1b~0c", json!({"data": {"x": "y"}})),
            (sysctls, json!({"spec": {"template": {"spec": {"securityContext": {}}}}})),
            (sysctls, json!({"spec": {"template": {"spec": {}}}})),
            (sysctls, with_other_sysctl),
            (
                "/spec/template/spec/initContainers/[name=weir-sysctls]",
                json!({"spec": {"template": {"spec": {"containers": []}}}}),
            ),
            (
                "/spec/template/spec/initContainers/[name=weir-sysctls]",
                json!({"spec": {"template": {"spec": {"initContainers": [{"name": "theirs", "image": "x"}]}}}}),
            ),
            (
                "/metadata/annotations/nginx.ingress.kubernetes.io~1proxy-buffering",
                json!({"metadata": {"name": "web"}}),
            ),
            (
                "/spec/routes/0/timeoutPolicy/response",
                json!({"spec": {"routes": [{"services": []}, {}]}}),
            ),
        ] {
            let (pointer, mut now) = (ObjectPath::parse(at), object.clone());
            let new = json!({"name": "weir-sysctls", "image": "y"});
            assert!(pointer.set(&mut now, new.clone()), "{at}");
            assert_eq!(pointer.get(&now), Some(&new), "{now}");
            assert_ne!(now, object);
            pointer.put_back(&mut now, &object);
            assert_eq!(now, object, "{at}");
            pointer.put_back(&mut now, &object);
            assert_eq!(now, object, "{at}: twice");
        }
    }

    fn sorted_compressors(object: &Value) -> Vec<String> {
        let list = object["spec"]["compressor"].as_array();
        let mut texts: Vec<String> = list.into_iter().flatten().map(Value::to_string).collect();
        texts.sort();
        texts
    }

    #[test]
    fn what_is_taken_away_is_put_back_where_it_was() {
        let at = "/spec/compressor/[type=Gzip]/gzip";
        let [gzip, brotli, zstd] = [
            json!({"type": "Gzip", "gzip": {}, "minContentLength": 100}),
            json!({"type": "Brotli", "brotli": {}}),
            json!({"type": "Zstd", "zstd": {}}),
        ];
        for (list, without) in [
            (json!(null), json!({"other": 1})),
            (json!([gzip]), json!({"other": 1})),
            (json!([gzip, brotli]), json!({"other": 1, "compressor": [brotli]})),
            (json!([brotli, gzip, zstd]), json!({"other": 1, "compressor": [brotli, zstd]})),
            (json!([brotli]), json!({"other": 1, "compressor": [brotli]})),
        ] {
            let mut object = json!({"spec": {"other": 1}});
            if !list.is_null() {
                object["spec"]["compressor"] = list;
            }
            let (pointer, mut now) = (ObjectPath::parse(at), object.clone());
            pointer.remove(&mut now);
            assert_eq!(now["spec"], without);
            for _ in 0..2 {
                pointer.put_back(&mut now, &object);
                assert_eq!(now, object);
            }
            // And where it is set in between.
            pointer.remove(&mut now);
            assert!(pointer.set(&mut now, json!({"level": 1})));
            let length = ObjectPath::parse("/spec/compressor/[type=Gzip]/minContentLength");
            assert!(pointer.takes(&length));
            for pointer in [&pointer, &length] {
                pointer.put_back(&mut now, &object);
            }
            assert_eq!(sorted_compressors(&now), sorted_compressors(&object));
        }
    }

    #[test]
    fn a_place_within_a_list_or_a_text_is_told_from_others() {
        for (at, expected) in [
            ("/spec/a/b", ("/spec/a/b", "")),
            ("/spec/a/[n=x]/b", ("/spec/a", "/[n=x]/b")),
            ("/spec/routes/0/b", ("/spec/routes", "/0/b")),
            ("/data/a.yaml#/b/0", ("/data/a.yaml", "#/b/0")),
            ("/metadata/a.b~1c", ("/metadata/a.b~1c", "")),
        ] {
            assert_eq!(split_whole(at), expected);
        }
    }

    #[test]
    fn defaults_beside_a_value_are_known() {
        let former = json!({"metadata": {}, "spec": {"targetRefs": []}});
        let mut sent = former.clone();
        assert!(ObjectPath::parse("/spec/a~1b/most").set(&mut sent, json!(7)));
        let mut answer = sent.clone();
        answer["spec"]["a/b"]["pending"] = json!(1024);
        // Beside what was there before: somebody else's.
        answer["metadata"]["generation"] = json!(2);
        answer["spec"]["other"] = json!(true);
        let expected = [("/spec/a~1b/pending".to_owned(), json!(1024))];
        assert_eq!(added(&sent, &answer, &former), expected);
        for at in ["/spec/a~1b/pending", "/spec/a~1b/most"] {
            ObjectPath::parse(at).put_back(&mut answer, &former);
        }
        assert_eq!(answer["spec"], json!({"targetRefs": [], "other": true}));
    }

    #[test]
    fn what_a_value_has_from_elsewhere_is_put_in_its_place() {
        let object =
            json!({"spec": {"containers": [{"name": "a", "image": "x:1"}], "labels": {"b": "c"}}});
        let value = json!({"image": {"$from": "/spec/containers/[name=a]/image"},
            "terms": [{"labels": {"$from": "/spec/labels"}}], "n": 1});
        let expected = json!({"image": "x:1", "terms": [{"labels": {"b": "c"}}], "n": 1});
        assert_eq!(resolved(&value, &object), Ok(expected));
        let nowhere = json!([{"$from": "/spec/none"}]);
        assert_eq!(resolved(&nowhere, &object), Err("/spec/none".to_owned()));
    }

    #[test]
    fn what_others_have_added_stays() {
        let (former, at) = (json!({}), ObjectPath::parse("/data/mine"));
        let mut now = former.clone();
        assert!(at.set(&mut now, json!("1")));
        now["data"]["theirs"] = json!("2");
        at.put_back(&mut now, &former);
        assert_eq!(now, json!({"data": {"theirs": "2"}}));
        // A text is in the way.
        let mut text = json!({"data": "text"});
        assert!(!at.set(&mut text, json!("1")));
        assert!(!ObjectPath::parse("/list/1/a").set(&mut json!({"list": [{}]}), json!("1")));
    }

    #[test]
    fn what_would_have_to_be_put_back_is_found() {
        let object = json!({"spec": {"a": {"b": 1}, "list": [{"n": "x"}]}, "data": {"f": "text"}});
        let (custom, usual) = ("gateway.envoyproxy.io/v1alpha1", "networking.k8s.io/v1");
        for (api, at, expected, value) in [
            (custom, "/spec/a/b", "/spec/a/b", json!(1)),
            (custom, "/spec/a/c", "/spec/a/c", json!(null)),
            (custom, "/spec/c/d/e", "/spec/c", json!(null)),
            (custom, "/spec/list/[n=x]/v", "/spec/list", json!([{"n": "x"}])),
            (custom, "/spec/list/0/v", "/spec/list", json!([{"n": "x"}])),
            (custom, "/spec/others/[n=x]/v", "/spec/others", json!(null)),
            (custom, "/metadata/annotations/a", "/metadata/annotations/a", json!(null)),
            (usual, "/metadata/annotations/a", "/metadata/annotations/a", json!(null)),
            ("v1", "/data/f#/a/b", "/data/f", json!("text")),
            ("apps/v1", "/spec/c/d", "/spec/c/d", json!(null)),
        ] {
            let reference = ObjectRef {
                api: api.to_owned(),
                kind: "K".to_owned(),
                resource: "ks".to_owned(),
                namespace: "n".to_owned(),
                name: "k".to_owned(),
            };
            let former = former_of(&reference, &object, at);
            assert_eq!(former, (expected.to_owned(), value), "{api} {at}");
        }
    }
}
