//! The pods of a proxy, and a command in one of them that is queried repeatedly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1;
use kube::api::{AttachParams, AttachedProcess, ListParams};
use kube::{Api, ResourceExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, SimplexStream, WriteHalf};

use crate::asked::ProxyPods;
use crate::cluster::Cluster;
use crate::error::KubeError;
use crate::inner::Inner;
use crate::object_ref::ObjectRef;
use crate::{health, pods, workload};

/// Time limit for an answer of a pod, whose quota may delay whatever runs in it.
const ANSWER: Duration = Duration::from_secs(10);
/// Time limit for the stream to end.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum size of an answer, bytes.
const MOST: usize = 8 << 20;
/// Reason of the event that a pod gets when its node does not report.
const NOT_READY: &str = "NodeNotReady";
/// Annotation that names the default container (kubectl's own).
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Selection of a proxy's pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodsOf {
    /// Pods with certain labels.
    Labelled(ProxyPods),
    /// Pods of a workload, and the name of the proxy's container, if known.
    Workload(ObjectRef, Option<String>),
}

impl std::fmt::Display for PodsOf {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PodsOf::Labelled(pods) => write!(to, "pods {pods}"),
            PodsOf::Workload(object, _) => write!(to, "pods of {object}"),
        }
    }
}

/// A running pod of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyPod {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Name of the proxy's container.
    pub container: String,
    /// Node of the pod.
    pub node: String,
}

impl Cluster {
    /// Returns the running pods of a proxy, sorted by name.
    ///
    /// # Errors
    /// The pods cannot be listed, or none of them runs.
    pub fn proxy_pods(&self, of: &PodsOf) -> Result<Vec<ProxyPod>, KubeError> {
        let container = match of {
            PodsOf::Workload(_, container) => container.as_deref(),
            PodsOf::Labelled(_) => None,
        };
        let mut pods: Vec<ProxyPod> = self
            .pods_of(of)?
            .iter()
            .filter(|pod| workload::runs(pod))
            .filter_map(|pod| proxy_pod(pod, container))
            .collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        if pods.is_empty() {
            Err(KubeError::Request {
                doing: format!("cannot read the {of}"),
                why: "none of them runs".to_owned(),
            })
        } else {
            Ok(pods)
        }
    }

    /// Returns all pods of a proxy, as the cluster reports them.
    pub(crate) fn pods_of(&self, of: &PodsOf) -> Result<Vec<v1::Pod>, KubeError> {
        let inner = &self.inner;
        let pods = match of {
            PodsOf::Workload(object, _) => return Ok(workload::with_pods(inner, object)?.1),
            PodsOf::Labelled(pods) => pods,
        };
        let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &pods.namespace);
        let labelled = ListParams::default().labels(&pods.selector());
        let doing = format!("list {of}");
        let list = inner.run(&doing, async {
            let list = api.list(&labelled).await;
            list.map_err(|error| inner.failed(&doing, error))
        });
        Ok(list?.items)
    }

    /// Returns the nodes of a proxy's pods that are lost at present, each with the cluster's message.
    ///
    /// # Errors
    /// The pods cannot be listed.
    pub fn lost_nodes(&self, of: &PodsOf) -> Result<BTreeMap<String, String>, KubeError> {
        let inner = &self.inner;
        let mut lost = BTreeMap::new();
        // A pod is not ready when its node is not.
        let pods = self.pods_of(of)?;
        for pod in pods.iter().filter(|pod| !pods::is_ready(pod)) {
            let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else {
                continue;
            };
            if lost.contains_key(&node) {
                continue;
            }
            if let Some(Some(why)) = inner.within(health::ANSWER, said_of_node(inner, pod, &node)) {
                lost.insert(node, why);
            }
        }
        Ok(lost)
    }

    /// Starts a command in a pod that answers each line with some text.
    ///
    /// # Errors
    /// The user lacks rights, or the pod is gone. If the image lacks the program, only the first query fails.
    pub fn converse(&self, pod: &ProxyPod, command: &[&str]) -> Result<Talk, KubeError> {
        let inner = &self.inner;
        let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &pod.namespace);
        let params = AttachParams {
            container: Some(pod.container.clone()),
            stdin: true,
            stderr: false,
            max_stdout_buf_size: Some(64 << 10),
            ..AttachParams::default()
        };
        let doing = format!("run `{}` in pod `{}`", command[0], pod.name);
        let mut process = inner.run(&doing, async {
            let process = api.exec(&pod.name, command.iter().copied(), &params).await;
            process.map_err(|error| inner.failed(&doing, error))
        })?;
        match (process.stdin(), process.stdout()) {
            (Some(to), Some(from)) => {
                Ok(Talk { inner: Arc::clone(inner), doing, process, to: Some(to), from })
            }
            _ => Err(KubeError::Request {
                doing: format!("cannot {doing}"),
                why: "the stream is not complete".to_owned(),
            }),
        }
    }
}

/// Returns the cluster's message about a pod's node; taken from the pod's events if nodes may not be read.
async fn said_of_node(inner: &Inner, pod: &v1::Pod, node: &str) -> Option<String> {
    if let Ok(said) = health::of(inner, node).await {
        return said;
    }
    let namespace = pod.namespace()?;
    let events = pods::events_in(inner, &namespace, &pod.name_any()).await;
    let last = events.into_iter().next_back()?;
    (last.reason.as_deref() == Some(NOT_READY))
        .then(|| format!("it is not ready: {}", last.message.unwrap_or_default()))
}

fn proxy_pod(pod: &v1::Pod, container: Option<&str>) -> Option<ProxyPod> {
    let spec = pod.spec.as_ref()?;
    let named = container.or(pod.annotations().get(DEFAULT_CONTAINER).map(String::as_str));
    let mut all = spec.containers.iter().map(|container| container.name.as_str());
    let first = all.clone().next()?;
    // What kubectl takes where nothing is said.
    let container = named.filter(|named| all.any(|name| name == *named)).unwrap_or(first);
    Some(ProxyPod {
        namespace: pod.namespace()?,
        name: pod.name_any(),
        container: container.to_owned(),
        node: spec.node_name.clone()?,
    })
}

/// A running command in a pod. The command ends with its input, when this is dropped or weir ends.
pub struct Talk {
    inner: Arc<Inner>,
    doing: String,
    process: AttachedProcess,
    to: Option<WriteHalf<SimplexStream>>,
    from: ReadHalf<SimplexStream>,
}

impl std::fmt::Debug for Talk {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Talk").field("doing", &self.doing).finish_non_exhaustive()
    }
}

impl Talk {
    /// Sends an empty line, and returns the output up to and including `end`.
    ///
    /// # Errors
    /// The command has ended, prints too much, or takes longer than ten seconds.
    pub fn ask(&mut self, end: &str) -> Result<String, KubeError> {
        let inner = Arc::clone(&self.inner);
        let overdue =
            KubeError::Overdue { what: format!("{}: an answer", self.doing), within: ANSWER };
        inner.within(ANSWER, self.answer(end)).unwrap_or(Err(overdue))
    }

    async fn answer(&mut self, end: &str) -> Result<String, KubeError> {
        // Where it has ended, why it did is worth more than that nobody hears.
        if let Some(to) = &mut self.to
            && to.write_all(b"\n").await.is_err()
        {
            return Err(self.ended().await);
        }
        let mut text = Vec::new();
        let mut piece = [0; 16 << 10];
        while !text.ends_with(end.as_bytes()) {
            match self.from.read(&mut piece).await {
                Ok(length @ 1..) if text.len() + length <= MOST => {
                    text.extend_from_slice(&piece[..length]);
                }
                Ok(1..) => {
                    return Err(KubeError::Request {
                        doing: format!("cannot {}", self.doing),
                        why: format!("it prints more than {} MiB", MOST >> 20),
                    });
                }
                Ok(0) | Err(_) => return Err(self.ended().await),
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the error for a command that has ended, with the API server's message.
    async fn ended(&mut self) -> KubeError {
        let status = match self.process.take_status() {
            Some(status) => status.await,
            None => None,
        };
        let why = status.and_then(|status| status.message);
        KubeError::Request {
            doing: format!("cannot {}", self.doing),
            why: why.unwrap_or_else(|| "it has ended".to_owned()),
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // The end of its input ends it; what is left of the stream is cut then.
        let (to, from) = (self.to.take(), &mut self.from);
        let ended = async {
            if let Some(mut to) = to {
                let _ = to.shutdown().await;
            }
            let mut piece = [0; 4096];
            while let Ok(1..) = from.read(&mut piece).await {}
        };
        let _ = self.inner.within(GRACE, ended);
    }
}
