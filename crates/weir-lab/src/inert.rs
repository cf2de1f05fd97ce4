//! Changes of settings that have no effect.

use weir_model::record::Inert;
use weir_model::study::{ProxyKind, Settings};
use weir_parameters::Catalog;

/// Returns the arm's changes that have no effect against the arm that it is compared with. Both arms are given as the
/// proxy's kind and the settings read back from it. Between two kinds no change is inert: an equal value belongs to two
/// languages, and the whole proxy is the change.
pub(crate) fn inert(
    catalog: &Catalog,
    changes: &Settings,
    (kind, effective): (ProxyKind, &Settings),
    against: Option<(ProxyKind, &Settings)>,
) -> Vec<Inert> {
    against
        .filter(|(other, _)| *other == kind)
        .map_or_else(Vec::new, |(_, theirs)| catalog.inert(kind, changes, effective, theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_inert(settings: &Settings, other: ProxyKind) -> usize {
        let against = Some((other, settings));
        inert(&Catalog::builtin(), settings, (ProxyKind::Haproxy, settings), against).len()
    }

    #[test]
    fn a_level_that_another_proxy_has_too_is_not_inert() {
        let catalog = Catalog::builtin();
        let off = Settings::from([("access_log".to_owned(), "off".to_owned())]);
        assert_eq!(count_inert(&off, ProxyKind::Haproxy), 1);
        assert_eq!(count_inert(&off, ProxyKind::Nginx), 0);
        assert_eq!(inert(&catalog, &off, (ProxyKind::Haproxy, &off), None), []);
    }
}
