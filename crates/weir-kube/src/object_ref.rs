//! An object of a cluster by its name, read and changed independently of its kind.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::KubeError;
use crate::inner::Inner;

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

    /// Returns the API group; empty for the core group.
    pub fn group(&self) -> &str {
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

    pub fn api(&self, inner: &Inner) -> Api<DynamicObject> {
        Api::namespaced_with(inner.client.clone(), &self.namespace, &self.resource())
    }

    /// Reads the object; `None` if it does not exist.
    pub fn now(&self, inner: &Inner) -> Result<Option<Value>, KubeError> {
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
    pub fn replace(&self, inner: &Inner, object: &Value) -> Result<Option<Value>, KubeError> {
        self.send(inner, object, &PostParams::default())
    }

    /// Computes the result of [`ObjectRef::replace`] without changing anything. If an admission webhook does not
    /// support dry runs, returns the object as sent.
    pub fn rehearse(&self, inner: &Inner, object: &Value) -> Result<Option<Value>, KubeError> {
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
