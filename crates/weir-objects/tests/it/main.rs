//! Tests against a real etcd and a real API server, which `scripts/kube` starts in namespaces of their own.

#![allow(clippy::unwrap_used)]

mod api;
mod changes;
