//! Proxies of this host that weir did not start.

use std::net::SocketAddr;

use weir_host::Network;
use weir_probe::Listening;
use weir_probe::sample::{Namespace, PROXY, SampledRole, Tasks};
use weir_sut::{ObservedProxy, OwnCounters};

use super::counting::CountingProxy;
use super::networks::run_within;
use crate::message::Failure;

pub(super) struct ExternalProxy {
    address: SocketAddr,
    /// Process numbers; empty if unknown.
    pub(super) processes: Vec<u32>,
    /// Network namespace, if it differs from weir's.
    network: Option<Network>,
}

impl ExternalProxy {
    /// Finds the proxy that listens at an address. If its network namespace cannot be entered, nothing but the address
    /// is known.
    pub(super) fn at(address: SocketAddr) -> ExternalProxy {
        let Listening { processes, elsewhere } = Listening::at(address);
        let (network, processes) = match elsewhere
            .map(|pid| {
                let network = Network::of_process(pid)?;
                network.within(|| ()).map(|()| network)
            })
            .transpose()
        {
            Ok(network) => (network, processes),
            Err(_) => (None, Vec::new()),
        };
        ExternalProxy { address, processes, network }
    }

    /// Reads the proxy's program and settings; `None` if its program is not one that weir knows.
    pub(super) fn observed(&self) -> Option<ObservedProxy> {
        run_within(self.network.as_ref(), || weir_proxies::observe(&self.processes, self.address))
            .ok()?
    }

    /// Returns the place to sample. Its network namespace has sockets of other processes too, at least of the
    /// generator; only those of the proxy are counted if its processes are known.
    pub(super) fn place(&self, arm: &str) -> Result<SampledRole, Failure> {
        let processes = self.processes.clone();
        let namespace = run_within(self.network.as_ref(), move || {
            if processes.is_empty() {
                Namespace::of_this_thread()
            } else {
                Namespace::of_processes(processes)
            }
        })?;
        Ok(SampledRole {
            role: PROXY,
            arm: arm.to_owned(),
            namespace: Some(namespace),
            tasks: Tasks::Processes(self.processes.clone()),
        })
    }

    /// Creates a reader of the proxy's own counters.
    pub(super) fn counting(self, arm: &str, observed: ObservedProxy) -> CountingProxy {
        CountingProxy {
            arm: arm.to_owned(),
            network: self.network,
            counters: OwnCounters::of_running(observed),
            requests: None,
        }
    }
}
