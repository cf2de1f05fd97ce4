//! Counters and settings of a HAProxy that weir did not start.

use std::net::SocketAddr;

use weir_configuration::Source;
use weir_sut::observed::{Offers, Peer, Process, Running, StatusEndpoint};
use weir_sut::route_match::RouteMatch;

use super::counters::sampled_of;
use super::effective;
use super::language;

pub(super) const RUNNING: Running = Running {
    find,
    needs_files: true,
    most: 32 << 20,
    sampled: |ask| Ok(sampled_of(&ask("show info")?, &ask("show stat")?)),
};

fn find(process: &Process, address: SocketAddr) -> Result<Offers, String> {
    let mut endpoint = Err("its configuration has no `stats socket`".to_owned());
    let named = process.values(&["-f"]);
    if named.is_empty() {
        return Err("its command line names none".to_owned());
    }
    let mut files = Vec::new();
    for file in named {
        let source = language::read(&process.path(file)).map_err(|error| error.to_string())?;
        files.extend(source.files);
    }
    let source = Source::new(files);
    let tree = language::Tree::parse(&source).map_err(|error| error.to_string())?;
    let globals = tree.of_kind("global");
    for statement in globals.flat_map(|(_, section)| &section.statements) {
        if (statement.word(0), statement.word(1)) == ("stats", "socket") && endpoint.is_err() {
            let written = statement.word(2);
            let families = ["unix@", "ipv4@"];
            let address =
                (families.iter().find_map(|it| written.strip_prefix(it))).unwrap_or(written);
            let peer = if address.starts_with('/') {
                Some(Peer::Unix(address.into()))
            } else {
                Peer::listening_at(address)
            };
            endpoint = peer.map(StatusEndpoint::Lines).ok_or_else(|| {
                format!("its `stats socket {address}` is no address that is known here")
            });
        }
    }
    let settings = effective::of_files(&source, &RouteMatch::at(address, false))
        .map_err(|error| error.to_string())?;
    Ok(Offers { error_log: None, logs_warnings: None, settings, idle: Vec::new(), endpoint })
}
