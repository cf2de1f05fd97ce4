//! Protocols that copies of Envoy's configurations speak with clients and with the origin server.

use std::net::SocketAddr;

use serde_json::{Value as Json, json};
use weir_configuration::document::find::{get, items};
use weir_configuration::document::listening::Listening;
use weir_configuration::document::visit_all;
use weir_configuration::document::{Edits, Pointer};

use super::bootstrap::{UPSTREAM_HTTP, chains, kind};

/// Options of a cluster for a protocol that is negotiated within TLS, or for HTTP/3; in clear there is neither.
pub(super) const NEGOTIATED: [&str; 2] =
    ["/auto_config", "/explicit_http_config/http3_protocol_options"];

/// Lets clients of a listener do without the PROXY protocol.
pub(super) fn without_protocol(document: &Json, listener: &Pointer, edits: &mut Edits) {
    for chain in chains(document, listener) {
        edits.take(chain.child("use_proxy_proto"));
    }
    for filter in items(document, listener.child("listener_filters")) {
        let config = filter.child("typed_config");
        if kind(document, &config) == "ProxyProtocol" {
            edits.put(config.child("allow_requests_without_proxy_protocol"), true);
        }
    }
}

/// Changes filter chains for the listener's port to the copy's port, and those for some of its addresses to any
/// address.
pub(super) fn destinations(
    document: &Json,
    listener: &Listening,
    new: &SocketAddr,
    edits: &mut Edits,
) {
    let old = listener.port.map(u64::from);
    for chain in chains(document, &listener.at) {
        let matching = chain.child("filter_chain_match");
        let port = matching.child("destination_port");
        let matched_port = get(document, &port).and_then(Json::as_u64);
        if matched_port.is_some() && matched_port == old {
            edits.put(port, new.port());
        }
        for name in ["address_suffix", "prefix_ranges", "suffix_len"] {
            edits.take(matching.child(name));
        }
    }
    let matcher = listener.at.child("filter_chain_matcher");
    let rules = get(document, &matcher).unwrap_or(&Json::Null);
    visit_all(rules, &mut |inner, _| {
        let tree = matcher.join(inner);
        let ports = tree.join("/exact_match_map/map");
        let of_port = old.map(|old| ports.child(old));
        let is_by_port =
            kind(document, &tree.join("/input/typed_config")) == "DestinationPortInput";
        if let Some(of_port) = of_port.filter(|_| is_by_port)
            && let Some(chosen) = get(document, &of_port)
        {
            edits.put(ports.child(new.port()), chosen.clone());
            edits.take(of_port);
        }
    });
}

/// Makes a cluster speak in clear, and HTTP/1.1 if nothing else is set outside of TLS.
pub(super) fn in_clear(document: &Json, cluster: &Pointer, edits: &mut Edits) {
    for socket in ["transport_socket", "transport_socket_matches"] {
        edits.take(cluster.child(socket));
    }
    let options = cluster.child("typed_extension_protocol_options").child(UPSTREAM_HTTP);
    for at in NEGOTIATED.map(|name| options.join(name)) {
        if get(document, &at).is_some() {
            let http = get(document, &at.child("http_protocol_options")).cloned();
            let plain = options.join("/explicit_http_config/http_protocol_options");
            edits.put(plain, http.unwrap_or_else(|| json!({})));
            edits.take(at);
        }
    }
}
