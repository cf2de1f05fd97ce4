//! Network between generator, proxies and origin server, and settings that cannot be varied without namespaces.

use weir_model::record::{NetworkUsed, Protection, Remark};
use weir_model::study::{NetworkKind, Study};
use weir_parameters::{Catalog, Scope};
use weir_proposers::turns;

use crate::error::HostError;
use crate::hosts::Hosts;
use crate::left_out::{compares_nothing, leave_out};

/// Reason why a study with a proxy that already runs has no network namespaces.
const OUTSIDER: &str = "weir cannot put a proxy that it does not start into a network namespace";

/// Decides on the network of a run. Returns it, the study as it can run with it, and remarks for the reader.
///
/// # Errors
/// The study asks for network namespaces and none are available, or nothing is left to compare.
pub fn decide(
    study: &Study,
    hosts: &Hosts,
    catalog: &Catalog,
) -> Result<(NetworkUsed, Study, Vec<Remark>), HostError> {
    decided(study, hosts.no_networks(), hosts.together(), catalog)
}

/// Decides on the network of a run from properties of the hosts: `no_networks`, the reason why there can be no
/// namespaces, and `together`, true if all roles are on one host.
fn decided(
    study: &Study,
    no_networks: Option<String>,
    together: bool,
    catalog: &Catalog,
) -> Result<(NetworkUsed, Study, Vec<Remark>), HostError> {
    let mtu = study.network.mtu;
    let has_outsider = !study.arms.iter().all(|arm| study.proxy_of(arm).is_started());
    let no_networks = has_outsider.then(|| OUTSIDER.to_owned()).or(no_networks);
    let without = match (study.network.kind, no_networks) {
        (NetworkKind::Loopback, _) => "the study asks for the loopback interface".to_owned(),
        (_, None) => return Ok((NetworkUsed::Namespaces { mtu }, study.clone(), Vec::new())),
        (NetworkKind::Namespaces, Some(why)) => return Err(HostError::NoNetworks(why)),
        (NetworkKind::Auto, Some(why)) => why,
    };
    let used = if together { NetworkUsed::Loopback } else { NetworkUsed::Hosts };
    if study.controlled().is_some() {
        // A controller sets its pods' kernel settings.
        return Ok((used, study.clone(), turns::remarks(study)));
    }
    let (study, mut remarks) = without_kernel(study, &without, catalog)?;
    // Where others have put their proxies is not known.
    let is_shared = study.arms.iter().any(|arm| study.proxy_of(arm).is_started());
    if study.network.kind == NetworkKind::Auto && is_shared {
        remarks.push(Remark::of_run(format!(
            "all arms share one network and its kernel settings, without network namespaces: {without}"
        )));
    }
    Ok((used, study, remarks))
}

/// Returns the protection that keeps copies of users' configurations from servers and files outside the run; `None` if
/// no arm runs one.
pub fn protection(study: &Study, used: NetworkUsed) -> Option<Protection> {
    study
        .arms
        .iter()
        .any(|arm| study.proxy_of(arm).configuration.is_some())
        .then(|| Protection::of(used))
}

/// Checks that a resumed run has the same network as before.
///
/// # Errors
/// The run had network namespaces, which are no longer available; or it had several hosts and now has one.
pub fn same_as(then: NetworkUsed, hosts: &Hosts) -> Result<(), HostError> {
    let why = match (then, hosts.no_networks()) {
        (NetworkUsed::Namespaces { .. }, Some(why)) => {
            format!("it started with network namespaces, which are not available now: {why}")
        }
        (NetworkUsed::Hosts, _) if hosts.together() => {
            "it started on several hosts: name them again with --place".to_owned()
        }
        _ => return Ok(()),
    };
    Err(HostError::Network(why))
}

/// Leaves out the arms that set kernel settings of their own. Returns the study without them, and remarks.
fn without_kernel(
    study: &Study,
    why: &str,
    catalog: &Catalog,
) -> Result<(Study, Vec<Remark>), HostError> {
    let mut of_kernel =
        study.arms.iter().map(|arm| catalog.split(study.proxy_of(arm).kind, &arm.settings).netns);
    let Some(baseline) = of_kernel.next() else {
        return Ok((study.clone(), Vec::new()));
    };
    let mut remarks = Vec::new();
    if !baseline.is_empty() {
        let names: Vec<&str> = baseline.keys().map(String::as_str).collect();
        remarks.push(Remark::of_run(format!(
            "not set in any arm, because they need a network namespace: {}",
            names.join(", ")
        )));
    }
    // What others have started has the kernel settings that they gave it.
    let refused =
        study.arms.iter().filter(|arm| study.proxy_of(arm).is_started()).filter_map(|arm| {
            let settings = catalog.split(study.proxy_of(arm).kind, &arm.settings).netns;
            let names: Vec<String> = settings.keys().cloned().collect();
            let why = format!("sets {}, which needs its own network namespace", names.join(", "));
            // An arm with a proxy of its own has none of the study's settings.
            (!settings.is_empty() && settings != baseline).then(|| (arm.name.clone(), why))
        });
    let (mut left, left_out) = leave_out(study, &refused.collect());
    remarks.extend(left_out);
    // Which rows those are depends on the proxy only in so far as all have them.
    let kind = study.proxy.kind;
    let of_arms = left.arms.iter_mut().map(|arm| &mut arm.settings);
    for settings in std::iter::once(&mut left.proxy.settings).chain(of_arms) {
        settings.retain(|id, _| catalog.scope(kind, id) != Some(Scope::KernelNetns));
    }
    if compares_nothing(study, &left) {
        Err(HostError::NoNetworks(why.to_owned()))
    } else {
        Ok((left, remarks))
    }
}

#[cfg(test)]
mod tests {
    use weir_model::study::{Arm, ArmRole, NetworkSpec, ProxyKind, ProxySpec};

    use super::*;
    use weir_model::fixture::{arm, study};

    const QUEUE: &[(&str, &str)] = &[("net.core.somaxconn", "77")];

    /// Makes an arm with a proxy of its own.
    fn arm_of(name: &str, kind: ProxyKind, settings: &[(&str, &str)]) -> Arm {
        let proxy = ProxySpec { kind, ..study(Vec::new()).proxy };
        Arm { proxy: Some(Box::new(proxy)), ..arm(name, ArmRole::Change, settings) }
    }

    /// Makes a study of these arms, with the first as the baseline.
    fn study_in(kind: NetworkKind, mut arms: Vec<Arm>) -> Study {
        arms[0].role = ArmRole::Baseline;
        let network = NetworkSpec { kind, ..NetworkSpec::default() };
        Study { network, ..study(arms) }
    }

    /// Decides for one host that may have namespaces.
    fn here(study: &Study) -> Result<(NetworkUsed, Study, Vec<Remark>), HostError> {
        decided(study, None, true, &Catalog::builtin())
    }

    fn names(study: &Study) -> Vec<&str> {
        study.arms.iter().map(|arm| &*arm.name).collect()
    }

    #[test]
    fn beside_a_proxy_that_runs_already_no_arm_has_kernel_settings_of_its_own() {
        let arms = vec![
            arm_of("baseline", ProxyKind::Nginx, &[]),
            arm_of("queue", ProxyKind::Nginx, QUEUE),
            arm_of("outside", ProxyKind::External, &[]),
        ];
        let (used, left, remarks) = here(&study_in(NetworkKind::Auto, arms)).unwrap();
        assert_eq!(used, NetworkUsed::Loopback);
        assert_eq!(names(&left), ["baseline", "outside"]);
        let texts: Vec<String> = remarks.into_iter().map(|remark| remark.text).collect();
        let text = texts.join("\n");
        let message = "arm `queue` sets net.core.somaxconn, which needs its own network namespace";
        assert!(text.contains(message) && text.contains(OUTSIDER), "{text}");
    }

    #[test]
    fn kernel_settings_of_all_started_arms_are_not_set_beside_one_that_runs_already() {
        let arms = vec![
            arm_of("baseline", ProxyKind::Nginx, QUEUE),
            arm_of("same", ProxyKind::Nginx, QUEUE),
            arm_of("outside", ProxyKind::External, &[]),
        ];
        let (_, left, remarks) = here(&study_in(NetworkKind::Auto, arms)).unwrap();
        assert_eq!(names(&left), ["baseline", "same", "outside"]);
        assert!(left.arms.iter().all(|arm| arm.settings.is_empty()));
        assert!(remarks[0].text.starts_with("not set in any arm"), "{remarks:?}");
    }

    fn external_study(kind: NetworkKind) -> Study {
        let arms = ["one", "other"].map(|name| arm_of(name, ProxyKind::External, &[]));
        study_in(kind, arms.to_vec())
    }

    #[test]
    fn a_study_of_proxies_that_run_already_has_no_network_of_weir_s() {
        let (used, _, remarks) = here(&external_study(NetworkKind::Auto)).unwrap();
        assert_eq!((used, remarks), (NetworkUsed::Loopback, Vec::new()));
        let refused = here(&external_study(NetworkKind::Namespaces));
        assert!(matches!(refused, Err(HostError::NoNetworks(why)) if why == OUTSIDER));
    }

    #[test]
    fn where_weir_starts_all_each_arm_has_its_own() {
        let arms = vec![
            arm_of("baseline", ProxyKind::Nginx, &[]),
            arm_of("queue", ProxyKind::Nginx, QUEUE),
        ];
        let study = study_in(NetworkKind::Auto, arms);
        let (used, left, _) = here(&study).unwrap();
        assert!(matches!(used, NetworkUsed::Namespaces { .. }));
        assert_eq!(left, study);
    }

    #[test]
    fn an_arm_that_sets_nothing_of_the_kernel_needs_no_namespace() {
        let [short, long] = ["1024", "8192"].map(|level| [("net.core.somaxconn", level)]);
        let tested = study(vec![
            arm("stock", ArmRole::Baseline, &short),
            arm("without", ArmRole::Change, &[]),
            arm("same", ArmRole::Change, &short),
            arm("other", ArmRole::Change, &long),
        ]);
        let catalog = Catalog::builtin();
        let (left, remarks) = without_kernel(&tested, "a reason", &catalog).unwrap();
        let arms: Vec<&str> = left.arms.iter().map(|arm| &*arm.name).collect();
        assert_eq!(arms, ["stock", "without", "same"]);
        assert!(left.arms.iter().all(|arm| arm.settings.is_empty()));
        let message = "not varied: arm `other` sets net.core.somaxconn, which needs its own network namespace";
        assert_eq!(remarks[1..], [Remark::of_arm("other", message)]);
    }
}
