//! Builds the agents' jobs with which arms and their origin server are started.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use weir_agent::message::{ArmJob, ArmStarted, OriginJob, OriginListener};
use weir_hosts::{Host, HostError, Hosts, Role};
use weir_model::room;
use weir_model::study::{Arm, ExternalSpec, LoadSpec, Reduction, Study, TakenFrom};

use super::Bench;
use crate::LabError;

impl Bench<'_> {
    /// Returns the host of the proxies.
    pub(super) fn proxies(&self) -> &Host {
        self.hosts.host(Role::Proxy)
    }

    pub(super) fn job(
        &self,
        arm: &Arm,
        slot: usize,
        tls: bool,
        origin: Option<SocketAddr>,
    ) -> Result<ArmJob, LabError> {
        let study = self.study;
        let proxy = study.proxy_of(arm);
        let launcher = self.catalog.split(proxy.kind, &arm.settings).launcher;
        Ok(ArmJob {
            slot,
            name: arm.name.clone(),
            kind: proxy.kind,
            executable: proxy.executable.clone(),
            role: proxy.role.clone(),
            settings: arm.settings.clone(),
            own: proxy.configuration.clone(),
            request_log: self.request_log,
            asks: study.asks(proxy),
            external: proxy.external.clone(),
            launcher: launcher.and_then(|name| study.launchers.get(&name).cloned()),
            // Where weir does not start it, generators on several networks need no address of this host in common.
            address: match &proxy.external {
                Some(external) => external.address.ip(),
                None => self.hosts.address(Role::Proxy, Role::Generator)?,
            },
            tls,
            origin,
            sizes: sizes(study),
            cpus: arm.cpus(self.roles).clone(),
            nofile: room::STOCK_NOFILE,
        })
    }

    /// Checks that an arm listens where it was started, or at the address in the study.
    ///
    /// # Errors
    /// The agent reports another address, or one of `others`.
    pub(super) fn must_be_its_own(
        &self,
        external: Option<&ExternalSpec>,
        slot: usize,
        started: &ArmStarted,
        others: &BTreeSet<SocketAddr>,
    ) -> Result<(), HostError> {
        let roles = (Role::Proxy, Role::Generator);
        let hosts = self.hosts;
        started.addresses().try_for_each(|told| match external {
            Some(named) if named.address == told => Ok(()),
            Some(named) => Err(hosts.elsewhere(roles.0, told, named.address.to_string())),
            None => hosts.own_address(roles, slot, told, others).map(drop),
        })
    }

    /// Returns the origin server of an arm: a listener of weir's for the arm in this slot, which is none of `others`,
    /// or the user's own. `None` if weir does not start the proxy.
    pub(super) fn origin_of(
        &self,
        arm: &Arm,
        slot: usize,
        others: &BTreeSet<SocketAddr>,
    ) -> Result<Option<SocketAddr>, LabError> {
        if !self.study.proxy_of(arm).is_started() {
            return Ok(None);
        }
        if !Hosts::has_origin(self.study) {
            return Ok(self.study.origin.address);
        }
        let roles = (Role::Origin, Role::Proxy);
        let percent = Reduction::percent_of(arm.taken, TakenFrom::Origin);
        let address = self.hosts.host(roles.0).ask(OriginListener { slot, taken: percent })?;
        Ok(Some(self.hosts.own_address(roles, slot, address, others)?))
    }

    pub(super) fn start_origin(&self) -> Result<(), LabError> {
        let job = OriginJob {
            spec: self.study.origin.clone(),
            sizes: sizes(self.study),
            address: self.hosts.address(Role::Origin, Role::Proxy)?,
            cpus: self.roles.origin.clone(),
            descriptors: room::at_origin(&self.study.loads, self.study.arms.len() as u64),
        };
        Ok(self.hosts.host(Role::Origin).ask(job)?)
    }
}

/// Returns true if some proxy that weir starts is used over TLS, and so needs a certificate.
pub(super) fn is_shown(study: &Study) -> bool {
    let mut arms = study.arms.iter();
    arms.any(|arm| study.proxy_of(arm).is_started()) && study.loads.iter().any(LoadSpec::is_secure)
}

/// Returns the distinct sizes of the content that the loads of a study ask for.
fn sizes(study: &Study) -> Vec<u64> {
    let sizes: BTreeSet<u64> = study.loads.iter().filter_map(|load| load.size).collect();
    sizes.into_iter().collect()
}
