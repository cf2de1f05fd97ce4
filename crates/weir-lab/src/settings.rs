//! Settings of a whole host that arms differ in.

use std::collections::{BTreeMap, BTreeSet};

use weir_agent::message::{Ask, SettingsJob};
use weir_model::study::{Arm, Study};
use weir_parameters::Catalog;

use crate::places::{Places, Role};
use crate::run::Options;
use crate::{Event, LabError};

/// Whether the host may be changed as the study asks.
///
/// # Errors
/// It asks for settings of a whole host, and nobody has allowed that.
pub(crate) fn check(study: &Study, options: &Options) -> Result<(), LabError> {
    let names: BTreeSet<String> = by_arm(study, &options.catalog)
        .into_iter()
        .flat_map(BTreeMap::into_keys)
        .collect();
    match names.is_empty() || options.allow_host_settings {
        true => Ok(()),
        false => Err(LabError::HostSettings {
            names: names.into_iter().collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Gives the proxies' host the settings of the first arm, if any arm has settings of a whole host.
pub(crate) fn begin(study: &Study, places: &Places, options: &Options) -> Result<(), LabError> {
    let arms = by_arm(study, &options.catalog);
    if arms.iter().all(BTreeMap::is_empty) {
        return Ok(());
    }
    let purpose = format!("weir run {}", study.name);
    let job = SettingsJob { purpose, arms };
    Ok(places.agent(Role::Proxy).ask(Ask::Settings(job))?)
}

/// Puts them back, and says of each that could not be.
pub(crate) fn put_back(places: &Places, events: &mut dyn FnMut(Event)) -> Result<(), LabError> {
    let restored = places.agent(Role::Proxy).ask(Ask::PutBack)?;
    events(Event::PutBack(restored));
    Ok(())
}

fn by_arm(study: &Study, catalog: &Catalog) -> Vec<BTreeMap<String, String>> {
    let of_arm = |arm: &Arm| catalog.split(study.proxy_of(arm).kind, &arm.settings).host;
    study.arms.iter().map(of_arm).collect()
}
