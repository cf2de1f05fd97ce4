//! An object of a cluster by its name, read and changed whatever its kind.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::KubeError;
use crate::inner::Inner;
use crate::pointer;

/// What stands for group and version of a setting of a node's kernel, which is no object of the API server.
const SYSCTL: &str = "sysctl";

/// An object of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectRef {
    /// Group and version: `apps/v1`.
    pub api: String,
    /// `Deployment`.
    pub kind: String,
    /// Its kind in addresses: `deployments`.
    pub resource: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
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
    /// A setting of the kernel of a node, by its name with dots. The pod that sets it is made in `namespace`. Without a node it
    /// stands for each that has pods of the proxy.
    pub fn of_node(node: &str, sysctl: &str, namespace: &str) -> ObjectRef {
        ObjectRef {
            api: SYSCTL.to_owned(),
            kind: "Node".to_owned(),
            resource: sysctl.to_owned(),
            namespace: namespace.to_owned(),
            name: node.to_owned(),
        }
    }

    /// Whether it is a setting of the kernel of a node.
    pub fn is_of_node(&self) -> bool {
        self.api == SYSCTL
    }

    /// What a merge patch has to know to put back what stands at a place of the object: where it would say something, and what
    /// stands there. That is the whole list or text that the place is within; and where what leads to the place is missing as
    /// well, the outermost that is, because objects of a definition of its own keep what is empty.
    pub fn held(&self, object: &Value, at: &str) -> (String, Value) {
        let (whole, _) = pointer::whole(at);
        let found = |at: &str| pointer::get(object, at);
        let keeps_empty = self.group().contains('.')
            && !self.group().ends_with(".k8s.io")
            && whole.starts_with("/spec/");
        let ends = whole.match_indices('/').skip(1).map(|(end, _)| end);
        let outer = ends.map(|end| &whole[..end]).filter(|_| keeps_empty);
        let missing = outer.into_iter().find(|at| found(at).is_none());
        let at = missing.unwrap_or(whole);
        (at.to_owned(), found(at).cloned().unwrap_or_default())
    }

    /// The API's group; empty for the first one.
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

    /// The object as it is now; `None`: there is none.
    pub(crate) fn now(&self, inner: &Inner) -> Result<Option<Value>, KubeError> {
        let found = inner.run(&format!("read {self}"), async {
            let found = self.api(inner).get_opt(&self.name).await;
            found.map_err(|error| inner.failed(&format!("read {self}"), error))
        })?;
        let text = |object| serde_json::to_value(object).map_err(|error| self.odd(&error));
        found.map(text).transpose()
    }

    fn odd(&self, error: &dyn std::fmt::Display) -> KubeError {
        KubeError::Request {
            doing: format!("cannot read {self}"),
            why: error.to_string(),
        }
    }

    /// Puts this in the place of what was read, unless somebody has changed that since: `None`.
    pub(crate) fn replace(
        &self,
        inner: &Inner,
        object: &Value,
    ) -> Result<Option<Value>, KubeError> {
        self.send(inner, object, &PostParams::default())
    }

    /// What would come of [`ObjectRef::replace`]: nothing is changed. Where an admission webhook does not let itself be
    /// rehearsed, it is what was sent.
    pub(crate) fn rehearse(
        &self,
        inner: &Inner,
        object: &Value,
    ) -> Result<Option<Value>, KubeError> {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
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
        let text = |object| serde_json::to_value(object).map_err(|error| self.odd(&error));
        done.map(text).transpose()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_have_to_be_put_back_is_held() {
        let of = |api: &str| ObjectRef {
            api: api.to_owned(),
            kind: "K".to_owned(),
            resource: "ks".to_owned(),
            namespace: "n".to_owned(),
            name: "k".to_owned(),
        };
        let object = json!({"spec": {"a": {"b": 1}, "list": [{"n": "x"}]}, "data": {"f": "text"}});
        let (own, usual) = ("gateway.envoyproxy.io/v1alpha1", "networking.k8s.io/v1");
        for (api, at, expected, value) in [
            (own, "/spec/a/b", "/spec/a/b", json!(1)),
            (own, "/spec/a/c", "/spec/a/c", json!(null)),
            (own, "/spec/c/d/e", "/spec/c", json!(null)),
            (own, "/spec/list/[n=x]/v", "/spec/list", json!([{"n": "x"}])),
            (own, "/spec/list/0/v", "/spec/list", json!([{"n": "x"}])),
            (own, "/spec/others/[n=x]/v", "/spec/others", json!(null)),
            (
                own,
                "/metadata/annotations/a",
                "/metadata/annotations/a",
                json!(null),
            ),
            (
                usual,
                "/metadata/annotations/a",
                "/metadata/annotations/a",
                json!(null),
            ),
            ("v1", "/data/f#/a/b", "/data/f", json!("text")),
            ("apps/v1", "/spec/c/d", "/spec/c/d", json!(null)),
        ] {
            let held = of(api).held(&object, at);
            assert_eq!(held, (expected.to_owned(), value), "{api} {at}");
        }
    }
}
