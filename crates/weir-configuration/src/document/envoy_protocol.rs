//! The PROXY protocol in copies of Envoy's configurations.

use serde_json::Value as Json;

use super::envoy::chains;
use super::find::{get, items};
use super::pointer::Pointer;
use super::set::Edits;

/// Lets clients of a listener do without the PROXY protocol.
pub(super) fn without_protocol(document: &Json, listener: &Pointer, edits: &mut Edits) {
    for chain in chains(document, listener) {
        edits.take(chain.child("use_proxy_proto"));
    }
    for filter in items(document, listener.child("listener_filters")) {
        let config = filter.child("typed_config");
        let kind = get(document, &config.child("@type")).and_then(Json::as_str);
        if kind.is_some_and(|kind| kind.ends_with(".ProxyProtocol")) {
            edits.put(config.child("allow_requests_without_proxy_protocol"), true);
        }
    }
}
