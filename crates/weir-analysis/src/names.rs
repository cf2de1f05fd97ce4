//! Arms of a study by their names.

use weir_model::study::{Arm, Study};

pub(crate) fn find<'a>(study: &'a Study, name: &str) -> Option<&'a Arm> {
    study.arms.iter().find(|arm| arm.name == name)
}

/// Returns true if two arms are different systems, so that one does not "make" the other carry more: another program,
/// another executable of it, another address, or another configuration of the user's.
pub fn are_different_proxies(study: &Study, a: &str, b: &str) -> bool {
    let [first, second] = [a, b].map(|name| {
        let proxy = study.proxy_of(find(study, name)?);
        let configuration = proxy.configuration.as_ref();
        Some((proxy.kind, &proxy.executable, configuration, proxy.external.as_ref()))
    });
    first != second
}

/// Returns true if the arms that are compared with another than the baseline are steps, each compared with the one
/// before it. If false, each is compared with the one of its stratum.
pub fn are_steps(study: &Study) -> bool {
    let mut arms = study.arms.iter().enumerate();
    arms.all(|(index, arm)| arm.against == 0 || index.checked_sub(1) == Some(arm.against))
}
