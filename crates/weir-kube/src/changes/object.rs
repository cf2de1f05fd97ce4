//! What is changed: an object of the API server, or a setting of a node's kernel that is treated as one.

use serde_json::Value;

use crate::error::KubeError;
use crate::inner::Inner;
use crate::node;
use crate::object_ref::ObjectRef;

/// It as it is now; `None`: there is none.
pub(super) fn now(inner: &Inner, object: &ObjectRef) -> Result<Option<Value>, KubeError> {
    match object.is_of_node() {
        true => node::now(inner, object).map(Some),
        false => object.now(inner),
    }
}

/// What would come of [`replace`]; `None`: somebody has changed it since.
pub(super) fn rehearse(
    inner: &Inner,
    object: &ObjectRef,
    wanted: &Value,
) -> Result<Option<Value>, KubeError> {
    match object.is_of_node() {
        // The kernel alone knows whether it takes a value.
        true => Ok(Some(wanted.clone())),
        false => object.rehearse(inner, wanted),
    }
}

/// Puts what is wanted in the place of what was read, unless somebody has changed that since: `None`.
pub(super) fn replace(
    inner: &Inner,
    object: &ObjectRef,
    (read, wanted): (&Value, &Value),
) -> Result<Option<Value>, KubeError> {
    match object.is_of_node() {
        true => node::replace(inner, object, (read, wanted)),
        false => object.replace(inner, wanted),
    }
}
