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
