//! Kernel settings that arms have on the nodes of the proxy's pods.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_hosts::Options;
use weir_kube::{Cluster, KubeError, ObjectRef};
use weir_model::study::{Study, SysctlMeans};
use weir_objects::{Changes, VALUE, reach_nodes_by};

use super::WORKLOAD;
use super::instance::{Change, Instance};
use crate::LabError;

/// Prefix of the settings that belong to a network namespace.
const OF_NETWORK: &str = "net.";
/// JSON pointer to the field with which a pod uses its node's network namespace.
const HOST_NETWORK: &str = "/spec/hostNetwork";

/// Checks that nodes may be set as the study asks, and that the proxy's pods would be affected.
///
/// # Errors
/// `--node-sysctls` does not allow it; the user may not create pods; or the proxy's pods have a network namespace of
/// their own.
pub(super) fn check(
    study: &Study,
    instances: &[Instance],
    (cluster, options): (&Cluster, &Options),
) -> Result<(), LabError> {
    let by = study.controlled().map(|(_, spec)| spec.sysctls);
    let instance =
        instances.iter().find(|instance| instance.sites.keys().any(ObjectRef::is_of_node));
    let (Some(SysctlMeans::Node), Some(instance)) = (by, instance) else {
        return Ok(());
    };
    let Some(image) = &options.node_image else {
        let words = "the study sets the kernel of the cluster's nodes: `--node-sysctls` allows it";
        return Err(LabError::Controller(words.to_owned()));
    };
    cluster.check_rights()?;
    reach_nodes_by(cluster, image);
    let mut settings = instance.sites.keys().filter(|site| site.is_of_node());
    let of_network = settings.find(|site| site.resource.starts_with(OF_NETWORK));
    let Some((setting, workload)) = of_network.zip(instance.objects.get(WORKLOAD)) else {
        return Ok(());
    };
    let pods = weir_objects::of_pods(cluster, workload, HOST_NETWORK)?;
    match pods.iter().find(|(_, says)| *says != Some(Value::Bool(true))) {
        None => Ok(()),
        Some((pod, _)) => Err(LabError::Controller(format!(
            "pod {pod} has a network namespace of its own (no `hostNetwork`), so `{}` of its node would not reach it: write \
             `sysctls: init-container`, or `pods`",
            setting.resource
        ))),
    }
}

/// Applies an arm's settings on every node that has pods of an instance, and takes back the previous arm's.
pub(super) fn set(
    changes: &mut Changes,
    cluster: &Cluster,
    (instance, placed): (&Instance, &[Change]),
) -> Result<(), KubeError> {
    let sites: Vec<&ObjectRef> = instance.sites.keys().filter(|site| site.is_of_node()).collect();
    let Some(workload) = instance.objects.get(WORKLOAD).filter(|_| !sites.is_empty()) else {
        return Ok(());
    };
    // Ahead of the nodes, so that it is put back after them: the pods that come then have what their nodes had before.
    changes.set(workload, &BTreeMap::new())?;
    let nodes = weir_objects::nodes_of(cluster, workload)?;
    let objects: Vec<ObjectRef> = nodes
        .iter()
        .flat_map(|node| {
            sites
                .iter()
                .map(|site| ObjectRef::of_node(node, &site.resource, cluster.namespace()))
                .collect::<Vec<_>>()
        })
        .collect();
    changes.reach(&objects)?;
    for object in &objects {
        let value = placed
            .iter()
            .find(|(site, ..)| site.is_of_node() && site.resource == object.resource)
            .map(|(.., value)| value.clone());
        changes.set(object, &BTreeMap::from([(VALUE.to_owned(), value)]))?;
    }
    Ok(())
}
