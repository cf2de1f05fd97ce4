//! The load engine on real sockets, and its TLS in memory and with nginx.

mod bypassed;
mod kept_open;
mod reactors;
mod requests;
mod stall;
mod tls;
mod tls_hostile;
mod tls_nginx;
mod tls_support;
