//! Pods of the arms' proxies, which are sampled while the arms have the load.

use weir_hosts::pod_samples::ArmPods;
use weir_kube::PodsOf;
use weir_proposers::ArmId;

use super::Arms;

impl Arms<'_> {
    /// Returns the known pods of these arms: those of the workload that the study names, else `named`, which are pods
    /// of all arms.
    pub(crate) fn pods(&self, arms: &[ArmId], named: Option<&ArmPods>) -> Vec<ArmPods> {
        let controlled_pods: Vec<ArmPods> = arms
            .iter()
            .filter_map(|id| {
                let controlled = self.controlled.as_ref()?;
                let index = (self.running.get(id)?.slot + self.moved) % controlled.instances();
                let (cluster, workload, container) = controlled.pods(index)?;
                Some(ArmPods {
                    cluster: cluster.clone(),
                    of: PodsOf::Workload(workload.clone(), container.map(str::to_owned)),
                    arm: self.specs[*id].name.clone(),
                })
            })
            .collect();
        if controlled_pods.is_empty() {
            named.cloned().into_iter().collect()
        } else {
            controlled_pods
        }
    }
}
