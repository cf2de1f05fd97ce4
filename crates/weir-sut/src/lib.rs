//! Proxies under test: what all of them have in common. Each has a crate of its own (`weir-nginx` and its siblings) that
//! implements [`Proxy`]; `weir-proxies` lists them.
//!
//! Life of a proxy:
//!
//! 1. `weir_proxies::find` looks for the program and reads its version;
//! 2. `Proxy::write` writes a configuration of weir's own, or a changed copy of the user's, into a prefix of its own
//!    under the run's [`WorkFolder`] — never the system's service, files or logs;
//! 3. `Proxy::check` lets the program itself check the configuration;
//! 4. [`start`] starts the program through a [`Launcher`], which pins it, limits it and ties its life to weir's, and
//!    returns a [`RunningProxy`] that is stopped when it is dropped;
//! 5. [`Proxy::effective`] returns the configuration as the program understood it, [`Proxy::counters`] its counters.
//!
//! This crate does not generate load.

pub mod admin;
pub mod certificate;
pub mod configuration;
mod content;
mod ending;
mod error;
pub mod installed;
pub mod language;
pub mod launch;
pub mod observed;
mod orphans;
pub mod own;
mod own_counters;
mod placed;
mod port;
mod processes;
pub mod proxy;
pub mod request_line;
mod request_log;
pub mod route_match;
mod running;
mod shown;
mod site;
mod task;
mod through;
pub mod timed;
pub mod trust;
pub mod user;
mod work_folder;

pub use certificate::{Certificate, CertificateKind, Certificates, KeyKind};
pub use configuration::{Configuration, Patch};
pub use ending::is_stopped;
pub use error::SutError;
pub use installed::Installed;
pub use language::Language;
pub use launch::{Launch, LaunchError, Launcher, launch_main};
pub use observed::ObservedProxy;
pub use own_counters::OwnCounters;
pub use placed::{PlacedCopy, vanished};
pub use port::{LOWEST_PORT, free_port, free_ports};
pub use proxy::{Effective, Proxy, Started, start};
pub use request_line::LoggedRequest;
pub use request_log::RequestLog;
pub use route_match::RequestRoute;
pub use running::RunningProxy;
pub use site::{Site, TlsListener, UserConfiguration};
pub use task::Task;
pub use through::launcher_missing;
pub use weir_configuration::Ask;
pub use work_folder::WorkFolder;
