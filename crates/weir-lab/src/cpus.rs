//! Which role runs on which CPUs.

use weir_model::quantity::CpuSet;
use weir_model::study::CpuRoles;

use crate::options::Role;

/// Shares out the CPUs that weir may use: half of them to the proxy, alone; the others to the
/// generator and the origin server, apart from each other where there are enough.
pub(crate) fn share_out(allowed: &CpuSet) -> CpuRoles {
    let cpus = allowed.cpus();
    let set = |part: &[u32]| CpuSet::new(part.to_vec()).unwrap_or_else(|| allowed.clone());
    match cpus.len() {
        0 | 1 => CpuRoles {
            proxy: allowed.clone(),
            generator: allowed.clone(),
            origin: allowed.clone(),
        },
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

/// Most of some CPUs for one role, the last of them for another; both on the only one.
pub(crate) fn split(all: &CpuSet) -> (CpuSet, CpuSet) {
    let (most, last) = all.cpus().split_at(all.cpus().len().saturating_sub(1));
    let set = |part: &[u32]| CpuSet::new(part.to_vec()).unwrap_or_else(|| all.clone());
    (set(most), set(last))
}

/// What the reader of the figures must know about the roles.
/// `share` says whether two of them are on one host at all.
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
    shared(
        "proxy and generator",
        Role::Proxy,
        Role::Generator,
        distorts,
    );
    if has_origin {
        shared(
            "proxy and origin server",
            Role::Proxy,
            Role::Origin,
            distorts,
        );
        let harmless = "this affects all arms equally, as long as the proxy is the limit";
        shared(
            "generator and origin server",
            Role::Generator,
            Role::Origin,
            harmless,
        );
    }
    remarks
}

/// What the reader must know about arms with more workers than the proxy has CPUs, if there are any.
/// `workers` are those of each arm by its name, where they are a number.
pub(crate) fn crowded_arms<'a>(
    proxy: &CpuSet,
    workers: impl Iterator<Item = (&'a str, Option<u64>)>,
) -> Option<String> {
    let cpus = proxy.cpus().len() as u64;
    let beyond = |(_, workers): &(&str, Option<u64>)| workers.is_some_and(|n| n > cpus);
    let names: Vec<&str> = workers.filter(beyond).map(|(arm, _)| arm).collect();
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
        assert_eq!(
            (two.proxy.to_string(), two.generator.to_string()),
            ("1".into(), "0".into())
        );
        assert_eq!(two.origin.to_string(), "0");
        for cpus in ["0-1", "0-2", "0-3", "0-7", "2,4,6,8,10"] {
            let roles = roles(cpus);
            assert!(
                roles.proxy.shared_with(&roles.generator).is_empty(),
                "{cpus}"
            );
            assert!(roles.proxy.shared_with(&roles.origin).is_empty(), "{cpus}");
        }
        assert!(
            roles("0-3")
                .generator
                .shared_with(&roles("0-3").origin)
                .is_empty()
        );
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
