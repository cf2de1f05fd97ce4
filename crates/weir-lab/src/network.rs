//! What connects generator, proxies and origin server, and what cannot be varied without namespaces.

use weir_model::record::NetworkUsed;
use weir_model::study::{Arm, ArmRole, NetworkKind, Settings, Study};
use weir_parameters::{Catalog, Scope};

use crate::LabError;
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
    let kind = study.proxy.kind;
    let is_of_namespace = |id: &str| catalog.scope(kind, id) == Some(Scope::KernelNetns);
    let kernel = |settings: &Settings| catalog.split(kind, settings).netns;
    let Some(baseline) = study.arms.first().map(|arm| kernel(&arm.settings)) else {
        return Ok((study.clone(), Vec::new()));
    };
    let mut left = study.clone();
    left.proxy.settings.retain(|id, _| !is_of_namespace(id));
    let mut remarks = Vec::new();
    if !baseline.is_empty() {
        let names: Vec<&str> = baseline.keys().map(String::as_str).collect();
        remarks.push(format!(
            "not set in any arm, because they take a network namespace: {}",
            names.join(", ")
        ));
    }
    // The place of each arm among those that stay.
    let mut places: Vec<Option<usize>> = Vec::new();
    left.arms.clear();
    for arm in &study.arms {
        let own = kernel(&arm.settings);
        if own == baseline {
            places.push(Some(left.arms.len()));
            let mut arm = arm.clone();
            arm.against = places[arm.against].unwrap_or(0);
            arm.settings.retain(|id, _| !is_of_namespace(id));
            left.arms.push(arm);
            continue;
        }
        places.push(None);
        let names: Vec<String> = own.into_keys().collect();
        remarks.push(format!(
            "not varied: arm `{}` sets {}, which takes a network namespace of its own",
            arm.name,
            names.join(", ")
        ));
    }
    let changes = |study: &Study| {
        let is_change = |arm: &&Arm| arm.role == ArmRole::Change;
        study.arms.iter().filter(is_change).count()
    };
    match changes(&left) == 0 && changes(study) > 0 {
        true => Err(LabError::NoNetworks(why.to_owned())),
        false => Ok((left, remarks)),
    }
}
