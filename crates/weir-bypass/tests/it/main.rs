//! Tests of the bypass with real sockets, namespaces, proxies and the kernel.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod ends;
mod life;
mod namespaces;
mod object;
mod proxies;

use std::net::SocketAddr;

use weir_bypass::{Bypass, BypassError, Hop};
use weir_testkit::peers::Topology;

/// Attaches a bypass of these endpoints in any namespace. Returns `None`, with the reason printed, if that is not
/// permitted.
fn bypass(servers: &[SocketAddr]) -> Option<Bypass> {
    let hops: Vec<Hop> = servers.iter().copied().map(Hop::from).collect();
    or_skipped(Bypass::attach(&hops))
}

/// Attaches a bypass of these endpoints in a topology's namespaces alone; `None` as for [`bypass`].
fn bypass_at(topology: &Topology, servers: &[SocketAddr]) -> Option<Bypass> {
    or_skipped(topology.attach(servers))
}

fn or_skipped(attached: Result<Bypass, BypassError>) -> Option<Bypass> {
    attached.inspect_err(|error| eprintln!("skipped: {error}")).ok()
}
