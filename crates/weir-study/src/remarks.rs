//! Remarks on a study that are no errors, but useful before it is run.

use weir_model::record::Remark;
use weir_model::study::{ArmRole, LoadSpec, Study, SysctlMeans};
use weir_parameters::{Catalog, Scope, Severity};

use crate::{CheckContext, effects};

/// Returns remarks, one sentence each, first on parts that the study had to leave out on this machine. Others are about
/// keys and settings without effect, and loads of which a proxy will refuse a part. These can be intended, so they are
/// not errors.
pub fn remarks(study: &Study, catalog: &Catalog, context: &CheckContext) -> Vec<Remark> {
    let about_run = study
        .scale
        .map(scaled)
        .into_iter()
        .chain(study.left_out.iter().cloned())
        .chain(sysctls(study, catalog))
        .chain(effects::without_effect(study, catalog));
    let mut remarks: Vec<Remark> = about_run.map(Remark::of_run).collect();
    for arm in &study.arms {
        let proxy = study.proxy_of(arm);
        let unsaid = context.unsaid(proxy);
        for conflict in catalog.conflicts(proxy.kind, &arm.settings, &proxy.role, unsaid) {
            let of_this_arm = conflict.ids.first().is_some_and(|id| arm.changes.contains_key(id));
            if conflict.severity == Severity::Warning && of_this_arm {
                let text = format!("arm `{}`: {}", arm.name, conflict.message);
                remarks.push(Remark::of_arm(&arm.name, text));
            }
        }
        let unasked = effects::compression(study, catalog, arm);
        remarks.extend(unasked.map(|text| Remark::of_arm(&arm.name, text)));
    }
    for arm in study.arms.iter().filter(|arm| arm.role != ArmRole::SameAsBaseline) {
        // The most demanding cell speaks for all of a matrix.
        let mut loads: Vec<&LoadSpec> = study.loads.iter().collect();
        loads.sort_by_key(|load| std::cmp::Reverse(load.asking()));
        let mut matrices: Vec<&str> = Vec::new();
        for load in loads {
            let held = load.held() as u32;
            let limits = context.client_limits(catalog, study.proxy_of(arm), &arm.settings, held);
            let Some(most) =
                limits.map(|limits| limits.connections).filter(|most| *most < load.asking())
            else {
                continue;
            };
            if let Some(cell) = &load.cell {
                if matrices.contains(&&*cell.matrix) {
                    continue;
                }
                matrices.push(&cell.matrix);
            }
            let text = format!(
                "arm `{}` has connections for {most} clients, and load `{}` brings {}: some will \
                 wait or be refused",
                arm.name,
                load.name,
                load.asking()
            );
            remarks.push(Remark::of_arm(&arm.name, text));
        }
    }
    remarks
}

/// Returns a remark on the means by which kernel settings are changed in a cluster, if pods alone could not change
/// them.
fn sysctls(study: &Study, catalog: &Catalog) -> Option<String> {
    let (proxy, controller) = study.controlled()?;
    let mut ids = study.arms.iter().flat_map(|arm| arm.settings.keys());
    if !ids.any(|id| catalog.scope(proxy.kind, id).is_some_and(Scope::is_kernel)) {
        return None;
    }
    let words = match controller.sysctls {
        SysctlMeans::Pods => return None,
        SysctlMeans::InitContainer => {
            "a privileged container (`weir-sysctls`) in the proxy's pods sets the kernel there, which the kubelet might forbid the \
             pods themselves (`sysctls: init-container`): it may do anything on its node while it runs"
        }
        SysctlMeans::Node => {
            "privileged pods set the kernel of the proxy's nodes (`sysctls: node`): everything on these nodes has the settings \
             while an arm is measured"
        }
    };
    Some(words.to_owned())
}

fn scaled(factor: f64) -> String {
    format!("connections and rates of all loads are {factor} times the study's (--scale)")
}
