//! The pods of a proxy, and a command in one of them that is asked again and again.

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

/// How long an answer of a pod may take: its quota may hold back whatever runs in it.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the stream's end may take.
const GRACE: Duration = Duration::from_millis(500);
/// How much an answer may have.
const MOST: usize = 8 << 20;
/// The event that a pod has when its node is not heard of.
const NOT_READY: &str = "NodeNotReady";
/// Names the container that is meant where nobody says which (kubectl's own).
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Which pods are a proxy's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodsOf {
    /// Those with a label.
    Labelled(ProxyPods),
    /// Those of a workload, and which container of them is the proxy's, where that is known.
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

/// A pod of a proxy that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The proxy's container.
    pub container: String,
    /// The node that it runs on.
    pub node: String,
}

impl Cluster {
    /// The pods of a proxy that run now, by name.
    ///
    /// # Errors
    /// They cannot be listed, or none of them runs.
    pub fn proxy_pods(&self, of: &PodsOf) -> Result<Vec<ProxyPod>, KubeError> {
        let container = match of {
            PodsOf::Workload(_, container) => container.as_deref(),
            PodsOf::Labelled(_) => None,
        };
        let found = self.pods_of(of)?;
        let mut pods: Vec<ProxyPod> = found
            .iter()
            .filter(|pod| workload::runs(pod))
            .filter_map(|pod| proxy_pod(pod, container))
            .collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        match pods.is_empty() {
            false => Ok(pods),
            true => Err(KubeError::Request {
                doing: format!("cannot read the {of}"),
                why: "none of them runs".to_owned(),
            }),
        }
    }

    /// All pods of a proxy, as the cluster tells of them.
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

    /// Nodes of a proxy's pods that the cluster does not hear of now, with what it says of each.
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
    /// The user may not, or the pod is gone. That its image does not have the program shows at the first question.
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
        let process = inner.run(&doing, async {
            let process = api.exec(&pod.name, command.iter().copied(), &params).await;
            process.map_err(|error| inner.failed(&doing, error))
        });
        let mut process = process?;
        match (process.stdin(), process.stdout()) {
            (Some(to), Some(from)) => Ok(Talk {
                inner: Arc::clone(inner),
                doing,
                process,
                to: Some(to),
                from,
            }),
            _ => Err(KubeError::Request {
                doing: format!("cannot {doing}"),
                why: "the stream is not complete".to_owned(),
            }),
        }
    }
}

/// What is said of a pod's node; by the pod's events, where nodes may not be read.
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
    let mut all = spec.containers.iter().map(|one| one.name.as_str());
    let first = all.clone().next()?;
    // What kubectl takes where nothing is said.
    let own = named.filter(|named| all.any(|name| name == *named));
    Some(ProxyPod {
        namespace: pod.namespace()?,
        name: pod.name_any(),
        container: own.unwrap_or(first).to_owned(),
        node: spec.node_name.clone()?,
    })
}

/// A command in a pod. It ends with its input, when this is dropped or weir ends.
pub struct Talk {
    inner: Arc<Inner>,
    doing: String,
    process: AttachedProcess,
    to: Option<WriteHalf<SimplexStream>>,
    from: ReadHalf<SimplexStream>,
}

impl std::fmt::Debug for Talk {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Talk")
            .field("doing", &self.doing)
            .finish_non_exhaustive()
    }
}

impl Talk {
    /// Sends an empty line, and gives what is printed until it ends with `end`.
    ///
    /// # Errors
    /// The command has ended, prints too much, or takes longer than ten seconds.
    pub fn ask(&mut self, end: &str) -> Result<String, KubeError> {
        let inner = Arc::clone(&self.inner);
        let what = format!("{}: an answer", self.doing);
        let answered = inner.within(ANSWER, self.answer(end));
        answered.unwrap_or(Err(KubeError::Overdue {
            what,
            within: ANSWER,
        }))
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

    /// What the API server says of its end.
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
