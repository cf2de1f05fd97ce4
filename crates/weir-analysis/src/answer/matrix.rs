//! The answer of a matrix of loads, arm by arm. A sentence for each of a hundred cells would tell nobody anything.

use weir_model::record::Validity;
use weir_model::study::{Arm, ArmRole, LoadSpec, Study, Until};
use weir_stats::Outcome;

use crate::findings::{Comparison, InertArm, LoadFindings, Verdict};
use crate::matrix::PooledArm;
use crate::names::{self, metric_words};

use super::inert_clause;

/// Splits loads, in the order of the study, into one group for each matrix and one for each load that stands alone.
pub(super) fn groups<'a>(study: &Study, loads: &[&'a LoadFindings]) -> Vec<Vec<&'a LoadFindings>> {
    let matrix = |load: &&LoadFindings| {
        let cell = spec(study, load)?.cell.as_ref();
        cell.map(|cell| cell.matrix.clone())
    };
    loads
        .chunk_by(|a, b| matrix(a).is_some() && matrix(a) == matrix(b))
        .map(<[_]>::to_vec)
        .collect()
}

fn spec<'a>(study: &'a Study, load: &LoadFindings) -> Option<&'a LoadSpec> {
    study.loads.iter().find(|spec| spec.name == load.load)
}

/// Summarises all cells of a matrix, arm by arm.
pub(super) fn sentence(
    study: &Study,
    (cells, pooled): (&[&LoadFindings], &[PooledArm]),
    inert: &[InertArm],
) -> String {
    let matrix =
        cells.first().and_then(|cell| spec(study, cell)).and_then(|spec| spec.cell.as_ref());
    let of_matrix = |arm: &Arm| {
        pooled.iter().find(|found| {
            found.arm == arm.name && matrix.is_some_and(|cell| cell.matrix == found.matrix)
        })
    };
    let mut parts: Vec<String> = study
        .arms
        .iter()
        .filter(|arm| arm.role == ArmRole::Change)
        .map(|arm| match inert_clause(inert, &arm.name) {
            Some(clause) => clause,
            None => of_arm(study, cells, (arm, of_matrix(arm))),
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
        controlled(study, cells)
    )
}

/// States the error probability that the figures are corrected for; empty if no load shows a difference.
fn controlled(study: &Study, cells: &[&LoadFindings]) -> String {
    let mut all = cells.iter().flat_map(|cell| &cell.comparisons);
    let is_claim = |found: &Comparison| {
        let is_shown = matches!(found.verdict, Verdict::Better | Verdict::Worse);
        is_shown && found.metric == study.objective.metric
    };
    if !all.any(is_claim) {
        return String::new();
    }
    let error = ((1.0 - study.objective.confidence) * 1e4).round() / 1e2;
    match study.until {
        Until::Planned => format!(
            " Of the loads called better or worse, at most {error} % are so by chance, on average (Benjamini-Hochberg)."
        ),
        Until::Decided => {
            format!(
                " That any load is called better or worse by chance has a probability of {error} % at most."
            )
        }
    }
}

/// Returns "better on average (1.05 times, 95 % interval 1.04 to 1.06)".
fn over_all(study: &Study, pooled: &PooledArm) -> String {
    let confidence = (study.objective.confidence * 1e4).round() / 1e2;
    let band = (study.objective.band * 1e4).round() / 1e2;
    let said = match pooled.verdict {
        Outcome::Better => "better".to_owned(),
        Outcome::Worse => "worse".to_owned(),
        Outcome::Equivalent => format!("no difference beyond {band} %"),
        Outcome::Inconclusive => "no difference that could be shown".to_owned(),
    };
    format!(
        "{said} on average ({:.2} times, {confidence} % interval {})",
        pooled.ratio,
        names::interval(pooled.interval)
    )
}

/// Returns "keepalive: better on average (0.99 times, ...), better in 3 (0.91 to 0.95 times), no difference beyond 2 %
/// in 97".
fn of_arm(
    study: &Study,
    cells: &[&LoadFindings],
    (arm, pooled): (&Arm, Option<&PooledArm>),
) -> String {
    let usable: Vec<&&LoadFindings> =
        cells.iter().filter(|cell| cell.validity != Validity::Invalid).collect();
    let found: Vec<&Comparison> = usable
        .iter()
        .flat_map(|cell| &cell.comparisons)
        .filter(|c| c.arm == arm.name && c.metric == study.objective.metric)
        .collect();
    let of = |verdict: Verdict| found.iter().filter(move |c| c.verdict == verdict);
    let shown = |verdict, word: &str| {
        let ratios: Vec<f64> = of(verdict).map(|c| c.ratio).collect();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        (!ratios.is_empty())
            .then(|| format!("{word} in {} ({low:.2} to {high:.2} times)", ratios.len()))
    };
    let counted = |verdict, words: &str| {
        let unusable = match verdict {
            Verdict::Invalid => cells.len() - usable.len(),
            _ => 0,
        };
        let count = of(verdict).count() + unusable;
        (count > 0).then(|| format!("{words} in {count}"))
    };
    let band = (study.objective.band * 1e4).round() / 1e2;
    let without =
        Some(usable.iter().filter(|cell| cell.ineffective_of(&arm.name).next().is_some()).count())
            .filter(|count| *count > 0);
    let parts: Vec<String> = [
        pooled.map(|pooled| over_all(study, pooled)),
        without.map(|count| format!("without its effect in {count}")),
        shown(Verdict::Better, "better"),
        shown(Verdict::Worse, "worse"),
        counted(Verdict::Equivalent, &format!("no difference beyond {band} %")),
        counted(Verdict::Inconclusive, "no difference that could be shown"),
        counted(Verdict::Invalid, "no valid figures"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{}: {}", arm.name, parts.join(", "))
}
