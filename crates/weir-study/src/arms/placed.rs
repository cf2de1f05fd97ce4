//! Checks of the arms of a study whose proxy has a controller in a cluster.

use std::collections::BTreeSet;
use std::ops::Range;

use weir_model::study::{ControllerSpec, Settings};
use weir_parameters::controller::{ControllerMeans, NODE, Unplaced};
use weir_parameters::{Catalog, Controller, EffectiveFrom, InWorkload, Parameter, Scope};

use super::Arms;
use crate::check::{Checker, nearest, short};
use crate::proxy::Draft;

/// Reports instances of a controller that arms cannot use side by side: too few, or with a common proxy or object.
fn check_instances(
    arms: &Arms,
    of_study: &Draft,
    spec: &ControllerSpec,
    controller: &Controller,
    catalog: &Catalog,
    check: &mut Checker,
) {
    if spec.beside.is_empty() {
        return;
    }
    let (arms_count, instances) = (arms.drafts.len(), 1 + spec.beside.len());
    if arms_count > instances {
        let message = format!(
            "{arms_count} arms (the baseline and the A/A arm included) and {instances} instances of the controller: side by \
             side, each arm needs one of its own"
        );
        let error = check.error(of_study.span.clone(), message);
        error.hint(
            "add instances to `beside`, write `a/a: false`, or leave `beside` out: then arms have the one in turn",
        );
    }
    let addresses = of_study
        .spec
        .external
        .iter()
        .chain(spec.beside.iter().map(|instance| &instance.at))
        .map(|at| at.address.to_string());
    let means = ControllerMeans::of(&spec.first.objects, spec.sysctls);
    let roles: BTreeSet<String> = arms
        .drafts
        .iter()
        .flat_map(|draft| controller.placed(catalog, &draft.arm.settings, &means))
        .map(|placed| placed.object)
        .collect();
    let objects = spec.instances().flat_map(|instance| {
        instance
            .objects
            .iter()
            .filter(|(role, _)| roles.contains(*role))
            .map(|(_, object)| format!("{object} in {}", instance.namespace))
    });
    let mut used = BTreeSet::new();
    for resource in addresses.chain(objects) {
        if !used.insert(resource.clone()) {
            let message = format!("two instances of the controller have {resource} in common");
            let error = check.error(of_study.span.clone(), message);
            error.hint("side by side, each needs a proxy and objects of its own");
        }
    }
}

/// Reports settings of arms that the controller cannot place.
pub(super) fn check_arms(arms: &Arms, of_study: &Draft, catalog: &Catalog, check: &mut Checker) {
    let Some(spec) = &of_study.spec.controller else {
        return check_without(arms, of_study, catalog, check);
    };
    let Some(controller) = Controller::named(&spec.is) else {
        return;
    };
    check_instances(arms, of_study, spec, controller, catalog, check);
    let objects: Vec<_> = spec.instances().map(|instance| &instance.objects).collect();
    // What one instance names decides where settings go, and all must have that.
    let means = ControllerMeans {
        objects: objects.iter().flat_map(|objects| objects.keys()).cloned().collect(),
        sysctls: spec.sysctls,
    };
    let mut checked = Settings::new();
    for draft in &arms.drafts {
        if draft.arm.proxy.is_some() {
            let message = "an arm has a proxy of its own, and the study's has a controller";
            let error = check.error(draft.span.clone(), message);
            error.hint(
                "compare it in a study of its own: arms of a controller are measured in turn",
            );
            continue;
        }
        for (id, level) in &draft.arm.settings {
            let is_checked = checked.insert(id.clone(), level.clone()).as_ref() == Some(level);
            let Some(row) = catalog.get(of_study.spec.kind, id) else {
                continue;
            };
            match controller.place(row, level, &means) {
                _ if is_checked => {}
                Ok(placed) if placed.object == NODE && !spec.beside.is_empty() => {
                    let message = format!("instances on one node have `{id}` in common");
                    let error = check.error(draft.place_of(id), message);
                    error.hint("leave `beside` out: then arms have the one instance in turn");
                }
                Ok(placed)
                    if objects.iter().all(|objects| objects.contains_key(placed.named())) =>
                {
                    for object in objects.iter().filter_map(|objects| objects.get(&placed.object)) {
                        check_kind(row, object, draft.place_of(id), check);
                    }
                }
                Ok(placed) => {
                    let object = placed.named();
                    let message = format!("`{id}` is set in the `{object}`, which is not named");
                    let description =
                        controller.objects.get(object).map_or("", |kinds| &kinds.what);
                    let error = check.error(draft.place_of(id), message);
                    error.hint(format!("add `{object}`, {description}, to the controller"));
                }
                Err(Unplaced::Level) => {
                    let title = &controller.title;
                    let message = format!("{title} has no word for `{id}: {}`", short(level));
                    check.error(draft.place_of(id), message);
                }
                Err(Unplaced::Parameter) => {
                    let can = controller.can_set(catalog, spec.sysctls);
                    let can: Vec<&str> = can.into_iter().collect();
                    let message = format!("{} cannot set `{id}`", controller.title);
                    let error = check.error(draft.place_of(id), message);
                    error.hint(format!("it can set {}", can.join(", ")));
                    error.nearest(nearest(id, &can));
                }
            }
        }
    }
}

/// Reports settings that only a controller's proxy has.
fn check_without(arms: &Arms, of_study: &Draft, catalog: &Catalog, check: &mut Checker) {
    for draft in &arms.drafts {
        for id in draft.arm.settings.keys() {
            if catalog.scope(of_study.spec.kind, id) == Some(Scope::Workload) {
                let message = format!("`{id}` is of pods, and the proxy has no `controller`");
                let error = check.error(draft.place_of(id), message);
                error.hint("docs/kubernetes.md says how a study names a controller of a cluster");
            }
        }
    }
}

/// Reports a field that this kind of workload lacks.
fn check_kind(row: &Parameter, object: &str, place: Range<usize>, check: &mut Checker) {
    let EffectiveFrom::Workload(InWorkload { kind: Some(kind), .. }) = &row.effective else {
        return;
    };
    let named = object.split('/').next().unwrap_or_default();
    if !kind.eq_ignore_ascii_case(named) {
        let message = format!("`{}` is of a {kind}, and `{object}` is none", row.id);
        check.error(place, message);
    }
}
