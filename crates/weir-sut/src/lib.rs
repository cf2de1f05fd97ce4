//! Proxies under test: their configuration, their processes, and what they are really running with.
//!
//! The way of a proxy through this crate:
//!
//! 1. [`find`] looks for the program and asks its version;
//! 2. `Proxy::write` writes a configuration of weir's own, or a changed copy of the user's, into a
//!    prefix of its own under the run's [`WorkFolder`] — never the system's service, files or logs;
//! 3. `Proxy::check` lets the program itself say whether it accepts it;
//! 4. [`start`] starts it through a [`Launcher`], which pins it, bounds it and ties its life
//!    to weir's, and gives a [`RunningProxy`] that is stopped when it is dropped;
//! 5. [`Proxy::effective`] says what it understood, [`Proxy::counters`] what it counts.
//!
//! One module for each proxy implements [`Proxy`].
//!
//! What a parameter is called in a proxy's own language is data (`weir-parameters`); how such a
//! configuration is laid out, and how the program is run, is here. This crate knows no load.

pub mod admin;
mod caddy;
mod certificate;
mod configuration;
mod content;
mod envoy;
mod error;
mod haproxy;
mod httpd;
mod installed;
mod known;
mod language;
pub mod launch;
mod logged;
mod met;
mod nginx;
mod observed;
mod orphans;
mod own;
mod own_counters;
mod placed;
mod port;
mod processes;
mod proxy;
mod request_log;
mod running;
mod shown;
mod site;
mod task;
mod through;
mod timed;
pub mod trust;
mod user;
mod work_folder;

pub use certificate::{Certificate, CertificateKind, Certificates, KeyKind};
pub use configuration::{Configuration, Patch};
pub use error::SutError;
pub use installed::Installed;
pub use known::{find, locate, observe, told};
pub use language::Language;
pub use launch::{Launch, LaunchError, Launcher, launch_main};
pub use logged::LoggedRequest;
pub use met::Meeting;
pub use observed::ObservedProxy;
pub use own_counters::OwnCounters;
pub use placed::{PlacedCopy, vanished};
pub use port::{LOWEST_PORT, free_port, free_ports};
pub use proxy::{Effective, Proxy, Started, start};
pub use request_log::RequestLog;
pub use running::RunningProxy;
pub use site::{Own, Site, TlsListener};
pub use task::Task;
pub use through::launcher_missing;
pub use weir_configuration::Ask;
pub use work_folder::WorkFolder;
