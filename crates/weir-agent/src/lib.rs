//! Agent: carries out everything that weir does on a host.
//!
//! All work on a host goes through one small message protocol: framed ([`frame`]), versioned ([`hello`]), with one type
//! for each question, which names the type of its answer ([`message`]). `weir agent` serves it on its standard input
//! and output ([`server`]). A place is only a way to reach such a server: a thread of this process ([`local`]), or a
//! process on another host ([`ssh`]). There is no listening port, and weir has no keys of its own: security is the
//! transport's own authentication.

pub mod client;
pub mod frame;
pub mod hello;
pub mod local;
pub mod message;
mod patient;
pub mod server;
mod sha256;
pub mod ssh;

pub use client::{AgentError, Client, Part, Served};
pub use local::HangUp;
pub use message::{Failure, FailureKind};
pub use patient::Patient;
pub use sha256::sums;
pub use weir_host::journal::Restored;

/// Returns the CPU time of the calling thread, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
