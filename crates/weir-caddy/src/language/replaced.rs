//! Finds the parts on the way of a load's requests that a copy of Caddy's JSON replaces ([`super::adapt`]).

use serde_json::Value as Json;
use weir_configuration::asked::Request;
use weir_configuration::document::Pointer;
use weir_configuration::document::asked::Document;
use weir_configuration::document::find::{get, items};
use weir_configuration::document::visit_all;
use weir_configuration::replaced::Replacements;
use weir_configuration::{PemLocation, RequestOutcome, ShownCertificate};
use weir_model::record::ReplacedPart;

use super::matchers::is_host;
use super::passage::Passage;
use super::routes::{Walk, asks_about_request};

/// Policies by which a proxy chooses a server by the client's address.
const BY_CLIENT: [&str; 2] = ["ip_hash", "client_ip_hash"];

/// Texts that refer to the client's address in expressions and placeholders.
const BY_ADDRESS: [&str; 3] = ["_ip(", "{http.request.remote", "{http.vars.client_ip"];

/// Maximum number of servers that a request is followed through, each with the request's path there.
const MOST_MET: usize = 100;

/// Adds the parts on the way of a request that are different in a copy.
pub(super) fn add(
    document: &Document<'_>,
    (request, asked): (&Request<'_>, &RequestOutcome),
    found: &mut Replacements<'_>,
) {
    if let Some(server) = &asked.server {
        let server = Pointer::parse(&server.pointer);
        follow(document, (server, Passage::of(request)), &mut Vec::new(), found);
    }
}

/// Adds the replaced parts of a server, and of servers of the same configuration behind it.
fn follow(
    document: &Document<'_>,
    (server, passage): (Pointer, Passage<'_>),
    met: &mut Vec<(Pointer, Result<String, Pointer>)>,
    found: &mut Replacements<'_>,
) {
    let visit = (server.clone(), passage.path.clone());
    if met.len() == MOST_MET || met.contains(&visit) {
        return;
    }
    met.push(visit);
    for wrapper in items(document.json, server.child("listener_wrappers")) {
        let kind = get(document.json, &wrapper.child("wrapper"));
        if kind.is_some_and(|kind| kind == "proxy_protocol") {
            let spot = document.spot(&wrapper, "listener wrapper proxy_protocol");
            found.add(ReplacedPart::ProxyProtocol, &spot);
        }
    }
    let walk = Walk::through(document.json, &server, passage);
    for route in &walk.routes {
        by_address(document, &route.child("match"), found);
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
            Some("map" | "rewrite" | "vars") => by_address(document, handler, found),
            Some("reverse_proxy") => {
                servers(document, handler, value, found);
                for upstream in items(document.json, handler.child("upstreams")) {
                    if let Some(candidate) =
                        super::document::behind(document, &upstream.child("dial"))
                    {
                        let server = document.found[candidate].server.clone();
                        follow(document, (server, passage.passed_on(value, handler)), met, found);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Adds the values below a place that decide by the client's address.
fn by_address(document: &Document<'_>, at: &Pointer, found: &mut Replacements<'_>) {
    let value = get(document.json, at).unwrap_or(&Json::Null);
    visit_all(value, &mut |inner, value| {
        let pointer = at.join(inner);
        let key = pointer.tokens().last().map_or("", String::as_str);
        let text = value.as_str().unwrap_or_default();
        if is_address(key) || is_address(text) {
            let name = if text.starts_with('{') { text } else { key };
            found.add(ReplacedPart::ClientAddress, &document.spot(&pointer, name));
        }
    });
}

/// Returns true if a key, an expression or a placeholder refers to the client's address.
fn is_address(text: &str) -> bool {
    matches!(text, "remote_ip" | "client_ip") || BY_ADDRESS.iter().any(|said| text.contains(said))
}

/// Finds the certificates that are loaded.
pub(super) fn certificates(json: &Json) -> Vec<Pointer> {
    let at = Pointer::parse("/apps/tls/certificates");
    ["load_files", "load_pem"]
        .into_iter()
        .flat_map(|loader| items(json, at.child(loader)))
        .map(|one| one.child("certificate"))
        .chain(items(json, at.child("load_folders")))
        .collect()
}

/// Returns the certificate that Caddy gets by itself for a name. Its key is on P-256, unless a policy for the name says
/// otherwise (`AutomationPolicy` in `caddytls/automation.go`).
pub(super) fn automatic_certificate(document: &Document<'_>, name: &str) -> ShownCertificate {
    let policies = items(document.json, "/apps/tls/automation/policies");
    let matching = policies.into_iter().find(|policy| {
        let subjects = get(document.json, &policy.child("subjects")).and_then(Json::as_array);
        subjects.is_none_or(|subjects| {
            let mut names = subjects.iter().filter_map(Json::as_str);
            subjects.is_empty() || names.any(|subject| is_host(subject, name))
        })
    });
    let policy = matching.unwrap_or_default();
    let key = get(document.json, &policy.child("key_type")).and_then(Json::as_str);
    let key_type = key.unwrap_or("p256");
    let words = format!("certificates that the proxy gets by itself, key_type {key_type}");
    ShownCertificate {
        spot: document.spot(&policy, words).record(document.candidates.source),
        pem: PemLocation::Automatic(key_type.to_owned()),
    }
}

/// Adds the parts that a handler that passes requests on loses in the copy.
fn servers(document: &Document<'_>, at: &Pointer, handler: &Json, found: &mut Replacements<'_>) {
    let upstreams = items(document.json, at.child("upstreams"));
    let dials: Vec<Pointer> = upstreams
        .iter()
        .map(|upstream| upstream.child("dial"))
        .filter(|dial| super::document::behind(document, dial).is_none())
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
        // Go speaks HTTP/2 over TLS alone.
        let versions = at.join("/transport/versions");
        if let Some(value) = get(document.json, &versions) {
            let spot = document.spot(&versions, format!("transport versions {value}"));
            found.add(ReplacedPart::OriginTls, &spot);
        }
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
