//! The origin server: the backend of a trial, and never its limit.
//!
//! It answers every request with the same response, created before the first connection, so that measurements in front
//! of it concern the gateway. It can also be slow in ways whose effect on response times is known in closed form: a
//! delay with a known distribution ([`OriginConfig::delay`]), and scripted stalls ([`Stall`]) during which the whole
//! server stands still, as in a garbage collection.
//!
//! # Protocols
//! Gateways use HTTP/1.1, HTTP/2 without TLS, gRPC, FastCGI, uwsgi, SCGI or memcached's text protocol. The protocol is
//! detected by the first bytes of a connection, so every listener answers all of them.
//!
//! # Threads
//! One thread per given CPU, each with an epoll instance, a listener of its own for every address (`SO_REUSEPORT`
//! spreads connections over several threads) and its own connections. Nothing is shared but the response, the time of
//! the first request, and counters that only one thread writes.
//!
//! # Short connections
//! A gateway with default settings opens a connection for each request (HTTP/1.0, close). Such a connection costs four
//! system calls here if its request is there by the time it is accepted: accept4, recv, send, close. It is added to
//! epoll only if it has to wait.

mod config;
mod connection;
mod content;
mod counters;
mod delay;
mod listener;
mod protocols;
mod responses;
mod server;
mod slab;
mod stall;
mod worker;

pub use config::{OriginConfig, Stall};
pub use content::Content;
pub use counters::Counters;
pub use server::Origin;
