//! Levels that arms asked for and did not get: what they do is no effect of theirs.

use std::collections::BTreeMap;

use weir_model::record::{ProxyRecord, Record};
use weir_model::study::ArmRole;
use weir_record::Run;

use crate::findings::InertArm;

/// The arms with inert levels, in the order of the study. A resumed run starts its proxies again: an
/// arm's last record counts.
pub(crate) fn inert(run: &Run) -> Vec<InertArm> {
    let mut last: BTreeMap<&str, &ProxyRecord> = BTreeMap::new();
    for record in &run.records {
        if let Record::Proxy(proxy) = record {
            last.insert(&proxy.arm, proxy);
        }
    }
    let arms = run.header.study.arms.iter();
    let changes = arms.filter(|arm| arm.role == ArmRole::Change);
    changes
        .filter_map(|arm| {
            let levels = &last.get(&*arm.name)?.inert;
            let is_inert = |id: &String| levels.iter().any(|level| level.id == *id);
            (!levels.is_empty()).then(|| InertArm {
                arm: arm.name.clone(),
                whole: arm.changes.keys().all(is_inert),
                levels: levels.clone(),
            })
        })
        .collect()
}
