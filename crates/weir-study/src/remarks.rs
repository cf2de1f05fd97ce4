//! What is not wrong with a study and still worth saying before it is run.

use weir_model::study::{ArmRole, ProxySpec, Settings, Study};
use weir_parameters::{Catalog, ClientLimits, Severity};

use crate::CheckContext;

impl CheckContext {
    /// How many clients a proxy with `settings` can hold on this machine.
    pub(crate) fn client_limits(
        &self,
        catalog: &Catalog,
        proxy: &ProxySpec,
        settings: &Settings,
    ) -> Option<ClientLimits> {
        let cpus = self
            .cpus_available
            .as_ref()
            .map_or(1, |set| set.cpus().len() as u64);
        catalog.client_limits(
            proxy.kind,
            settings,
            &proxy.role,
            self.descriptor_limit,
            cpus,
        )
    }
}

/// Settings that can do nothing as they stand, and loads that a proxy will turn part of away: both
/// are fair questions, so they are remarks and no errors. One sentence each.
pub fn remarks(study: &Study, catalog: &Catalog, context: &CheckContext) -> Vec<String> {
    let mut remarks = Vec::new();
    for arm in &study.arms {
        let limit = context.descriptor_limit;
        let proxy = &study.proxy;
        for conflict in catalog.conflicts(proxy.kind, &arm.settings, &proxy.role, limit) {
            let of_this_arm = conflict
                .ids
                .first()
                .is_some_and(|id| arm.changes.contains_key(id));
            if conflict.severity == Severity::Warning && of_this_arm {
                remarks.push(format!("arm `{}`: {}", arm.name, conflict.message));
            }
        }
    }
    for load in &study.loads {
        for arm in study
            .arms
            .iter()
            .filter(|arm| arm.role != ArmRole::SameAsBaseline)
        {
            let limits = context.client_limits(catalog, &study.proxy, &arm.settings);
            if let Some(limits) = limits
                && limits.connections < u64::from(load.connections)
            {
                remarks.push(format!(
                    "arm `{}` has connections for {} clients, and load `{}` brings {}: some will \
                     wait or be refused",
                    arm.name, limits.connections, load.name, load.connections
                ));
            }
        }
    }
    remarks
}
