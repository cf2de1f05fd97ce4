//! Assignment of CPUs to roles.

use weir_model::quantity::CpuSet;
use weir_model::study::CpuRoles;

use crate::options::Role;

/// Divides the CPUs that weir may use: half of them for the proxy alone; the others for the generator and the origin
/// server, separately if there are enough.
pub(crate) fn share_out(allowed: &CpuSet) -> CpuRoles {
    let cpus = allowed.cpus();
    let set = |part: &[u32]| CpuSet::new(part.to_vec()).unwrap_or_else(|| allowed.clone());
    match cpus.len() {
        0 | 1 => {
            CpuRoles { proxy: allowed.clone(), generator: allowed.clone(), origin: allowed.clone() }
        }
        2 | 3 => CpuRoles {
            proxy: set(&cpus[cpus.len() - 1..]),
            generator: set(&cpus[..1]),
            origin: set(&cpus[cpus.len() - 2..cpus.len() - 1]),
        },
        n => {
            let quarter = n / 4;
            CpuRoles {
                generator: set(&cpus[..quarter]),
                origin: set(&cpus[quarter..2 * quarter]),
                proxy: set(&cpus[2 * quarter..]),
            }
        }
    }
}

/// Splits CPUs for two roles: all but the last for one, the last for the other; if there is only one, both get it.
pub(crate) fn split(all: &CpuSet) -> (CpuSet, CpuSet) {
    let (most, last) = all.cpus().split_at(all.cpus().len().saturating_sub(1));
    let set = |part: &[u32]| CpuSet::new(part.to_vec()).unwrap_or_else(|| all.clone());
    (set(most), set(last))
}

/// Returns remarks for the reader about CPUs that roles share. `share` returns true if two roles are on the same host.
pub(crate) fn remarks(
    roles: &CpuRoles,
    has_origin: bool,
    share: &dyn Fn(Role, Role) -> bool,
) -> Vec<String> {
    let mut remarks = Vec::new();
    let cpus = |role| match role {
        Role::Generator => &roles.generator,
        Role::Proxy => &roles.proxy,
        Role::Origin => &roles.origin,
    };
    let mut shared = |what: &str, a: Role, b: Role, consequence: &str| {
        let both = cpus(a).shared_with(cpus(b));
        if let Some(cpus) = CpuSet::new(both).filter(|_| share(a, b)) {
            remarks.push(format!("{what} share CPU {cpus}: {consequence}"));
        }
    };
    let distorts = "each takes CPU time from the other, so measured ratios are too small";
    shared("proxy and generator", Role::Proxy, Role::Generator, distorts);
    if has_origin {
        shared("proxy and origin server", Role::Proxy, Role::Origin, distorts);
        let harmless = "this affects all arms equally, as long as the proxy is the limit";
        shared("generator and origin server", Role::Generator, Role::Origin, harmless);
    }
    remarks
}

/// Returns a remark for the reader about arms with more workers than the proxy has CPUs; `None` if there are none.
/// `workers` has each arm's name and, if it is a number, its number of workers.
pub(crate) fn crowded_arms<'a>(
    proxy: &CpuSet,
    workers: impl Iterator<Item = (&'a str, Option<u64>)>,
) -> Option<String> {
    let cpus = proxy.cpus().len() as u64;
    let names: Vec<&str> = workers
        .filter(|(_, workers)| workers.is_some_and(|n| n > cpus))
        .map(|(arm, _)| arm)
        .collect();
    if names.is_empty() {
        return None;
    }
    let plural = if cpus == 1 { "" } else { "s" };
    Some(format!(
        "the proxy has {cpus} CPU{plural}, and more workers than that in {}: they compete for it",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(cpus: &str) -> CpuRoles {
        share_out(&cpus.parse().expect("a set of CPUs"))
    }

    #[test]
    fn the_proxy_is_alone_from_two_cpus_on() {
        let two = roles("0-1");
        assert_eq!((two.proxy.to_string(), two.generator.to_string()), ("1".into(), "0".into()));
        assert_eq!(two.origin.to_string(), "0");
        for cpus in ["0-1", "0-2", "0-3", "0-7", "2,4,6,8,10"] {
            let roles = roles(cpus);
            assert!(roles.proxy.shared_with(&roles.generator).is_empty(), "{cpus}");
            assert!(roles.proxy.shared_with(&roles.origin).is_empty(), "{cpus}");
        }
        assert!(roles("0-3").generator.shared_with(&roles("0-3").origin).is_empty());
    }

    #[test]
    fn shared_cpus_are_said() {
        let here = |_, _| true;
        assert_eq!(remarks(&roles("0"), true, &here).len(), 3);
        assert_eq!(remarks(&roles("0-1"), true, &here).len(), 1);
        assert_eq!(remarks(&roles("0-1"), false, &here).len(), 0);
        assert_eq!(remarks(&roles("0-3"), true, &here).len(), 0);
        let proxy_elsewhere = |a, b| a != Role::Proxy && b != Role::Proxy;
        assert_eq!(remarks(&roles("0"), true, &proxy_elsewhere).len(), 1);
    }

    #[test]
    fn workers_beyond_the_proxys_cpus_are_said() {
        let said = |workers: &[(&'static str, Option<u64>)]| {
            crowded_arms(&roles("0-1").proxy, workers.iter().copied())
        };
        assert_eq!(said(&[("one", Some(1)), ("auto", None)]), None);
        assert_eq!(
            said(&[("one", Some(1)), ("two", Some(2)), ("four", Some(4))]).as_deref(),
            Some(
                "the proxy has 1 CPU, and more workers than that in two, four: they compete for it"
            )
        );
    }
}
