//! Assignment of CPUs to roles.

use weir_model::quantity::CpuSet;
use weir_model::record::HostFacts;
use weir_model::study::CpuRoles;

use crate::options::Role;

/// Gives the proxy `wanted` of the CPUs that weir may use, in the order of [`by_core`]; the other roles get the rest,
/// or all if there is none. `None` if there are fewer.
pub(crate) fn share_out_for(wanted: usize, in_order: &[u32]) -> Option<CpuRoles> {
    let all = CpuSet::new(in_order.to_vec())?;
    let proxy = CpuSet::new(in_order.get(..wanted)?.to_vec())?;
    let (generator, origin) = match &in_order[wanted..] {
        [] => (all.clone(), all),
        [_] => (part_or_all(&all, &in_order[wanted..]), part_or_all(&all, &in_order[wanted..])),
        rest => {
            let (first, second) = rest.split_at(rest.len() / 2);
            (part_or_all(&all, first), part_or_all(&all, second))
        }
    };
    Some(CpuRoles { proxy, generator, origin })
}

/// Returns CPUs in the order in which a proxy gets them: one thread of each core before the second ones, and those of
/// one NUMA node before the others.
pub(crate) fn by_core(cpus: &CpuSet, facts: &HostFacts) -> Vec<u32> {
    let first = cpus.cpus().first().copied();
    let mut in_order = cpus.cpus().to_vec();
    in_order.sort_by_key(|&cpu| {
        let node = facts.node_of(cpu);
        let is_elsewhere = node != first.and_then(|first| facts.node_of(first));
        (facts.thread_of(cpu), is_elsewhere, node, cpu)
    });
    in_order
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
/// `workers` has each arm's name, the number of its CPUs and, if it is a number, that of its workers. The remark is about
/// the arms with the fewest CPUs.
pub fn crowded_arms<'a>(
    workers: impl Iterator<Item = (&'a str, usize, Option<u64>)>,
) -> Option<String> {
    let crowded: Vec<(&str, usize)> = workers
        .filter(|(_, cpus, workers)| workers.is_some_and(|n| n > *cpus as u64))
        .map(|(arm, cpus, _)| (arm, cpus))
        .collect();
    let cpus = crowded.iter().map(|(_, cpus)| *cpus).min()?;
    let names: Vec<&str> =
        crowded.iter().filter(|(_, other)| *other == cpus).map(|(arm, _)| *arm).collect();
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
        CpuRoles::share_out(&cpus.parse().expect("a set of CPUs"))
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

    #[test]
    fn a_proxy_gets_whole_cores_of_one_node_first() {
        let set = |cpus: &str| cpus.parse::<CpuSet>().unwrap();
        let facts = HostFacts {
            siblings: ["0,4", "1,5", "2,6", "3,7"].map(set).to_vec(),
            nodes: [(0, set("0-1,4-5")), (1, set("2-3,6-7"))].into(),
            ..HostFacts::default()
        };
        assert_eq!(by_core(&set("0-7"), &facts), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(by_core(&set("2-7"), &facts), [2, 3, 6, 7, 4, 5]);
        assert_eq!(by_core(&set("3,1-2"), &HostFacts::default()), [1, 2, 3]);
    }

    #[test]
    fn a_proxy_that_needs_most_cpus_leaves_the_rest_to_the_others() {
        for (wanted, all, sets) in [
            (2, &[0, 1][..], ["0-1", "0-1", "0-1"]),
            (2, &[0, 1, 2], ["0-1", "2", "2"]),
            (4, &[0, 1, 2, 3, 4, 5, 6], ["0-3", "4", "5-6"]),
        ] {
            let roles = share_out_for(wanted, all).unwrap();
            let CpuRoles { proxy, generator, origin } = roles;
            assert_eq!([proxy, generator, origin].map(|set| set.to_string()), sets);
        }
        assert_eq!(share_out_for(3, &[0, 1]), None);
    }

    fn crowding(workers: &[(&'static str, Option<u64>)]) -> Option<String> {
        crowded_arms(workers.iter().map(|(arm, workers)| (*arm, 1, *workers)))
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
