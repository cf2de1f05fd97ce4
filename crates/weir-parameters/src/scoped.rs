//! Settings grouped by the part of the system that they reach.

use std::collections::BTreeSet;

use weir_model::study::Settings;

use crate::row::{EffectiveFrom, Hop, Parameter, Scope};

/// Settings of an arm, grouped by the component that applies them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scoped {
    /// Settings of the proxy's configuration, by parameter id. An id that the catalog does not know is included: the
    /// writer of the configuration refuses it.
    pub proxy: Settings,
    /// Settings of the arm's network namespace: sysctl name to the value as it is written.
    pub netns: Settings,
    /// Settings of the whole host: sysctl name to the value as it is written.
    pub host: Settings,
    /// Soft limit of descriptors that the process starts with.
    pub nofile: Option<u64>,
    /// Name of the launcher that the process is started through.
    pub launcher: Option<String>,
    /// Hops whose bytes bypass the kernel's TCP.
    pub bypassed: BTreeSet<Hop>,
}

impl Scoped {
    pub(crate) fn add(&mut self, id: &str, level: &str, row: Option<&Parameter>) {
        let (into, name) = match row.map(|row| (row.scope, &row.effective)) {
            Some((Scope::KernelNetns, EffectiveFrom::Sysctl { name })) => (&mut self.netns, name),
            Some((Scope::KernelHost, EffectiveFrom::Sysctl { name })) => (&mut self.host, name),
            Some((Scope::ProcessLaunch, EffectiveFrom::ProcessLimit { .. })) => {
                self.nofile = level.parse().ok();
                return;
            }
            None | Some((Scope::ProxyDirective, _)) => (&mut self.proxy, &id.to_owned()),
            // What a process is started through and what carries its bytes are asked of the catalog.
            Some(_) => return,
        };
        into.insert(name.clone(), level.to_owned());
    }
}
