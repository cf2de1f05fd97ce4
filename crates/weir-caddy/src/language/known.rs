//! Parts that a copy of Caddy's JSON may keep: apps, handlers and modules that are known to contact only the upstreams
//! and to write only to places that the adaptation has moved.

use weir_configuration::document::Value;
use weir_configuration::document::kept::{ForeignCheck, RetainedValue};
use weir_configuration::place::{is_among, unknown};

/// Known modules that are named by a value: the key, the key of the enclosing object (empty: any), and the known names.
const NAMED: [(&str, &str, &str); 9] = [
    (
        "handler",
        "",
        "authentication, copy_response, copy_response_headers, encode, error, file_server, headers, \
         intercept, invoke, log_append, map, metrics, push, request_body, reverse_proxy, rewrite, \
         static_response, subroute, templates, vars",
    ),
    ("loader", "", "file, folder, pem"),
    ("module", "", ""),
    ("output", "writer", "discard, file, stderr, stdout"),
    ("protocol", "transport", "fastcgi, http"),
    ("provider", "", "distributed, file, inline, pki_intermediate, pki_root, standard"),
    ("source", "trusted_proxies", "static"),
    ("verifier", "", "leaf"),
    ("wrapper", "", "http_redirect, proxy_protocol, tls"),
];

/// Objects whose keys are names of modules, each with the known names.
const KEYED: [(&str, &str); 6] = [
    ("apps", "http, pki, tls"),
    ("certificates", "load_files, load_folders, load_pem, load_storage"),
    ("match", MATCHERS),
    ("not", MATCHERS),
    ("providers", "http_basic"),
    (
        "tls",
        "cache, certificates, disable_ocsp_stapling, disable_storage_check, disable_storage_clean, \
         handshake_complete, session_tickets",
    ),
];

/// Known matchers of requests, of connections, and of responses.
const MATCHERS: &str = "alpn, client_ip, expression, file, header, header_regexp, headers, host, local_ip, method, \
     not, path, path_regexp, protocol, query, remote_ip, sni, sni_regexp, status_code, tls, vars, \
     vars_regexp";

/// Keys that name a server to be contacted or a file to be written, anywhere in the document. A copy has such a key
/// only with a replaced value.
const FOREIGN: &str = "dial, dynamic_upstreams, file_system, forward_proxy_url, get_certificate, \
     handshake_context, insecure_secrets_log, issuers, local_address, managers, network_proxy, on_demand, \
     resolver, resolvers";

/// Further keys that the adaptation looks for. Go reads a key in any mixture of cases as the same.
const SOUGHT: &str = "admin, automate, automatic_https, automation, certificate_authorities, certificates, \
     filename, health_checks, install_trust, listen, load_files, logging, logs, servers, sink, storage, \
     tls_connection_policies, transport, upstreams, writer";

pub(super) const KNOWN: ForeignCheck = ForeignCheck { foreign, hint: "" };

/// Returns a key as Go compares it: in small letters, and two letters beyond ASCII as the ones that they fold to
/// (`encoding/json`, `foldName`).
fn folded(key: &str) -> String {
    key.replace('\u{17f}', "s").replace('\u{212a}', "k").to_ascii_lowercase()
}

/// Returns the reason why a copy must not keep a value; None if it may.
fn foreign(kept: &RetainedValue<'_>) -> Option<String> {
    let (key, outer) = (kept.key, kept.outer);
    let named =
        NAMED.iter().find(|(of, within, _)| *of == key && (within.is_empty() || *within == outer));
    if let (Some((.., known)), Value::Scalar { text, .. }) = (named, &kept.node.value) {
        return (!is_among(text, known)).then(|| unknown(text));
    }
    let keyed = KEYED.iter().find(|(of, _)| *of == outer);
    if keyed.is_some_and(|(_, known)| !is_among(key, known)) {
        return Some(unknown(key));
    }
    let lower = folded(key);
    let is_hidden = lower != key && (is_among(&lower, FOREIGN) || is_among(&lower, SOUGHT));
    let is_scalar = matches!(kept.node.value, Value::Scalar { .. });
    let trusts = match &kept.node.value {
        Value::Scalar { text, .. } => key == "install_trust" && text != "false",
        _ => key == "install_trust",
    };
    let is_kept =
        trusts || is_scalar && (key == "listen" || (outer, key) == ("writer", "filename"));
    match () {
        () if is_hidden => Some(format!("`{key}` is `{lower}` to Caddy: write it so")),
        () if is_among(key, FOREIGN) || is_kept => {
            Some(format!("`{key}` names a server or a file outside of the copy"))
        }
        () => None,
    }
}
