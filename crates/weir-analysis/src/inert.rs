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
        (!levels.is_empty()).then(|| InertArm {
            arm: arm.name.clone(),
            whole: arm.changes.keys().all(|id| levels.iter().any(|level| level.id == *id)),
            levels: levels.clone(),
        })
    });
    let (mut inert, mut misread) = (Vec::new(), Vec::new());
    for arm in all {
        match clearest(study, loads, &arm.arm).filter(|_| arm.whole) {
            Some((load, comparison)) => misread.push(MisreadArm {
                against: comparison.against.clone(),
                load: load.load.clone(),
                metric: comparison.metric,
                ratio: comparison.ratio,
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
    loads
        .iter()
        .filter(|load| load.is_usable())
        .flat_map(|load| load.comparisons.iter().map(move |comparison| (load, comparison)))
        .filter(|(_, comparison)| {
            let (low, high) = comparison.interval;
            let is_beyond = low > 1.0 + objective.band || high < 1.0 - objective.band;
            let is_shown = matches!(comparison.verdict, Verdict::Better | Verdict::Worse);
            let is_objective = comparison.metric == objective.metric;
            comparison.arm == arm && is_shown && (is_beyond || is_objective)
        })
        .max_by(|(_, a), (_, b)| {
            let [(a_first, a), (b_first, b)] =
                [a, b].map(|c| (c.metric == objective.metric, c.ratio.ln().abs()));
            a_first.cmp(&b_first).then(a.total_cmp(&b))
        })
}
