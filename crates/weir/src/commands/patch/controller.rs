//! What an arm has in objects of a cluster: commands for kubectl, or a diff of the values file of the controller's Helm
//! chart.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use weir_configuration::document::{self, Edit, Format, Pointer};
use weir_kube::ObjectRef;
use weir_model::record::Record;
use weir_model::study::{Arm, Settings, Study};
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
    let controller = study
        .controlled()
        .and_then(|(_, spec)| Controller::named(&spec.is));
    let Some(controller) = controller else {
        return Ok(false);
    };
    let arm = choice.arm;
    tell(&[format!("{}: {}", arm.name, choice.verdict)]);
    let settings = match args.revert {
        false => arm.settings.clone(),
        true => former(run, arm),
    };
    if settings.is_empty() {
        tell(&["it changes no setting".to_owned()]);
        return Ok(true);
    }
    match &args.values {
        Some(file) => of_values((controller, catalog), &settings, file)?,
        None => of_objects(study, catalog, arm, &settings)?,
    }
    Ok(true)
}

/// What was in force of an arm's settings in the first arm.
fn former(run: &Run, arm: &Arm) -> Settings {
    let first = run.header.study.arms.first();
    let read = run.records.iter().find_map(|record| match record {
        Record::Proxy(proxy) if first.is_some_and(|first| first.name == proxy.arm) => {
            Some(&proxy.effective)
        }
        _ => None,
    });
    let ids = arm.settings.keys();
    let levels = ids.filter_map(|id| Some((id.clone(), read?.get(id)?.clone())));
    levels.collect()
}

/// A command for each object.
fn of_objects(
    study: &Study,
    catalog: &Catalog,
    arm: &Arm,
    settings: &Settings,
) -> Result<(), Failure> {
    let arm = Arm {
        settings: settings.clone(),
        ..arm.clone()
    };
    let mut patches: BTreeMap<ObjectRef, Value> = BTreeMap::new();
    let mut has_lists = false;
    for (object, at, value) in weir_lab::changes_of(study, catalog, &arm) {
        has_lists |= at.contains("/[");
        let patch = patches.entry(object).or_insert(Value::Null);
        put(patch, &at, value);
    }
    tell(&[
        "these commands write what the arm had into the objects that the study names, by JSON merge patches (RFC 7396); \
         add --context, and --dry-run=server first"
            .to_owned(),
    ]);
    if has_lists {
        tell(&[
            "a merge patch replaces a list as a whole: add what else has to be in it".to_owned(),
        ]);
    }
    let lines = patches.iter().map(|(object, patch)| {
        let group = object.api.rsplit_once('/');
        let group = group.map_or(String::new(), |(group, _)| format!(".{group}"));
        let ObjectRef {
            resource,
            namespace,
            name,
            ..
        } = object;
        let patch = patch.to_string().replace('\'', r"'\''");
        format!("kubectl patch {resource}{group}/{name} --namespace {namespace} --type merge --patch '{patch}'\n")
    });
    terminal::print(&lines.collect::<String>())
}

/// Puts a value into a merge patch, at a pointer as [`weir_parameters::controller::Site::at`] has them.
fn put(patch: &mut Value, at: &str, value: Value) {
    let mut here = patch;
    for part in at.split('/').skip(1) {
        let element = part
            .strip_prefix('[')
            .and_then(|part| part.strip_suffix(']')?.split_once('='));
        here = match element {
            Some((field, named)) => {
                if !here.is_array() {
                    *here = Value::Array(Vec::new());
                }
                let Value::Array(items) = here else { return };
                let known = items.iter().position(|item| item[field] == *named);
                let place = known.unwrap_or(items.len());
                if known.is_none() {
                    let own = (field.to_owned(), Value::from(named));
                    items.push(Value::Object(Map::from_iter([own])));
                }
                &mut items[place]
            }
            None => {
                if !here.is_object() {
                    *here = Value::Object(Map::new());
                }
                let Value::Object(fields) = here else { return };
                let key = part.replace("~1", "/").replace("~0", "~");
                fields.entry(key).or_insert(Value::Null)
            }
        };
    }
    *here = value;
}

/// A diff of a values file.
fn of_values(
    (controller, catalog): (&Controller, &Catalog),
    settings: &Settings,
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
    for (id, level) in settings {
        let row = catalog.get(controller.proxy, id);
        match row.and_then(|row| controller.place_in_values(row, level)) {
            Some((at, value)) => edits.push(Edit {
                at: Pointer::parse(&at),
                value: Some(value.to_string()),
            }),
            None => elsewhere.push(id.as_str()),
        }
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
    use serde_json::json;

    use super::*;

    #[test]
    fn places_of_one_object_are_one_patch() {
        let mut patch = Value::Null;
        put(&mut patch, "/data/keep-alive", json!("7"));
        put(&mut patch, "/metadata/annotations/a~1b", json!("x"));
        for (name, value) in [
            ("net.core.somaxconn", "9"),
            ("net.ipv4.tcp_syncookies", "0"),
        ] {
            let at = format!("/spec/sysctls/[name={name}]/value");
            put(&mut patch, &at, json!(value));
        }
        let expected = json!({
            "data": {"keep-alive": "7"},
            "metadata": {"annotations": {"a/b": "x"}},
            "spec": {"sysctls": [
                {"name": "net.core.somaxconn", "value": "9"},
                {"name": "net.ipv4.tcp_syncookies", "value": "0"},
            ]},
        });
        assert_eq!(patch, expected);
    }
}
