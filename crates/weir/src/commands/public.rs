//! Servers on public addresses: load at somebody else's expense needs their word.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use weir_model::flow::{FlowSpec, LoadSpec};
use weir_model::load::Spacing;
use weir_model::study::{ExternalSpec, Study};
use weir_record::HEADER_FILE;

use super::report;
use crate::args::LabArgs;
use crate::failure::Failure;

/// Requests per second that any server may be sent without a word: a page with its pictures is as much.
const UNASKED: f64 = 100.0;

/// Refuses to go on with a run whose load goes to a public address that nobody speaks for this time: its folder may come from
/// anywhere. What is no run at all is said by whoever goes on with it.
pub(super) fn check_folder(folder: &Path, args: &LabArgs) -> Result<(), Failure> {
    if !folder.join(HEADER_FILE).exists() {
        return Ok(());
    }
    check(&report::read(folder)?.header.study, args)
}

/// Refuses a study whose load goes to a public address that nobody has spoken for.
pub(super) fn check(study: &Study, args: &LabArgs) -> Result<(), Failure> {
    if study.loads.iter().all(is_little) && study.capacity.is_empty() {
        return Ok(());
    }
    let arms = study.arms.iter();
    let external = arms.filter_map(|arm| study.proxy_of(arm).external.as_ref());
    let all = external.flat_map(ExternalSpec::addresses);
    addresses(all, args)
}

/// Whether a load is so little that nobody has to agree to it: in requests, in connections, and in what comes at once.
pub(super) fn is_little(load: &LoadSpec) -> bool {
    load.flows().map(most_in_a_second).sum::<f64>() <= UNASKED
}

fn most_in_a_second(flow: &FlowSpec) -> f64 {
    let requests = match (flow.limit, flow.spacing) {
        _ if flow.is_held() => 0.0,
        // However fast they come.
        (Some(limit), _) if limit as f64 <= UNASKED => limit as f64,
        (_, Spacing::Burst { size }) => flow
            .rate()
            .map_or(f64::INFINITY, |rate| rate.max(size.into())),
        _ => flow.rate().unwrap_or(f64::INFINITY),
    };
    requests.max(flow.connections.into())
}

/// Refuses addresses that are public, unless their owner was spoken for.
pub(super) fn addresses(
    all: impl IntoIterator<Item = SocketAddr>,
    args: &LabArgs,
) -> Result<(), Failure> {
    agreed(all, args.yes_this_is_mine)
}

/// The same, of whoever has said so or has not.
pub(super) fn agreed(
    all: impl IntoIterator<Item = SocketAddr>,
    is_agreed: bool,
) -> Result<(), Failure> {
    let public = all.into_iter().find(|address| is_public(address.ip()));
    match public.filter(|_| !is_agreed) {
        None => Ok(()),
        Some(address) => Err(Failure::input(format!(
            "{address} is a public address, and this sends it more than {UNASKED} requests/s, requests at once, or connections"
        ))
        .hint("if the server is yours, or its owner agrees, add --yes-this-is-mine")),
    }
}

/// Whether an address can be somebody else's: it is not of loopback, of a private network (RFC 1918, RFC 4193), of
/// the link (RFC 3927, RFC 4291 §2.5.6), or one of this machine's own.
fn is_public(address: IpAddr) -> bool {
    let is_private = match address.to_canonical() {
        IpAddr::V4(ip) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        IpAddr::V6(ip) => {
            let is_near = ip.is_unique_local() || ip.is_unicast_link_local();
            ip.is_loopback() || is_near || ip.is_unspecified()
        }
    };
    !is_private && !weir_lab::is_own(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_others_are_public() {
        for (text, expected) in [
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("::1", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:192.0.2.7", true),
            ("192.0.2.7", true),
            ("2001:db8::7", true),
            // Shared by a provider's customers (RFC 6598).
            ("100.64.0.1", true),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }
}
