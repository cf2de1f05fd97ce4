//! Settings of a whole host that arms differ in.

use std::collections::{BTreeMap, BTreeSet};

use weir_agent::message::{HostSettingsJob, PutBack};
use weir_model::study::{Arm, Study};
use weir_parameters::Catalog;

use crate::hosts::Hosts;
use crate::options::{Options, Role};
use crate::{Event, LabError};

/// Whether the host may be changed as the study asks.
///
/// # Errors
/// It asks for settings of a whole host, and nobody has allowed that.
pub(crate) fn check(study: &Study, options: &Options) -> Result<(), LabError> {
    let names = of_host(study, &options.catalog);
    match names.is_empty() || options.allow_host_settings {
        true => Ok(()),
        false => Err(LabError::HostSettings {
            names: names.into_iter().collect::<Vec<_>>().join(", "),
        }),
    }
}

/// The names of the settings of a whole host that a study's arms have.
pub fn of_host(study: &Study, catalog: &Catalog) -> BTreeSet<String> {
    let by_arm = by_arm(study, catalog).into_iter();
    by_arm.flat_map(BTreeMap::into_keys).collect()
}

/// Takes the journal of the proxies' host, if any arm has settings of a whole host.
pub(crate) fn begin(study: &Study, hosts: &Hosts, options: &Options) -> Result<(), LabError> {
    let arms = by_arm(study, &options.catalog);
    if arms.iter().all(BTreeMap::is_empty) {
        return Ok(());
    }
    let purpose = format!("weir run {}", study.name);
    Ok(hosts.host(Role::Proxy).ask(HostSettingsJob { purpose })?)
}

/// Puts them back, and says of each that could not be.
pub(crate) fn put_back(hosts: &Hosts, events: &mut dyn FnMut(Event)) -> Result<(), LabError> {
    let restored = hosts.host(Role::Proxy).ask(PutBack)?;
    events(Event::PutBack { settings: restored });
    Ok(())
}

fn by_arm(study: &Study, catalog: &Catalog) -> Vec<BTreeMap<String, String>> {
    // Those of a controller's proxy are of the cluster's nodes.
    if study.controlled().is_some() {
        return Vec::new();
    }
    let of_arm = |arm: &Arm| catalog.split(study.proxy_of(arm).kind, &arm.settings).host;
    study.arms.iter().map(of_arm).collect()
}
