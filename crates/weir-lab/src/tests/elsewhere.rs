//! Tests with agents that report an address of somebody else: only addresses that the user has named get load.

use std::net::SocketAddr;

use weir_hosts::HostError;
use weir_model::study::{ExternalSpec, NetworkKind, ProxyKind};
use weir_simulation::{Model, ReportedAddresses};

use super::bench::Bench;
use crate::LabError;

/// Runs a study on a host whose agent reports `told`; returns the refused address and the expected one.
fn refused(told: ReportedAddresses, change: impl Fn(&mut Bench)) -> Option<(SocketAddr, String)> {
    let model = Model { told, ..Model::default() };
    let mut bench = Bench::new(&["stock", "same"], 4, model);
    change(&mut bench);
    match bench.run(&mut |_, _| {}) {
        Ok(_) => None,
        Err(LabError::Host(HostError::Elsewhere { told, named, .. })) => Some((told, named)),
        Err(other) => panic!("{other}"),
    }
}

fn listen(at: SocketAddr) -> ReportedAddresses {
    ReportedAddresses { listen: Some(at), ..ReportedAddresses::default() }
}

fn on_loopback(bench: &mut Bench) {
    bench.study.network.kind = NetworkKind::Loopback;
}

fn external(bench: &mut Bench) {
    bench.study.proxy.kind = ProxyKind::External;
    let address = "127.0.0.1:20000".parse().unwrap();
    bench.study.proxy.external = Some(ExternalSpec::at(address));
}

#[test]
fn an_agent_does_not_choose_who_gets_the_load() {
    // TEST-NET-3 (RFC 5737), a neighbour's slot, the other side of the arm, and what is only written otherwise.
    let somebody: SocketAddr = "203.0.113.9:80".parse().unwrap();
    let neighbour = "10.213.1.254:8080".parse().unwrap();
    let generator = "10.213.0.1:8080".parse().unwrap();
    let mapped = "[::ffff:10.213.0.254]:8080".parse().unwrap();
    let tls_listen =
        ReportedAddresses { tls_listen: Some(somebody), ..ReportedAddresses::default() };
    let origin = ReportedAddresses { origin: Some(somebody), ..ReportedAddresses::default() };
    for at in [somebody, neighbour, generator, mapped] {
        let named = "10.213.0.254".to_owned();
        assert_eq!(refused(listen(at), |_| {}), Some((at, named)));
    }
    type Change = fn(&mut Bench);
    let rows: [(ReportedAddresses, Change, &str); 6] = [
        (tls_listen, |_| {}, "10.213.0.254"),
        (origin, |_| {}, "10.214.0.1"),
        (listen(somebody), on_loopback, "127.0.0.1"),
        (tls_listen, on_loopback, "127.0.0.1"),
        (origin, on_loopback, "127.0.0.1"),
        (listen(somebody), external, "127.0.0.1:20000"),
    ];
    for (told, change, named) in rows {
        let expected = Some((somebody, named.to_owned()));
        assert_eq!(refused(told, change), expected, "{told:?}");
    }
    // Ports of a system's services, of other roles, and of one arm for all.
    let [system, other_role] = [22, 20_000].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let free = "127.0.0.1, at a port that nobody else of this run has";
    let origin = ReportedAddresses { origin: Some(system), ..ReportedAddresses::default() };
    let rows = [
        (listen(system), "127.0.0.1, at a port from 10240 on"),
        (listen(other_role), free),
        (origin, "127.0.0.1, at a port from 1024 on"),
    ];
    for (told, named) in rows {
        let expected = told.origin.or(told.listen).map(|at| (at, named.to_owned()));
        assert_eq!(refused(told, on_loopback), expected, "{told:?}");
    }
    // Of somebody else's proxy the port counts as well.
    let beside = "127.0.0.1:20001".parse().unwrap();
    let expected = Some((beside, "127.0.0.1:20000".to_owned()));
    assert_eq!(refused(listen(beside), external), expected);
}

#[test]
fn an_agent_that_tells_the_truth_is_believed() {
    assert_eq!(refused(ReportedAddresses::default(), |_| {}), None);
    assert_eq!(refused(ReportedAddresses::default(), on_loopback), None);
}
