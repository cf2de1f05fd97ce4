//! What a study must fit on, and levels that follow from it.

use weir_model::quantity::CpuSet;
use weir_model::study::{ProxySpec, Settings};
use weir_parameters::{Catalog, ClientLimits, DescriptorLimits, Means, Unsaid};

use crate::Engine;

/// What a study must fit on.
#[derive(Debug, Clone)]
pub struct CheckContext {
    /// Descriptors that a proxy may open unless its settings say more: the soft limit that it
    /// inherits.
    pub descriptor_limit: u64,
    /// Descriptors that a process may open at most: the hard limit, which weir raises its own
    /// limit to when it has to, and beyond which an unprivileged proxy cannot raise its.
    pub most_descriptors: u64,
    /// Whether each thread of the load engine can have a table of descriptors of its own: the limit
    /// is then one for each of them.
    pub own_tables: bool,
    /// Local ports that the kernel gives to outgoing connections (net.ipv4.ip_local_port_range),
    /// for each source address.
    pub local_ports: u64,
    /// CPUs that weir may use; `None`: not known, so CPU sets are not checked.
    pub cpus_available: Option<CpuSet>,
    /// Whether all roles are on this machine. Where they are not, the lab checks their CPU sets, each
    /// against its own.
    pub one_machine: bool,
    /// Whether settings of the kernel of a cluster's nodes may be changed, where the study asks for that.
    pub node_sysctls: bool,
    /// What its loads are checked with.
    pub engine: Engine,
}

/// The level that stands for the number of CPUs that weir may use.
pub(crate) const CPUS: &str = "cpus";
/// The level that stands for [`CheckContext::most_descriptors`].
pub(crate) const DESCRIPTORS: &str = "descriptors";

impl CheckContext {
    /// The number behind a word that stands for a size of the machine: `cpus`, `descriptors`.
    /// `None` for any other word, and where the size is not known.
    pub(crate) fn number(&self, word: &str) -> Option<u64> {
        match word {
            CPUS => self.cpus(),
            DESCRIPTORS => Some(self.most_descriptors),
            _ => None,
        }
    }

    /// CPUs that weir may use, if known.
    pub(crate) fn cpus(&self) -> Option<u64> {
        let set = self.cpus_available.as_ref()?;
        Some(set.cpus().len() as u64)
    }

    /// How many clients a proxy with `settings` can serve on this machine beside `held` connections
    /// that ask nothing. Of a configuration of the user's nobody knows it, which may say anything.
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

    /// What holds where the settings of a proxy say nothing.
    pub(crate) fn unsaid(&self, proxy: &ProxySpec) -> Unsaid {
        let descriptor_limit = self.descriptor_limit;
        match proxy.configuration.is_some() || proxy.controller.is_some() {
            true => Unsaid::Users,
            false => Unsaid::Defaults { descriptor_limit },
        }
    }
}

/// Levels that a study leaves to the machine: `FROM..cpus`.
pub(crate) struct Growing {
    /// The first one.
    pub(crate) from: u64,
}

impl Growing {
    /// Reads `FROM..cpus`; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Growing> {
        let (from, to) = text.split_once("..")?;
        let from = from.trim().parse().ok().filter(|from| *from > 0)?;
        (to.trim() == CPUS).then_some(Growing { from })
    }

    /// `from`, doubled again and again as long as there are more CPUs, and their number itself:
    /// 1, 2, 4, 8, 12 on twelve. Empty when `from` is above that already.
    pub(crate) fn levels(&self, cpus: u64) -> Vec<u64> {
        let doubled = std::iter::successors(Some(self.from), |level| level.checked_mul(2));
        let mut levels: Vec<u64> = doubled.take_while(|level| *level < cpus).collect();
        levels.extend((self.from <= cpus).then_some(cpus));
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_double_as_far_as_the_machine_goes() {
        let of = |text: &str, cpus| Growing::parse(text).map(|growing| growing.levels(cpus));
        assert_eq!(of("1..cpus", 24), Some(vec![1, 2, 4, 8, 16, 24]));
        assert_eq!(of("1..cpus", 2), Some(vec![1, 2]));
        assert_eq!(of("1 .. cpus", 1), Some(vec![1]));
        assert_eq!(of("3..cpus", 13), Some(vec![3, 6, 12, 13]));
        assert_eq!(of("4..cpus", 2), Some(vec![]));
        for other in ["0..cpus", "1..8", "cpus", "1..", "..cpus", "-1..cpus"] {
            assert_eq!(of(other, 4), None, "{other}");
        }
    }
}
