//! The hosts of a run.
//!
//! Generator, proxies and origin server each have a host: this process, one reached over ssh, a pod, or a simulated
//! one. [`Hosts`] sends all of them the same messages (weir-agent). Before anything is measured, this crate also checks
//! what would spoil a run or could not be carried out: CPUs (`cpus`), descriptors, ports and disk space (`preflight`),
//! the network (`network`), links and clocks (`surroundings`), and copies of users' configurations (`asked`,
//! `left_out`).

pub mod asked;
pub mod cpus;
mod error;
pub mod host;
pub mod hosts;
pub mod left_out;
pub mod network;
pub mod options;
pub mod pod_samples;
pub mod pods;
pub mod preflight;
pub mod start;
pub mod surroundings;

pub use error::HostError;
pub use host::{Host, HostEvent};
pub use hosts::{Facts, Hosts, facts, is_own};
pub use options::{Options, PlaceSpec, Role};
pub use pods::Pods;
