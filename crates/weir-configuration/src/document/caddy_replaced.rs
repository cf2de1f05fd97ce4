//! Finds what a copy of Caddy's JSON replaces, of what the requests of a load meet ([`super::adapt_caddy`]).

use serde_json::Value as Json;

use weir_model::record::ReplacedPart;

use super::asked::Document;
use super::find::{get, items};
use super::pointer::Pointer;
use super::walk::Visit;
use crate::Asked;
use crate::asked::Request;
use crate::replaced::Replacements;

/// Adds what a copy has otherwise of what a request meets.
pub(super) fn add(
    document: &Document<'_>,
    (request, asked): (&Request<'_>, &Asked),
    found: &mut Replacements<'_>,
) {
    let Some(server) = &asked.server else { return };
    let server = Pointer::parse(&server.pointer);
    // Which of the routes before the one that answers a request goes through is not always sure: all are looked at.
    each(document, &server, &mut |at, value| {
        let key = at.tokens().last().map_or("", String::as_str);
        let part = match (key, value.get("handler").and_then(Json::as_str)) {
            ("remote_ip" | "client_ip", _) => Some(("", ReplacedPart::ClientAddress)),
            (_, Some("encode")) if !request.is_plain() => Some(("encode", ReplacedPart::Content)),
            (_, Some("templates")) => Some(("templates", ReplacedPart::Content)),
            _ if value
                .get("wrapper")
                .is_some_and(|it| it == "proxy_protocol") =>
            {
                Some((
                    "listener wrapper proxy_protocol",
                    ReplacedPart::ProxyProtocol,
                ))
            }
            _ => None,
        };
        if let Some((name, part)) = part {
            let name = if name.is_empty() { key } else { name };
            found.add(part, &document.spot(at, name));
        }
    });
    let Some(route) = &asked.location else { return };
    each(
        document,
        &Pointer::parse(&route.pointer),
        &mut |at, value| {
            if value.get("handler").is_some_and(|it| it == "reverse_proxy") {
                servers(document, at, value, found);
            }
        },
    );
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
    // `forward_auth` is made of these two (`caddyhttp/reverseproxy/forwardauth`).
    if handler.get("handle_response").is_some() && handler.get("rewrite").is_some() {
        let spot = document.spot(at, "reverse_proxy with handle_response");
        return found.add(ReplacedPart::Service, &spot);
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
    }
    let dynamic = at.child("dynamic_upstreams");
    if get(document.json, &dynamic).is_some() {
        let spot = document.spot(&dynamic, "dynamic_upstreams");
        found.add(ReplacedPart::Names, &spot);
    }
}
