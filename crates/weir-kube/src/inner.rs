//! The client of a cluster, and the runtime for asynchronous work.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use http_body_util::LengthLimitError;
use kube::Client;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::error::KubeError;

/// Maximum size of an answer of the API server, bytes: lists of thousands of objects take some tens of MiB.
pub(crate) const LARGEST_ANSWER: usize = 64 << 20;

/// Time limit for an answer of the API server.
const ANSWER: Duration = Duration::from_secs(15);

/// Pods through which nodes are reached: see `node`.
#[derive(Debug, Default)]
pub struct Hands {
    pub image: String,
    /// Namespace and name of each pod, by node.
    pub pods: BTreeMap<String, (String, String)>,
    /// Nodes that could not be reached, each with the reason.
    pub lost: BTreeMap<String, String>,
}

/// Connection to a namespace of a cluster.
pub struct Inner {
    pub(crate) runtime: Runtime,
    pub client: Client,
    pub context: String,
    pub namespace: String,
    /// Address of the API server.
    pub server: String,
    /// True if a stream did not end when it should have.
    pub(crate) is_silent: AtomicBool,
    /// Number of times that the API server did not answer.
    pub silences: AtomicU32,
    /// Pods through which nodes are reached.
    pub hands: Mutex<Hands>,
}

impl Inner {
    /// Runs an operation of the API server that is answered soon or not at all.
    pub fn run<T>(
        &self,
        doing: &str,
        what: impl Future<Output = Result<T, KubeError>>,
    ) -> Result<T, KubeError> {
        let answered = self.within(ANSWER, what);
        answered.unwrap_or_else(|| Err(self.silent(doing)))
    }

    /// Asynchronous version of [`Inner::run`], for one request among several.
    pub(crate) async fn answer<T>(
        &self,
        doing: &str,
        what: impl Future<Output = Result<T, KubeError>>,
    ) -> Result<T, KubeError> {
        let answered = tokio::time::timeout(ANSWER, what).await;
        answered.unwrap_or_else(|_| Err(self.silent(doing)))
    }

    pub fn silent(&self, doing: &str) -> KubeError {
        self.silences.fetch_add(1, Ordering::Relaxed);
        KubeError::Unreachable {
            context: self.context.clone(),
            what: format!("{doing}: no answer within {} s", ANSWER.as_secs()),
        }
    }

    /// Runs a future with a time limit; `None` if it was exceeded.
    pub fn within<T>(&self, at_most: Duration, what: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async { tokio::time::timeout(at_most, what).await.ok() })
    }

    /// Runs a future in the background.
    pub(crate) fn spawn(&self, what: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.spawn(what)
    }

    /// Converts an error of the client.
    pub fn failed(&self, doing: &str, error: kube::Error) -> KubeError {
        let context = self.context.clone();
        match error {
            kube::Error::Api(status) if status.code == 401 => {
                KubeError::Unauthorized { context, what: status.message }
            }
            kube::Error::Api(status) => {
                KubeError::Request { doing: format!("cannot {doing}"), why: status.message }
            }
            kube::Error::Auth(error) => KubeError::Unauthorized { context, what: chain(&error) },
            error if is_too_large(&error) => KubeError::Request {
                doing: format!("cannot {doing}"),
                why: format!("the API server's answer is larger than {} MiB", LARGEST_ANSWER >> 20),
            },
            error => KubeError::Unreachable {
                context,
                what: format!("{}: {}", self.server, innermost(&chain(&error))),
            },
        }
    }
}

/// Returns true if an answer exceeded [`LARGEST_ANSWER`].
fn is_too_large(error: &kube::Error) -> bool {
    let mut error: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = error {
        if one.is::<LengthLimitError>() {
            return true;
        }
        error = one.source();
    }
    false
}

/// Removes the prefixes that the client's layers add to a message.
fn innermost(words: &str) -> &str {
    let layers = ["ServiceError: ", "client error (Connect): "];
    layers.iter().fold(words, |words, layer| words.strip_prefix(layer).unwrap_or(words))
}

/// Formats an error with all its causes: the outermost messages of libraries say little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        next = error.source();
    }
    words
}
