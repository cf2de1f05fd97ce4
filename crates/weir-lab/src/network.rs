//! What connects generator, proxies and origin server, and what cannot be varied without namespaces.

use weir_model::record::NetworkUsed;
use weir_model::study::{Arm, NetworkKind, Study};
use weir_parameters::{Catalog, Scope};

use crate::LabError;
use crate::left_out::{compares_nothing, leave_out};
use crate::places::Places;

/// How this run is connected, the study as it can be run so, and what the reader must know of it.
///
/// # Errors
/// The study asks for network namespaces and there can be none, or nothing is left to compare.
pub(crate) fn decide(
    study: &Study,
    places: &Places,
    catalog: &Catalog,
) -> Result<(NetworkUsed, Study, Vec<String>), LabError> {
    let mtu = study.network.mtu;
    if !study.proxy_kinds().iter().all(|kind| kind.is_started()) {
        return outside(study, places);
    }
    let without = match (study.network.kind, places.no_networks()) {
        (NetworkKind::Loopback, _) => "the study asks for the loopback interface".to_owned(),
        (_, None) => return Ok((NetworkUsed::Namespaces { mtu }, study.clone(), Vec::new())),
        (NetworkKind::Namespaces, Some(why)) => return Err(LabError::NoNetworks(why)),
        (NetworkKind::Auto, Some(why)) => why,
    };
    let used = match places.each().count() {
        1 => NetworkUsed::Loopback,
        _ => NetworkUsed::Hosts,
    };
    let (study, mut remarks) = without_kernel(study, &without, catalog)?;
    if study.network.kind == NetworkKind::Auto {
        remarks.push(format!(
            "all arms share one network and its kernel settings, without network namespaces: {without}"
        ));
    }
    Ok((used, study, remarks))
}

/// A proxy that weir did not start is where it is.
fn outside(study: &Study, places: &Places) -> Result<(NetworkUsed, Study, Vec<String>), LabError> {
    let why = "the proxy is not weir's to put into one";
    if study.network.kind == NetworkKind::Namespaces {
        return Err(LabError::NoNetworks(why.to_owned()));
    }
    let used = match places.each().count() {
        1 => NetworkUsed::Loopback,
        _ => NetworkUsed::Hosts,
    };
    Ok((used, study.clone(), Vec::new()))
}

/// A run goes on as it was begun.
///
/// # Errors
/// It had network namespaces, and there can be none any more; or the other way round with hosts.
pub(crate) fn same_as(then: NetworkUsed, places: &Places) -> Result<(), LabError> {
    let refuse = |why: String| Err(LabError::Resume(why));
    match (then, places.no_networks()) {
        (NetworkUsed::Namespaces { .. }, Some(why)) => refuse(format!(
            "it was begun with network namespaces, and now there are none: {why}"
        )),
        (NetworkUsed::Hosts, _) if places.together() => {
            refuse("it was begun on several hosts: name them again with --place".to_owned())
        }
        _ => Ok(()),
    }
}

/// The study without the arms that take kernel settings of their own, and what was left out.
fn without_kernel(
    study: &Study,
    why: &str,
    catalog: &Catalog,
) -> Result<(Study, Vec<String>), LabError> {
    let kernel = |arm: &Arm| catalog.split(study.proxy_of(arm).kind, &arm.settings).netns;
    let Some(baseline) = study.arms.first().map(&kernel) else {
        return Ok((study.clone(), Vec::new()));
    };
    let mut remarks = Vec::new();
    if !baseline.is_empty() {
        let names: Vec<&str> = baseline.keys().map(String::as_str).collect();
        remarks.push(format!(
            "not set in any arm, because they take a network namespace: {}",
            names.join(", ")
        ));
    }
    let refused = study.arms.iter().filter_map(|arm| {
        let own = kernel(arm);
        let names: Vec<String> = own.keys().cloned().collect();
        let why = format!(
            "sets {}, which takes a network namespace of its own",
            names.join(", ")
        );
        // An arm with a proxy of its own has none of the study's settings.
        (!own.is_empty() && own != baseline).then(|| (arm.name.clone(), why))
    });
    let (mut left, left_out) = leave_out(study, &refused.collect());
    remarks.extend(left_out);
    // Which rows those are depends on the proxy only in so far as all have them.
    let kind = study.proxy.kind;
    let is_of_namespace = |id: &str| catalog.scope(kind, id) == Some(Scope::KernelNetns);
    left.proxy.settings.retain(|id, _| !is_of_namespace(id));
    for arm in &mut left.arms {
        arm.settings.retain(|id, _| !is_of_namespace(id));
    }
    match compares_nothing(study, &left) {
        true => Err(LabError::NoNetworks(why.to_owned())),
        false => Ok((left, remarks)),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::study::ArmRole;

    use super::*;
    use crate::fixture::{arm, study};

    #[test]
    fn an_arm_that_sets_nothing_of_the_kernel_needs_no_namespace() {
        let backlog = |level| [("net.core.somaxconn", level)];
        let study = study(vec![
            arm("stock", ArmRole::Baseline, &backlog("1024")),
            arm("without", ArmRole::Change, &[]),
            arm("same", ArmRole::Change, &backlog("1024")),
            arm("other", ArmRole::Change, &backlog("8192")),
        ]);
        let catalog = Catalog::builtin();
        let (left, remarks) = without_kernel(&study, "a reason", &catalog).unwrap();
        let arms: Vec<&str> = left.arms.iter().map(|arm| &*arm.name).collect();
        assert_eq!(arms, ["stock", "without", "same"]);
        assert!(left.arms.iter().all(|arm| arm.settings.is_empty()));
        let said = "not varied: arm `other` sets net.core.somaxconn, which takes a network namespace of \
                    its own";
        assert_eq!(remarks[1..], [said]);
    }
}
