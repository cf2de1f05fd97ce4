//! Protection of servers on public addresses: a load at somebody else's expense needs the user's confirmation.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use weir_model::flow::{FlowSpec, LoadSpec};
use weir_model::load::{Lifetime, Overflow, Spacing};
use weir_model::study::{ExternalSpec, ProxySpec, Study};
use weir_record::HEADER_FILE;

use super::report;
use crate::args::LabArgs;
use crate::failure::Failure;

/// Requests and new connections per second, requests at once, and connections that any server may be sent without a
/// word: a page with its pictures is as much.
const UNASKED: f64 = 100.0;

/// Refuses to resume a run whose load goes to a public address, unless this is confirmed again: its folder may come
/// from anywhere. A folder without a run is left to the code that resumes it.
pub(super) fn check_folder(folder: &Path, args: &LabArgs) -> Result<(), Failure> {
    if !folder.join(HEADER_FILE).exists() {
        return Ok(());
    }
    let mut study = report::read(folder)?.header.study;
    // Proxies pass all of it on.
    check_permission(hosts(study.origin.address), args.yes_this_is_mine)?;
    // What was recorded without a limit of new connections goes on without one.
    let flows = study.loads.iter_mut().flat_map(LoadSpec::flows_mut);
    for flow in flows.filter(|flow| flow.lifetime != Lifetime::Request) {
        flow.connect_rate.get_or_insert(f64::INFINITY);
    }
    check(&mut study, args)
}

/// Refuses a study whose load goes to a public address that nobody has spoken for; what is little stays so ([`permit`]).
pub(super) fn check(study: &mut Study, args: &LabArgs) -> Result<(), Failure> {
    let proxies = study.arms.iter().map(|arm| study.proxy_of(arm));
    // Connections to all arms stay open, whoever has the load.
    let hosts: Vec<SocketAddr> = proxies.flat_map(|proxy| hosts(addresses_of(proxy))).collect();
    if !study.capacity.is_empty() {
        return check_permission(hosts, args.yes_this_is_mine);
    }
    for load in &mut study.loads {
        let flows = load.flows_mut().map(|flow| (flow, &*hosts)).collect();
        permit(flows, args.yes_this_is_mine)?;
    }
    Ok(())
}

/// Addresses at which an arm may find its proxy that weir does not start: those of all its controller's instances.
fn addresses_of(proxy: &ProxySpec) -> impl Iterator<Item = SocketAddr> {
    let beside = proxy.controller.iter().flat_map(|controller| &controller.beside);
    proxy.external.iter().chain(beside.map(|target| &target.at)).flat_map(ExternalSpec::addresses)
}

/// The public ones of a server's addresses, one of each host, whatever its ports.
pub(super) fn hosts(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let by_ip: BTreeMap<IpAddr, SocketAddr> = addresses
        .into_iter()
        .filter(|address| is_public(address.ip()))
        .map(|address| (address.ip().to_canonical(), address))
        .collect();
    by_ip.into_values().collect()
}

/// Refuses the flows of a load that together send a public host more than a little, unless its owner was spoken for.
/// Each has its hosts ([`hosts`]), one as often as it has arms there. What is little stays so whatever the servers do:
/// new connections get a limit, since a server that closes connections has others opened.
pub(super) fn permit(
    flows: Vec<(&mut FlowSpec, &[SocketAddr])>,
    is_agreed: bool,
) -> Result<(), Failure> {
    let mut sums: BTreeMap<IpAddr, (f64, SocketAddr)> = BTreeMap::new();
    for (flow, hosts) in &flows {
        for &host in *hosts {
            let sum = sums.entry(host.ip().to_canonical()).or_insert((0.0, host));
            sum.0 += most_in_a_second(flow);
        }
    }
    let Some(&(sum, host)) = sums.values().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Ok(());
    };
    if is_agreed || sum > UNASKED {
        return check_permission([host], is_agreed);
    }
    for (flow, hosts) in flows {
        // What a server has held up would come all at once afterwards.
        let is_bounded = flow.limit.is_some_and(|limit| limit as f64 <= UNASKED);
        if !hosts.is_empty() && flow.rate().is_some() && !is_bounded {
            flow.overflow = Overflow::Drop;
        }
        if !hosts.is_empty() && flow.lifetime != Lifetime::Request {
            let most = most_in_a_second(flow);
            let share = (UNASKED * most / sum).floor();
            flow.connect_rate.get_or_insert(share.max(most));
        }
    }
    Ok(())
}

/// Returns what a flow sends in a second at most: the most of requests, requests at once, connections, and new
/// connections.
fn most_in_a_second(flow: &FlowSpec) -> f64 {
    let connections = f64::from(flow.connections);
    let requests = match (flow.limit, flow.spacing) {
        _ if flow.is_held() => 0.0,
        // However fast they come.
        (Some(limit), _) if limit as f64 <= UNASKED => limit as f64,
        (_, Spacing::Burst { size }) => {
            flow.rate().map_or(f64::INFINITY, |rate| rate.max(size.into()))
        }
        _ => flow.rate().unwrap_or(f64::INFINITY),
    };
    let renewed = match flow.lifetime {
        Lifetime::Time(ns) => connections * 1e9 / ns as f64,
        // Not without a request.
        Lifetime::Kept | Lifetime::Request | Lifetime::Requests(_) => 0.0,
    };
    let limit = flow.connect_rate.unwrap_or_default();
    requests.max(connections).max(renewed).max(limit)
}

/// Refuses public addresses unless `--yes-this-is-mine` is given.
pub(super) fn check_permission(
    all: impl IntoIterator<Item = SocketAddr>,
    is_agreed: bool,
) -> Result<(), Failure> {
    let public = all.into_iter().find(|address| is_public(address.ip()));
    match public.filter(|_| !is_agreed) {
        None => Ok(()),
        Some(address) => Err(Failure::input(format!(
            "{address} is a public address, and this sends it more than {UNASKED} requests/s, requests at once, connections, \
             or new connections/s"
        ))
        .hint("if the server is yours, or its owner agrees, add --yes-this-is-mine")),
    }
}

/// Returns true if an address can belong to somebody else: not loopback, a private network (RFC 1918, RFC 4193), the
/// link (RFC 3927, RFC 4291 §2.5.6), or an address of this machine.
fn is_public(address: IpAddr) -> bool {
    let is_private = match address.to_canonical() {
        IpAddr::V4(ip) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        IpAddr::V6(ip) => {
            let is_near = ip.is_unique_local() || ip.is_unicast_link_local();
            ip.is_loopback() || is_near || ip.is_unspecified()
        }
    };
    !is_private && !weir_hosts::is_own(address)
}

#[cfg(test)]
mod tests {
    use weir_model::flow::ArrivalsSpec;

    use super::*;

    fn flow(connections: u32, rate: f64, lifetime: Lifetime) -> FlowSpec {
        FlowSpec { lifetime, ..FlowSpec::new(connections, ArrivalsSpec::Constant(rate)) }
    }

    /// The limit of new connections that a flow has where it is little; an error where it is not.
    fn limit(flow: &mut FlowSpec, arms: &[&str]) -> Result<Option<f64>, String> {
        let hosts: Vec<SocketAddr> = arms
            .iter()
            .map(|arm| arm.parse().unwrap())
            .flat_map(|address| hosts([address]))
            .collect();
        let permitted = permit(vec![(&mut *flow, &hosts)], false);
        permitted.map(|()| flow.connect_rate).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn all_that_reaches_a_public_host_counts_and_what_is_little_stays_so() {
        const MS: u64 = 1_000_000;
        let (one, ports) = (["192.0.2.7:80"], ["192.0.2.7:80", "[::ffff:192.0.2.7]:81"]);
        let limited = |rate| FlowSpec { connect_rate: Some(rate), ..flow(10, 1.0, Lifetime::Kept) };
        /// A flow, its addresses, and the rate of its connections if it is let through.
        type Row<'a> = (FlowSpec, &'a [&'a str], Option<Option<f64>>);
        #[rustfmt::skip]
        let rows: [Row<'_>; 16] = [
            (flow(50, 50.0, Lifetime::Kept), &one, Some(Some(100.0))),
            (flow(1, 100.0, Lifetime::Requests(1)), &one, Some(Some(100.0))),
            (flow(1, 101.0, Lifetime::Kept), &one, None),
            (flow(101, 1.0, Lifetime::Kept), &one, None),
            (flow(100, 1.0, Lifetime::Time(1000 * MS)), &one, Some(Some(100.0))),
            (flow(100, 1.0, Lifetime::Time(999 * MS)), &one, None),
            (flow(100, 1.0, Lifetime::Time(MS)), &one, None),
            (flow(100, 1.0, Lifetime::Time(MS)), &["10.0.0.7:80"], Some(None)),
            // The rate of its connections is that of its requests.
            (flow(100, 100.0, Lifetime::Request), &one, Some(None)),
            (limited(7.0), &one, Some(Some(7.0))),
            (limited(101.0), &one, None),
            // Arms, the A/A arm among them.
            (flow(50, 50.0, Lifetime::Kept), &ports, Some(Some(50.0))),
            (flow(51, 50.0, Lifetime::Kept), &ports, None),
            (flow(50, 1.0, Lifetime::Time(900 * MS)), &ports, None),
            (flow(100, 1.0, Lifetime::Kept), &["192.0.2.7:80", "192.0.2.8:80"], Some(Some(100.0))),
            (flow(100, 1.0, Lifetime::Kept), &["192.0.2.7:80", "10.0.0.7:80"], Some(Some(100.0))),
        ];
        for (mut flow, arms, expected) in rows {
            let described = format!("{flow:?} {arms:?}");
            assert_eq!(limit(&mut flow, arms).ok(), expected, "{described}");
            let is_limited = expected.is_some() && !arms.contains(&"10.0.0.7:80");
            assert!(!is_limited || flow.overflow == Overflow::Drop, "{described}");
            // Also of a run that goes on.
            assert_eq!(limit(&mut flow, arms).ok(), expected, "{described}");
        }
    }

    #[test]
    fn only_addresses_of_others_are_public() {
        for (text, expected) in [
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("::1", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:192.0.2.7", true),
            ("192.0.2.7", true),
            ("2001:db8::7", true),
            // Shared by a provider's customers (RFC 6598).
            ("100.64.0.1", true),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }
}
