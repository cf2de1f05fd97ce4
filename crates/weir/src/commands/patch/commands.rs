//! Commands for kubectl that write an arm's values into objects of a cluster, or restore the values from before the
//! run.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_kube::ObjectRef;
use weir_model::record::Record;
use weir_model::study::{Arm, Settings};
use weir_parameters::Catalog;
use weir_record::Run;

use super::kubectl::{in_strategic, is_workload, merge, replace};
use super::tell;
use crate::failure::Failure;
use crate::terminal;

/// JSON text that stands for a value from elsewhere in the object.
const FROM: &str = "\"$from\"";
/// Text in place of an unknown value.
const UNKNOWN: &str = "?";

/// An object, a path in it, and the value there.
type Change = (ObjectRef, String, Value);

/// Patches and remarks for the objects of an arm.
#[derive(Default)]
struct Commands {
    /// True if the commands restore the objects, false if they apply the arm's values.
    back: bool,
    /// Patch to merge into each object.
    patches: BTreeMap<ObjectRef, Value>,
    /// Lists and texts, which are replaced as a whole: their values before the run, and with the arm's changes.
    wholes: BTreeMap<(ObjectRef, String), (Value, Value)>,
    by_hand: Vec<String>,
    /// Places that are removed with everything they contain now.
    removed: Vec<String>,
}

/// Prints a command for each object. `former` holds the levels in force in place of the arm's settings, and makes the
/// commands restore the objects. It is used if the run has not kept the objects' former values; a setting that it lacks
/// is removed.
pub(super) fn print(
    run: &Run,
    catalog: &Catalog,
    arm: &Arm,
    former: Option<&Settings>,
) -> Result<(), Failure> {
    let study = &run.header.study;
    let changes = weir_lab::changes_of(study, catalog, arm);
    let in_force = former.map(|settings| {
        let former_arm = Arm { settings: settings.clone(), ..arm.clone() };
        weir_lab::changes_of(study, catalog, &former_arm)
    });
    let mut commands = Commands { back: former.is_some(), ..Commands::default() };
    for (object, at, value) in &changes {
        if object.is_of_node() {
            let value = value_in_force(in_force.as_deref(), (object, at), value);
            commands.of_node(object, &value);
        } else if is_within(object, at) {
            commands.within((object, at, value), find_before(run, object, at));
        } else {
            match (former, find_before(run, object, at)) {
                (Some(_), Some((outer, Value::Null))) => {
                    commands.remove(object, outer, outer == at);
                }
                (Some(_), Some((_, before))) => {
                    commands.merge(object, (at, before.clone()), Some(value));
                }
                (_, before) => {
                    let opposite = match former {
                        Some(_) => Some(value),
                        None => before.and_then(|(place, was)| (place == at).then_some(was)),
                    };
                    let value = value_in_force(in_force.as_deref(), (object, at), value);
                    commands.merge(object, (at, value), opposite);
                }
            }
        }
    }
    let (words, text) = commands.in_words();
    tell(&words);
    terminal::print(&text)
}

/// Returns the arm's value. If `in_force` is given, returns the value in force at the same place instead, or null if
/// there is none.
fn value_in_force(
    in_force: Option<&[Change]>,
    (object, at): (&ObjectRef, &str),
    value: &Value,
) -> Value {
    let Some(in_force) = in_force else {
        return value.clone();
    };
    let mut same = in_force.iter().filter(|change| change.0 == *object && change.1 == at);
    same.next().map_or(Value::Null, |change| change.2.clone())
}

/// Returns true if a path lies within a list or a text, which a merge patch can only replace as a whole. Excluded are
/// elements of lists of a workload's pods: they have names, by which a strategic patch finds them, except those under
/// `affinity`.
fn is_within(object: &ObjectRef, at: &str) -> bool {
    let (whole, within) = weir_objects::split_whole(at);
    let has_names = within.starts_with("/[") && !whole.contains("/affinity/");
    let is_of_pods = is_workload(object) && has_names;
    !within.is_empty() && !is_of_pods
}

/// Returns the path at which an object is restored, and its value before the run's last session. `None` if it was not
/// kept.
fn find_before<'r>(run: &'r Run, object: &ObjectRef, at: &str) -> Option<(&'r str, &'r Value)> {
    let (whole, _) = weir_objects::split_whole(at);
    let mut places = run
        .records
        .iter()
        .rev()
        .filter_map(|record| match record {
            Record::Proxy(proxy) => Some(&proxy.objects),
            _ => None,
        })
        .flatten()
        .filter(|record| {
            let name = (&*record.api, &*record.resource, &*record.namespace, &*record.name);
            name == (&*object.api, &*object.resource, &*object.namespace, &*object.name)
        })
        .flat_map(|record| &record.before)
        .filter(|(place, _)| {
            let tail = whole.strip_prefix(place.as_str());
            tail.is_some_and(|tail| tail.is_empty() || tail.starts_with('/'))
        });
    let (place, value) = places.next()?;
    Some((place, value))
}

impl Commands {
    fn of_node(&mut self, object: &ObjectRef, value: &Value) {
        let (sysctl, value) = (&object.resource, value.as_str().unwrap_or(UNKNOWN));
        self.by_hand.push(format!("by hand, on {object}: sysctl -w {sysctl}='{value}'"));
    }

    /// Adds a value to the object's patch; `other` is the value that it replaces.
    fn merge(&mut self, object: &ObjectRef, (at, value): (&str, Value), other: Option<&Value>) {
        let value = if is_workload(object) { in_strategic(at, value, other) } else { value };
        let patch = self.patches.entry(object.clone()).or_insert(Value::Null);
        weir_objects::set_at(patch, at, value);
    }

    /// Adds the removal of a place that did not exist before the run. Others may have added to it since, which is
    /// remarked unless `is_all`: then it holds nothing but the arm's value.
    fn remove(&mut self, object: &ObjectRef, at: &str, is_all: bool) {
        self.merge(object, (at, Value::Null), None);
        let remark = format!("{at} of {object}");
        if !is_all && !self.removed.contains(&remark) {
            self.removed.push(remark);
        }
    }

    /// Changes a value within a list or a text if its former content is known; otherwise adds a remark to do it by
    /// hand.
    fn within(
        &mut self,
        (object, at, value): (&ObjectRef, &str, &Value),
        before: Option<(&str, &Value)>,
    ) {
        let (whole, within) = weir_objects::split_whole(at);
        let changed_value = match before {
            // The list is made, of elements that have names.
            Some((outer, Value::Null)) if within.starts_with("/[") => {
                match (value, self.back) {
                    (Value::Null, _) => {}
                    (_, true) => self.remove(object, outer, false),
                    (value, false) => self.merge(object, (at, value.clone()), None),
                }
                Some(())
            }
            Some((place, before)) => {
                let key = (object.clone(), place.to_owned());
                let (_, after) =
                    self.wholes.entry(key).or_insert_with(|| (before.clone(), before.clone()));
                change_value(after, (whole, within), value)
            }
            None => None,
        };
        if changed_value.is_none() {
            self.by_hand.push(format!("by hand: {object}: {at} = {value}"));
        }
    }

    fn has(&self, words: &str) -> bool {
        self.patches.values().any(|patch| patch.to_string().contains(words))
    }

    /// Returns the remarks, and the commands.
    fn in_words(mut self) -> (Vec<String>, String) {
        let mut replaced = Vec::new();
        for ((object, at), (before, after)) in &self.wholes {
            let both = if self.back { (after, before) } else { (before, after) };
            if before != after {
                replaced.push(replace(object, at, both));
            }
        }
        let effect = if self.back {
            "these commands have the objects say again what they said before the run"
        } else {
            "these commands write what the arm had into the objects that the study names"
        };
        let mut words = vec![format!("{effect}; add --context, and --dry-run=server first")];
        if self.has("\"sysctls\"") {
            words.push(
                "kernel settings replace all others of the pods: add what else has to be among them"
                    .to_owned(),
            );
        }
        if self.has(FROM) {
            words.push(
                "put what the proxy's container has in the place of each `$from`: a patch cannot"
                    .to_owned(),
            );
        }
        if !replaced.is_empty() {
            words.push(
                "a list or a file is replaced as a whole, and only if nobody has changed it since the run (`test`)"
                    .to_owned(),
            );
        }
        if !self.removed.is_empty() {
            let all = self.removed.join(", ");
            words.push(format!(
                "what was not there before the run goes with all that stands in it now: {all}"
            ));
        }
        words.append(&mut self.by_hand);
        let merged = self.patches.iter().map(merge);
        (words, merged.chain(replaced).collect())
    }
}

/// Puts a value into a list or a text that is at the path `whole`. Returns `None` if there is no place for it.
fn change_value(into: &mut Value, (whole, within): (&str, &str), value: &Value) -> Option<()> {
    if let Some(within) = within.strip_prefix('#') {
        let values = BTreeMap::from([(within.to_owned(), Some(value.clone()))]);
        let text = weir_lab::edited_text(into.as_str(), whole, values).ok()??;
        *into = Value::String(text);
        return Some(());
    }
    if value.is_null() {
        weir_objects::remove_at(into, within);
        return Some(());
    }
    let is_list = into.is_array();
    (is_list && weir_objects::set_at(into, within, value.clone())).then_some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build_object(api: &str) -> ObjectRef {
        ObjectRef {
            api: api.to_owned(),
            kind: "Kind".to_owned(),
            resource: "kinds".to_owned(),
            namespace: "n".to_owned(),
            name: "k".to_owned(),
        }
    }

    /// Returns the patches for one value in a list or a text, to apply it and to restore it, each with its remarks.
    fn patch_both(at: &str, value: &Value, before: (&str, &Value)) -> [(Vec<String>, String); 2] {
        let object = build_object("x.example/v1");
        [false, true].map(|back| {
            let mut commands = Commands { back, ..Commands::default() };
            commands.within((&object, at, value), Some(before));
            let (words, text) = commands.in_words();
            let command = text.trim_end().split_once(" --namespace n --type ");
            let patch = command.map_or("", |(_, patch)| patch);
            (words, patch.replace(" --patch ", " "))
        })
    }

    fn replace_patch(at: &str, now: &Value, wanted: &Value) -> String {
        let patch = json!([
            {"op": "test", "path": at, "value": now}, {"op": "replace", "path": at, "value": wanted}]);
        format!("json '{patch}'")
    }

    /// Quotes the patch of a command as the shell needs it.
    fn quote_patch(command: &str) -> String {
        let (kind, patch) = command.split_once(" '").expect("a patch");
        format!("{kind} '{}'", patch.trim_end_matches('\'').replace('\'', r"'\''"))
    }

    #[test]
    fn a_list_or_a_text_is_replaced_as_a_whole_where_it_is_as_it_was() {
        let (gzip, others) = (json!({"type": "Gzip", "gzip": {}}), json!({"type": "Brotli"}));
        let element = "/spec/list/[type=Gzip]/gzip";
        for (at, value, place, before, after) in [
            (element, json!({}), "/spec/list", json!([others]), json!([others, gzip])),
            (element, json!(null), "/spec/list", json!([gzip, others]), json!([others])),
            (element, json!(null), "/spec/list", json!([gzip]), json!([])),
            (
                "/spec/routes/0/a/b",
                json!("3s"),
                "/spec/routes",
                json!([{"c": 1}, {}]),
                json!([{"c": 1, "a": {"b": "3s"}}, {}]),
            ),
            (
                "/data/a.yaml#/b",
                json!("8s"),
                "/data/a.yaml",
                json!("# ours\nb: 9s # it's\n"),
                json!("# ours\nb: 8s # it's\n"),
            ),
        ] {
            let [(_, there), (words, back)] = patch_both(at, &value, (place, &before));
            assert_eq!(there, quote_patch(&replace_patch(place, &before, &after)), "{at}");
            assert_eq!(back, quote_patch(&replace_patch(place, &after, &before)), "{at}");
            assert!(words.iter().any(|words| words.contains("`test`")), "{words:?}");
        }
    }

    #[test]
    fn a_list_that_was_not_there_is_made_and_goes() {
        let (gzip, others) = (json!({"type": "Gzip", "gzip": {}}), json!({"type": "Brotli"}));
        let element = "/spec/list/[type=Gzip]/gzip";
        for (place, merged) in [
            ("/spec/list", "merge '{\"spec\":{\"list\":null}}'"),
            ("/spec", "merge '{\"spec\":null}'"),
        ] {
            let [(_, there), (words, back)] =
                patch_both(element, &json!({}), (place, &Value::Null));
            let patch = json!({"spec": {"list": [gzip]}});
            assert_eq!(there, format!("merge '{patch}'"));
            assert_eq!(back, merged);
            let remark = format!("goes with all that stands in it now: {place} of Kind n/k");
            assert!(words.iter().any(|words| words.contains(&remark)), "{words:?}");
        }
        // There is nothing to take away, and no place for a value.
        let [(_, there), (_, back)] =
            patch_both(element, &json!(null), ("/spec/list", &json!([others])));
        assert_eq!((&*there, &*back), ("", ""));
        let [(words, there), _] =
            patch_both("/data/a.yaml#/b", &json!(1), ("/data/a.yaml", &Value::Null));
        assert_eq!(there, "");
        assert!(words.iter().any(|words| words.starts_with("by hand: ")), "{words:?}");
    }

    #[test]
    fn what_was_not_there_goes_and_what_goes_with_it_is_told() {
        let object = build_object("x.example/v1");
        let mut commands = Commands { back: true, ..Commands::default() };
        commands.remove(&object, "/spec/a", false);
        commands.remove(&object, "/spec/a", false);
        commands.remove(&object, "/spec/b/c", true);
        commands.merge(&object, ("/spec/d", json!(1)), None);
        let (words, text) = commands.in_words();
        let expected = r#"'{"spec":{"a":null,"b":{"c":null},"d":1}}'"#;
        assert_eq!(
            text,
            format!(
                "kubectl patch kinds.x.example/k --namespace n --type merge --patch {expected}\n"
            )
        );
        let remark = words.last().expect("words");
        assert!(remark.ends_with("now: /spec/a of Kind n/k"), "{remark}");
    }

    #[test]
    fn lists_whose_elements_have_no_names_are_changed_as_a_whole() {
        let spread =
            "/spec/template/spec/topologySpreadConstraints/[topologyKey=kubernetes.io~1hostname]";
        let workload = build_object("apps/v1");
        for (at, expected) in [
            ("/spec/replicas", false),
            (spread, false),
            ("/spec/routes/0/timeoutPolicy", true),
            ("/data/contour.yaml#/timeouts", true),
            ("/spec/template/spec/affinity/podAffinity/required/[a=b]", true),
        ] {
            assert_eq!(is_within(&workload, at), expected, "{at}");
        }
    }
}
