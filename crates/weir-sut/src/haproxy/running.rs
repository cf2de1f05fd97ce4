//! Counters and settings of a HAProxy that weir did not start.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_configuration::haproxy;

use super::counters::sampled_of;
use crate::observed::{Offers, Peer, Process, Running, StatusEndpoint};

pub(super) const RUNNING: Running = Running {
    find,
    needs_files: true,
    sampled: |ask| Ok(sampled_of(&ask("show info")?, &ask("show stat")?)),
};

fn find(process: &Process, _: SocketAddr) -> Result<Offers, String> {
    let mut endpoint = Err("its configuration has no `stats socket`".to_owned());
    let files = process.values(&["-f"]);
    if files.is_empty() {
        return Err("its command line names none".to_owned());
    }
    let mut settings = BTreeMap::new();
    for file in files {
        let source = haproxy::read(&process.path(file)).map_err(|error| error.to_string())?;
        let tree = haproxy::Tree::parse(&source).map_err(|error| error.to_string())?;
        let globals = tree.of_kind("global");
        for statement in globals.flat_map(|(_, section)| &section.statements) {
            match (statement.word(0), statement.word(1)) {
                ("stats", "socket") if endpoint.is_err() => {
                    let written = statement.word(2);
                    let families = ["unix@", "ipv4@"];
                    let address = (families.iter().find_map(|it| written.strip_prefix(it)))
                        .unwrap_or(written);
                    let peer = match address.starts_with('/') {
                        true => Some(Peer::Unix(address.into())),
                        false => Peer::listening_at(address),
                    };
                    endpoint = peer.map(StatusEndpoint::Lines).ok_or_else(|| {
                        format!("its `stats socket {address}` is no address that is known here")
                    });
                }
                ("maxconn" | "nbthread", level) => {
                    settings.insert(statement.word(0).to_owned(), level.to_owned());
                }
                _ => {}
            }
        }
    }
    Ok(Offers {
        error_log: None,
        logs_warnings: None,
        settings,
        idle: Vec::new(),
        endpoint,
    })
}
