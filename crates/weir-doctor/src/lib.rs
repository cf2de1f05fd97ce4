//! Finds the settings of a host and its proxy that a load would exceed, by reading alone.
//!
//! [`gather`] reads the host and the proxy into [`Facts`]; it writes nothing, opens no port and runs no program but
//! `nginx -V`, and only if the program belongs to root or to the caller. [`examine`] is a pure function of those facts:
//! every rule in `rules/` turns figures into a [`Finding`] with its evidence, the mechanism, and the commands that
//! would change it.
//!
//! `nginx -T` is not used to dump the configuration: to test one, nginx creates the log files, the folders for
//! temporary files and the pid file, and listens at every port of the configuration for a moment. Instead the files are
//! read as nginx reads them, includes and all ([`configuration`]).
//!
//! Facts of a Kubernetes cluster are read by `weir-kube` and judged by [`examine_cluster`].

mod commands;
pub mod configuration;
mod evidence;
mod examination;
mod facts;
mod finding;
mod gather;
mod problem;
mod rules;
mod shell;

pub use evidence::{
    Calculation, ClusterEvidence, Evidence, FileEvidence, HostEvidence, LocalPorts, NodeTable,
};
pub use examination::{Examination, FORMAT, examine, examine_cluster};
pub use facts::{
    Cgroup, Facts, FileLine, LimitOrigin, Listener, LoadDemand, Process, Proxy, Reading,
    SysctlLine, UnitLimit, Unread,
};
pub use finding::{Finding, Room, Severity};
pub use gather::{GatherError, Request, gather};
pub use problem::{
    AdviceProblem, ClusterProblem, CpuProblem, DescriptorProblem, HttpProblem, PortProblem,
    Problem, QueueProblem, SysctlFileProblem, TableProblem,
};
