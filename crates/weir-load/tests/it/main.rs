//! The load engine on real sockets, and its TLS in memory and with nginx.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod bypassed;
mod kept_open;
mod reactors;
mod requests;
mod stall;
mod support;
mod tls;
mod tls_hostile;
mod tls_nginx;
mod tls_support;
