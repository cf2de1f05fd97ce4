//! Counters of an Envoy that weir did not start.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_configuration::document::{self, Dialect as _};
use weir_sut::observed::{Offers, Peer, Process, Running, StatusEndpoint};

use super::counters::{ASK_OWN, sum};
use super::language::Bootstrap;

pub(super) const RUNNING: Running = Running {
    find,
    needs_files: true,
    most: 32 << 20,
    sampled: |ask| ask("").map(|text| sum(&text)),
};

fn find(process: &Process, _: SocketAddr) -> Result<Offers, String> {
    let named = process.values(&["-c", "--config-path"]);
    let main = process.path(named.last().ok_or("its command line names none")?);
    let format = Bootstrap.format(&main);
    let source = document::read(&main, format).map_err(|error| error.to_string())?;
    let value = document::value(&source, format).map_err(|error| error.to_string())?;
    let socket = value.pointer("/admin/address/socket_address");
    let tcp = socket.and_then(|socket| {
        let host = socket.get("address")?.as_str()?;
        let port = socket.get("port_value").or_else(|| socket.get("portValue"))?;
        Peer::listening_at(&format!("{host}:{}", port.as_u64()?))
    });
    let pipe = value.pointer("/admin/address/pipe/path");
    let peer = tcp.or_else(|| Some(Peer::Unix(pipe?.as_str()?.into())));
    let none = "its bootstrap has no `admin` address: add one to have its circuit breakers read";
    Ok(Offers {
        error_log: None,
        logs_warnings: None,
        settings: BTreeMap::new(),
        idle: Vec::new(),
        endpoint: peer
            .map(|peer| StatusEndpoint::Http(peer, "localhost".to_owned(), ASK_OWN.to_owned()))
            .ok_or_else(|| none.to_owned()),
    })
}
