//! Changes that change nothing.

use weir_model::record::Inert;
use weir_model::study::{ProxyKind, Settings};
use weir_parameters::Catalog;

/// Those of an arm's changes that change nothing against the arm that it is compared with; each is a
/// proxy's kind and what was read back of it. Between two kinds nothing is inert: what stands there is
/// the same word of two languages, and the whole proxy is the change.
pub(crate) fn inert(
    catalog: &Catalog,
    changes: &Settings,
    (kind, effective): (ProxyKind, &Settings),
    against: Option<(ProxyKind, &Settings)>,
) -> Vec<Inert> {
    let alike = against.filter(|(other, _)| *other == kind);
    alike.map_or_else(Vec::new, |(_, theirs)| {
        catalog.inert(kind, changes, effective, theirs)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_another_proxy_has_too_is_not_inert() {
        let catalog = Catalog::builtin();
        let off = Settings::from([("access_log".to_owned(), "off".to_owned())]);
        let found = |other| {
            let against = Some((other, &off));
            inert(&catalog, &off, (ProxyKind::Haproxy, &off), against).len()
        };
        assert_eq!(found(ProxyKind::Haproxy), 1);
        assert_eq!(found(ProxyKind::Nginx), 0);
        assert_eq!(inert(&catalog, &off, (ProxyKind::Haproxy, &off), None), []);
    }
}
