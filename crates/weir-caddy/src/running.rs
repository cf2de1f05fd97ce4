//! Counters of a Caddy that weir did not start.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use weir_configuration::read_regular;
use weir_model::study::Settings;
use weir_parameters::Catalog;
use weir_sut::observed::{Offers, Peer, Process, Running, StatusEndpoint};
use weir_sut::route_match::RouteMatch;

use super::counters::parse;
use super::effective::{self, Environment, variables};

/// Default port of Caddy's administration.
const ADMIN: u16 = 2019;
/// Largest configuration that is read, in bytes.
const MOST: u64 = 64 << 20;

pub(super) const RUNNING: Running = Running {
    find: |process, address| {
        let configured = process.distrust().map_or_else(|| document(process), Err);
        let document = configured.as_ref().ok();
        Ok(Offers {
            error_log: None,
            logs_warnings: None,
            settings: document.map_or_else(Settings::new, |document| {
                let environment = variables(process.pid).unwrap_or_default();
                settings(document, &environment, address)
            }),
            idle: Vec::new(),
            endpoint: metrics(process, document),
        })
    },
    needs_files: false,
    most: 32 << 20,
    sampled: |ask| ask("").map(|text| parse(&text)),
};

/// Reads the document that the process was started with.
fn document(process: &Process) -> Result<Value, String> {
    let files = process.values(&["-c", "--config"]);
    let file = process.path(files.last().ok_or("its command line names no configuration")?);
    let text = read_regular(&file, MOST).map_err(|error| error.to_string())?;
    if let Ok(document) = serde_json::from_slice(&text) {
        return Ok(document);
    }
    let caddyfile = file.to_string_lossy();
    let printed = process.printed(&["adapt", "--adapter", "caddyfile", "--config", &caddyfile])?;
    let json = printed.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(json.unwrap_or_default()).map_err(|error| error.to_string())
}

/// Reads the levels for a load at an address; the limit of connections is for all upstreams together.
fn settings(document: &Value, environment: &Environment, address: SocketAddr) -> Settings {
    let route_matches = vec![RouteMatch::at(address, false)];
    let mut levels =
        effective::read(document, route_matches, environment, &Catalog::builtin()).levels;
    if let Some(most) = levels.get_mut("origin_max_connections")
        && let Ok(per_upstream) = most.parse::<u64>()
    {
        *most = (per_upstream * upstreams(document)).to_string();
    }
    levels
}

/// Counts the addresses that a document passes requests on to.
fn upstreams(value: &Value) -> u64 {
    match value {
        Value::Object(members) => {
            let inner: u64 = members.values().map(upstreams).sum();
            inner + u64::from(members.contains_key("dial"))
        }
        Value::Array(items) => items.iter().map(upstreams).sum(),
        _ => 0,
    }
}

/// Returns the endpoint of Caddy's counters: at the document's administration address, or else the default one.
fn metrics(process: &Process, document: Option<&Value>) -> Result<StatusEndpoint, String> {
    let listen = document.and_then(|document| document.pointer("/admin/listen")?.as_str());
    let address = match listen.map(Peer::listening_at) {
        Some(Some(Peer::Tcp(address))) => address,
        Some(_) => return Err("its administration is at no address of TCP".to_owned()),
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, ADMIN)),
    };
    let there = weir_probe::listening_at(address);
    if !there.iter().any(|pid| process.all.contains(pid)) {
        return Err(format!("its administration does not listen at {address}"));
    }
    let target = "/metrics".to_owned();
    Ok(StatusEndpoint::Http(Peer::Tcp(address), address.to_string(), target))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_those_of_its_document_and_its_environment() {
        let upstreams = json!([{"dial": "127.0.0.1:1"}, {"dial": "127.0.0.1:2"}]);
        let transport = json!({"protocol": "http", "max_conns_per_host": 3});
        let proxy =
            json!({"handler": "reverse_proxy", "transport": transport, "upstreams": upstreams});
        let server = json!({"listen": ["127.0.0.1:8080"], "routes": [{"handle": [proxy]}]});
        let document = json!({"apps": {"http": {"servers": {"web": server}}}});
        let environment = Environment::from([("GOMAXPROCS".to_owned(), "1".to_owned())]);
        let address = "127.0.0.1:8080".parse().unwrap();
        let levels = settings(&document, &environment, address);
        assert_eq!(levels.get("origin_max_connections").map(String::as_str), Some("6"));
        assert_eq!(levels.get("gomaxprocs").map(String::as_str), Some("1"));
    }
}
