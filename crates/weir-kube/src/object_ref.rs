//! An object of a cluster by its name, read and changed independently of its kind.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::KubeError;
use crate::inner::Inner;
use crate::object_path;

/// Stands for the API group and version of a node's kernel setting, which is not an object of the API server.
const SYSCTL: &str = "sysctl";

/// Reference to an object of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectRef {
    /// API group and version: `apps/v1`.
    pub api: String,
    /// Kind: `Deployment`.
    pub kind: String,
    /// Plural name of the kind in URLs: `deployments`.
    pub resource: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.is_of_node(), &*self.name) {
            (true, "") => write!(to, "{} of each node that has its pods", self.resource),
            (true, node) => write!(to, "{} of node {node}", self.resource),
            (false, name) => write!(to, "{} {}/{name}", self.kind, self.namespace),
        }
    }
}

impl ObjectRef {
    /// Creates a reference to a kernel setting of a node, by its name with dots. The pod that changes it is created in
    /// `namespace`. An empty `node` stands for every node that has pods of the proxy.
    pub fn of_node(node: &str, sysctl: &str, namespace: &str) -> ObjectRef {
        ObjectRef {
            api: SYSCTL.to_owned(),
            kind: "Node".to_owned(),
            resource: sysctl.to_owned(),
            namespace: namespace.to_owned(),
            name: node.to_owned(),
        }
    }

    /// Returns true if this is a kernel setting of a node.
    pub fn is_of_node(&self) -> bool {
        self.api == SYSCTL
    }

    /// Returns the place and the former value that a merge patch needs to put back a place of the object. If the place
    /// is within a list or a text, this is the whole list or text. If parents of the place are missing too, it is the
    /// outermost missing one, because custom resources keep empty parents.
    pub fn held(&self, object: &Value, at: &str) -> (String, Value) {
        let (whole, _) = object_path::split_whole(at);
        let keeps_empty = self.group().contains('.')
            && !self.group().ends_with(".k8s.io")
            && whole.starts_with("/spec/");
        let missing = whole
            .match_indices('/')
            .skip(1)
            .map(|(end, _)| end)
            .map(|end| &whole[..end])
            .filter(|_| keeps_empty)
            .into_iter()
            .find(|at| object_path::get(object, at).is_none());
        let at = missing.unwrap_or(whole);
        (at.to_owned(), object_path::get(object, at).cloned().unwrap_or_default())
    }

    /// Returns the API group; empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api.split_once('/').map_or("", |(group, _)| group)
    }

    fn resource(&self) -> ApiResource {
        let version = self.api.rsplit('/').next().unwrap_or_default();
        ApiResource {
            group: self.group().to_owned(),
            version: version.to_owned(),
            api_version: self.api.clone(),
            kind: self.kind.clone(),
            plural: self.resource.clone(),
        }
    }

    pub(crate) fn api(&self, inner: &Inner) -> Api<DynamicObject> {
        Api::namespaced_with(inner.client.clone(), &self.namespace, &self.resource())
    }

    /// Reads the object; `None` if it does not exist.
    pub(crate) fn now(&self, inner: &Inner) -> Result<Option<Value>, KubeError> {
        let object = inner.run(&format!("read {self}"), async {
            let answer = self.api(inner).get_opt(&self.name).await;
            answer.map_err(|error| inner.failed(&format!("read {self}"), error))
        })?;
        object
            .map(|object| serde_json::to_value(object).map_err(|error| self.odd(&error)))
            .transpose()
    }

    fn odd(&self, error: &dyn std::fmt::Display) -> KubeError {
        KubeError::Request { doing: format!("cannot read {self}"), why: error.to_string() }
    }

    /// Replaces the object; `None` if somebody has changed it since it was read.
    pub(crate) fn replace(
        &self,
        inner: &Inner,
        object: &Value,
    ) -> Result<Option<Value>, KubeError> {
        self.send(inner, object, &PostParams::default())
    }

    /// Computes the result of [`ObjectRef::replace`] without changing anything. If an admission webhook does not
    /// support dry runs, returns the object as sent.
    pub(crate) fn rehearse(
        &self,
        inner: &Inner,
        object: &Value,
    ) -> Result<Option<Value>, KubeError> {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        match self.send(inner, object, &params) {
            Err(KubeError::Refused { why, .. }) if why.contains("dry run") => {
                Ok(Some(object.clone()))
            }
            answer => answer,
        }
    }

    fn send(
        &self,
        inner: &Inner,
        object: &Value,
        params: &PostParams,
    ) -> Result<Option<Value>, KubeError> {
        let object: DynamicObject =
            serde_json::from_value(object.clone()).map_err(|error| self.odd(&error))?;
        let done = inner.run(&format!("change {self}"), async {
            match self.api(inner).replace(&self.name, params, &object).await {
                Ok(object) => Ok(Some(object)),
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
                Err(kube::Error::Api(status))
                    if (400..500).contains(&status.code) && status.code != 401 =>
                {
                    Err(KubeError::Refused {
                        what: format!("a change of {self}"),
                        why: status.message,
                    })
                }
                Err(error) => Err(inner.failed(&format!("change {self}"), error)),
            }
        })?;
        done.map(|object| serde_json::to_value(object).map_err(|error| self.odd(&error)))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_have_to_be_put_back_is_held() {
        let object = json!({"spec": {"a": {"b": 1}, "list": [{"n": "x"}]}, "data": {"f": "text"}});
        let (custom, usual) = ("gateway.envoyproxy.io/v1alpha1", "networking.k8s.io/v1");
        for (api, at, expected, value) in [
            (custom, "/spec/a/b", "/spec/a/b", json!(1)),
            (custom, "/spec/a/c", "/spec/a/c", json!(null)),
            (custom, "/spec/c/d/e", "/spec/c", json!(null)),
            (custom, "/spec/list/[n=x]/v", "/spec/list", json!([{"n": "x"}])),
            (custom, "/spec/list/0/v", "/spec/list", json!([{"n": "x"}])),
            (custom, "/spec/others/[n=x]/v", "/spec/others", json!(null)),
            (custom, "/metadata/annotations/a", "/metadata/annotations/a", json!(null)),
            (usual, "/metadata/annotations/a", "/metadata/annotations/a", json!(null)),
            ("v1", "/data/f#/a/b", "/data/f", json!("text")),
            ("apps/v1", "/spec/c/d", "/spec/c/d", json!(null)),
        ] {
            let reference = ObjectRef {
                api: api.to_owned(),
                kind: "K".to_owned(),
                resource: "ks".to_owned(),
                namespace: "n".to_owned(),
                name: "k".to_owned(),
            };
            let held = reference.held(&object, at);
            assert_eq!(held, (expected.to_owned(), value), "{api} {at}");
        }
    }
}
