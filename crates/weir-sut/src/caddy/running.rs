//! Counters of a Caddy that weir did not start.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use super::counters::parse;
use crate::observed::{Offers, Peer, Process, Running, StatusEndpoint};

/// The port of its administration by default.
const ADMIN: u16 = 2019;

pub(super) const RUNNING: Running = Running {
    find: |process, _| {
        Ok(Offers {
            error_log: None,
            logs_warnings: None,
            settings: BTreeMap::new(),
            idle: Vec::new(),
            endpoint: metrics(process),
        })
    },
    needs_files: false,
    sampled: |ask| ask("").map(|text| parse(&text)),
};

/// Finds its counters, unless it was told to have its administration elsewhere.
fn metrics(process: &Process) -> Result<StatusEndpoint, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ADMIN));
    let there = weir_probe::listening_at(address);
    match there.iter().any(|pid| process.all.contains(pid)) {
        true => {
            let host = format!("localhost:{ADMIN}");
            Ok(StatusEndpoint::Http(
                Peer::Tcp(address),
                host,
                "/metrics".to_owned(),
            ))
        }
        false => Err(format!("its administration does not listen at {address}")),
    }
}
