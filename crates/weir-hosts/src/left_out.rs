//! Arms that cannot run on these hosts: they are left out with the reason, and the others run.

use std::collections::{BTreeMap, BTreeSet};

use weir_agent::message::{HostRequirements, Missing};
use weir_model::record::Remark;
use weir_model::study::{Arm, ArmRole, ProxyRole, Study};
use weir_parameters::{Catalog, Hop};

use crate::asked::{about_answers, about_vanished, build_copies, no_copies};
use crate::error::HostError;
use crate::hosts::Hosts;
use crate::options::Role;

/// Leaves out the arms for which the proxies' host has no program, launcher or kernel. Returns the study without them,
/// and a remark for each.
///
/// # Errors
/// The baseline cannot run, or nothing is left to compare.
pub fn by_host(
    study: &Study,
    hosts: &Hosts,
    catalog: &Catalog,
) -> Result<(Study, Vec<Remark>), HostError> {
    let missing = ask_for_missing(study, hosts, catalog)?;
    let mut refused = no_copies(study, &missing)?;
    for arm in &study.arms {
        let proxy = study.proxy_of(arm);
        let launcher = catalog.started_through(&arm.settings);
        let no_launcher = launcher.and_then(|name| missing.launchers.get(name));
        let no_sockmap = missing.sockmap.as_ref();
        let why = match hosts.program_of(proxy) {
            // Without its baseline a study is nothing; the error says what to do.
            Err(error) if arm.role != ArmRole::Change => return Err(error),
            Err(error) => Some(in_a_line(&error)),
            Ok(_) => no_launcher
                .or_else(|| no_sockmap.filter(|_| !catalog.bypassed(&arm.settings).is_empty()))
                .cloned()
                .or_else(|| has_no_such_hop(arm, catalog, study)),
        };
        if let Some(why) = why {
            refused.insert(arm.name.clone(), why);
        }
    }
    let (study, mut remarks) = without(study, refused)?;
    remarks.extend(about_answers(&study, &missing));
    remarks.extend(about_vanished(&study, &missing));
    Ok((study, remarks))
}

/// Leaves out the arms in `refused`, each with its reason. Returns the study without them, and a remark for each.
///
/// # Errors
/// Same as [`by_host`].
pub fn without(
    study: &Study,
    mut refused: BTreeMap<String, String>,
) -> Result<(Study, Vec<Remark>), HostError> {
    let baseline = study.arms.first();
    if let Some((arm, why)) = baseline.and_then(|arm| refused.remove_entry(&arm.name)) {
        return Err(HostError::Baseline { arm, why });
    }
    let (left, remarks) = leave_out(
        study,
        &refused.into_iter().map(|(arm, why)| (arm, format!("is left out: {why}"))).collect(),
    );
    if compares_nothing(study, &left) {
        let why: Vec<String> = remarks.iter().map(ToString::to_string).collect();
        Err(HostError::NothingLeft(why.join("; ")))
    } else {
        Ok((left, remarks))
    }
}

/// Formats an error and its remedy in one line, for a remark.
fn in_a_line(error: &HostError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// Returns true if bytes between clients and some arm bypass TCP.
pub fn is_bypassed_inbound(study: &Study, catalog: &Catalog) -> bool {
    let mut hops = study.arms.iter().map(|arm| catalog.bypassed(&arm.settings));
    hops.any(|hops| hops.contains(&Hop::Inbound))
}

/// Returns the reason why an arm that bypasses TCP only towards its origin server cannot do so on any host; `None` if
/// it can.
fn has_no_such_hop(arm: &Arm, catalog: &Catalog, study: &Study) -> Option<String> {
    let serves_files = matches!(study.proxy_of(arm).role, ProxyRole::StaticFiles { .. });
    let outbound_alone = BTreeSet::from([Hop::Outbound]);
    let is_none = serves_files && catalog.bypassed(&arm.settings) == outbound_alone;
    is_none.then(|| {
        "a proxy that serves files has no connections to an origin server that could bypass TCP"
            .to_owned()
    })
}

fn ask_for_missing(study: &Study, hosts: &Hosts, catalog: &Catalog) -> Result<Missing, HostError> {
    let arms = study.arms.iter();
    let used: Vec<&str> =
        arms.clone().filter_map(|arm| catalog.started_through(&arm.settings)).collect();
    let launchers = study.launchers.iter().filter(|(name, _)| used.contains(&name.as_str()));
    let wanted = HostRequirements {
        launchers: launchers.map(|(name, spec)| (name.clone(), spec.clone())).collect(),
        sockmap: arms.clone().any(|arm| !catalog.bypassed(&arm.settings).is_empty()),
        copies: build_copies(study),
    };
    if wanted == HostRequirements::default() {
        return Ok(Missing::default());
    }
    let is_bypassing = wanted.sockmap;
    let mut missing = hosts.host(Role::Proxy).ask(wanted)?;
    if is_bypassing && !hosts.together() {
        missing.sockmap = Some(
            "bytes go past the kernel's TCP only between sockets of one host, and the roles are on \
             several"
                .to_owned(),
        );
    }
    Ok(missing)
}

/// Removes arms from a study, and returns a remark for each. Arms that were compared with one of them are compared with
/// the baseline.
pub fn leave_out(study: &Study, refused: &BTreeMap<String, String>) -> (Study, Vec<Remark>) {
    let mut reduced = study.clone();
    let mut remarks = Vec::new();
    // The place of each arm among those that stay.
    let mut places: Vec<Option<usize>> = Vec::new();
    reduced.arms.clear();
    for arm in &study.arms {
        if let Some(why) = refused.get(&arm.name) {
            places.push(None);
            let text = format!("not varied: arm `{}` {why}", arm.name);
            remarks.push(Remark::of_arm(&arm.name, text));
            continue;
        }
        places.push(Some(reduced.arms.len()));
        let against = places[arm.against].unwrap_or(0);
        reduced.arms.push(Arm { against, ..arm.clone() });
    }
    (reduced, remarks)
}

/// Returns true if a study that compares arms has nothing left to compare.
pub fn compares_nothing(study: &Study, left: &Study) -> bool {
    let changes =
        |study: &Study| study.arms.iter().filter(|arm| arm.role == ArmRole::Change).count();
    changes(left) == 0 && changes(study) > 0
}

#[cfg(test)]
mod tests {
    use weir_agent::Failure;

    use super::*;
    use weir_model::fixture::{arm, study};

    fn refused(arms: &[&str]) -> BTreeMap<String, String> {
        arms.iter().map(|arm| ((*arm).to_owned(), "`onload` is not installed".to_owned())).collect()
    }

    fn three() -> Study {
        let changes = ["one", "other"].map(|name| arm(name, ArmRole::Change, &[]));
        let baseline = arm("stock", ArmRole::Baseline, &[]);
        study([baseline].into_iter().chain(changes).collect())
    }

    #[test]
    fn a_remark_and_an_error_give_the_reason_in_their_own_words() {
        let (left, remarks) = without(&three(), refused(&["one"])).unwrap();
        assert_eq!(left.arms.len(), 2);
        let message = "not varied: arm `one` is left out: `onload` is not installed";
        assert_eq!(remarks, [Remark::of_arm("one", message)]);

        let error = without(&three(), refused(&["stock", "one"])).unwrap_err();
        let message = "the baseline, arm `stock`, is not available on this host: `onload` is \
                    not installed";
        assert_eq!(error.to_string(), message);

        let error = without(&three(), refused(&["one", "other"])).unwrap_err();
        assert!(matches!(error, HostError::NothingLeft(_)), "{error}");
    }

    fn program_error(hint: Option<&str>) -> HostError {
        let failure = Failure::other("envoy was not found");
        HostError::Program(failure.with_hint(hint.map(str::to_owned)).into())
    }

    #[test]
    fn what_to_do_about_it_is_said_too() {
        let line = in_a_line(&program_error(Some("install it")));
        assert_eq!(line, "envoy was not found; install it");
        assert_eq!(in_a_line(&program_error(None)), "envoy was not found");
    }
}
