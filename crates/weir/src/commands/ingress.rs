//! `ingress/NAME` in place of a URL: sends requests to the server of an Ingress, at its address.

use std::path::Path;

use crate::args::{FlowArgs, PodArgs};
use crate::commands::kube;
use crate::failure::Failure;
use crate::{name_lookup, terminal};

/// Prefix that distinguishes an Ingress from a URL and from a study.
const PREFIX: &str = "ingress/";

/// Returns the name of the Ingress in place of the URL. `None` for a URL, or for an existing path such as a study in a
/// folder `ingress`.
fn ingress_name(flow: &FlowArgs) -> Option<&str> {
    let url = flow.url.as_deref()?;
    let name = url.strip_prefix(PREFIX)?;
    (!Path::new(url).exists()).then_some(name)
}

/// Replaces the name of an Ingress by its URL, its address and the pods of its proxy, and prints their source. Address
/// and pods that were given as options stay. `is_sampled`: the proxy's pods are sampled.
///
/// # Errors
/// No cluster is named, or the Ingress is ambiguous.
pub(crate) fn resolve(
    flow: &mut FlowArgs,
    pods: &mut PodArgs,
    is_sampled: bool,
    is_quiet: bool,
) -> Result<(), Failure> {
    let Some(name) = ingress_name(flow) else {
        return Ok(());
    };
    let Some(on) = &pods.on else {
        let message = format!("{PREFIX}{name} is an Ingress of a cluster, and no --on names one");
        return Err(Failure::input(message)
            .hint("name it: --on kubernetes:CONTEXT/NAMESPACE, with --generators 0 to send the load from this host"));
    };
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let served = kube::connect(on)?.ingress(namespace, name).map_err(kube::refused)?;
    if !is_quiet {
        for line in &served.said {
            terminal::tell(&format!("{line}\n"));
        }
    }
    if flow.to.is_none() {
        let addresses = name_lookup::addresses(&served.to).map_err(|error| {
            Failure::failed(format!("{}: {error}", served.to))
                .hint("give the address with --to, as pods of the cluster reach it")
        })?;
        flow.to = addresses.first().map(ToString::to_string);
    }
    flow.url = Some(served.url);
    let wanted = &mut pods.wanted;
    if wanted.proxy_pods.is_none() {
        wanted.proxy_pods = served.pods.map(|pods| pods.to_string());
    }
    let is_here = wanted.generators == Some(0);
    if is_here && !(is_sampled && wanted.proxy_pods.is_some()) {
        // The load is one to an address, and has nothing to do with the cluster any more.
        pods.on = None;
        wanted.generators = None;
        wanted.proxy_pods = None;
    }
    Ok(())
}
