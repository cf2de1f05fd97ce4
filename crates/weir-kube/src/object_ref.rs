//! An object of a cluster by its name, read and changed whatever its kind.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::KubeError;
use crate::inner::Inner;

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
