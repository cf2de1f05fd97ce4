//! Check that this machine has room for the connections: descriptors and ports.

use std::net::Ipv4Addr;

use weir_load::Flow;
use weir_load::descriptors::{self, make_room};
use weir_model::flow::LoadSpec;
use weir_model::room::{Descriptors, MOST_THREADS};
use weir_report::number;

use crate::failure::Failure;

/// Returns the number of threads for a load: one for each CPU, and more if connections need the descriptors of more.
pub(super) fn threads(load: &LoadSpec, cpus: usize) -> usize {
    let wanted = descriptors(load);
    // What cannot be had is said when the threads are known.
    let limit = make_room(wanted.at_most()).err().unwrap_or(u64::MAX);
    let threads = wanted.threads(limit, cpus as u64);
    let fewest = load.flows().map(|flow| flow.connections).min();
    threads.min(u64::from(fewest.unwrap_or(1))) as usize
}

fn descriptors(load: &LoadSpec) -> Descriptors {
    Descriptors::of_load(load, 1, false, descriptors::tables_can_be_own())
}

/// Checks that every flow has a connection for every thread, and that every thread has descriptors for its share.
pub(super) fn enough_for_each_thread(load: &LoadSpec, threads: usize) -> Result<(), Failure> {
    for connections in load.flows().map(|flow| flow.connections) {
        if (connections as usize) < threads {
            let message = format!("-c {connections}: fewer connections than threads");
            return Err(Failure::input(message).hint(format!("use -t {connections}")));
        }
    }
    let wanted = descriptors(load);
    let needed = wanted.for_each_of(threads as u64);
    make_room(needed).map_err(|limit| {
        let (total, own) = (wanted.of_generator, wanted.own_tables);
        let holder = if own { "a thread" } else { "this process" };
        let message =
            format!("-c {total}: {holder} needs {needed} open descriptors, and may have {limit}");
        let failure = Failure::input(message);
        let enough = wanted.needed_threads(limit);
        if limit <= wanted.of_process || !own {
            failure.hint(format!("raise the limit: ulimit -n {needed}"))
        } else if enough <= MOST_THREADS {
            failure.hint(format!(
                "use -t {enough} or leave -t and --cpus out; or raise the limit: ulimit -n {needed}"
            ))
        } else {
            let room = number::count(MOST_THREADS * (limit - wanted.of_process));
            failure.hint(format!(
                "{MOST_THREADS} threads have room for {room} connections; for more, raise the limit: ulimit -n {needed}"
            ))
        }
    })
}

/// Returns a range of that many loopback addresses.
fn loopback(wanted: u64) -> String {
    let first = Ipv4Addr::LOCALHOST;
    // At most 2^32 connections, and thousands of ports for each address.
    let last = Ipv4Addr::from(u32::from(first) + wanted as u32 - 1);
    format!("{first}-{last}")
}

/// Checks that the kernel has a port for every connection: as many as its range holds, for each pair of own address and
/// server address.
pub(super) fn enough_ports(flow: &Flow) -> Result<(), Failure> {
    let Some(range) = weir_probe::local_port_range() else {
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
        "-c {connections}: there are {} ports for it: net.ipv4.ip_local_port_range is \
         {low} {high}, for each own address and server address",
        number::count(room)
    );
    let wanted = connections.div_ceil(ports);
    let peer = flow.routes[0].peer.ip();
    Err(Failure::input(message).hint(if peer.is_loopback() && peer.is_ipv4() {
        format!("use {wanted} own addresses: --source {}", loopback(wanted))
    } else {
        format!("use {wanted} own addresses (--source), or widen the range")
    }))
}

#[cfg(test)]
mod tests {
    use super::super::addresses::sources;
    use super::*;

    #[test]
    fn the_addresses_that_are_named_are_so_many_and_understood() {
        for wanted in [2, 254, 255, 355, 65_535] {
            let read = sources(&loopback(wanted)).expect("addresses");
            assert_eq!(read.len() as u64, wanted);
        }
    }
}
