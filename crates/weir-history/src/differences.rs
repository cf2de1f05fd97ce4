//! Differences between the environments of two runs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use weir_model::record::{NetworkUsed, PlacesUsed, RunHeader};

/// A property in which two runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The property: `CPU model`, `nginx`, `net.core.somaxconn`.
    pub what: String,
    /// Its value in the earlier run; empty if it is not there.
    pub old: String,
    /// Its value in the later run; empty if it is not there.
    pub new: String,
    /// True if figures of the two runs cannot be compared: the machine, or the load's way to the proxy, is another one.
    pub is_of_machine: bool,
}

/// Returns the properties in which the environments of two runs differ, those of the machine first.
pub fn differences(old: &RunHeader, new: &RunHeader) -> Vec<Difference> {
    let [here, there] = [&old.environment, &new.environment];
    let machine = [
        ("CPU model", here.cpu_model.clone(), there.cpu_model.clone()),
        ("CPUs", here.cpus.clone(), there.cpus.clone()),
        ("CPUs of the proxy", old.cpus.proxy.to_string(), new.cpus.proxy.to_string()),
        ("CPUs of the generator", old.cpus.generator.to_string(), new.cpus.generator.to_string()),
        ("memory", gibibytes(here.memory_bytes), gibibytes(there.memory_bytes)),
        ("virtualization", here.virtualization.clone(), there.virtualization.clone()),
        ("hosts", name_hosts(&old.places), name_hosts(&new.places)),
        ("network", describe(&old.network), describe(&new.network)),
    ];
    let software = [
        ("kernel", here.kernel.clone(), there.kernel.clone()),
        ("distribution", here.distribution.clone(), there.distribution.clone()),
        ("privileges", here.privileges.clone(), there.privileges.clone()),
        ("open descriptors", format!("{:?}", here.nofile), format!("{:?}", there.nofile)),
        ("weir", old.weir_version.clone(), new.weir_version.clone()),
    ];
    let mut all: Vec<Difference> = Vec::new();
    for (rows, is_of_machine) in [(&machine[..], true), (&software[..], false)] {
        for (what, old, new) in rows {
            all.push(Difference {
                what: (*what).to_owned(),
                old: old.clone(),
                new: new.clone(),
                is_of_machine,
            });
        }
    }
    for (old, new) in [(&here.versions, &there.versions), (&here.sysctls, &there.sysctls)] {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        all.extend(names.into_iter().map(|name| Difference {
            what: name.clone(),
            old: old.get(name).cloned().unwrap_or_default(),
            new: new.get(name).cloned().unwrap_or_default(),
            is_of_machine: false,
        }));
    }
    all.retain(|one| one.old != one.new);
    all
}

/// Names the hosts of generators, proxies and origin server.
fn name_hosts(places: &PlacesUsed) -> String {
    let mut generators = vec![name_host(places.generator.as_deref())];
    generators.extend(places.more_generators.iter().cloned());
    if let Some(cluster) = &places.cluster {
        generators = vec![format!("pods of {cluster}")];
    }
    format!(
        "load from {}, proxies on {}, origin on {}",
        generators.join(", "),
        name_host(places.proxy.as_deref()),
        name_host(places.origin.as_deref())
    )
}

fn name_host(host: Option<&str>) -> String {
    host.unwrap_or("this host").to_owned()
}

fn describe(network: &NetworkUsed) -> String {
    match network {
        NetworkUsed::Loopback => "loopback".to_owned(),
        NetworkUsed::Namespaces { mtu } => format!("network namespaces, MTU {mtu}"),
        NetworkUsed::Hosts => "the hosts' own".to_owned(),
    }
}

/// Returns a size in GiB with one digit: kernels of one machine differ in what they keep for themselves.
fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::study::ArmRole;

    use super::*;

    #[test]
    fn what_differs_is_named_the_machine_first() {
        let old = fixture::header(fixture::study(vec![fixture::arm("a", ArmRole::Baseline, &[])]));
        assert_eq!(differences(&old, &old), []);
        let mut new = old.clone();
        new.environment.versions.insert("nginx".to_owned(), "nginx/9".to_owned());
        new.environment.sysctls.insert("net.core.somaxconn".to_owned(), "7".to_owned());
        new.environment.kernel.push_str("-new");
        new.environment.memory_bytes += 1 << 20;
        new.environment.cpu_model.push_str(" II");
        let all = differences(&old, &new);
        let names: Vec<(&str, bool)> =
            all.iter().map(|one| (&*one.what, one.is_of_machine)).collect();
        let wanted = [
            ("CPU model", true),
            ("kernel", false),
            ("nginx", false),
            ("net.core.somaxconn", false),
        ];
        assert_eq!(names, wanted);
        assert_eq!((&*all[2].old, &*all[2].new), ("", "nginx/9"));
    }
}
