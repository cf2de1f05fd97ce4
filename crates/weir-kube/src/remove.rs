//! Objects that runs have left in a namespace, and their removal.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, ObjectMeta};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::cluster::Cluster;
use crate::error::KubeError;
use crate::health;
use crate::inner::Inner;
use crate::objects;

/// Time limit for the removal: pods have five seconds to end, and nodes may be slow.
const WITHIN: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(300);

/// An object of weir's that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Kind: `Job` or `Pod`.
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
}

/// Removes all objects of weir's from a namespace, and waits until they are gone. A dry run only lists them.
///
/// # Errors
/// The user lacks rights, the API server does not answer, or something is still there after a minute and a half.
pub fn remove(cluster: &Cluster, dry_run: bool) -> Result<Vec<Removed>, KubeError> {
    cluster.check_rights()?;
    let inner = &cluster.inner;
    let removed = inner.run("list what weir has left", list_objects(inner))?;
    if dry_run || removed.is_empty() {
        return Ok(removed);
    }
    let work = async {
        // A Job's pods go with it; those that have lost their Job are asked to go themselves.
        delete::<Job>(inner, &removed, "Job").await?;
        delete::<Pod>(inner, &removed, "Pod").await?;
        let until = Instant::now() + WITHIN;
        while Instant::now() < until {
            let listing = inner.answer("list what weir has left", list_objects(inner));
            if listing.await?.is_empty() {
                return Ok(());
            }
            // Nobody says of a node that is lost that a pod has ended there.
            let stuck = inner.answer("list what weir has left", find_lost_node(inner));
            if let Some((node, why)) = stuck.await? {
                return Err(KubeError::Node { node, why });
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(overdue())
    };
    let done = inner.within(WITHIN + Duration::from_secs(15), work);
    done.unwrap_or_else(|| Err(overdue())).map(|()| removed)
}

fn overdue() -> KubeError {
    KubeError::Overdue { what: "what weir has left is not gone".to_owned(), within: WITHIN }
}

/// Returns a lost node and the reason, if all remaining pods are on lost nodes; else `None`.
async fn find_lost_node(inner: &Inner) -> Result<Option<(String, String)>, KubeError> {
    let mut lost = None;
    for pod in all::<Pod>(inner).await? {
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        let Ok(Some(why)) = health::of(inner, &node).await else {
            return Ok(None);
        };
        lost = Some((node, format!("{why}; pod `{}` ends when it is back", name(&pod.metadata))));
    }
    Ok(lost)
}

fn name(of: &ObjectMeta) -> String {
    of.name.clone().unwrap_or_default()
}

/// Lists the Jobs and Pods that have weir's label.
async fn list_objects(inner: &Inner) -> Result<Vec<Removed>, KubeError> {
    let jobs = names::<Job>(inner, "Job").await?;
    let pods = names::<Pod>(inner, "Pod").await?;
    Ok(jobs.into_iter().chain(pods).collect())
}

/// A kind of namespaced object.
trait Kind:
    Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
{
}
impl Kind for Job {}
impl Kind for Pod {}

async fn all<K: Kind>(inner: &Inner) -> Result<Vec<K>, KubeError> {
    let api: Api<K> = Api::namespaced(inner.client.clone(), &inner.namespace);
    let labelled = ListParams::default().labels(&objects::everything());
    match api.list(&labelled).await {
        Ok(list) => Ok(list.items),
        Err(error) => Err(inner.failed("list what weir has left", error)),
    }
}

async fn names<K: Kind>(inner: &Inner, kind: &'static str) -> Result<Vec<Removed>, KubeError> {
    Ok(all::<K>(inner)
        .await?
        .into_iter()
        .map(|object| Removed { kind, name: object.name_any() })
        .collect())
}

async fn delete<K: Kind>(inner: &Inner, found: &[Removed], kind: &str) -> Result<(), KubeError> {
    let api: Api<K> = Api::namespaced(inner.client.clone(), &inner.namespace);
    for one in found.iter().filter(|one| one.kind == kind) {
        match api.delete(&one.name, &DeleteParams::foreground()).await {
            Ok(_) => {}
            // Gone with its owner.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(inner.failed(&format!("delete {kind} `{}`", one.name), error)),
        }
    }
    Ok(())
}
