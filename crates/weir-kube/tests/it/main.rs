//! Tests against a real etcd and a real API server, which `scripts/kube` starts in namespaces of their own.

#![allow(clippy::unwrap_used)]

mod api;
mod changes;
// Shared with the tests of weir itself, which use the rest.
#[allow(dead_code)]
mod support;
