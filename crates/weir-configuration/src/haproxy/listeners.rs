//! Where a haproxy.cfg listens.

use super::options::options;
use super::sections::{Statement, Tree};
use crate::place::line_and_column;
use crate::{ConfigurationError, Listener, Source};

/// The addresses of all `bind` lines of frontends and listens, in order.
///
/// # Errors
/// The configuration cannot be read ([`Tree::parse`]).
pub fn listeners(source: &Source) -> Result<Vec<Listener>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let mut listeners = Vec::new();
    for section in tree
        .sections
        .iter()
        .filter(|section| section.has_frontend())
    {
        let file = &source.files[section.file];
        for bind in section.statements.iter().filter(|s| s.word(0) == "bind") {
            let line = line_and_column(&file.text, bind.line.start).0;
            listeners.extend(bind.word(1).split(',').map(|address| Listener {
                file: file.path.clone(),
                line,
                address: address.to_owned(),
                port: port(address),
                tls: is_tls(bind),
            }));
        }
    }
    Ok(listeners)
}

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
