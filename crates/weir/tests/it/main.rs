//! Tests of the program as its users run it: the real binary, real sockets, and the real nginx.
//!
//! The tests check what users and scripts rely on: results alone on standard output, one clear line and a hint on
//! standard error, exit codes, run folders, and that nothing is left running. No test depends on speed; a test that
//! depends on an event waits for it.

mod agent;
mod capacity;
mod capacity_refused;
mod config;
mod controlled;
mod controlled_envoy;
mod controlled_others;
mod controlled_sysctls;
mod controllers;
mod controllers_envoy;
mod corpus;
mod deploy;
mod docs;
mod doctor;
mod doctor_commands;
mod doctor_trust;
mod fail_if;
mod faulty;
mod install;
mod kills;
mod kube_foreign;
mod kube_limits;
mod kube_published;
mod kube_stand_in;
// A cluster for tests, shared with those of the crate that reaches clusters; those use all of it.
#[allow(dead_code, clippy::unwrap_used)]
#[path = "../../../weir-kube/tests/it/support.rs"]
mod kube_support;
mod kubernetes;
mod kubernetes_doctor;
mod kubernetes_kills;
mod kubernetes_nodes;
mod limiter;
mod load;
mod load_calibrate;
mod load_connections;
mod load_endless;
mod load_faults;
mod load_flows;
mod load_peers;
mod load_punctual;
mod load_refused;
mod load_requests;
mod load_tls;
mod load_tls_faults;
mod load_tls_refused;
mod origin;
mod other_tools;
mod parameters;
mod patch;
mod places;
mod places_generators;
mod places_lies;
mod places_refused;
mod places_support;
mod planted;
mod program;
mod progress;
mod progress_view;
mod report;
mod restore;
mod restore_cluster;
mod run;
mod run_alone;
mod run_bursts;
mod run_bypass;
mod run_capacity;
mod run_cells;
mod run_flows;
mod run_kernel;
mod run_launch;
mod run_loads;
mod run_own;
mod run_own_asked;
mod run_own_cases;
mod run_own_clients;
mod run_own_copies;
mod run_own_refused;
mod run_own_sockets;
mod run_proxies;
mod run_refused;
mod run_stopped;
mod run_times;
mod run_until;
mod sandbox;
mod schema;
mod screen;
mod secure;
// A host that ssh reaches, shared with the tests of the crate that does the reaching; those use all of it.
#[allow(dead_code)]
#[path = "../../../weir-agent/tests/it/ssh_support.rs"]
mod ssh_support;
mod strangers;
mod studies;
mod taken;
mod tidy;
