//! Proxies of this host that weir did not start.

use std::net::SocketAddr;

use weir_host::Network;
use weir_probe::Listening;
use weir_probe::sample::{Namespace, PROXY, Place, Tasks};
use weir_sut::{ObservedProxy, OwnCounters};

use super::counting::CountingProxy;
use crate::message::Failure;

/// A proxy of this host that weir did not start.
pub(super) struct ExternalProxy {
    address: SocketAddr,
    /// Its processes; none where they are not known.
    pub(super) processes: Vec<u32>,
    /// Its network namespace, if it is another one than weir's.
    network: Option<Network>,
}

impl ExternalProxy {
    /// Finds the one that listens at an address; where its network namespace cannot be entered, nothing of it is known.
    pub(super) fn at(address: SocketAddr) -> ExternalProxy {
        let Listening {
            processes,
            elsewhere,
        } = Listening::at(address);
        let enter = |pid| {
            let network = Network::of_process(pid)?;
            network.within(|| ()).map(|()| network)
        };
        let (network, processes) = match elsewhere.map(enter).transpose() {
            Ok(network) => (network, processes),
            Err(_) => (None, Vec::new()),
        };
        ExternalProxy {
            address,
            processes,
            network,
        }
    }

    /// What it tells of itself; `None`: it is no program that is known here.
    pub(super) fn observed(&self) -> Option<ObservedProxy> {
        let observe = || weir_sut::observe(&self.processes, self.address);
        match &self.network {
            Some(network) => network.within(observe).ok()?,
            None => observe(),
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

    /// Reader of what it tells of itself.
    pub(super) fn counting(self, arm: &str, observed: ObservedProxy) -> CountingProxy {
        CountingProxy {
            arm: arm.to_owned(),
            network: self.network,
            counters: OwnCounters::of_running(observed),
            requests: None,
        }
    }
}
