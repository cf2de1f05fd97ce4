//! Properties of the machine that a study must fit on, and levels that follow from them.

use weir_model::quantity::CpuSet;
use weir_model::study::{CpuRoles, ProxySpec, Settings};
use weir_parameters::{Catalog, ClientLimits, DescriptorLimits, Means, Unsaid};

use crate::Engine;

/// Properties of the machine that a study must fit on.
#[derive(Debug, Clone)]
pub struct CheckContext {
    /// Number of descriptors that a proxy may open unless its settings raise it: the soft limit that it inherits.
    pub descriptor_limit: u64,
    /// Maximum number of descriptors of a process: the hard limit. weir raises its own limit up to it if necessary, and
    /// an unprivileged proxy cannot raise its limit beyond it.
    pub most_descriptors: u64,
    /// True if each thread of the load engine can have its own table of descriptors. The limit then applies to each
    /// thread.
    pub own_tables: bool,
    /// Local ports that the kernel gives to outgoing connections (net.ipv4.ip_local_port_range),
    /// for each source address.
    pub local_ports: u64,
    /// CPUs that weir may use. `None`: not known, so CPU sets are not checked.
    pub cpus_available: Option<CpuSet>,
    /// True if all roles are on this machine. Otherwise the lab checks the CPU set of each role on its own machine.
    pub one_machine: bool,
    /// True if a study may change kernel settings of a cluster's nodes.
    pub node_sysctls: bool,
    /// Load engine that checks the loads.
    pub engine: Engine,
}

/// Level that is replaced by the number of CPUs that weir may use.
pub(crate) const CPUS: &str = "cpus";
/// Level that is replaced by [`CheckContext::most_descriptors`].
pub(crate) const DESCRIPTORS: &str = "descriptors";

impl CheckContext {
    /// Returns the number for a word that names a size of the machine: `cpus`, `descriptors`. `None` for any other
    /// word, and if the size is not known.
    pub(crate) fn number(&self, word: &str) -> Option<u64> {
        match word {
            CPUS => self.cpus(),
            DESCRIPTORS => Some(self.most_descriptors),
            _ => None,
        }
    }

    /// Returns the number of CPUs that weir may use, if known.
    pub(crate) fn cpus(&self) -> Option<u64> {
        let set = self.cpus_available.as_ref()?;
        Some(set.cpus().len() as u64)
    }

    /// Returns the maximum number of a proxy's CPUs, if known: other roles need some of a machine that all share.
    pub(crate) fn proxy_cpus(&self) -> Option<u64> {
        let set = self.cpus_available.as_ref()?;
        let most = if self.one_machine { CpuRoles::most_of_proxy(set) } else { set.cpus().len() };
        Some(most as u64)
    }

    /// Returns the number of clients that a proxy with `settings` can serve on this machine besides `held` idle
    /// connections. `None` for a user's configuration or a controller, whose contents are not known.
    pub(crate) fn client_limits(
        &self,
        catalog: &Catalog,
        proxy: &ProxySpec,
        settings: &Settings,
        held: u32,
    ) -> Option<ClientLimits> {
        if proxy.configuration.is_some() || proxy.controller.is_some() {
            return None;
        }
        let means = Means {
            descriptors: DescriptorLimits {
                soft: self.descriptor_limit,
                hard: self.most_descriptors,
            },
            cpus_online: self.cpus().unwrap_or(1),
            held: u64::from(held),
        };
        catalog.client_limits(proxy.kind, settings, &proxy.role, means)
    }

    /// Returns the source of values that the settings of a proxy leave out.
    pub(crate) fn unsaid(&self, proxy: &ProxySpec) -> Unsaid {
        let descriptor_limit = self.descriptor_limit;
        if proxy.configuration.is_some() || proxy.controller.is_some() {
            Unsaid::Users
        } else {
            Unsaid::Defaults { descriptor_limit }
        }
    }
}

/// Levels that grow from the first to the last: `FROM..cpus`, which leaves the last to the machine, or `FROM..TO`.
pub(crate) struct Growing {
    /// First level.
    pub(crate) from: u64,
    /// Last level; `None`: the number of CPUs.
    pub(crate) to: Option<u64>,
}

impl Growing {
    /// Parses `FROM..cpus` and `FROM..TO`. `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Growing> {
        let (first, last) = text.split_once("..")?;
        let from = first.trim().parse().ok().filter(|from| *from > 0)?;
        if last.trim() == CPUS {
            return Some(Growing { from, to: None });
        }
        let to = last.trim().parse().ok().filter(|to| *to > from)?;
        Some(Growing { from, to: Some(to) })
    }

    /// Returns `from`, doubled as long as it is below the last level, and then that: 1, 2, 4, 8, 12 up to twelve. Empty
    /// if `from` is above it.
    pub(crate) fn levels(&self, last: u64) -> Vec<u64> {
        let doubled = std::iter::successors(Some(self.from), |level| level.checked_mul(2));
        let mut levels: Vec<u64> = doubled.take_while(|level| *level < last).collect();
        levels.extend((self.from <= last).then_some(last));
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels_of(text: &str, cpus: u64) -> Option<Vec<u64>> {
        Growing::parse(text).map(|growing| growing.levels(growing.to.unwrap_or(cpus)))
    }

    #[test]
    fn levels_double_as_far_as_the_machine_goes() {
        assert_eq!(levels_of("1..cpus", 24), Some(vec![1, 2, 4, 8, 16, 24]));
        assert_eq!(levels_of("1..cpus", 2), Some(vec![1, 2]));
        assert_eq!(levels_of("1 .. cpus", 1), Some(vec![1]));
        assert_eq!(levels_of("3..cpus", 13), Some(vec![3, 6, 12, 13]));
        assert_eq!(levels_of("4..cpus", 2), Some(vec![]));
        assert_eq!(levels_of("1..8", 2), Some(vec![1, 2, 4, 8]));
        for other in ["0..cpus", "8..1", "cpus", "1..", "..cpus", "-1..cpus"] {
            assert_eq!(levels_of(other, 4), None, "{other}");
        }
    }
}
