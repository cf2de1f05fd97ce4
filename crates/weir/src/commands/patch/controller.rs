//! Changes of an arm in objects of a cluster, as commands for kubectl or as a diff of the values file of the
//! controller's Helm chart.

use std::path::Path;

use weir_configuration::document::{self, Edit, Format, Pointer};
use weir_model::record::Record;
use weir_model::study::{Arm, Settings};
use weir_parameters::controller::{ControllerMeans, Placed};
use weir_parameters::{Catalog, Controller};
use weir_record::Run;

use super::{commands, must_be_ours, show, tell};
use crate::args::PatchArgs;
use crate::commands::patch::choice::Choice;
use crate::failure::Failure;

/// Prints the changes that give the controller's proxy the settings of the arm or of the baseline. Returns `false` if
/// no controller configures the proxy.
pub(super) fn print(
    run: &Run,
    catalog: &Catalog,
    choice: &Choice<'_>,
    args: &PatchArgs,
) -> Result<bool, Failure> {
    let study = &run.header.study;
    let controller = study.controlled().and_then(|(_, spec)| {
        let means = ControllerMeans::of(&spec.first.objects, spec.sysctls);
        Some((Controller::named(&spec.is)?, means))
    });
    let Some((controller, means)) = controller else {
        return Ok(false);
    };
    must_be_ours(run)?;
    let arm = choice.arm;
    tell(&[format!("{}: {}", arm.name, choice.verdict)]);
    if arm.settings.is_empty() {
        tell(&["it changes no setting".to_owned()]);
        return Ok(true);
    }
    let former = args.revert.then(|| former(run, catalog, arm));
    match &args.values {
        Some(file) => print_values_diff(controller, &means, catalog, arm, former.as_ref(), file)?,
        None => {
            commands::print(run, catalog, arm, former.as_ref())?;
            let placed = controller.placed(catalog, &arm.settings, &means);
            tell(&Vec::from_iter(starts_anew(controller, &means, &placed)));
        }
    }
    Ok(true)
}

/// Returns the levels in force in the first arm for each of an arm's settings. Settings that were absent, such as a
/// limit that the pods did not have, are left out.
fn former(run: &Run, catalog: &Catalog, arm: &Arm) -> Settings {
    let study = &run.header.study;
    let first = study.arms.first();
    let read = run.records.iter().find_map(|record| match record {
        Record::Proxy(proxy) if first.is_some_and(|first| first.name == proxy.arm) => {
            Some(&proxy.effective)
        }
        _ => None,
    });
    let levels = arm.settings.keys().filter_map(|id| {
        let row = catalog.get(study.proxy_of(arm).kind, id)?;
        Some((id.clone(), row.check(read?.get(id)?).ok()?))
    });
    levels.collect()
}

/// Returns a remark to restart a controller that reads a changed object only at its start, unless a patched object
/// causes the restart.
fn starts_anew(
    controller: &Controller,
    means: &ControllerMeans,
    placed: &[Placed],
) -> Option<String> {
    let restarts = controller.restarts.as_ref()?;
    let is_read_once = placed.iter().any(|change| restarts.after.contains(&change.object));
    let by_hand = is_read_once && !means.objects.contains(&restarts.by.object);
    by_hand.then(|| {
        format!(
            "start {} anew afterwards: it reads its configuration at its start only",
            controller.title
        )
    })
}

/// Prints a diff of a values file.
fn print_values_diff(
    controller: &Controller,
    means: &ControllerMeans,
    catalog: &Catalog,
    arm: &Arm,
    former: Option<&Settings>,
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
        let find_place = |level: &String| {
            controller.place_in_values(catalog.get(controller.proxy, id)?, level, means)
        };
        let Some((at, own)) = find_place(level) else {
            elsewhere.push(id.as_str());
            continue;
        };
        let value = match former {
            None => Some(own),
            Some(former) => former.get(id).and_then(find_place).map(|(_, value)| value),
        };
        edits.push(Edit { at: Pointer::parse(&at), value: value.map(|value| value.to_string()) });
    }
    if !elsewhere.is_empty() {
        let all = elsewhere.join(", ");
        tell(&[format!("the values of {title}'s chart have no place for {all}")]);
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
