//! Access to a changed object: an object of the API server, or a setting of a node's kernel that is treated as one.

use serde_json::Value;
use weir_kube::KubeError;
use weir_kube::ObjectRef;
use weir_kube::inner::Inner;

use crate::node;

/// Reads the object; `None` if it does not exist.
pub(super) fn now(inner: &Inner, object: &ObjectRef) -> Result<Option<Value>, KubeError> {
    if object.is_of_node() { node::now(inner, object).map(Some) } else { object.now(inner) }
}

/// Computes the result of [`replace`] without changing anything; `None` if somebody has changed the object since it was
/// read.
pub(super) fn rehearse(
    inner: &Inner,
    object: &ObjectRef,
    wanted: &Value,
) -> Result<Option<Value>, KubeError> {
    if object.is_of_node() {
        // The kernel alone knows whether it takes a value.

        Ok(Some(wanted.clone()))
    } else {
        object.rehearse(inner, wanted)
    }
}

/// Replaces the object; `None` if somebody has changed it since it was read.
pub(super) fn replace(
    inner: &Inner,
    object: &ObjectRef,
    (read, wanted): (&Value, &Value),
) -> Result<Option<Value>, KubeError> {
    if object.is_of_node() {
        node::replace(inner, object, (read, wanted))
    } else {
        object.replace(inner, wanted)
    }
}
