//! The client of a cluster, and the runtime for what is asynchronous.

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

/// Most bytes of one answer of an API server: lists of thousands of objects have some tens of MiB.
pub(crate) const LARGEST_ANSWER: usize = 64 << 20;

/// How long the API server may take to answer.
const ANSWER: Duration = Duration::from_secs(15);

/// The pods by which nodes are reached: see `node`.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    pub(crate) image: String,
    /// Namespace and name, by node.
    pub(crate) pods: BTreeMap<String, (String, String)>,
    /// Nodes that could not be reached, and why.
    pub(crate) lost: BTreeMap<String, String>,
}

/// A namespace of a cluster that can be asked.
pub(crate) struct Inner {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) context: String,
    pub(crate) namespace: String,
    /// The API server's address.
    pub(crate) server: String,
    /// Whether a stream did not end when it should have.
    pub(crate) is_silent: AtomicBool,
    /// How often the API server has not answered.
    pub(crate) silences: AtomicU32,
    /// What reaches nodes.
    pub(crate) hands: Mutex<Hands>,
}

impl Inner {
    /// Waits for something that the API server does, which answers soon or not at all.
    pub(crate) fn run<T>(
        &self,
        doing: &str,
        what: impl Future<Output = Result<T, KubeError>>,
    ) -> Result<T, KubeError> {
        let answered = self.within(ANSWER, what);
        answered.unwrap_or_else(|| Err(self.silent(doing)))
    }

    /// The same of one request among several, within what is asynchronous.
    pub(crate) async fn answer<T>(
        &self,
        doing: &str,
        what: impl Future<Output = Result<T, KubeError>>,
    ) -> Result<T, KubeError> {
        let answered = tokio::time::timeout(ANSWER, what).await;
        answered.unwrap_or_else(|_| Err(self.silent(doing)))
    }

    pub(crate) fn silent(&self, doing: &str) -> KubeError {
        self.silences.fetch_add(1, Ordering::Relaxed);
        KubeError::Unreachable {
            context: self.context.clone(),
            what: format!("{doing}: no answer within {} s", ANSWER.as_secs()),
        }
    }

    /// Waits for something at most so long.
    pub(crate) fn within<T>(&self, at_most: Duration, what: impl Future<Output = T>) -> Option<T> {
        self.runtime
            .block_on(async { tokio::time::timeout(at_most, what).await.ok() })
    }

    /// Lets something go on by itself.
    pub(crate) fn spawn(&self, what: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.spawn(what)
    }

    /// What an error of the client means.
    pub(crate) fn failed(&self, doing: &str, error: kube::Error) -> KubeError {
        let context = self.context.clone();
        match error {
            kube::Error::Api(status) if status.code == 401 => KubeError::Unauthorized {
                context,
                what: status.message,
            },
            kube::Error::Api(status) => KubeError::Request {
                doing: format!("cannot {doing}"),
                why: status.message,
            },
            kube::Error::Auth(error) => KubeError::Unauthorized {
                context,
                what: chain(&error),
            },
            error if is_too_large(&error) => KubeError::Request {
                doing: format!("cannot {doing}"),
                why: format!(
                    "the API server's answer is larger than {} MiB",
                    LARGEST_ANSWER >> 20
                ),
            },
            error => KubeError::Unreachable {
                context,
                what: format!("{}: {}", self.server, innermost(&chain(&error))),
            },
        }
    }
}

/// Whether an answer has gone beyond its bound.
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

/// Without the names that the client's layers have for themselves.
fn innermost(words: &str) -> &str {
    let layers = ["ServiceError: ", "client error (Connect): "];
    layers.iter().fold(words, |words, layer| {
        words.strip_prefix(layer).unwrap_or(words)
    })
}

/// An error with all that led to it: libraries' outermost words say little.
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
