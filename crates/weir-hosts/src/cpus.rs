//! Assignment of CPUs to roles.

use weir_model::quantity::CpuSet;
use weir_model::study::CpuRoles;

use crate::options::Role;

/// Divides the CPUs that weir may use: half of them for the proxy alone; the others for the generator and the origin
/// server, separately if there are enough.
pub fn share_out(allowed: &CpuSet) -> CpuRoles {
    let cpus = allowed.cpus();
    match cpus.len() {
        0 | 1 => {
            CpuRoles { proxy: allowed.clone(), generator: allowed.clone(), origin: allowed.clone() }
        }
        2 | 3 => CpuRoles {
            proxy: part_or_all(allowed, &cpus[cpus.len() - 1..]),
            generator: part_or_all(allowed, &cpus[..1]),
            origin: part_or_all(allowed, &cpus[cpus.len() - 2..cpus.len() - 1]),
        },
        n => {
            let quarter = n / 4;
            CpuRoles {
                generator: part_or_all(allowed, &cpus[..quarter]),
                origin: part_or_all(allowed, &cpus[quarter..2 * quarter]),
                proxy: part_or_all(allowed, &cpus[2 * quarter..]),
            }
        }
    }
}

/// Splits CPUs for two roles: all but the last for one, the last for the other; if there is only one, both get it.
pub fn split(all: &CpuSet) -> (CpuSet, CpuSet) {
    let (most, last) = all.cpus().split_at(all.cpus().len().saturating_sub(1));
    (part_or_all(all, most), part_or_all(all, last))
}

/// Makes a set of some CPUs; of all if these are none.
fn part_or_all(all: &CpuSet, part: &[u32]) -> CpuSet {
    CpuSet::new(part.to_vec()).unwrap_or_else(|| all.clone())
}

fn cpus_of(roles: &CpuRoles, role: Role) -> &CpuSet {
    match role {
        Role::Generator => &roles.generator,
        Role::Proxy => &roles.proxy,
        Role::Origin => &roles.origin,
    }
}

/// Returns remarks for the reader about CPUs that roles share. `share` returns true if two roles are on the same host.
pub fn remarks(
    roles: &CpuRoles,
    has_origin: bool,
    share: &dyn Fn(Role, Role) -> bool,
) -> Vec<String> {
    let distorts = "each takes CPU time from the other, so measured ratios are too small";
    let harmless = "this affects all arms equally, as long as the proxy is the limit";
    let pairs = [
        ("proxy and generator", Role::Proxy, Role::Generator, distorts),
        ("proxy and origin server", Role::Proxy, Role::Origin, distorts),
        ("generator and origin server", Role::Generator, Role::Origin, harmless),
    ];
    pairs
        .into_iter()
        .filter(|(_, a, b, _)| has_origin || ![a, b].contains(&&Role::Origin))
        .filter(|(_, a, b, _)| share(*a, *b))
        .filter_map(|(what, a, b, consequence)| {
            let cpus = CpuSet::new(cpus_of(roles, a).shared_with(cpus_of(roles, b)))?;
            Some(format!("{what} share CPU {cpus}: {consequence}"))
        })
        .collect()
}

/// Returns a remark for the reader about arms with more workers than the proxy has CPUs; `None` if there are none.
/// `workers` has each arm's name and, if it is a number, its number of workers.
pub fn crowded_arms<'a>(
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

    fn parse_roles(cpus: &str) -> CpuRoles {
        share_out(&cpus.parse().expect("a set of CPUs"))
    }

    #[test]
    fn the_proxy_is_alone_from_two_cpus_on() {
        let two = parse_roles("0-1");
        assert_eq!((two.proxy.to_string(), two.generator.to_string()), ("1".into(), "0".into()));
        assert_eq!(two.origin.to_string(), "0");
        for cpus in ["0-1", "0-2", "0-3", "0-7", "2,4,6,8,10"] {
            let roles = parse_roles(cpus);
            assert!(roles.proxy.shared_with(&roles.generator).is_empty(), "{cpus}");
            assert!(roles.proxy.shared_with(&roles.origin).is_empty(), "{cpus}");
        }
        assert!(parse_roles("0-3").generator.shared_with(&parse_roles("0-3").origin).is_empty());
    }

    #[test]
    fn shared_cpus_are_said() {
        assert_eq!(remarks(&parse_roles("0"), true, &|_, _| true).len(), 3);
        assert_eq!(remarks(&parse_roles("0-1"), true, &|_, _| true).len(), 1);
        assert_eq!(remarks(&parse_roles("0-1"), false, &|_, _| true).len(), 0);
        assert_eq!(remarks(&parse_roles("0-3"), true, &|_, _| true).len(), 0);
        let shared = remarks(&parse_roles("0"), true, &|a, b| a != Role::Proxy && b != Role::Proxy);
        assert_eq!(shared.len(), 1);
    }

    fn crowding(workers: &[(&'static str, Option<u64>)]) -> Option<String> {
        crowded_arms(&parse_roles("0-1").proxy, workers.iter().copied())
    }

    #[test]
    fn workers_beyond_the_proxys_cpus_are_said() {
        assert_eq!(crowding(&[("one", Some(1)), ("auto", None)]), None);
        assert_eq!(
            crowding(&[("one", Some(1)), ("two", Some(2)), ("four", Some(4))]).as_deref(),
            Some(
                "the proxy has 1 CPU, and more workers than that in two, four: they compete for it"
            )
        );
    }
}
