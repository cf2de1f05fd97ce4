//! What an arm has in objects of a cluster: commands for kubectl, or a diff of the values file of the controller's Helm
//! chart.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use weir_configuration::document::{self, Edit, Format, Pointer};
use weir_kube::ObjectRef;
use weir_model::record::Record;
use weir_model::study::{Arm, Settings, Study};
use weir_parameters::controller::Given;
use weir_parameters::{Catalog, Controller};
use weir_record::Run;

use super::{show, tell};
use crate::args::PatchArgs;
use crate::commands::patch::choice::Choice;
use crate::failure::Failure;
use crate::terminal;

/// Prints what has the controller's proxy as the arm was, or as the baseline was; `false`: no controller configures it.
pub(super) fn print(
    run: &Run,
    catalog: &Catalog,
    choice: &Choice<'_>,
    args: &PatchArgs,
) -> Result<bool, Failure> {
    let study = &run.header.study;
    let controller = study.controlled().and_then(|(_, spec)| {
        let means = Given::of(&spec.first.objects, spec.sysctls);
        Some((Controller::named(&spec.is)?, means))
    });
    let Some((controller, means)) = controller else {
        return Ok(false);
    };
    let arm = choice.arm;
    tell(&[format!("{}: {}", arm.name, choice.verdict)]);
    if arm.settings.is_empty() {
        tell(&["it changes no setting".to_owned()]);
        return Ok(true);
    }
    let former = former(run, catalog, arm);
    let reverted = args.revert.then_some(&former);
    match &args.values {
        Some(file) => of_values((controller, &means, catalog), (arm, reverted), file)?,
        None => of_objects((study, catalog), (arm, &former), args.revert)?,
    }
    Ok(true)
}

/// What was in force of an arm's settings in the first arm, without what was not there, such as a limit that pods had not.
fn former(run: &Run, catalog: &Catalog, arm: &Arm) -> Settings {
    let study = &run.header.study;
    let first = study.arms.first();
    let read = run.records.iter().find_map(|record| match record {
        Record::Proxy(proxy) if first.is_some_and(|first| first.name == proxy.arm) => {
            Some(&proxy.effective)
        }
        _ => None,
    });
    let ids = arm.settings.keys();
    let levels = ids.filter_map(|id| {
        let row = catalog.get(study.proxy_of(arm).kind, id)?;
        Some((id.clone(), row.check(read?.get(id)?).ok()?))
    });
    levels.collect()
}

/// What stands for what is elsewhere in an object.
const FROM: &str = "\"$from\"";
/// What stands for a value that nobody knows.
const UNKNOWN: &str = "?";

/// What a strategic patch, which is that of a workload, says of a value: of an element of a list that it goes, where nothing is
/// to be there; of an object that takes the place of `other`, which of its fields go.
fn in_strategic(at: &str, value: Value, other: Option<&Value>) -> Value {
    let last = at.rsplit('/').next().unwrap_or_default();
    let element = last
        .strip_prefix('[')
        .and_then(|step| step.strip_suffix(']')?.split_once('='));
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

/// Whether a patch would change more than this place: it replaces a list as a whole, but for some of those of pods, whose
/// elements have names, and does not know the lines of a text.
fn is_too_large(at: &str) -> bool {
    let mut steps = at.split('/');
    at.contains('#') || steps.any(|step| step.parse::<usize>().is_ok() || step == "affinity")
}

fn is_workload(object: &ObjectRef) -> bool {
    object.api.starts_with("apps/")
}

/// A command for each object. With `is_revert`, `former` takes the place of the arm's settings; what it does not have is removed.
fn of_objects(
    (study, catalog): (&Study, &Catalog),
    (arm, former): (&Arm, &Settings),
    is_revert: bool,
) -> Result<(), Failure> {
    let of = |settings: &Settings| {
        let arm = Arm {
            settings: settings.clone(),
            ..arm.clone()
        };
        weir_lab::changes_of(study, catalog, &arm)
    };
    let before = of(former);
    let mut patches: BTreeMap<ObjectRef, Value> = BTreeMap::new();
    let mut by_hand = Vec::new();
    for (object, at, value) in of(&arm.settings) {
        let mut same = before.iter().filter(|one| one.0 == object && one.1 == at);
        let before = same.next().map(|one| one.2.clone());
        let (value, other) = match is_revert {
            true => (before.unwrap_or(Value::Null), Some(value)),
            false => (value, before),
        };
        if object.is_of_node() {
            let (sysctl, value) = (&object.resource, value.as_str().unwrap_or(UNKNOWN));
            by_hand.push(format!(
                "by hand, on {object}: sysctl -w {sysctl}='{value}'"
            ));
            continue;
        }
        match is_too_large(&at) {
            true => by_hand.push(format!("by hand: {object}: {at} = {value}")),
            false => {
                let value = match is_workload(&object) {
                    true => in_strategic(&at, value, other.as_ref()),
                    false => value,
                };
                let patch = patches.entry(object).or_insert(Value::Null);
                weir_kube::put(patch, &at, value);
            }
        }
    }
    tell(&[
        "these commands write what the arm had into the objects that the study names; add --context, and \
         --dry-run=server first"
            .to_owned(),
    ]);
    if patches
        .values()
        .any(|patch| patch.to_string().contains("\"sysctls\""))
    {
        tell(&[
            "kernel settings replace all others of the pods: add what else has to be among them"
                .to_owned(),
        ]);
    }
    if patches
        .values()
        .any(|patch| patch.to_string().contains(FROM))
    {
        tell(&[
            "put what the proxy's container has in the place of each `$from`: a patch cannot"
                .to_owned(),
        ]);
    }
    tell(&by_hand);
    terminal::print(&patches.iter().map(command).collect::<String>())
}

/// A JSON merge patch (RFC 7396); of a workload a strategic one, which keeps what else its containers have.
fn command((object, patch): (&ObjectRef, &Value)) -> String {
    let ObjectRef {
        api,
        resource,
        namespace,
        name,
        ..
    } = object;
    let group = api.rsplit_once('/');
    let group = group.map_or_else(String::new, |(group, _)| format!(".{group}"));
    let kind = match is_workload(object) {
        true => "strategic",
        false => "merge",
    };
    let patch = patch.to_string().replace('\'', r"'\''");
    format!(
        "kubectl patch {resource}{group}/{name} --namespace {namespace} --type {kind} --patch '{patch}'\n"
    )
}

/// A diff of a values file.
fn of_values(
    (controller, means, catalog): (&Controller, &Given, &Catalog),
    (arm, former): (&Arm, Option<&Settings>),
    file: &Path,
) -> Result<(), Failure> {
    let title = &controller.title;
    if controller.helm.is_empty() {
        let words = format!("weir knows no Helm chart of {title}");
        return Err(
            Failure::input(words).hint("leave --values out: commands for kubectl are printed")
        );
    }
    let mut edits = Vec::new();
    let mut elsewhere = Vec::new();
    for (id, level) in &arm.settings {
        let place = |level: &String| {
            controller.place_in_values(catalog.get(controller.proxy, id)?, level, means)
        };
        let Some((at, own)) = place(level) else {
            elsewhere.push(id.as_str());
            continue;
        };
        let value = match former {
            None => Some(own),
            Some(former) => former.get(id).and_then(place).map(|(_, value)| value),
        };
        edits.push(Edit {
            at: Pointer::parse(&at),
            value: value.map(|value| value.to_string()),
        });
    }
    if !elsewhere.is_empty() {
        let all = elsewhere.join(", ");
        tell(&[format!(
            "the values of {title}'s chart have no place for {all}"
        )]);
    }
    let path = std::path::absolute(file).map_err(Failure::input)?;
    let before = document::read(&path, Format::Yaml).map_err(Failure::input)?;
    let after = document::set(&before, Format::Yaml, &edits).map_err(Failure::input)?;
    let diff = weir_configuration::diff(&before, &after);
    if diff.is_empty() {
        tell(&[format!("{} has these values already", file.display())]);
        return Ok(());
    }
    show(&diff)?;
    tell(&[
        "`patch -d / -p1 < FILE` applies it, with this output in FILE; `helm upgrade --values` then puts it into the cluster"
            .to_owned(),
    ]);
    Ok(())
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
        let other = json!({"pool": "b", "zone": "c"});
        for (at, value, expected) in [
            (spread, element.clone(), element),
            (
                spread,
                Value::Null,
                json!({"$patch": "delete", "topologyKey": "kubernetes.io/hostname"}),
            ),
            (
                selector,
                json!({"pool": "a"}),
                json!({"pool": "a", "zone": null}),
            ),
            (selector, Value::Null, Value::Null),
            ("/spec/template/spec/tolerations", json!([]), json!([])),
            ("/spec/replicas", json!(2), json!(2)),
        ] {
            assert_eq!(in_strategic(at, value, Some(&other)), expected, "{at}");
        }
        let alone = json!({"pool": "a"});
        assert_eq!(in_strategic(selector, alone.clone(), None), alone);
        for (at, expected) in [
            ("/spec/replicas", false),
            ("/spec/routes/0/timeoutPolicy", true),
            ("/data/contour.yaml#/timeouts", true),
            (
                "/spec/template/spec/affinity/podAffinity/required/[a=b]",
                true,
            ),
        ] {
            assert_eq!(is_too_large(at), expected, "{at}");
        }
    }
}
