//! Proxies under test: their configuration, their processes, and what they are really running with.
//!
//! The way of a proxy through this crate:
//!
//! 1. [`Nginx::find`] looks for the program and asks its version;
//! 2. [`Nginx::write_configuration`] writes a configuration of weir's own into a prefix of its own
//!    under the run's [`WorkFolder`] — never the system's service, files or logs;
//! 3. [`Nginx::check`] lets the program itself say whether it accepts it, and
//!    [`Nginx::effective`] what it understood;
//! 4. [`Nginx::start`] starts it through a [`Launcher`], which pins it, bounds it and ties its life
//!    to weir's, and gives a [`RunningProxy`] that is stopped when it is dropped.
//!
//! What a parameter is called in a proxy's own language is data (`weir-parameters`); how such a
//! configuration is laid out, and how the program is run, is here. This crate knows no load.

mod certificate;
mod error;
pub mod launch;
pub mod nginx;
mod orphans;
mod port;
mod running;
mod work_folder;

pub use certificate::Certificate;
pub use error::SutError;
pub use launch::{Launch, LaunchError, Launcher, launch_main};
pub use nginx::{Configuration, Effective, Nginx, Site, TlsListener};
pub use port::{free_port, free_ports};
pub use running::RunningProxy;
pub use work_folder::WorkFolder;
