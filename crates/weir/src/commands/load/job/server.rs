//! Server of a search: one flow of the command line, checked as for a load.

use std::net::SocketAddr;

use weir_model::flow::{FlowSpec, MAIN};
use weir_study::NamedServer;

use super::describe::describe_for_search;
use super::flow;
use crate::args::FlowArgs;
use crate::failure::Failure;

/// A flow, and the addresses of its server.
pub(crate) struct Server {
    pub(crate) spec: FlowSpec,
    pub(crate) named: NamedServer,
    /// Target of the URL: path and query.
    pub(crate) target: String,
}

/// Reads the options of a flow to proxies that weir starts. No server is looked for; `names_host` says if requests are
/// for the URL's host.
pub(crate) fn describe_requests(args: &FlowArgs, names_host: bool) -> Result<FlowSpec, Failure> {
    let described = describe_for_search(MAIN, args)?;
    let host = names_host.then_some(described.url.authority);
    Ok(FlowSpec { host, ..described.spec })
}

impl Server {
    /// Reads the arguments and calls `may_ask` with the flow and all its addresses. Only then, and if requests come
    /// from this host, checks that a server listens there.
    pub(crate) fn of(
        args: &FlowArgs,
        is_here: bool,
        may_ask: impl FnOnce(&FlowSpec, Vec<SocketAddr>) -> Result<(), Failure>,
    ) -> Result<Server, Failure> {
        let described = describe_for_search(MAIN, args)?;
        let addresses = described.addresses()?;
        may_ask(&described.spec, addresses.clone())?;
        let routes = flow::prepare(&described, addresses, is_here)?.plan.routes;
        let url = described.url;
        let mut peers: Vec<SocketAddr> = Vec::new();
        for route in routes {
            if !peers.contains(&route.peer) {
                peers.push(route.peer);
            }
        }
        let Some((address, also)) = peers.split_first() else {
            return Err(Failure::failed(format!("{}: the server has no address", url.text)));
        };
        Ok(Server {
            spec: described.spec,
            target: url.target,
            named: NamedServer {
                url: url.text,
                host: url.host,
                authority: url.authority,
                address: *address,
                also: also.to_vec(),
            },
        })
    }

    /// Returns all addresses of the server.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let NamedServer { address, also, .. } = &self.named;
        std::iter::once(*address).chain(also.iter().copied())
    }
}
