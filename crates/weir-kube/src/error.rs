//! Errors of work in a cluster.

use std::time::Duration;

use weir_host::journal::JournalError;

use crate::object_ref::ObjectRef;

/// Error of work in a cluster.
#[derive(Debug, thiserror::Error)]
pub enum KubeError {
    /// There is no configuration, or it cannot be read.
    #[error("the configuration of kubectl cannot be used: {0}")]
    NoConfiguration(String),
    /// No context is named, and the current one must not be guessed.
    #[error("no context of the Kubernetes configuration is named")]
    NoContext {
        /// Existing contexts.
        contexts: Vec<String>,
    },
    /// The named context does not exist.
    #[error("the Kubernetes configuration has no context `{context}`")]
    UnknownContext {
        /// Context that was named.
        context: String,
        /// Existing contexts.
        contexts: Vec<String>,
    },
    /// The API server does not answer.
    #[error("the API server of context `{context}` does not answer: {what}")]
    Unreachable {
        /// The context.
        context: String,
        /// Description of the failure.
        what: String,
    },
    /// The API server does not know the user.
    #[error("the API server of context `{context}` does not accept these credentials: {what}")]
    Unauthorized {
        /// The context.
        context: String,
        /// Message of the API server.
        what: String,
    },
    /// The user lacks rights that a run needs.
    #[error("in namespace `{namespace}` of context `{context}`, `{user}` may not {}", missing.join(", "))]
    Rights {
        /// The context.
        context: String,
        /// The namespace.
        namespace: String,
        /// Name of the user, as the API server knows it.
        user: String,
        /// Missing rights, each as verb and resource.
        missing: Vec<String>,
        /// Objects that grant the rights, as YAML documents.
        manifest: String,
    },
    /// The API server refused an object: admission, a policy, a namespace that does not exist.
    #[error("the cluster refused {what}: {why}")]
    Refused {
        /// The object.
        what: String,
        /// Message of the API server.
        why: String,
    },
    /// An object that a study names does not exist.
    #[error("{object} does not exist in the cluster of context `{context}`")]
    Missing {
        /// The context.
        context: String,
        /// The object.
        object: Box<ObjectRef>,
    },
    /// The namespace that was named does not exist.
    #[error("namespace `{namespace}` does not exist in the cluster of context `{context}`")]
    NoNamespace {
        /// The context.
        context: String,
        /// The namespace.
        namespace: String,
    },
    /// Pods do not run.
    #[error("{what}: {why}{}", events.iter().map(|event| format!("\n  {event}")).collect::<String>())]
    Pods {
        /// Pods that do not run.
        what: String,
        /// Reason why they do not run.
        why: String,
        /// Advice on what to do.
        hint: Option<&'static str>,
        /// Events of the cluster about the pods, oldest first.
        events: Vec<String>,
    },
    /// A time limit was exceeded.
    #[error("{what}: not within {} s", within.as_secs())]
    Overdue {
        /// Description of what took too long.
        what: String,
        /// Time limit.
        within: Duration,
    },
    /// The user interrupted the wait.
    #[error("interrupted before all pods ran")]
    Interrupted,
    /// No agent answers in a pod.
    #[error("no agent answers in pod `{pod}`: {why}")]
    Agent {
        /// The pod.
        pod: String,
        /// Description of the failure.
        why: String,
    },
    /// A node is lost.
    #[error("node `{node}` cannot be reached: {why}")]
    Node {
        /// The node.
        node: String,
        /// Message of the cluster about the node.
        why: String,
    },
    /// A request to the API server failed.
    #[error("{doing}: {why}")]
    Request {
        /// Request that failed.
        doing: String,
        /// Reason of the failure.
        why: String,
    },
    /// The URL or the address of an Ingress cannot be determined.
    #[error("{what}")]
    Ingress {
        /// The Ingress, and what is not clear.
        what: String,
    },
    /// Another running weir on this host changes objects of the cluster.
    #[error("another weir changes objects of the cluster of context `{context}`{holder}")]
    Held {
        /// The context.
        context: String,
        /// Holder of the journal, as `: process 7, since ...`; empty if unknown.
        holder: String,
    },
    /// An earlier weir was killed before it could put objects back.
    #[error(
        "an earlier weir has left {} of the cluster of context `{context}` changed", counted(*objects)
    )]
    LeftChanged {
        /// The context.
        context: String,
        /// The namespace that was named.
        namespace: String,
        /// Number of changed objects.
        objects: usize,
    },
    /// Objects could not be put back at the end.
    #[error("{} of the cluster of context `{context}` could not be put back", counted(*objects))]
    NotPutBack {
        /// The context.
        context: String,
        /// The namespace that was named.
        namespace: String,
        /// Number of objects.
        objects: usize,
    },
    /// Error of the journal of changed objects.
    #[error(transparent)]
    Journal(Box<JournalError>),
    /// Somebody else has changed an object that weir changes.
    #[error("{object}: {what}")]
    Foreign {
        /// The object.
        object: String,
        /// Description of the foreign change.
        what: String,
    },
    /// This host could not provide a thread or a socket.
    #[error("cannot reach the cluster from this host: {0}")]
    Host(#[from] std::io::Error),
}

fn counted(objects: usize) -> String {
    match objects {
        1 => "1 object".to_owned(),
        more => format!("{more} objects"),
    }
}

impl KubeError {
    /// Returns true if the user's input must change.
    pub fn is_input(&self) -> bool {
        match self {
            KubeError::NoConfiguration(_)
            | KubeError::NoContext { .. }
            | KubeError::UnknownContext { .. }
            | KubeError::Rights { .. }
            | KubeError::Refused { .. }
            | KubeError::Missing { .. }
            | KubeError::NoNamespace { .. }
            | KubeError::Ingress { .. }
            | KubeError::Held { .. }
            | KubeError::LeftChanged { .. } => true,
            KubeError::Unreachable { .. }
            | KubeError::Unauthorized { .. }
            | KubeError::Pods { .. }
            | KubeError::Overdue { .. }
            | KubeError::Interrupted
            | KubeError::NotPutBack { .. }
            | KubeError::Agent { .. }
            | KubeError::Node { .. }
            | KubeError::Request { .. }
            | KubeError::Journal(_)
            | KubeError::Foreign { .. }
            | KubeError::Host(_) => false,
        }
    }

    /// Returns advice for the user; `None` if there is none.
    pub fn hint(&self) -> Option<String> {
        match self {
            KubeError::NoConfiguration(_) => Some(
                "it is the file that KUBECONFIG names, or else ~/.kube/config; try: kubectl config view"
                    .to_owned(),
            ),
            KubeError::NoContext { contexts } | KubeError::UnknownContext { contexts, .. } => {
                Some(list_contexts(contexts))
            }
            KubeError::Unreachable { context, .. } | KubeError::Unauthorized { context, .. } => {
                Some(format!(
                    "try: kubectl --context {context} get --raw /version"
                ))
            }
            KubeError::Rights { manifest, .. } => Some(format!(
                "whoever administers the cluster can grant them with `kubectl apply -f -` and what follows (`weir kube rights` with the \
                 study prints all that it needs at once):\n{manifest}"
            )),
            KubeError::Missing { context, object } => Some(format!(
                "see what there is: kubectl --context {context} get {} --namespace {}",
                object.resource, object.namespace
            )),
            KubeError::NoNamespace { context, .. } => Some(format!(
                "see which there are: kubectl --context {context} get namespaces; name one: --on kubernetes:{context}/NAMESPACE"
            )),
            KubeError::Pods { hint, .. } => hint.map(str::to_owned),
            KubeError::Agent { .. } => Some(
                "check that the pod's image is the one that `weir kube image` wrote".to_owned(),
            ),
            KubeError::Node { node, .. } => Some(format!(
                "what weir has set there is in its journal, and `weir restore --on` puts it back when the node is there again; \
                 try: kubectl describe node {node}"
            )),
            KubeError::Held { .. } => Some(
                "wait until it has ended, or end it with Ctrl-C: runs at the same time would disturb each other"
                    .to_owned(),
            ),
            KubeError::LeftChanged {
                context, namespace, ..
            }
            | KubeError::NotPutBack {
                context, namespace, ..
            } => Some(format!(
                "put them back with: weir restore --on kubernetes:{context}/{namespace}"
            )),
            KubeError::Foreign { .. } => Some(
                "weir left it alone; see that nobody else changes it, such as an operator, a GitOps tool, or weir on another host, and run it again"
                    .to_owned(),
            ),
            KubeError::Ingress { .. } => Some(
                "`kubectl get ingress --all-namespaces` lists them; or give the URL and the host: http://ADDRESS/PATH -H 'Host: NAME', \
                 and the proxy's pods: --proxy-pods NAMESPACE/KEY=VALUE"
                    .to_owned(),
            ),
            KubeError::Journal(error) => error.hint(),
            _ => None,
        }
    }
}

fn list_contexts(contexts: &[String]) -> String {
    if contexts.is_empty() {
        return "the configuration has no context at all".to_owned();
    }
    format!("name one of these, such as --on kubernetes:CONTEXT: {}", contexts.join(", "))
}
