//! Levels that arms requested but did not get. Effects of such arms are not effects of these levels.

use weir_model::study::{ArmRole, Study};
use weir_record::Run;

use crate::effects::proxies;
use crate::findings::{Comparison, InertArm, LoadFindings, MisreadArm, Verdict};

/// Returns the arms with inert levels, in the order of the study, and separately the arms that were read as wholly
/// inert but cannot be, because they clearly differ from the arm that they are compared with. A resumed run starts its
/// proxies again, so an arm's last record counts.
pub(crate) fn inert(run: &Run, loads: &[LoadFindings]) -> (Vec<InertArm>, Vec<MisreadArm>) {
    let (study, last) = (&run.header.study, proxies(run));
    let changes = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
    let all = changes.filter_map(|arm| {
        let levels = &last.get(&*arm.name)?.inert;
        let is_inert = |id: &String| levels.iter().any(|level| level.id == *id);
        (!levels.is_empty()).then(|| InertArm {
            arm: arm.name.clone(),
            whole: arm.changes.keys().all(is_inert),
            levels: levels.clone(),
        })
    });
    let (mut inert, mut misread) = (Vec::new(), Vec::new());
    for arm in all {
        match clearest(study, loads, &arm.arm).filter(|_| arm.whole) {
            Some((load, found)) => misread.push(MisreadArm {
                against: found.against.clone(),
                load: load.load.clone(),
                metric: found.metric,
                ratio: found.ratio,
                arm: arm.arm,
                levels: arm.levels,
            }),
            None => inert.push(arm),
        }
    }
    (inert, misread)
}

/// Returns the largest effect of an arm that chance does not explain. On the objective's metric any shown effect
/// counts; on other metrics, of which there are several under each load, only one beyond the equivalence band.
fn clearest<'l>(
    study: &Study,
    loads: &'l [LoadFindings],
    arm: &str,
) -> Option<(&'l LoadFindings, &'l Comparison)> {
    let objective = &study.objective;
    let is_clear = |found: &&Comparison| {
        let (low, high) = found.interval;
        let is_beyond = low > 1.0 + objective.band || high < 1.0 - objective.band;
        let is_shown = matches!(found.verdict, Verdict::Better | Verdict::Worse);
        found.arm == arm && is_shown && (is_beyond || found.metric == objective.metric)
    };
    let clear = loads.iter().filter(|load| load.is_usable()).flat_map(|load| {
        let found = load.comparisons.iter().filter(is_clear);
        found.map(move |found| (load, found))
    });
    let size = |found: &Comparison| (found.metric == objective.metric, found.ratio.ln().abs());
    clear.max_by(|(_, a), (_, b)| {
        let ((a_first, a), (b_first, b)) = (size(a), size(b));
        a_first.cmp(&b_first).then(a.total_cmp(&b))
    })
}
