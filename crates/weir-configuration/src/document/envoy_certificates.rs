//! Certificates that Envoy shows to clients: of its own, of secrets, of files of secrets.

use serde_json::Value as Json;

use super::asked::Document;
use super::dialect::Dialect;
use super::envoy::{CHAIN_TLS, tls_chains};
use super::find::{field, get, items};
use super::pointer::Pointer;
use super::tree::Tree;
use crate::{Asked, place};

/// Finds the certificates that clients are shown: those of the filter chain that a load asks. Each with its value,
/// which may be a secret's.
pub(super) fn certificates(document: &Document<'_>, asked: &Asked) -> Vec<(Pointer, Json)> {
    let inside = asked.server.as_ref().or(asked.location.as_ref());
    let inside = inside.map(|spot| Pointer::parse(&spot.pointer));
    let chains = tls_chains(document.json, &document.found[asked.index].at).into_iter();
    let chains = chains.filter(|chain| inside.as_ref().is_none_or(|it| it.is_below(chain)));
    let contexts = chains.map(|chain| chain.join(CHAIN_TLS).child("common_tls_context"));
    contexts
        .flat_map(|context| shown(document, &context))
        .collect()
}

fn shown(document: &Document<'_>, context: &Pointer) -> Vec<(Pointer, Json)> {
    let json = document.json;
    let own = items(json, context.child("tls_certificates")).into_iter();
    let own = own.map(|one| (one.child("certificate_chain"), get(json, &one)));
    let own = own.filter_map(|(at, one)| Some((at, chain_of(one?))));
    let secrets = items(json, context.child("tls_certificate_sds_secret_configs")).into_iter();
    let secrets = secrets.filter_map(|at| {
        let config = get(json, &at)?;
        let chain = secret(document, config).map(|secret| chain_of(&secret));
        Some((at, chain.unwrap_or_else(|| config.clone())))
    });
    let others = [
        "custom_tls_certificate_selector",
        "tls_certificate_certificate_provider_instance",
        "tls_certificate_provider_instance",
    ];
    let others = others.map(|name| context.child(name)).into_iter();
    let others = others.filter_map(|at| Some((at.clone(), get(json, &at)?.clone())));
    own.chain(secrets).chain(others).collect()
}

/// Where the chain of a certificate is; nothing where that is not said, since a key is no part of a message.
fn chain_of(certificate: &Json) -> Json {
    let file = field(certificate, "pkcs12").and_then(|it| field(it, "filename"));
    let chain = field(certificate, "certificate_chain").or(file);
    chain.cloned().unwrap_or_default()
}

/// The certificate that a secret is: one of the bootstrap, or in a file.
fn secret(document: &Document<'_>, config: &Json) -> Option<Json> {
    let name = field(config, "name")?;
    let file = field(config, "sds_config").map(|sds| {
        let path = field(sds, "path_config_source").and_then(|it| field(it, "path"));
        meaning(document, path.or(field(sds, "path"))?.as_str()?)
    });
    let (all, list) = match &file {
        None => (document.json, "/static_resources/secrets"),
        Some(file) => (file.as_ref()?, "/resources"),
    };
    let mut all = items(all, list).into_iter().filter_map(|at| get(all, &at));
    let secret = all.find(|secret| field(secret, "name") == Some(name))?;
    field(secret, "tls_certificate").cloned()
}

/// What a file that the bootstrap names means.
fn meaning(document: &Document<'_>, path: &str) -> Option<Json> {
    let file = place::read(&document.doors.source.base.join(path)).ok()?;
    let tree = Tree::parse(&file, Dialect::Envoy.format(&file.path)).ok()?;
    Some(tree.meaning(&tree.root))
}
