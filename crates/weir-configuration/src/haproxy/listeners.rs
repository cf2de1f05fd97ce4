//! Where a haproxy.cfg listens.

use super::options::options;
use super::sections::Statement;

/// Whether a `bind` line has the option `ssl`.
pub(super) fn is_tls(bind: &Statement<'_>) -> bool {
    options(bind)
        .iter()
        .any(|option| bind.word(option.start) == "ssl")
}

/// The port of an address as `bind` takes it (manual §4.2); the first of a range.
pub(super) fn port(address: &str) -> Option<u16> {
    if address.starts_with(['/', '@']) || address.contains("unix@") || address.contains("abns@") {
        return None;
    }
    let ports = address.rsplit_once(':')?.1;
    ports.split('-').next()?.parse().ok()
}

/// The last port of a range of ports.
pub(super) fn last_port(address: &str) -> Option<u16> {
    port(address)?;
    address.rsplit_once('-')?.1.parse().ok()
}

/// Whether nobody from elsewhere can come to an address.
pub(super) fn is_own(address: &str) -> bool {
    port(address).is_none() || address.starts_with("127.") || address.starts_with("localhost:")
}

/// An address without what means "any address of this host", and a path without what says that it is one.
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

/// Whether an address has a port that is no number, as HAProxy takes none (`str2sa_range` in its `tools.c`).
pub(super) fn has_no_number(address: &str) -> bool {
    let has_port =
        !address.starts_with(['/', '@']) && !address.contains("unix@") && !address.contains("abns");
    let port = address.rsplit_once(':').filter(|_| has_port);
    port.is_some_and(|(_, port)| {
        !port.is_empty() && !port.starts_with(|c: char| c.is_ascii_digit())
    })
}
