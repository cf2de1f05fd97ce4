//! Finds what a copy of Caddy's JSON replaces, of what the requests of a load meet ([`super::adapt_caddy`]).

use serde_json::Value as Json;

use weir_model::record::ReplacedPart;

use super::asked::Document;
use super::caddy_passage::Passage;
use super::caddy_routes::{Walk, asks_about_request};
use super::find::{get, items};
use super::pointer::Pointer;
use super::walk::Visit;
use crate::Asked;
use crate::asked::Request;
use crate::replaced::Replacements;

/// Policies by which a proxy chooses a server by the client's address.
const BY_CLIENT: [&str; 2] = ["ip_hash", "client_ip_hash"];

/// What stands for the client's address in expressions and placeholders.
const BY_ADDRESS: [&str; 3] = ["_ip(", "{http.request.remote", "{http.vars.client_ip"];

/// Servers that a request meets at most, each with the path that it has there.
const MOST_MET: usize = 100;

/// Adds what a copy has otherwise of what a request meets.
pub(super) fn add(
    document: &Document<'_>,
    (request, asked): (&Request<'_>, &Asked),
    found: &mut Replacements<'_>,
) {
    if let Some(server) = &asked.server {
        let server = Pointer::parse(&server.pointer);
        follow(
            document,
            (server, Passage::of(request)),
            &mut Vec::new(),
            found,
        );
    }
}

/// Adds what is replaced of a server, and of those of the same configuration behind it.
fn follow(
    document: &Document<'_>,
    (server, passage): (Pointer, Passage<'_>),
    met: &mut Vec<(Pointer, Result<String, Pointer>)>,
    found: &mut Replacements<'_>,
) {
    let place = (server.clone(), passage.path.clone());
    if met.len() == MOST_MET || met.contains(&place) {
        return;
    }
    met.push(place);
    for wrapper in items(document.json, server.child("listener_wrappers")) {
        let kind = get(document.json, &wrapper.child("wrapper"));
        if kind.is_some_and(|kind| kind == "proxy_protocol") {
            let spot = document.spot(&wrapper, "listener wrapper proxy_protocol");
            found.add(ReplacedPart::ProxyProtocol, &spot);
        }
    }
    let walk = Walk::through(document.json, &server, passage);
    for route in &walk.routes {
        by_address(document, &route.child("match"), None, found);
    }
    for (handler, passage) in &walk.handlers {
        let value = get(document.json, handler).unwrap_or(&Json::Null);
        match value.get("handler").and_then(Json::as_str) {
            Some("encode") if !passage.request.is_plain() => {
                found.add(ReplacedPart::Content, &document.spot(handler, "encode"));
            }
            Some("templates") => {
                found.add(ReplacedPart::Content, &document.spot(handler, "templates"));
            }
            Some(name @ ("map" | "rewrite" | "vars")) => {
                by_address(document, handler, Some(name), found);
            }
            Some("reverse_proxy") => {
                servers(document, handler, value, found);
                for upstream in items(document.json, handler.child("upstreams")) {
                    if let Some(door) = super::caddy::behind(document, &upstream.child("dial")) {
                        let server = document.found[door].server.clone();
                        follow(
                            document,
                            (server, passage.passed_on(value, handler)),
                            met,
                            found,
                        );
                    }
                }
            }
            _ => {}
        }
    }
}

/// Adds what decides by the client's address, by its key or `name`, of all values from a place on.
fn by_address(
    document: &Document<'_>,
    at: &Pointer,
    name: Option<&str>,
    found: &mut Replacements<'_>,
) {
    let value = get(document.json, at).unwrap_or(&Json::Null);
    Visit::all(value, &mut |inner, value| {
        let at = at.join(inner);
        let key = at.tokens().last().map_or("", String::as_str);
        let mut texts = [key, value.as_str().unwrap_or_default()].into_iter();
        let is_said = texts.any(|text| BY_ADDRESS.iter().any(|said| text.contains(said)));
        if is_said || matches!(key, "remote_ip" | "client_ip") {
            let spot = document.spot(&at, name.unwrap_or(key));
            found.add(ReplacedPart::ClientAddress, &spot);
        }
    });
}

/// Finds the certificates that are loaded.
pub(super) fn certificates(json: &Json) -> Vec<Pointer> {
    let loaders = ["load_files", "load_pem"]
        .map(|loader| items(json, Pointer::parse("/apps/tls/certificates").child(loader)));
    let all = loaders.into_iter().flatten();
    all.map(|one| one.child("certificate")).collect()
}

/// Adds what a handler that passes requests on loses in the copy.
fn servers(document: &Document<'_>, at: &Pointer, handler: &Json, found: &mut Replacements<'_>) {
    let upstreams = items(document.json, at.child("upstreams"));
    let dials: Vec<Pointer> = upstreams
        .iter()
        .map(|upstream| upstream.child("dial"))
        .filter(|dial| super::caddy::behind(document, dial).is_none())
        .collect();
    if asks_about_request(handler) {
        if !dials.is_empty() || upstreams.is_empty() {
            let spot = document.spot(at, "reverse_proxy with handle_response");
            found.add(ReplacedPart::Service, &spot);
        }
        return;
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
