//! Commands for kubectl that write what an arm had into objects of a cluster, or what they said before the run.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_kube::ObjectRef;
use weir_model::record::{ObjectRecord, Record};
use weir_model::study::{Arm, Settings};
use weir_parameters::Catalog;
use weir_record::Run;

use super::kubectl::{in_strategic, is_workload, merge, replace};
use super::tell;
use crate::failure::Failure;
use crate::terminal;

/// What stands for what is elsewhere in an object.
const FROM: &str = "\"$from\"";
/// What stands for a value that nobody knows.
const UNKNOWN: &str = "?";

/// A place in an object, and what stands there.
type Change = (ObjectRef, String, Value);

/// What is said of the objects of an arm.
#[derive(Default)]
struct Commands {
    /// Whether they undo what the others do.
    back: bool,
    /// What is merged into each.
    patches: BTreeMap<ObjectRef, Value>,
    /// Lists and texts, which are replaced as a whole: as they were before the run, and with the arm's values.
    wholes: BTreeMap<(ObjectRef, String), (Value, Value)>,
    by_hand: Vec<String>,
    /// What goes with all that stands in it.
    removed: Vec<String>,
}

/// A command for each object. `former` is what was in force in place of the arm's settings: it is taken where the run has not
/// kept what the objects said before; what it does not have either is removed.
pub(super) fn print(
    run: &Run,
    catalog: &Catalog,
    (arm, former): (&Arm, Option<&Settings>),
) -> Result<(), Failure> {
    let of = |settings: &Settings| {
        let arm = Arm {
            settings: settings.clone(),
            ..arm.clone()
        };
        weir_lab::changes_of(&run.header.study, catalog, &arm)
    };
    let changes = of(&arm.settings);
    let in_force = former.map(of);
    let mut commands = Commands {
        back: former.is_some(),
        ..Commands::default()
    };
    for (object, at, value) in &changes {
        if object.is_of_node() {
            let value = last(in_force.as_deref(), (object, at), value);
            commands.of_node(object, &value);
        } else if is_within(object, at) {
            commands.within((object, at, value), before(run, object, at));
        } else {
            match (former, before(run, object, at)) {
                (Some(_), Some((outer, Value::Null))) => {
                    commands.remove(object, outer, outer == at);
                }
                (Some(_), Some((_, before))) => {
                    commands.merge(object, (at, before.clone()), Some(value));
                }
                (_, before) => {
                    let other = match former {
                        Some(_) => Some(value),
                        None => before.and_then(|(place, was)| (place == at).then_some(was)),
                    };
                    let value = last(in_force.as_deref(), (object, at), value);
                    commands.merge(object, (at, value), other);
                }
            }
        }
    }
    let (words, text) = commands.in_words();
    tell(&words);
    terminal::print(&text)
}

/// The value of an arm, or what was in force in its place.
fn last(in_force: Option<&[Change]>, (object, at): (&ObjectRef, &str), value: &Value) -> Value {
    let Some(in_force) = in_force else {
        return value.clone();
    };
    let mut same = in_force
        .iter()
        .filter(|one| one.0 == *object && one.1 == at);
    same.next().map_or(Value::Null, |one| one.2.clone())
}

/// Whether a place is within a list or a text, of which a merge patch knows the whole alone. Elements of lists of pods have
/// names, by which a strategic patch knows them, but for what pods want to be beside.
fn is_within(object: &ObjectRef, at: &str) -> bool {
    let (whole, within) = weir_kube::whole(at);
    let has_names = within.starts_with("/[") && !whole.contains("/affinity/");
    let is_of_pods = is_workload(object) && has_names;
    !within.is_empty() && !is_of_pods
}

/// What an object said before the run's last session where it is put back, and that place. `None`: it was not kept.
fn before<'r>(run: &'r Run, object: &ObjectRef, at: &str) -> Option<(&'r str, &'r Value)> {
    let (whole, _) = weir_kube::whole(at);
    let is_it = |one: &&ObjectRecord| {
        let own = (&*one.api, &*one.resource, &*one.namespace, &*one.name);
        own == (
            &*object.api,
            &*object.resource,
            &*object.namespace,
            &*object.name,
        )
    };
    let leads_there = |place: &str| {
        let rest = whole.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let proxies = run.records.iter().rev().filter_map(|record| match record {
        Record::Proxy(proxy) => Some(&proxy.objects),
        _ => None,
    });
    let places = proxies.flatten().filter(is_it).flat_map(|one| &one.before);
    let mut places = places.filter(|(place, _)| leads_there(place));
    let (place, value) = places.next()?;
    Some((place, value))
}

impl Commands {
    fn of_node(&mut self, object: &ObjectRef, value: &Value) {
        let (sysctl, value) = (&object.resource, value.as_str().unwrap_or(UNKNOWN));
        self.by_hand.push(format!(
            "by hand, on {object}: sysctl -w {sysctl}='{value}'"
        ));
    }

    /// Merges a value in; `other` is what stands in its place.
    fn merge(&mut self, object: &ObjectRef, (at, value): (&str, Value), other: Option<&Value>) {
        let value = match is_workload(object) {
            true => in_strategic(at, value, other),
            false => value,
        };
        let patch = self.patches.entry(object.clone()).or_insert(Value::Null);
        weir_kube::put(patch, at, value);
    }

    /// Nothing stood there before the run; others may have put something beside the arm's value unless that is all there is.
    fn remove(&mut self, object: &ObjectRef, at: &str, is_all: bool) {
        self.merge(object, (at, Value::Null), None);
        let said = format!("{at} of {object}");
        if !is_all && !self.removed.contains(&said) {
            self.removed.push(said);
        }
    }

    /// A value within a list or a text, where it is known what that was before.
    fn within(
        &mut self,
        (object, at, value): (&ObjectRef, &str, &Value),
        before: Option<(&str, &Value)>,
    ) {
        let (whole, within) = weir_kube::whole(at);
        let known = match before {
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
                let as_before = || (before.clone(), before.clone());
                let (_, after) = self.wholes.entry(key).or_insert_with(as_before);
                changed(after, (whole, within), value)
            }
            None => None,
        };
        if known.is_none() {
            self.by_hand
                .push(format!("by hand: {object}: {at} = {value}"));
        }
    }

    /// What is to be known, and the commands.
    fn in_words(mut self) -> (Vec<String>, String) {
        let mut replaced = Vec::new();
        for ((object, at), (before, after)) in &self.wholes {
            let both = match self.back {
                true => (after, before),
                false => (before, after),
            };
            if before != after {
                replaced.push(replace(object, at, both));
            }
        }
        let has = |words: &str| {
            let mut patches = self.patches.values();
            patches.any(|patch| patch.to_string().contains(words))
        };
        let what = match self.back {
            false => "these commands write what the arm had into the objects that the study names",
            true => "these commands have the objects say again what they said before the run",
        };
        let mut words = vec![format!("{what}; add --context, and --dry-run=server first")];
        if has("\"sysctls\"") {
            words.push(
                "kernel settings replace all others of the pods: add what else has to be among them"
                    .to_owned(),
            );
        }
        if has(FROM) {
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

/// Puts a value into a list or a text that stands at `whole`. `None`: there is no place for it.
fn changed(into: &mut Value, (whole, within): (&str, &str), value: &Value) -> Option<()> {
    if let Some(within) = within.strip_prefix('#') {
        let values = BTreeMap::from([(within.to_owned(), Some(value.clone()))]);
        let text = weir_lab::edited_text(into.as_str(), whole, values).ok()??;
        *into = Value::String(text);
        return Some(());
    }
    if value.is_null() {
        weir_kube::take(into, within);
        return Some(());
    }
    let is_list = into.is_array();
    (is_list && weir_kube::put(into, within, value.clone())).then_some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api: &str) -> ObjectRef {
        ObjectRef {
            api: api.to_owned(),
            kind: "Kind".to_owned(),
            resource: "kinds".to_owned(),
            namespace: "n".to_owned(),
            name: "k".to_owned(),
        }
    }

    /// The patches for one value in a list or a text, there and back, and what is said beside them.
    fn both(at: &str, value: &Value, before: (&str, &Value)) -> [(Vec<String>, String); 2] {
        let object = object("x.example/v1");
        [false, true].map(|back| {
            let mut commands = Commands {
                back,
                ..Commands::default()
            };
            commands.within((&object, at, value), Some(before));
            let (words, text) = commands.in_words();
            let line = text.trim_end();
            let patch = line.split_once(" --namespace n --type ");
            let patch = patch.map_or("", |(_, patch)| patch);
            (words, patch.replace(" --patch ", " "))
        })
    }

    fn replaced(at: &str, now: &Value, wanted: &Value) -> String {
        let patch = json!([
            {"op": "test", "path": at, "value": now}, {"op": "replace", "path": at, "value": wanted}]);
        format!("json '{patch}'")
    }

    #[test]
    fn a_list_or_a_text_is_replaced_as_a_whole_where_it_is_as_it_was() {
        let (gzip, others) = (
            json!({"type": "Gzip", "gzip": {}}),
            json!({"type": "Brotli"}),
        );
        let element = "/spec/list/[type=Gzip]/gzip";
        for (at, value, place, before, after) in [
            (
                element,
                json!({}),
                "/spec/list",
                json!([others]),
                json!([others, gzip]),
            ),
            (
                element,
                json!(null),
                "/spec/list",
                json!([gzip, others]),
                json!([others]),
            ),
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
            let [(_, there), (words, back)] = both(at, &value, (place, &before));
            let quoted = |text: String| {
                let (kind, patch) = text.split_once(" '").expect("a patch");
                format!(
                    "{kind} '{}'",
                    patch.trim_end_matches('\'').replace('\'', r"'\''")
                )
            };
            assert_eq!(there, quoted(replaced(place, &before, &after)), "{at}");
            assert_eq!(back, quoted(replaced(place, &after, &before)), "{at}");
            assert!(
                words.iter().any(|words| words.contains("`test`")),
                "{words:?}"
            );
        }
    }

    #[test]
    fn a_list_that_was_not_there_is_made_and_goes() {
        let (gzip, others) = (
            json!({"type": "Gzip", "gzip": {}}),
            json!({"type": "Brotli"}),
        );
        let element = "/spec/list/[type=Gzip]/gzip";
        for (place, merged) in [
            ("/spec/list", "merge '{\"spec\":{\"list\":null}}'"),
            ("/spec", "merge '{\"spec\":null}'"),
        ] {
            let [(_, there), (words, back)] = both(element, &json!({}), (place, &Value::Null));
            let made = json!({"spec": {"list": [gzip]}});
            assert_eq!(there, format!("merge '{made}'"));
            assert_eq!(back, merged);
            let told = format!("goes with all that stands in it now: {place} of Kind n/k");
            assert!(words.iter().any(|words| words.contains(&told)), "{words:?}");
        }
        // There is nothing to take away, and no place for a value.
        let [(_, there), (_, back)] = both(element, &json!(null), ("/spec/list", &json!([others])));
        assert_eq!((&*there, &*back), ("", ""));
        let [(words, there), _] =
            both("/data/a.yaml#/b", &json!(1), ("/data/a.yaml", &Value::Null));
        assert_eq!(there, "");
        assert!(
            words.iter().any(|words| words.starts_with("by hand: ")),
            "{words:?}"
        );
    }

    #[test]
    fn what_was_not_there_goes_and_what_goes_with_it_is_told() {
        let object = object("x.example/v1");
        let mut commands = Commands {
            back: true,
            ..Commands::default()
        };
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
        let told = words.last().expect("words");
        assert!(told.ends_with("now: /spec/a of Kind n/k"), "{told}");
    }

    #[test]
    fn lists_whose_elements_have_no_names_are_changed_as_a_whole() {
        let spread =
            "/spec/template/spec/topologySpreadConstraints/[topologyKey=kubernetes.io~1hostname]";
        let workload = object("apps/v1");
        for (at, expected) in [
            ("/spec/replicas", false),
            (spread, false),
            ("/spec/routes/0/timeoutPolicy", true),
            ("/data/contour.yaml#/timeouts", true),
            (
                "/spec/template/spec/affinity/podAffinity/required/[a=b]",
                true,
            ),
        ] {
            assert_eq!(is_within(&workload, at), expected, "{at}");
        }
    }
}
