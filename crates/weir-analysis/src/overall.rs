//! The verdict on the only change of a study with `compare: overall`. It rests on the rate of closed loops, and on the
//! median and the p99 of the response times of open ones. These comparisons are one family: a change that differs in
//! nothing is called worse with the study's error at most (Holm 1979, Scandinavian Journal of Statistics 6).

use weir_model::study::{ArmRole, Compare, LoadSpec, Metric, Study, Until};
use weir_stats::holm;

use crate::findings::{Comparison, LoadFindings, OverallFindings, Verdict, WorstCase};

/// Returns the metrics that count under a load.
pub fn deciding_metrics(load: &LoadSpec) -> &'static [Metric] {
    if load.is_open() { &[Metric::ResponseP50, Metric::ResponseP99] } else { &[Metric::Rate] }
}

/// Returns the number of comparisons that decide.
pub(crate) fn count(study: &Study) -> usize {
    study.loads.iter().map(|load| deciding_metrics(load).len()).sum()
}

/// Corrects p over all comparisons that decide, and withdraws claims that no longer stand. Looks are left alone,
/// because their levels already allow for all of them.
pub(crate) fn control(study: &Study, loads: &mut [LoadFindings]) {
    if study.compare != Compare::Overall || study.until == Until::Decided {
        return;
    }
    let mut family: Vec<&mut Comparison> = loads
        .iter_mut()
        .flat_map(|load| {
            let spec = study.loads.iter().find(|spec| spec.name == load.load);
            let metrics = spec.map_or(&[][..], deciding_metrics);
            load.comparisons.iter_mut().filter(|found| metrics.contains(&found.metric))
        })
        .filter(|found| found.verdict != Verdict::Invalid)
        .collect();
    let p: Vec<f64> = family.iter().map(|found| found.p).collect();
    for (found, corrected) in family.iter_mut().zip(holm(&p)) {
        found.take_corrected(corrected, p.len(), &study.objective);
    }
}

/// Returns the verdict on all comparisons that decide; `None` if the study does not ask for one.
pub(crate) fn find(study: &Study, loads: &[LoadFindings]) -> Option<OverallFindings> {
    if study.compare != Compare::Overall {
        return None;
    }
    let change = study.arms.iter().find(|arm| arm.role == ArmRole::Change)?;
    let cases = loads.iter().flat_map(|load| {
        let spec = study.loads.iter().find(|spec| spec.name == load.load);
        let metrics = spec.map_or(&[][..], deciding_metrics);
        let compared = metrics.iter().filter_map(|metric| load.comparison(&change.name, *metric));
        compared.map(move |found| WorstCase {
            load: load.load.clone(),
            metric: found.metric,
            verdict: if load.is_usable() { found.verdict } else { Verdict::Invalid },
            by: most_worse(found),
        })
    });
    let cases: Vec<WorstCase> = cases.collect();
    let verdict = combine(cases.iter().map(|case| case.verdict));
    let [arm, against] = [&change.name, &study.arms[change.against].name].map(String::clone);
    Some(OverallFindings { arm, against, verdict, cases })
}

/// Combines verdicts: one that is worse is enough; better, and equivalent, hold only if nothing is worse or unknown.
fn combine(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let all: Vec<Verdict> = verdicts.collect();
    if all.contains(&Verdict::Worse) {
        Verdict::Worse
    } else if all.iter().all(|verdict| *verdict == Verdict::Invalid) {
        Verdict::Invalid
    } else if all.contains(&Verdict::Invalid) {
        Verdict::Inconclusive
    } else if all.contains(&Verdict::Better) {
        Verdict::Better
    } else if all.iter().all(|verdict| *verdict == Verdict::Equivalent) {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    }
}

/// Returns the share by which the arm may be worse, by the end of the interval on that side; 0 if it is better all
/// through. `None` without an interval, or if there is no bound.
fn most_worse(found: &Comparison) -> Option<f64> {
    let (low, high) = found.interval;
    let share = if found.metric.higher_is_better() { 1.0 - low } else { high - 1.0 };
    share.is_finite().then(|| share.max(0.0))
}

#[cfg(test)]
mod tests {
    use Verdict::{Better, Equivalent, Inconclusive, Invalid, Worse};

    use super::*;

    #[test]
    fn one_figure_that_is_worse_decides_and_what_is_unknown_hides_the_rest() {
        for (verdicts, wanted) in [
            (&[Equivalent, Equivalent, Equivalent][..], Equivalent),
            (&[Equivalent, Worse, Better], Worse),
            (&[Invalid, Worse, Invalid], Worse),
            (&[Equivalent, Better, Inconclusive], Better),
            (&[Better, Invalid], Inconclusive),
            (&[Equivalent, Inconclusive], Inconclusive),
            (&[Invalid, Invalid], Invalid),
            (&[], Invalid),
        ] {
            assert_eq!(combine(verdicts.iter().copied()), wanted, "{verdicts:?}");
        }
    }
}
