//! Arms whose number of CPUs is a setting.

use std::ops::Range;

use weir_model::study::{CPU_COUNT, ProxySpec};
use weir_parameters::Catalog;

use super::Draft;
use crate::check::Checker;

/// Gives arms whose number of CPUs is a setting as many workers as CPUs, if the study names no number of workers (`auto`
/// may stand for the CPUs of the machine). Arms of users' configurations keep what these say.
pub(super) fn give_workers(
    drafts: &mut [Draft],
    (proxy, span): (&ProxySpec, Range<usize>),
    catalog: &Catalog,
    check: &mut Checker,
) {
    let with_count = drafts.iter().filter(|draft| draft.arm.cpu_count().is_some()).count();
    if with_count == 0 {
        return;
    }
    if with_count < drafts.len() {
        let message = "some arms say how many CPUs their proxy has (`cpus`), and others do not";
        check
            .error(span, message)
            .hint("say it for all: the baseline's are in the proxy's `settings`, as `cpus: 1`");
        return;
    }
    for draft in drafts {
        let of_arm = draft.proxy(proxy);
        let (kind, is_own) = (of_arm.kind, of_arm.configuration.is_some());
        let settings = &draft.arm.settings;
        if let Some(workers) = catalog.workers_id(kind).filter(|_| !is_own)
            && catalog.workers(kind, settings).is_none_or(|_| !settings.contains_key(workers))
        {
            let count = draft.arm.settings[CPU_COUNT].clone();
            draft.arm.settings.insert(workers.to_owned(), count);
        }
    }
}
