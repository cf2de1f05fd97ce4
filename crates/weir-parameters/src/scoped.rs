//! Settings by what they reach: who writes them, and where.

use weir_model::study::Settings;

use crate::row::{EffectiveFrom, Parameter, Scope};

/// Settings of an arm, shared out to those who put them into force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scoped {
    /// For the proxy's configuration, by parameter id. An id that the catalog does not know is here
    /// too: whoever writes the configuration refuses it.
    pub proxy: Settings,
    /// For the arm's network namespace: sysctl name to the value as it is written.
    pub netns: Settings,
    /// For the whole host: sysctl name to the value as it is written.
    pub host: Settings,
    /// For the start of the process: name of the limit (`nofile`) to its soft value.
    pub launch: Settings,
    /// Name of what the process is started through.
    pub launcher: Option<String>,
    /// What carries the bytes between the proxy and its peers.
    pub transport: Option<String>,
}

impl Scoped {
    pub(crate) fn add(&mut self, id: &str, level: &str, row: Option<&Parameter>) {
        match row.map(|row| &row.effective) {
            Some(EffectiveFrom::Launcher) => self.launcher = Some(level.to_owned()),
            Some(EffectiveFrom::Transport) => self.transport = Some(level.to_owned()),
            _ => self.add_named(id, level, row),
        }
    }

    fn add_named(&mut self, id: &str, level: &str, row: Option<&Parameter>) {
        let into = match row.map(|row| row.scope) {
            None | Some(Scope::ProxyDirective) => &mut self.proxy,
            Some(Scope::KernelNetns) => &mut self.netns,
            Some(Scope::KernelHost) => &mut self.host,
            Some(Scope::ProcessLaunch | Scope::CpuSet | Scope::Transport) => &mut self.launch,
        };
        let name = match row.map(|row| (row.scope, &row.effective)) {
            Some((Scope::ProxyDirective, _)) | None => id,
            Some((_, EffectiveFrom::Sysctl { name } | EffectiveFrom::ProcessLimit { name })) => {
                name
            }
            Some(_) => id,
        };
        into.insert(name.to_owned(), level.to_owned());
    }
}
