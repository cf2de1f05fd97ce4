//! Ways in which arms come to run: their proxies are started, they run already, or a controller of a cluster
//! configures them.

use weir_agent::message::ArmJob;
use weir_hosts::pod_samples::ArmPods;
use weir_kube::PodsOf;
use weir_model::study::Arm;

use crate::LabError;
use crate::controlled::{Controlled, InForce};

/// Way in which the arms of a run come to run.
pub(super) enum ArmRuntime<'a> {
    /// The agent starts each arm's proxy, or knows the address of one that runs already.
    OfAgent,
    /// A controller's instances have the settings of one arm after the other.
    Controlled {
        controller: &'a mut Controlled,
        /// Number of places by which the arms have rotated among the instances.
        moved: usize,
    },
}

impl<'a> ArmRuntime<'a> {
    pub(super) fn new(controller: Option<&'a mut Controlled>) -> ArmRuntime<'a> {
        match controller {
            Some(controller) => ArmRuntime::Controlled { controller, moved: 0 },
            None => ArmRuntime::OfAgent,
        }
    }

    /// Puts an arm's settings into force and enters the address of its proxy in `job`; `None` if the agent does so.
    pub(super) fn put_into_force(
        &mut self,
        arm: &Arm,
        job: &mut ArmJob,
    ) -> Result<Option<InForce>, LabError> {
        let ArmRuntime::Controlled { controller, moved } = self else {
            return Ok(None);
        };
        let index = (job.slot + *moved) % controller.instances();
        job.external = Some(controller.at(index).clone());
        controller.apply(arm, index).map(Some)
    }

    /// Returns true if new settings settle only some time after they were put into force.
    pub(super) fn settles_later(&self) -> bool {
        matches!(self, ArmRuntime::Controlled { .. })
    }

    /// Moves each arm to the next instance, so that a slower instance affects all arms alike. Returns false if arms have
    /// no instances to move among.
    pub(super) fn rotate(&mut self) -> bool {
        match self {
            ArmRuntime::Controlled { moved, .. } => {
                *moved += 1;
                true
            }
            ArmRuntime::OfAgent => false,
        }
    }

    /// Returns the pods of an arm's proxy, if the study names their workload.
    pub(super) fn pods(&self, arm: &Arm, slot: usize) -> Option<ArmPods> {
        let ArmRuntime::Controlled { controller, moved } = self else {
            return None;
        };
        let index = (slot + moved) % controller.instances();
        let (cluster, workload, container) = controller.pods(index)?;
        Some(ArmPods {
            cluster: cluster.clone(),
            of: PodsOf::Workload(workload.clone(), container.map(str::to_owned)),
            arm: arm.name.clone(),
        })
    }
}
