//! What of a host's and a proxy's settings stands against a load, found by reading alone.
//!
//! [`gather`] reads the host and the proxy into [`Facts`]; it writes nothing, opens no port and runs
//! no program but `nginx -V`, of a program of root's or one's own. [`examine`] is a pure function of those facts: every rule in
//! `rules/` turns figures into a [`Finding`] with its evidence, the mechanism, and the commands that
//! would change it.
//!
//! nginx is not asked what it understands (`nginx -T`): to test a configuration it creates the log
//! files, the folders for temporary files and the pid file, and listens at every port of the
//! configuration for a moment. So the files are read as nginx reads them, includes and all
//! ([`configuration`]).
//!
//! Of a Kubernetes cluster `weir-kube` reads the facts, and [`examine_cluster`] judges them.

mod commands;
pub mod configuration;
mod examination;
mod facts;
mod finding;
mod gather;
mod rules;
mod text;

pub use examination::{Examination, FORMAT, examine, examine_cluster};
pub use facts::{
    Asked, Cgroup, Facts, LimitLine, Listener, Process, Proxy, SysctlLine, UnitLimit, Unread,
};
pub use finding::{Finding, Room, Severity};
pub use gather::{GatherError, Request, gather};
pub use text::text;
