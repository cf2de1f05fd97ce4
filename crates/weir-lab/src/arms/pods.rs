//! The pods of arms' proxies, which are sampled while the arms have the load.

use weir_kube::PodsOf;

use super::Arms;
use crate::cell::ArmId;
use crate::pod_samples::ArmPods;

impl Arms<'_> {
    /// Those of these arms, as far as they are known: of the workload that a study names, else `named`, which are of all arms.
    pub(crate) fn pods(&self, arms: &[ArmId], named: Option<&ArmPods>) -> Vec<ArmPods> {
        let of_workload = |id: &ArmId| {
            let controlled = self.controlled.as_ref()?;
            let place = (self.running.get(id)?.slot + self.moved) % controlled.instances();
            let (cluster, workload, container) = controlled.pods(place)?;
            Some(ArmPods {
                cluster: cluster.clone(),
                of: PodsOf::Workload(workload.clone(), container.map(str::to_owned)),
                arm: self.specs[*id].name.clone(),
            })
        };
        let own: Vec<ArmPods> = arms.iter().filter_map(of_workload).collect();
        match own.is_empty() {
            true => named.cloned().into_iter().collect(),
            false => own,
        }
    }
}
