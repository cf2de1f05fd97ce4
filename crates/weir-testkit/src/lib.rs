//! Fixtures that the tests of several crates share, each behind a feature: what a feature needs is built for its users
//! alone.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "what a test cannot have ends the test"
)]
#![allow(clippy::print_stderr, reason = "what is skipped says so")]
#![allow(clippy::new_without_default, reason = "a fixture is made, not a default")]

#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "doctor")]
pub mod doctor_host;
#[cfg(feature = "bypass")]
pub mod peers;
#[cfg(feature = "ssh")]
pub mod ssh;
#[cfg(feature = "tls")]
pub mod tls;

#[cfg(feature = "weir")]
pub mod faulty;
#[cfg(feature = "weir")]
pub mod foreign;
#[cfg(feature = "weir")]
pub mod lan;
#[cfg(feature = "weir")]
pub mod loads;
#[cfg(feature = "weir")]
pub mod origin;
#[cfg(feature = "weir")]
pub mod own;
#[cfg(feature = "weir")]
pub mod own_cases;
#[cfg(feature = "weir")]
pub mod program;
#[cfg(feature = "weir")]
pub mod prometheus;
#[cfg(feature = "weir")]
pub mod sandbox;
#[cfg(feature = "weir")]
pub mod schema;
#[cfg(feature = "weir")]
pub mod secure;
#[cfg(feature = "weir")]
pub mod stand_in;

use std::path::PathBuf;

/// Returns the folder for files of tests, which cargo names to programs of tests only when they are compiled
/// (`CARGO_TARGET_TMPDIR`).
pub fn files_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.ancestors().nth(3).unwrap().join("tmp");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
