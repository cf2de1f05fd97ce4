//! The load engine on real sockets, and its TLS in memory.

#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod bypassed;
mod reactors;
mod schedules;
mod stall;
mod support;
mod tls;
mod tls_hostile;
