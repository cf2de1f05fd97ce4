//! Finds what a copy of Caddy's JSON replaces, of what the requests of a load meet ([`super::adapt_caddy`]).

use serde_json::Value as Json;

use weir_model::record::ReplacedPart;

use super::asked::Document;
use super::caddy_routes::{asks_about_request, met};
use super::find::{get, items};
use super::pointer::Pointer;
use super::walk::Visit;
use crate::Asked;
use crate::asked::Request;
use crate::replaced::Replacements;

/// Policies by which a proxy chooses a server by the client's address.
const BY_CLIENT: [&str; 2] = ["ip_hash", "client_ip_hash"];

/// Adds what a copy has otherwise of what a request meets.
pub(super) fn add(
    document: &Document<'_>,
    (request, asked): (&Request<'_>, &Asked),
    found: &mut Replacements<'_>,
) {
    let Some(server) = &asked.server else { return };
    let server = Pointer::parse(&server.pointer);
    for wrapper in items(document.json, server.child("listener_wrappers")) {
        let kind = get(document.json, &wrapper.child("wrapper"));
        if kind.is_some_and(|kind| kind == "proxy_protocol") {
            let spot = document.spot(&wrapper, "listener wrapper proxy_protocol");
            found.add(ReplacedPart::ProxyProtocol, &spot);
        }
    }
    let Some(route) = &asked.location else { return };
    let end = Pointer::parse(&route.pointer);
    for route in met(document.json, &server, request, &end) {
        each(document, &route.child("match"), &mut |at, value| {
            let key = at.tokens().last().map_or("", String::as_str);
            let is_expression = key == "expression" && value.to_string().contains("_ip(");
            if is_expression || matches!(key, "remote_ip" | "client_ip") {
                found.add(ReplacedPart::ClientAddress, &document.spot(at, key));
            }
        });
        for handler in items(document.json, route.child("handle")) {
            let value = get(document.json, &handler).unwrap_or(&Json::Null);
            match value.get("handler").and_then(Json::as_str) {
                Some("encode") if !request.is_plain() => {
                    found.add(ReplacedPart::Content, &document.spot(&handler, "encode"));
                }
                Some("templates") => {
                    found.add(ReplacedPart::Content, &document.spot(&handler, "templates"));
                }
                Some("reverse_proxy") if route == end || asks_about_request(value) => {
                    servers(document, &handler, value, found);
                }
                _ => {}
            }
        }
    }
}

/// Finds the certificates that are loaded.
pub(super) fn certificates(json: &Json) -> Vec<Pointer> {
    let loaders = ["load_files", "load_pem"]
        .map(|loader| items(json, Pointer::parse("/apps/tls/certificates").child(loader)));
    let all = loaders.into_iter().flatten();
    all.map(|one| one.child("certificate")).collect()
}

/// Tells of all values from a place on.
fn each(document: &Document<'_>, at: &Pointer, tell: &mut dyn FnMut(&Pointer, &Json)) {
    let value = get(document.json, at).unwrap_or(&Json::Null);
    Visit::all(value, &mut |inner, value| tell(&at.join(inner), value));
}

/// Adds what a handler that passes requests on loses in the copy.
fn servers(document: &Document<'_>, at: &Pointer, handler: &Json, found: &mut Replacements<'_>) {
    if asks_about_request(handler) {
        let spot = document.spot(at, "reverse_proxy with handle_response");
        return found.add(ReplacedPart::Service, &spot);
    }
    if handler.get("handle_response").is_some() {
        let spot = document.spot(&at.child("handle_response"), "handle_response");
        found.add(ReplacedPart::Content, &spot);
    }
    let policy = at.join("/load_balancing/selection_policy/policy");
    let name = get(document.json, &policy).and_then(Json::as_str);
    if let Some(name) = name.filter(|name| BY_CLIENT.contains(name)) {
        let spot = document.spot(&policy, format!("lb_policy {name}"));
        found.add(ReplacedPart::ClientAddress, &spot);
    }
    let upstreams = items(document.json, at.child("upstreams"));
    let dials: Vec<Pointer> = upstreams
        .iter()
        .map(|upstream| upstream.child("dial"))
        .filter(|dial| super::caddy::behind(document, dial).is_none())
        .collect();
    let tls = at.join("/transport/tls");
    if let Some(value) = get(document.json, &tls).filter(|_| !dials.is_empty()) {
        let spot = document.spot(&tls, format!("transport tls {value}"));
        found.add(ReplacedPart::OriginTls, &spot);
    }
    if get(document.json, &at.join("/transport/proxy_protocol")).is_some() {
        let spot = document.spot(&at.join("/transport/proxy_protocol"), "proxy_protocol");
        found.add(ReplacedPart::ProxyProtocol, &spot);
    }
    if dials.len() > 1 {
        let name = format!("{} upstreams", dials.len());
        found.add(ReplacedPart::Servers, &document.spot(at, name));
    }
    for dial in &dials {
        let address = get(document.json, dial).and_then(Json::as_str);
        if address.is_some_and(|address| address.starts_with("unix")) {
            let spot = document.spot(dial, "dial unix/");
            found.add(ReplacedPart::Servers, &spot);
        }
        if let Some(address) = address.filter(|address| address.contains('{')) {
            let spot = document.spot(dial, format!("dial {address}"));
            found.add(ReplacedPart::Names, &spot);
        }
    }
    let dynamic = at.child("dynamic_upstreams");
    if get(document.json, &dynamic).is_some() {
        let spot = document.spot(&dynamic, "dynamic_upstreams");
        found.add(ReplacedPart::Names, &spot);
    }
}
