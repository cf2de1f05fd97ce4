//! The answer of a matrix of loads: a sentence for each of a hundred cells would say nothing.

use weir_model::record::Validity;
use weir_model::study::{Arm, ArmRole, LoadSpec, Study};

use crate::findings::{Comparison, InertArm, LoadFindings, Verdict};
use crate::names::metric_words;

use super::inert_clause;

/// Splits loads into those of each matrix and the others, which stand alone, in the order of the study.
pub(super) fn groups<'a>(study: &Study, loads: &[&'a LoadFindings]) -> Vec<Vec<&'a LoadFindings>> {
    let matrix = |load: &&LoadFindings| {
        let cell = spec(study, load)?.cell.as_ref();
        cell.map(|cell| cell.matrix.clone())
    };
    let alike =
        |a: &&'a LoadFindings, b: &&'a LoadFindings| matrix(a).is_some() && matrix(a) == matrix(b);
    loads.chunk_by(alike).map(<[_]>::to_vec).collect()
}

fn spec<'a>(study: &'a Study, load: &LoadFindings) -> Option<&'a LoadSpec> {
    study.loads.iter().find(|spec| spec.name == load.load)
}

/// What all cells come to, arm by arm.
pub(super) fn sentence(study: &Study, cells: &[&LoadFindings], inert: &[InertArm]) -> String {
    let changes = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
    let mut parts: Vec<String> = changes
        .map(|arm| match inert_clause(inert, &arm.name) {
            Some(clause) => clause,
            None => of_arm(study, cells, arm),
        })
        .collect();
    if parts.is_empty() {
        parts.push("there is no change to compare".to_owned());
    }
    let valid = cells
        .iter()
        .filter(|cell| cell.validity != Validity::Invalid);
    format!(
        "Over {} of {} loads of the matrix, by the {}: {}.",
        valid.count(),
        cells.len(),
        metric_words(study.objective.metric),
        parts.join("; ")
    )
}

/// "keepalive: better in 3 (0.91 to 0.95 times), no difference beyond 2 % in 97".
fn of_arm(study: &Study, cells: &[&LoadFindings], arm: &Arm) -> String {
    let valid = |cell: &&&LoadFindings| cell.validity != Validity::Invalid;
    let usable: Vec<&&LoadFindings> = cells.iter().filter(valid).collect();
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
    let without = usable
        .iter()
        .filter(|cell| cell.ineffective_of(&arm.name).next().is_some());
    let without = Some(without.count()).filter(|count| *count > 0);
    let parts: Vec<String> = [
        without.map(|count| format!("without its effect in {count}")),
        shown(Verdict::Better, "better"),
        shown(Verdict::Worse, "worse"),
        counted(
            Verdict::Equivalent,
            &format!("no difference beyond {band} %"),
        ),
        counted(Verdict::Inconclusive, "no difference that could be shown"),
        counted(Verdict::Invalid, "no valid figures"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{}: {}", arm.name, parts.join(", "))
}
