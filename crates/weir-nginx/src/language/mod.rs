//! Configurations of nginx.
//!
//! [`read`] reads the main file and all files that it includes, [`change`] puts settings into force in them, [`adapt`]
//! makes a copy fit for a trial. [`listeners`] returns the addresses on which they listen, [`asked`] the answers to a
//! load, and [`replaced`] the parts of them that a copy replaces. All except [`read`] work on text alone and touch no
//! file.

mod access;
mod adapt;
mod asked;
mod by_name;
mod change;
mod context;
mod listen;
mod location;
mod lua;
mod origin;
mod paths;
pub mod pattern;
mod place;
mod plain;
mod read;
mod replaced;
mod rewrite;
pub mod syntax;
mod targets;
mod value;
mod variables;
mod view;

pub use adapt::adapt;
pub use asked::asked;
pub use change::change;
pub use listen::listeners;
pub use plain::{Plain, directives, expanded};
pub use read::read;
pub use replaced::{certificates, replaced};
