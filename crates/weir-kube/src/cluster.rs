//! Connection to a cluster: a context of the user's configuration, and a runtime for asynchronous work.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};

use http::Response;
use http_body_util::Limited;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::client::ClientBuilder;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tokio::runtime::Builder;
use tower::util::MapResponseLayer;

use crate::asked::{PodRequest, Target};
use crate::configuration;
use crate::error::KubeError;
use crate::generators::Generators;
use crate::inner::{Inner, LARGEST_ANSWER};
use crate::rights::{self, Used};

/// A namespace of a cluster. Clones share the connection.
#[derive(Clone)]
pub struct Cluster {
    pub inner: Arc<Inner>,
}

/// Two values are equal if they are clones of the same connection.
impl PartialEq for Cluster {
    fn eq(&self, other: &Cluster) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Cluster")
            .field("context", &self.inner.context)
            .field("namespace", &self.inner.namespace)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects to the cluster of a context, and asks for its version. `configuration` is the file to read; `None`: the
    /// user's own (KUBECONFIG, or `~/.kube/config`). If no context is named, the current one is used, but only with
    /// `may_guess`.
    ///
    /// # Errors
    /// Others could have written the configuration, the context does not exist, or its API server does not answer.
    pub fn connect(
        configuration: Option<&Path>,
        target: &Target,
        may_guess: bool,
    ) -> Result<Cluster, KubeError> {
        let configuration = configuration::read(configuration)?;
        let (context, named) = choose(&configuration, target, may_guess)?;
        configuration::check_named_files(&configuration, &context)?;
        // Its threads are in the network namespace of whoever calls.
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("weir-kube")
            .enable_all()
            .build()?;
        let options =
            KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = runtime
            .block_on(Config::from_custom_kubeconfig(configuration, &options))
            .map_err(|error| KubeError::NoConfiguration(format!("context `{context}`: {error}")))?;
        let namespace = named.unwrap_or_else(|| config.default_namespace.clone());
        let server = config.cluster_url.to_string();
        let bounded = MapResponseLayer::new(|answer: Response<_>| {
            answer.map(|content| Limited::new(content, LARGEST_ANSWER))
        });
        let client = {
            let _inside = runtime.enter();
            ClientBuilder::try_from(config).map(|builder| builder.with_layer(&bounded).build())
        };
        let client = client
            .map_err(|error| KubeError::NoConfiguration(format!("context `{context}`: {error}")))?;
        let inner = Inner {
            runtime,
            client,
            context,
            namespace,
            server,
            is_silent: AtomicBool::new(false),
            silences: AtomicU32::default(),
            hands: Mutex::default(),
        };
        inner.run("ask for its version", async {
            let version = inner.client.apiserver_version().await;
            version.map_err(|error| inner.failed("ask for its version", error))
        })?;
        Ok(Cluster { inner: Arc::new(inner) })
    }

    /// Returns the name of the context.
    pub fn context(&self) -> &str {
        &self.inner.context
    }

    /// Returns the name of the namespace.
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// Checks that the user may do what a run needs.
    ///
    /// # Errors
    /// [`KubeError::Rights`] lists the missing rights, and contains the objects that grant them.
    pub fn check_rights(&self) -> Result<(), KubeError> {
        self.inner.run("ask what this user may do", rights::check(&self.inner))
    }

    /// Checks that the user may change these objects and query these pods.
    ///
    /// # Errors
    /// See [`Cluster::check_rights`].
    pub fn check_changes(&self, used: &Used) -> Result<(), KubeError> {
        let check = rights::check_used(&self.inner, used);
        self.inner.run("ask what this user may do", check)
    }

    /// Checks that the objects that a study changes, or whose pods it queries, exist.
    ///
    /// # Errors
    /// [`KubeError::Missing`] names the first that does not.
    pub fn check_objects(&self, used: &Used) -> Result<(), KubeError> {
        for object in used.changed.iter().chain(&used.asked) {
            if object.now(&self.inner)?.is_none() {
                return Err(KubeError::Missing {
                    context: self.inner.context.clone(),
                    object: Box::new(object.clone()),
                });
            }
        }
        Ok(())
    }

    /// Checks that the namespace exists. Succeeds if the user may not read namespaces.
    ///
    /// # Errors
    /// [`KubeError::NoNamespace`], or the API server does not answer.
    pub fn check_namespace(&self) -> Result<(), KubeError> {
        let inner = &self.inner;
        let doing = "look for the namespace";
        let api: Api<Namespace> = Api::all(inner.client.clone());
        inner.run(doing, async {
            match api.get_opt(&inner.namespace).await {
                Ok(None) => Err(KubeError::NoNamespace {
                    context: inner.context.clone(),
                    namespace: inner.namespace.clone(),
                }),
                Ok(Some(_)) => Ok(()),
                Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
                Err(error) => Err(inner.failed(doing, error)),
            }
        })
    }

    /// Creates the generators of a run, and waits until all of them run, or until `interrupted` is set.
    ///
    /// # Errors
    /// The user lacks rights, the cluster refuses the generators, or they do not run within the time limit. Everything
    /// that was created is then removed.
    pub fn start(
        &self,
        wanted: &PodRequest,
        interrupted: &AtomicBool,
    ) -> Result<Generators, KubeError> {
        self.check_namespace()?;
        self.check_rights()?;
        Generators::start(&self.inner, wanted, interrupted)
    }
}

/// Chooses the context and the namespace. The namespace is `None` if the target names none.
fn choose(
    configuration: &Kubeconfig,
    target: &Target,
    may_guess: bool,
) -> Result<(String, Option<String>), KubeError> {
    let contexts: Vec<&str> =
        configuration.contexts.iter().map(|context| context.name.as_str()).collect();
    let (context, namespace) = target.split(&contexts);
    let current = configuration.current_context.clone().filter(|_| may_guess);
    let Some(context) = context.or(current) else {
        return Err(KubeError::NoContext {
            contexts: contexts.into_iter().map(str::to_owned).collect(),
        });
    };
    if contexts.contains(&context.as_str()) {
        Ok((context, namespace))
    } else {
        Err(KubeError::UnknownContext {
            context,
            contexts: contexts.into_iter().map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_context_is_guessed_only_where_that_is_allowed() {
        let text = "current-context: b\ncontexts: [{name: a}, {name: b}]";
        let configuration = Kubeconfig::from_yaml(text).unwrap();
        let choose =
            |text: &str, may_guess| choose(&configuration, &text.parse().unwrap(), may_guess);
        assert_eq!(choose("kubernetes", true).unwrap(), ("b".to_owned(), None));
        assert_eq!(
            choose("kubernetes:a/bench", false).unwrap(),
            ("a".to_owned(), Some("bench".to_owned()))
        );
        let error = choose("kubernetes", false).unwrap_err();
        assert!(matches!(error, KubeError::NoContext { .. }), "{error}");
        assert!(error.hint().unwrap().contains("a, b"));
        let error = choose("kubernetes:c", true).unwrap_err();
        assert!(matches!(error, KubeError::UnknownContext { .. }), "{error}");
    }

    #[test]
    fn an_answer_without_an_end_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let endless = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"major\": \"";
            // A whole request, of which nothing matters.
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let mut sent = stream.write(head).unwrap_or(0);
            while let Ok(more) = stream.write(&[b'1'; 1 << 16]) {
                sent += more;
            }
            sent
        });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: \"{server}\"}}}}]\nusers: [{{name: a}}]\n"
        );
        std::fs::write(&file, text).unwrap();
        let target = "kubernetes".parse().unwrap();
        let error = Cluster::connect(Some(&file), &target, true).unwrap_err();
        let message = error.to_string();
        assert!(message.ends_with("the API server's answer is larger than 64 MiB"), "{message}");
        // What its client has read, and what was on the way.
        let sent = endless.join().unwrap();
        assert!((LARGEST_ANSWER..2 * LARGEST_ANSWER).contains(&sent), "{sent}");
    }
}
