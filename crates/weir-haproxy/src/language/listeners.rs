//! Addresses on which a haproxy.cfg listens.

use super::options::options;
use super::sections::Statement;

/// Returns true if a `bind` line has the option `ssl`.
pub(super) fn is_tls(bind: &Statement<'_>) -> bool {
    options(bind).iter().any(|option| bind.word(option.start) == "ssl")
}

/// Returns the port of an address in the form that `bind` takes (manual §4.2); the first one of a range.
pub(super) fn port(address: &str) -> Option<u16> {
    if address.starts_with(['/', '@']) || address.contains("unix@") || address.contains("abns@") {
        return None;
    }
    let ports = address.rsplit_once(':')?.1;
    ports.split('-').next()?.parse().ok()
}

/// Returns the last port of a range of ports.
pub(super) fn last_port(address: &str) -> Option<u16> {
    port(address)?;
    address.rsplit_once('-')?.1.parse().ok()
}

/// Returns true if only this host can reach an address.
pub(super) fn is_own(address: &str) -> bool {
    port(address).is_none() || address.starts_with("127.") || address.starts_with("localhost:")
}

/// Returns an address without the part that means "any address of this host", or a path without the prefix that marks
/// it as one.
pub(super) fn plain(address: &str) -> String {
    let address = ["ipv4@", "unix@"]
        .iter()
        .find_map(|family| address.strip_prefix(family))
        .unwrap_or(address);
    match address.rsplit_once(':') {
        Some(("" | "*" | "0.0.0.0" | "127.0.0.1" | "localhost", port)) => format!(":{port}"),
        _ => address.to_owned(),
    }
}

/// Returns true if an address has a port that is no number, which HAProxy rejects (`str2sa_range` in its `tools.c`).
pub(super) fn has_no_number(address: &str) -> bool {
    let has_port =
        !address.starts_with(['/', '@']) && !address.contains("unix@") && !address.contains("abns");
    let port = address.rsplit_once(':').filter(|_| has_port);
    port.is_some_and(|(_, port)| {
        !port.is_empty() && !port.starts_with(|c: char| c.is_ascii_digit())
    })
}
