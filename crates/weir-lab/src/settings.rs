//! Settings of a whole host that differ between arms.

use std::collections::{BTreeMap, BTreeSet};

use weir_agent::message::{HostSettingsJob, PutBack};
use weir_hosts::{Hosts, Options, Role};
use weir_model::study::Study;
use weir_parameters::Catalog;

use crate::{Event, LabError};

/// Checks that the settings of whole hosts that the study asks for are allowed.
///
/// # Errors
/// The study asks for settings of a whole host, and the options do not allow them.
pub(crate) fn check(study: &Study, options: &Options) -> Result<(), LabError> {
    let names = of_host(study, &options.catalog);
    if names.is_empty() || options.allow_host_settings {
        Ok(())
    } else {
        Err(LabError::HostSettings { names: names.into_iter().collect::<Vec<_>>().join(", ") })
    }
}

/// Returns the names of the settings of a whole host that a study's arms set.
pub fn of_host(study: &Study, catalog: &Catalog) -> BTreeSet<String> {
    by_arm(study, catalog).into_iter().flat_map(BTreeMap::into_keys).collect()
}

/// Opens the journal of the proxies' host, if any arm has settings of a whole host.
pub(crate) fn begin(study: &Study, hosts: &Hosts, options: &Options) -> Result<(), LabError> {
    let arms = by_arm(study, &options.catalog);
    if arms.iter().all(BTreeMap::is_empty) {
        return Ok(());
    }
    let purpose = format!("weir run {}", study.name);
    Ok(hosts.host(Role::Proxy).ask(HostSettingsJob { purpose })?)
}

/// Restores the settings and reports the outcome for each.
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
    study
        .arms
        .iter()
        .map(|arm| catalog.split(study.proxy_of(arm).kind, &arm.settings).host)
        .collect()
}
