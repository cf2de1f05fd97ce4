//! Proxies of this host that weir did not start.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_host::Network;
use weir_probe::Listening;
use weir_probe::sample::{Namespace, PROXY, Place, Tasks};
use weir_sut::{ObservedProxy, OwnCounters};

use super::counting::CountingProxy;
use crate::message::Failure;

/// A proxy of this host that weir did not start.
pub(super) struct ExternalProxy {
    /// Its processes; none where they are not known.
    pub(super) processes: Vec<u32>,
    /// Its network namespace, if it is another one than weir's.
    network: Option<Network>,
    /// What it tells of itself.
    observed: Option<ObservedProxy>,
}

impl ExternalProxy {
    /// Finds the one that listens at an address; where its network namespace cannot be entered, nothing of it is known.
    pub(super) fn at(address: SocketAddr) -> ExternalProxy {
        let Listening {
            processes,
            elsewhere,
        } = Listening::at(address);
        let observe = || weir_sut::observe(&processes, address);
        let entered = elsewhere.map(|pid| {
            let network = Network::of_process(pid)?;
            network.within(observe).map(|observed| (network, observed))
        });
        let (network, observed) = match entered {
            None => (None, observe()),
            Some(Ok((network, observed))) => (Some(network), observed),
            Some(Err(_)) => {
                return ExternalProxy {
                    processes: Vec::new(),
                    network: None,
                    observed: None,
                };
            }
        };
        ExternalProxy {
            network,
            observed,
            processes,
        }
    }

    /// What samples are taken of. In its network namespace are sockets of others, of the generator at least: its own are
    /// told apart where its processes are known.
    pub(super) fn place(&self, arm: &str) -> Result<Place, Failure> {
        let processes = self.processes.clone();
        let open = move || match processes.is_empty() {
            true => Namespace::of_this_thread(),
            false => Namespace::of_processes(processes),
        };
        let namespace = match &self.network {
            Some(network) => network.within(open)?,
            None => open(),
        };
        Ok(Place {
            role: PROXY,
            arm: arm.to_owned(),
            namespace: Some(namespace),
            tasks: Tasks::Processes(self.processes.clone()),
        })
    }

    /// Levels of its configuration by ids of the catalog, as far as they could be read.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let observed = self.observed.as_ref();
        observed.map_or_else(BTreeMap::new, |proxy| proxy.settings.clone())
    }

    /// Reader of what it tells of itself; `None`: it is no program that is known here.
    pub(super) fn counting(self, arm: &str) -> Option<CountingProxy> {
        Some(CountingProxy {
            arm: arm.to_owned(),
            network: self.network,
            counters: OwnCounters::of_running(self.observed?),
            requests: None,
        })
    }
}
