//! Arms that cannot be had here: they are left out with the reason, and the rest runs.

use std::collections::BTreeMap;

use weir_agent::message::{Ask, Missing, Wanted};
use weir_model::study::{Arm, ArmRole, LauncherSpec, ProxyRole, Study};
use weir_parameters::Catalog;

use crate::LabError;
use crate::places::{Places, Role};

/// The study without the arms that the proxies' host has no program, launcher or kernel for, and what
/// was left out.
///
/// # Errors
/// The baseline cannot be had, or nothing is left to compare.
pub(crate) fn by_host(
    study: &Study,
    places: &Places,
    catalog: &Catalog,
) -> Result<(Study, Vec<String>), LabError> {
    let missing = missing(study, places, catalog)?;
    let mut refused: BTreeMap<String, String> = BTreeMap::new();
    for arm in &study.arms {
        let proxy = study.proxy_of(arm);
        let scoped = catalog.split(proxy.kind, &arm.settings);
        let launcher = scoped.launcher.as_deref();
        let no_launcher = launcher.and_then(|name| missing.launchers.get(name));
        let no_sockmap = missing.sockmap.as_ref();
        let why = match places.program_of(proxy) {
            // Without its baseline a study is nothing; the error says what to do.
            Err(error) if arm.role != ArmRole::Change => return Err(error),
            Err(error) => Some(error.to_string()),
            Ok(_) => no_launcher
                .or_else(|| no_sockmap.filter(|_| is_bypassed(arm, catalog, study)))
                .cloned()
                .or_else(|| has_no_such_hop(arm, catalog, study)),
        };
        if let Some(why) = why {
            refused.insert(arm.name.clone(), format!("is left out: {why}"));
        }
    }
    if let Some(why) = study.arms.first().and_then(|arm| refused.get(&arm.name)) {
        let arm = study.arms[0].name.clone();
        let why = why.clone();
        return Err(LabError::Baseline { arm, why });
    }
    let (left, remarks) = leave_out(study, &refused);
    match compares_nothing(study, &left) {
        true => Err(LabError::NothingLeft(remarks.join("; "))),
        false => Ok((left, remarks)),
    }
}

/// Whether an arm's bytes go past the kernel's TCP.
fn is_bypassed(arm: &Arm, catalog: &Catalog, study: &Study) -> bool {
    transport(arm, catalog, study).is_some_and(|transport| transport != "tcp")
}

/// Whether some arm's bytes from and to clients do.
pub(crate) fn is_bypassed_inbound(study: &Study, catalog: &Catalog) -> bool {
    let mut levels = study
        .arms
        .iter()
        .filter_map(|arm| transport(arm, catalog, study));
    levels.any(|level| ["sockmap", "sockmap-inbound"].contains(&&*level))
}

/// Why an arm that is to go past TCP towards its origin server alone cannot, whatever the host.
fn has_no_such_hop(arm: &Arm, catalog: &Catalog, study: &Study) -> Option<String> {
    let serves_files = matches!(study.proxy_of(arm).role, ProxyRole::StaticFiles { .. });
    let level = transport(arm, catalog, study);
    let is_none = serves_files && level.as_deref() == Some("sockmap-outbound");
    is_none.then(|| "a server of files has no origin server to go past TCP to".to_owned())
}

fn transport(arm: &Arm, catalog: &Catalog, study: &Study) -> Option<String> {
    catalog
        .split(study.proxy_of(arm).kind, &arm.settings)
        .transport
}

fn missing(study: &Study, places: &Places, catalog: &Catalog) -> Result<Missing, LabError> {
    let arms = study.arms.iter();
    let used: Vec<String> = arms
        .clone()
        .filter_map(|arm| {
            catalog
                .split(study.proxy_of(arm).kind, &arm.settings)
                .launcher
        })
        .collect();
    let is_used = |(name, _): &(&String, &LauncherSpec)| used.contains(name);
    let launchers = study.launchers.iter().filter(is_used);
    let wanted = Wanted {
        launchers: launchers
            .map(|(name, spec)| (name.clone(), spec.clone()))
            .collect(),
        sockmap: arms.clone().any(|arm| is_bypassed(arm, catalog, study)),
    };
    if wanted == Wanted::default() {
        return Ok(Missing::default());
    }
    let mut missing: Missing = places
        .agent(Role::Proxy)
        .ask(Ask::Missing(wanted.clone()))?;
    if wanted.sockmap && !places.together() {
        missing.sockmap = Some(
            "bytes go past the kernel's TCP only between sockets of one host, and the roles are on \
             several"
                .to_owned(),
        );
    }
    Ok(missing)
}

/// The study without some arms, and a remark for each. Those that were compared with one of them are
/// compared with the baseline.
pub(crate) fn leave_out(study: &Study, refused: &BTreeMap<String, String>) -> (Study, Vec<String>) {
    let mut left = study.clone();
    let mut remarks = Vec::new();
    // The place of each arm among those that stay.
    let mut places: Vec<Option<usize>> = Vec::new();
    left.arms.clear();
    for arm in &study.arms {
        if let Some(why) = refused.get(&arm.name) {
            places.push(None);
            remarks.push(format!("not varied: arm `{}` {why}", arm.name));
            continue;
        }
        places.push(Some(left.arms.len()));
        let mut arm = arm.clone();
        arm.against = places[arm.against].unwrap_or(0);
        left.arms.push(arm);
    }
    (left, remarks)
}

/// Whether a study that compares something has nothing left to compare.
pub(crate) fn compares_nothing(study: &Study, left: &Study) -> bool {
    let changes = |study: &Study| {
        let is_change = |arm: &&Arm| arm.role == ArmRole::Change;
        study.arms.iter().filter(is_change).count()
    };
    changes(left) == 0 && changes(study) > 0
}
