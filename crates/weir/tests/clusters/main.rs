//! Tests of the program as its users run it: Kubernetes: pods, controllers, nodes.

mod controlled;
mod controlled_envoy;
mod controlled_others;
mod controlled_sysctls;
mod controllers;
mod controllers_envoy;
mod deploy;
mod kube_limits;
mod kube_published;
mod kubernetes;
mod kubernetes_doctor;
mod kubernetes_kills;
mod kubernetes_nodes;
mod restore_cluster;
