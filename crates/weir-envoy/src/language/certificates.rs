//! Certificates that Envoy shows to clients: from a filter chain, from secrets, and from files of secrets.

use serde_json::Value as Json;
use weir_configuration::document::asked::Document;
use weir_configuration::document::find::{field, get, items, text};
use weir_configuration::document::{Dialect as _, Pointer, Tree};
use weir_configuration::{RequestOutcome, place};

use super::Bootstrap;
use super::bootstrap::{CHAIN_TLS, tls_chains};

/// Finds the certificates that clients are shown in the filter chain that a load asks. Each comes with the value that
/// says where the certificate is.
pub(super) fn certificates(
    document: &Document<'_>,
    asked: &RequestOutcome,
) -> Vec<(Pointer, Json)> {
    let spot = asked.server.as_ref().or(asked.location.as_ref());
    let pointer = spot.map(|spot| Pointer::parse(&spot.pointer));
    tls_chains(document.json, &document.found[asked.index].at)
        .into_iter()
        .filter(|chain| pointer.as_ref().is_none_or(|pointer| pointer.is_below(chain)))
        .flat_map(|chain| of_context(document, &chain.join(CHAIN_TLS).child("common_tls_context")))
        .collect()
}

fn of_context(document: &Document<'_>, context: &Pointer) -> Vec<(Pointer, Json)> {
    let mut shown = Vec::new();
    for at in items(document.json, context.child("tls_certificates")) {
        shown.push((at.child("certificate_chain"), chain_of(&value_at(document, &at))));
    }
    for at in items(document.json, context.child("tls_certificate_sds_secret_configs")) {
        let certificate = secret(document, &value_at(document, &at));
        let chain = certificate.map_or_else(|| value_at(document, &at), |it| chain_of(&it));
        shown.push((at, chain));
    }
    for name in [
        "custom_tls_certificate_selector",
        "tls_certificate_certificate_provider_instance",
        "tls_certificate_provider_instance",
    ] {
        let at = context.child(name);
        if get(document.json, &at).is_some() {
            shown.push((at.clone(), value_at(document, &at)));
        }
    }
    shown
}

fn value_at(document: &Document<'_>, at: &Pointer) -> Json {
    get(document.json, at).cloned().unwrap_or_default()
}

/// Returns the chain of a certificate; null if it is not given. A key never becomes part of a message.
fn chain_of(certificate: &Json) -> Json {
    let pkcs12 = get(certificate, &Pointer::parse("/pkcs12/filename"));
    let chain = field(certificate, "certificate_chain").or(pkcs12);
    chain.cloned().unwrap_or_default()
}

/// Returns the certificate of a secret, from the bootstrap or from a file.
fn secret(document: &Document<'_>, config: &Json) -> Option<Json> {
    let name = field(config, "name")?;
    if field(config, "sds_config").is_none() {
        return certificate_in(document.json, "/static_resources/secrets", name);
    }
    let path = document.candidates.source.base.join(
        text(config, "/sds_config/path_config_source/path").or(text(config, "/sds_config/path"))?,
    );
    let file = place::read(&path).ok()?;
    let tree = Tree::parse(&file, Bootstrap.format(&path)).ok()?;
    certificate_in(&tree.meaning(&tree.root), "/resources", name)
}

/// Returns the certificate of the secret with a name in a list.
fn certificate_in(json: &Json, list: &str, name: &Json) -> Option<Json> {
    let mut all = items(json, list).into_iter();
    let at = all.find(|at| get(json, &at.child("name")) == Some(name))?;
    get(json, &at.child("tls_certificate")).cloned()
}
