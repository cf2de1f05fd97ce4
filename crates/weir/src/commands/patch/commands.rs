//! Commands for kubectl that write what an arm had into objects of a cluster, or what they said before the run.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_kube::ObjectRef;
use weir_model::record::{ObjectRecord, Record};
use weir_model::study::{Arm, Settings};
use weir_parameters::Catalog;
use weir_record::Run;

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
    let mut commands = Commands::default();
    for (object, at, value) in &changes {
        if object.is_of_node() {
            let value = last(in_force.as_deref(), (object, at), value);
            commands.of_node(object, &value);
        } else if is_within(object, at) {
            commands.within((object, at, value), before(run, object, at));
        } else {
            let known = former.and_then(|_| before(run, object, at));
            match known {
                Some((outer, Value::Null)) => commands.remove(object, outer, outer == at),
                Some((_, value)) => commands.merge(object, at, value.clone()),
                None => {
                    let value = last(in_force.as_deref(), (object, at), value);
                    commands.merge(object, at, value);
                }
            }
        }
    }
    commands.told(former.is_some())
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
/// names, by which a strategic patch knows them.
fn is_within(object: &ObjectRef, at: &str) -> bool {
    let (_, within) = weir_kube::whole(at);
    let is_of_pods = is_workload(object) && within.starts_with("/[");
    !within.is_empty() && !is_of_pods
}

fn is_workload(object: &ObjectRef) -> bool {
    object.api == "apps/v1"
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

/// What a strategic patch says of a whole element of a list: that it goes, where nothing is to be there.
fn of_list(at: &str, value: Value) -> Value {
    let last = at
        .rsplit('/')
        .next()
        .and_then(|step| step.strip_prefix("[name="));
    match last.and_then(|step| step.strip_suffix(']')) {
        Some(name) if value.is_null() => json!({"$patch": "delete", "name": name}),
        _ => value,
    }
}

impl Commands {
    fn of_node(&mut self, object: &ObjectRef, value: &Value) {
        let (sysctl, value) = (&object.resource, value.as_str().unwrap_or(UNKNOWN));
        self.by_hand.push(format!(
            "by hand, on {object}: sysctl -w {sysctl}='{value}'"
        ));
    }

    fn merge(&mut self, object: &ObjectRef, at: &str, value: Value) {
        let patch = self.patches.entry(object.clone()).or_insert(Value::Null);
        weir_kube::put(patch, at, of_list(at, value));
    }

    /// Nothing stood there before the run; others may have put something beside the arm's value unless that is all there is.
    fn remove(&mut self, object: &ObjectRef, at: &str, is_all: bool) {
        self.merge(object, at, Value::Null);
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
        let known = before.and_then(|(place, before)| {
            let key = (object.clone(), place.to_owned());
            let (_, after) = self
                .wholes
                .entry(key)
                .or_insert_with(|| (before.clone(), before.clone()));
            changed(after, (place, whole, within), value)
        });
        if known.is_none() {
            self.by_hand
                .push(format!("by hand: {object}: {at} = {value}"));
        }
    }

    /// Tells what is to be known, and prints the commands. With `back` they undo what the others do.
    fn told(mut self, back: bool) -> Result<(), Failure> {
        let mut replaced = Vec::new();
        for ((object, at), (before, after)) in std::mem::take(&mut self.wholes) {
            let (now, wanted) = if back {
                (after, before)
            } else {
                (before, after)
            };
            match (&now, &wanted) {
                (now, wanted) if now == wanted => {}
                (Value::Null, _) => self.merge(&object, &at, wanted),
                (_, Value::Null) => self.remove(&object, &at, false),
                _ => replaced.push(replace(&object, &at, (&now, &wanted))),
            }
        }
        let has = |words: &str| {
            let mut patches = self.patches.values();
            patches.any(|patch| patch.to_string().contains(words))
        };
        let what = match back {
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
        tell(&words);
        tell(&self.by_hand);
        let merged = self.patches.iter().map(merge);
        terminal::print(&merged.chain(replaced).collect::<String>())
    }
}

/// Puts a value into a list or a text that stands at `place`, which may be what leads to `whole`. `None`: there is no place
/// for it.
fn changed(
    into: &mut Value,
    (place, whole, within): (&str, &str, &str),
    value: &Value,
) -> Option<()> {
    if let Some(within) = within.strip_prefix('#') {
        let values = BTreeMap::from([(within.to_owned(), Some(value.clone()))]);
        let text = weir_lab::edited_text(into.as_str(), whole, values).ok()??;
        *into = Value::String(text);
        return Some(());
    }
    let at = format!("{}{within}", whole.strip_prefix(place)?);
    if value.is_null() {
        weir_kube::take(into, &at);
        return Some(());
    }
    weir_kube::put(into, &at, value.clone()).then_some(())
}

/// A JSON merge patch (RFC 7396); of a workload a strategic one, which keeps what else its containers have.
fn merge((object, patch): (&ObjectRef, &Value)) -> String {
    let kind = match is_workload(object) {
        true => "strategic",
        false => "merge",
    };
    command(object, kind, patch)
}

/// A JSON patch (RFC 6902) that does nothing where something else stands than is known.
fn replace(object: &ObjectRef, at: &str, (now, wanted): (&Value, &Value)) -> String {
    let patch = json!([
        {"op": "test", "path": at, "value": now},
        {"op": "replace", "path": at, "value": wanted},
    ]);
    command(object, "json", &patch)
}

fn command(object: &ObjectRef, kind: &str, patch: &Value) -> String {
    let ObjectRef {
        api,
        resource,
        namespace,
        name,
        ..
    } = object;
    let group = api.rsplit_once('/').map(|(group, _)| format!(".{group}"));
    let group = group.unwrap_or_default();
    let patch = patch.to_string().replace('\'', r"'\''");
    format!(
        "kubectl patch {resource}{group}/{name} --namespace {namespace} --type {kind} --patch '{patch}'\n"
    )
}
