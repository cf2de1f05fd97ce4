//! User input, parsed from text.

use std::str::FromStr;
use std::time::Duration;

/// A text that cannot be parsed, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not understood: {why}")]
pub struct Unclear {
    text: String,
    why: &'static str,
}

fn unclear(text: &str, why: &'static str) -> Unclear {
    Unclear { text: text.to_owned(), why }
}

/// A cluster, as `kubernetes[:CONTEXT][/NAMESPACE]` names it.
///
/// Names of contexts may contain colons and slashes themselves, so the context can only be recognized together with the
/// user's configuration: [`Target::split`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Text after `kubernetes:`; `None`: no context is named.
    rest: Option<String>,
    /// Namespace, if no context is named.
    namespace: Option<String>,
}

impl FromStr for Target {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Target, Unclear> {
        let target = match text.strip_prefix("kubernetes") {
            Some("") => Target::default(),
            Some(rest) => match (rest.strip_prefix(':'), rest.strip_prefix('/')) {
                (Some(rest), _) if !rest.is_empty() => {
                    Target { rest: Some(rest.to_owned()), namespace: None }
                }
                (_, Some(namespace)) if is_name(namespace) => {
                    Target { rest: None, namespace: Some(namespace.to_owned()) }
                }
                _ => return Err(unclear(text, HOW)),
            },
            None => return Err(unclear(text, HOW)),
        };
        Ok(target)
    }
}

const HOW: &str = "write kubernetes:CONTEXT or kubernetes:CONTEXT/NAMESPACE";

/// Returns true if a text is a valid name of a namespace (RFC 1123 label).
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

impl Target {
    /// Returns true if a context is named.
    pub fn has_context(&self) -> bool {
        self.rest.is_some()
    }

    /// Splits the text into context and namespace, given the existing contexts. A context that does not exist is
    /// returned as it was written.
    pub fn split(&self, contexts: &[&str]) -> (Option<String>, Option<String>) {
        let Some(rest) = &self.rest else {
            return (None, self.namespace.clone());
        };
        if contexts.contains(&rest.as_str()) {
            return (Some(rest.clone()), None);
        }
        match rest.rsplit_once('/') {
            Some((context, namespace)) if is_name(namespace) && !context.is_empty() => {
                (Some(context.to_owned()), Some(namespace.to_owned()))
            }
            _ => (Some(rest.clone()), None),
        }
    }
}

/// A label that nodes must have, `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLabel {
    pub key: String,
    pub value: String,
}

impl FromStr for NodeLabel {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<NodeLabel, Unclear> {
        let (key, value) = pair(text)?;
        Ok(NodeLabel { key, value })
    }
}

fn pair(text: &str) -> Result<(String, String), Unclear> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(unclear(text, "write KEY=VALUE")),
    }
}

/// A toleration of taints, `KEY[=VALUE][:EFFECT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    pub key: String,
    /// Value of the taint; `None`: any value.
    pub value: Option<String>,
    /// Effect of the taint; `None`: any effect.
    pub(crate) effect: Option<String>,
}

impl FromStr for Toleration {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Toleration, Unclear> {
        let (taint, effect) = match text.rsplit_once(':') {
            Some((taint, effect)) => (taint, Some(effect.to_owned())),
            None => (text, None),
        };
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if effect.as_deref().is_some_and(|effect| !effects.contains(&effect)) {
            return Err(unclear(text, "the effect is NoSchedule, PreferNoSchedule or NoExecute"));
        }
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (taint, None),
        };
        if key.is_empty() {
            return Err(unclear(text, "write KEY, KEY=VALUE or KEY=VALUE:EFFECT"));
        }
        Ok(Toleration { key: key.to_owned(), value, effect })
    }
}

/// Selector of the proxy's pods, `NAMESPACE/KEY=VALUE`, or with several labels `NAMESPACE/KEY=VALUE,KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyPods {
    pub namespace: String,
    pub labels: Vec<(String, String)>,
}

impl ProxyPods {
    /// Returns the namespace of the pods.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the labels in the form that the API server takes.
    pub(crate) fn selector(&self) -> String {
        let labels: Vec<String> =
            self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        labels.join(",")
    }
}

/// Formats the selector as users type it.
impl std::fmt::Display for ProxyPods {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}/{}", self.namespace, self.selector())
    }
}

impl FromStr for ProxyPods {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<ProxyPods, Unclear> {
        match text.split_once('/') {
            Some((namespace, labels)) if is_name(namespace) => Ok(ProxyPods {
                namespace: namespace.to_owned(),
                labels: labels
                    .split(',')
                    .map(pair)
                    .collect::<Result<_, _>>()
                    .map_err(|_| unclear(text, "write NAMESPACE/KEY=VALUE"))?,
            }),
            _ => Err(unclear(text, "write NAMESPACE/KEY=VALUE")),
        }
    }
}

/// Pods that a run asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRequest {
    /// Number of generators.
    pub generators: u32,
    /// Name of the image, as nodes pull it.
    pub image: String,
    /// CPUs of each generator, which has as many threads.
    pub cpus: u32,
    /// Memory of each generator, MiB.
    pub memory_mib: u32,
    /// Labels that the pods' nodes must have.
    pub nodes: Vec<NodeLabel>,
    /// Taints that the pods tolerate.
    pub tolerations: Vec<Toleration>,
    /// Pods of the proxy, whose nodes are avoided.
    pub proxy: Option<ProxyPods>,
    /// True if the pods may share nodes with each other and with the proxy when no others are available.
    pub share_nodes: bool,
    /// Options of `weir origin`, if the origin server runs in a pod of its own.
    pub origin: Option<Vec<String>>,
    /// Time limit for all pods to run.
    pub within: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Option<String>, Option<String>) {
        let contexts = ["prod", "arn:aws:eks:eu-west-1:1:cluster/prod", "admin@kind"];
        text.parse::<Target>().unwrap().split(&contexts)
    }

    fn owned(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_context_may_have_colons_and_slashes() {
        let eks = "arn:aws:eks:eu-west-1:1:cluster/prod";
        for (text, expected) in [
            ("kubernetes", (None, None)),
            ("kubernetes/bench", (None, owned("bench"))),
            ("kubernetes:prod", (owned("prod"), None)),
            ("kubernetes:prod/bench", (owned("prod"), owned("bench"))),
            (&format!("kubernetes:{eks}"), (owned(eks), None)),
            (&format!("kubernetes:{eks}/bench"), (owned(eks), owned("bench"))),
            // One that does not exist is told as it was written.
            ("kubernetes:other", (owned("other"), None)),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
        for wrong in ["", "kube", "kubernetes:", "kubernetes/", "kubernetes/A", "kubernetesx"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }

    fn parse_toleration(text: &str) -> Result<Toleration, String> {
        text.parse::<Toleration>().map_err(|error| error.to_string())
    }

    #[test]
    fn taints_and_labels_are_read_as_kubectl_writes_them() {
        let read = parse_toleration("dedicated=bench:NoSchedule").unwrap();
        assert_eq!(read.key, "dedicated");
        assert_eq!(read.value.as_deref(), Some("bench"));
        assert_eq!(read.effect.as_deref(), Some("NoSchedule"));
        assert_eq!(parse_toleration("gpu").unwrap().value, None);
        assert!(parse_toleration("a=b:Sometimes").unwrap_err().contains("NoExecute"));
        assert!(parse_toleration(":NoSchedule").is_err());
        assert!("zone".parse::<NodeLabel>().is_err());
        let proxy: ProxyPods =
            "ingress-nginx/app.kubernetes.io/name=ingress-nginx".parse().unwrap();
        assert_eq!(proxy.namespace, "ingress-nginx");
        assert_eq!(proxy.labels[0].0, "app.kubernetes.io/name");
        let text = "ingress/app=a,part=b";
        let proxy: ProxyPods = text.parse().unwrap();
        assert_eq!((proxy.labels.len(), proxy.to_string()), (2, text.to_owned()));
        assert!("app=web".parse::<ProxyPods>().is_err());
    }
}
