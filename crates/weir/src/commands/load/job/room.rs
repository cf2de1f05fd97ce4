//! Whether this machine has room for the connections: descriptors and ports.

use weir_load::descriptors::{self, make_room};
use weir_load::{Flow, ports};

use crate::failure::Failure;

/// Descriptors that a thread needs beside its connections.
const OTHERS: u64 = 64;

/// Threads that it takes for every connection to have a descriptor, when each has a table of its own.
pub(super) fn threads_for(connections: u32) -> usize {
    let wanted = u64::from(connections) + OTHERS;
    // What cannot be had is said when the threads are known.
    let limit = make_room(wanted).err().unwrap_or(wanted);
    if limit >= wanted || limit <= OTHERS || !descriptors::tables_can_be_own() {
        return 1;
    }
    u64::from(connections).div_ceil(limit - OTHERS) as usize
}

/// Every flow has connections for every thread, and every thread has descriptors for its share.
pub(super) fn enough_for_each_thread(flows: &[u32], threads: usize) -> Result<(), Failure> {
    for &connections in flows {
        if (connections as usize) < threads {
            let message = format!("-c {connections}: fewer connections than threads");
            return Err(Failure::input(message).hint(format!("use -t {connections}")));
        }
    }
    let total: u64 = flows
        .iter()
        .map(|&connections| u64::from(connections))
        .sum();
    let own = descriptors::tables_can_be_own();
    let each = match own {
        true => total.div_ceil(threads as u64) + flows.len() as u64,
        false => total,
    };
    let needed = each + OTHERS;
    make_room(needed).map_err(|limit| {
        let who = if own { "a thread" } else { "this process" };
        let message =
            format!("-c {total}: {who} needs {needed} open descriptors, and may have {limit}");
        let failure = Failure::input(message);
        match limit > OTHERS && own {
            true => failure.hint(format!(
                "use -t {} or leave -t and --cpus out; or raise the limit: ulimit -n {needed}",
                total.div_ceil(limit - OTHERS)
            )),
            false => failure.hint(format!("raise the limit: ulimit -n {needed}")),
        }
    })
}

/// The kernel has a port for every connection: as many as its range holds, for each pair of own
/// address and server address.
pub(super) fn enough_ports(flow: &Flow) -> Result<(), Failure> {
    let Some(range) = ports::range() else {
        return Ok(());
    };
    let ports = u64::from(range.end() - range.start()) + 1;
    let room = ports * flow.routes.len() as u64;
    let connections = u64::from(flow.connections);
    if connections <= room {
        return Ok(());
    }
    let (low, high) = (range.start(), range.end());
    let message = format!(
        "-c {connections}: there are {room} ports for it: net.ipv4.ip_local_port_range is \
         {low} {high}, for each own address and server address"
    );
    let wanted = connections.div_ceil(ports);
    let peer = flow.routes[0].peer.ip();
    Err(
        Failure::input(message).hint(match peer.is_loopback() && peer.is_ipv4() {
            true => format!("use {wanted} own addresses: --source 127.0.0.1-127.0.0.{wanted}"),
            false => format!("use {wanted} own addresses (--source), or widen the range"),
        }),
    )
}
