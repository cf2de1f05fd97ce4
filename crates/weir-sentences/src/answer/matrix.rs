//! The answer of a matrix of loads, arm by arm. A sentence for each of a hundred cells would tell nobody anything.

use weir_analysis::findings::{Comparison, InertArm, LoadFindings, PooledArm, Verdict};
use weir_model::record::Validity;
use weir_model::study::{Arm, ArmRole, LoadSpec, Study, Until};

use crate::names::metric_words;
use crate::numbers;

use super::describe_inert_arm;

/// Splits loads, in the order of the study, into one group for each matrix and one for each load that stands alone.
pub(super) fn group_loads<'a>(
    study: &Study,
    loads: &[&'a LoadFindings],
) -> Vec<Vec<&'a LoadFindings>> {
    loads
        .chunk_by(|a, b| {
            let [first, second] =
                [a, b].map(|load| find_load(study, load)?.cell.as_ref().map(|cell| &cell.matrix));
            first.is_some() && first == second
        })
        .map(<[_]>::to_vec)
        .collect()
}

fn find_load<'a>(study: &'a Study, load: &LoadFindings) -> Option<&'a LoadSpec> {
    study.loads.iter().find(|spec| spec.name == load.load)
}

/// Summarises all cells of a matrix, arm by arm.
pub(super) fn describe_matrix(
    study: &Study,
    (cells, pooled): (&[&LoadFindings], &[PooledArm]),
    inert: &[InertArm],
) -> String {
    let matrix =
        cells.first().and_then(|cell| find_load(study, cell)).and_then(|spec| spec.cell.as_ref());
    let mut parts: Vec<String> = study
        .arms
        .iter()
        .filter(|arm| arm.role == ArmRole::Change)
        .map(|arm| match describe_inert_arm(inert, &arm.name) {
            Some(clause) => clause,
            None => {
                let of_matrix = pooled.iter().find(|pooled| {
                    pooled.arm == arm.name
                        && matrix.is_some_and(|cell| cell.matrix == pooled.matrix)
                });
                describe_arm(study, cells, (arm, of_matrix))
            }
        })
        .collect();
    if parts.is_empty() {
        parts.push("there is no change to compare".to_owned());
    }
    let valid = cells.iter().filter(|cell| cell.validity != Validity::Invalid);
    format!(
        "Over {} of {} loads of the matrix, by the {}: {}.{}",
        valid.count(),
        cells.len(),
        metric_words(study.objective.metric),
        parts.join("; "),
        describe_error_control(study, cells)
    )
}

/// States the error probability that the figures are corrected for; empty if no load shows a difference.
fn describe_error_control(study: &Study, cells: &[&LoadFindings]) -> String {
    let claims_any = cells.iter().flat_map(|cell| &cell.comparisons).any(|c| {
        let is_shown = matches!(c.verdict, Verdict::Better | Verdict::Worse);
        is_shown && c.metric == study.objective.metric
    });
    if !claims_any {
        return String::new();
    }
    let error = numbers::level(1.0 - study.objective.confidence);
    match study.until {
        Until::Planned => format!(
            " Of the loads called better or worse, at most {error} are so by chance, on average (Benjamini-Hochberg)."
        ),
        Until::Decided => {
            format!(
                " That any load is called better or worse by chance has a probability of {error} at most."
            )
        }
    }
}

/// Returns "better on average (1.05 times, 95 % interval 1.04 to 1.06)".
fn describe_average(study: &Study, pooled: &PooledArm) -> String {
    let confidence = numbers::level(study.objective.confidence);
    let band = numbers::level(study.objective.band);
    let verdict = match pooled.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Equivalent => format!("no difference beyond {band}"),
        Verdict::Inconclusive | Verdict::Invalid => "no difference that could be shown".to_owned(),
    };
    format!(
        "{verdict} on average ({:.2} times, {confidence} interval {})",
        pooled.ratio,
        numbers::interval(pooled.interval)
    )
}

/// Returns "keepalive: better on average (0.99 times, ...), better in 3 (0.91 to 0.95 times), no difference beyond 2 %
/// in 97".
fn describe_arm(
    study: &Study,
    cells: &[&LoadFindings],
    (arm, pooled): (&Arm, Option<&PooledArm>),
) -> String {
    let usable: Vec<&&LoadFindings> =
        cells.iter().filter(|cell| cell.validity != Validity::Invalid).collect();
    let comparisons: Vec<&Comparison> = usable
        .iter()
        .flat_map(|cell| &cell.comparisons)
        .filter(|c| c.arm == arm.name && c.metric == study.objective.metric)
        .collect();
    let unusable = cells.len() - usable.len();
    let equivalent = count_with(&comparisons, Verdict::Equivalent);
    let open = count_with(&comparisons, Verdict::Inconclusive);
    let invalid = count_with(&comparisons, Verdict::Invalid) + unusable;
    let band = numbers::level(study.objective.band);
    let without =
        Some(usable.iter().filter(|cell| cell.ineffective_of(&arm.name).next().is_some()).count())
            .filter(|count| *count > 0);
    let parts: Vec<String> = [
        pooled.map(|pooled| describe_average(study, pooled)),
        without.map(|count| format!("did not take effect in {count}")),
        describe_shown(&comparisons, Verdict::Better, "better"),
        describe_shown(&comparisons, Verdict::Worse, "worse"),
        (equivalent > 0).then(|| format!("no difference beyond {band} in {equivalent}")),
        (open > 0).then(|| format!("no difference that could be shown in {open}")),
        (invalid > 0).then(|| format!("no valid figures in {invalid}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{}: {}", arm.name, parts.join(", "))
}

fn count_with(comparisons: &[&Comparison], verdict: Verdict) -> usize {
    comparisons.iter().filter(|c| c.verdict == verdict).count()
}

/// Returns "better in 3 (0.91 to 0.95 times)"; `None` if no comparison has the verdict.
fn describe_shown(comparisons: &[&Comparison], verdict: Verdict, word: &str) -> Option<String> {
    let ratios: Vec<f64> =
        comparisons.iter().filter(|c| c.verdict == verdict).map(|c| c.ratio).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    (!ratios.is_empty())
        .then(|| format!("{word} in {} ({low:.2} to {high:.2} times)", ratios.len()))
}
