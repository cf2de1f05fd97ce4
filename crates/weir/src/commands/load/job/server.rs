//! Whom a search asks, and for what: one flow of the command line, checked as for a load.

use std::net::SocketAddr;

use weir_model::flow::{FlowSpec, MAIN};

use super::describe::describe;
use super::flow;
use crate::args::FlowArgs;
use crate::failure::Failure;

/// A flow, and the addresses that answer for its URL.
pub(crate) struct Server {
    pub(crate) spec: FlowSpec,
    /// As it was typed.
    pub(crate) url: String,
    /// The URL's host, without a port.
    pub(crate) host: String,
    /// As the Host field has it.
    pub(crate) authority: String,
    /// At least one.
    pub(crate) peers: Vec<SocketAddr>,
}

impl Server {
    /// Reads what was typed, asks `may_ask` about it and all addresses that it names, and only then whether
    /// anybody is there, if requests come from here.
    pub(crate) fn of(
        args: &FlowArgs,
        is_here: bool,
        may_ask: impl FnOnce(&FlowSpec, Vec<SocketAddr>) -> Result<(), Failure>,
    ) -> Result<Server, Failure> {
        let described = describe(MAIN, args, None)?;
        let addresses = described.addresses()?;
        may_ask(&described.spec, addresses.clone())?;
        let routes = flow::prepare(&described, addresses, is_here)?.plan.routes;
        let mut peers: Vec<SocketAddr> = Vec::new();
        for route in routes {
            if !peers.contains(&route.peer) {
                peers.push(route.peer);
            }
        }
        let url = described.url;
        Ok(Server {
            spec: described.spec,
            url: url.text,
            host: url.host,
            authority: url.authority,
            peers,
        })
    }
}
