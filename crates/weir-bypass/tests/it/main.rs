//! The bypass on the real thing: sockets, namespaces, proxies and the kernel.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod ends;
mod life;
mod namespaces;
mod object;
mod peers;
mod proxies;

use std::net::SocketAddr;

use peers::Place;
use weir_bypass::{Bypass, BypassError, Hop};

/// A bypass of these endpoints, in any namespace. `None`, with the reason printed, where it may not be
/// had.
fn bypass(servers: &[SocketAddr]) -> Option<Bypass> {
    let hops: Vec<Hop> = servers.iter().copied().map(Hop::from).collect();
    or_skipped(Bypass::attach(&hops))
}

/// The same of a place's endpoints alone.
fn bypass_at(place: &Place, servers: &[SocketAddr]) -> Option<Bypass> {
    or_skipped(place.attach(servers))
}

fn or_skipped(attached: Result<Bypass, BypassError>) -> Option<Bypass> {
    attached
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()
}
