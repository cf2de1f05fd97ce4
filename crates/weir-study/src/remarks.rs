//! What is not wrong with a study and still worth saying before it is run.

use weir_model::study::{ArmRole, Study};
use weir_parameters::{Catalog, Severity};

use crate::CheckContext;

/// Settings that can do nothing as they stand, and loads that a proxy will turn part of away: both
/// are fair questions, so they are remarks and no errors. What the study had to leave out on this
/// machine comes first. One sentence each.
pub fn remarks(study: &Study, catalog: &Catalog, context: &CheckContext) -> Vec<String> {
    let mut remarks = study.left_out.clone();
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
            let limits = context.client_limits(catalog, &study.proxy, &arm.settings, load.held);
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
