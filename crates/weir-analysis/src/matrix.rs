//! Loads of a matrix as a whole: the effect of each arm over all of them, and the loads that stand out.
//!
//! Loads of one matrix are many, and one in twenty shows something by chance. So p is corrected over all of them by the
//! method of Benjamini and Hochberg, and the effect of an arm over all of them is a question of its own.

use std::collections::BTreeSet;

use weir_model::record::Phase;
use weir_model::study::{ArmRole, Compare, LoadSpec, Study, Until};
use weir_record::Run;
use weir_stats::pooled::{Stratum, pooled};
use weir_stats::{Evidence, benjamini_hochberg, holm, ratio_of, relative_difference, verdict};

use crate::compare::Comparer;
use crate::findings::{Comparison, LoadFindings, PooledArm, Verdict};
use crate::{overall, ranking};

/// Half-width of a 95 % interval in standard errors, at least.
const ERRORS: f64 = 1.96;

/// Returns the number of loads in the matrix that a load is a cell of; 1 for a load that stands alone. With `compare:
/// overall`, the number of comparisons that decide.
pub fn cells(study: &Study, load: &LoadSpec) -> usize {
    if study.compare == Compare::Overall {
        return overall::count(study);
    }
    let Some(cell) = &load.cell else { return 1 };
    study
        .loads
        .iter()
        .filter_map(|load| load.cell.as_ref())
        .filter(|other| other.matrix == cell.matrix)
        .count()
}

/// Returns the name of the matrix that a load is a cell of; `None` for a load that stands alone.
fn matrix_of<'s>(study: &'s Study, load: &str) -> Option<&'s str> {
    let spec = study.loads.iter().find(|spec| spec.name == load)?;
    spec.cell.as_ref().map(|cell| &*cell.matrix)
}

/// Key of a continuous trial that several loads may share: the session, and index and first block of the first of its
/// loads.
type TrialKey = (u32, usize, u32);

/// Replicates of one arm under one load of a matrix, by the objective's metric.
pub(crate) struct CellSample {
    matrix: String,
    arm: usize,
    /// Estimate and standard error of the relative difference.
    estimate: (f64, f64),
    differences: Vec<f64>,
    trials: Vec<TrialKey>,
}

/// Returns the replicates of each change under a load, if the load is part of a matrix and its end was planned.
pub(crate) fn samples(
    run: &Run,
    load: &LoadSpec,
    comparer: &Comparer<'_>,
    found: &[Comparison],
) -> Vec<CellSample> {
    let study = &run.header.study;
    let (Some(cell), Until::Planned) = (&load.cell, study.until) else {
        return Vec::new();
    };
    let metric = study.objective.metric;
    let load_keys = trial_keys(run, load);
    let mut samples = Vec::new();
    for (index, arm) in study.arms.iter().enumerate() {
        let Some(comparison) = found
            .iter()
            .find(|found| found.metric == metric && found.arm == arm.name)
            .filter(|_| arm.role == ArmRole::Change)
        else {
            continue;
        };
        let (low, high) = comparison.interval;
        let half_width = (relative_difference(high) - relative_difference(low)) / 2.0;
        let estimate = relative_difference(comparison.ratio);
        let Ok(drawn) = comparer.draw(metric, index, arm.against) else {
            continue;
        };
        let keys = drawn.instances.iter().map(|instance| {
            let unknown = (u32::MAX, study.loads.len(), *instance as u32);
            load_keys.get(*instance).copied().unwrap_or(unknown)
        });
        if estimate.is_finite() {
            samples.push(CellSample {
                matrix: cell.matrix.clone(),
                arm: index,
                estimate: (estimate, half_width / ERRORS),
                trials: keys.collect(),
                differences: drawn.differences,
            });
        }
    }
    samples
}

/// Returns the keys of a load's continuous trials, in the order of the records.
fn trial_keys(run: &Run, load: &LoadSpec) -> Vec<TrialKey> {
    let loads = &run.header.study.loads;
    run.parts_in(&load.name, Phase::counts)
        .map(|part| {
            let (index, block) = part
                .with
                .iter()
                .map(|other| (&other.load, other.first_block))
                .chain([(&part.load, part.first_block)])
                .map(|(name, block)| (loads.iter().position(|load| load.name == *name), block))
                .min()
                .unwrap_or_default();
            (part.session, index.unwrap_or(loads.len()), block)
        })
        .collect()
}

/// Pools the samples of each arm over the loads of each matrix. p is corrected for the arms of a matrix by Holm's method.
pub(crate) fn pool(study: &Study, samples: &[CellSample]) -> Vec<PooledArm> {
    let objective = &study.objective;
    let matrices: BTreeSet<&str> = samples.iter().map(|sample| &*sample.matrix).collect();
    let mut all = Vec::new();
    for matrix in matrices {
        let arms = (0..study.arms.len()).filter_map(|arm| {
            let strata: Vec<Stratum<'_, TrialKey>> = samples
                .iter()
                .filter(|sample| sample.matrix == matrix && sample.arm == arm)
                .map(CellSample::stratum)
                .collect();
            let n = strata.iter().map(|stratum| stratum.sample.len()).sum();
            Some((arm, n, pooled(&strata, objective.confidence)?))
        });
        let arms: Vec<_> = arms.collect();
        let p: Vec<f64> = arms.iter().map(|(_, _, pooled)| pooled.p).collect();
        for ((arm, n, pooled), p) in arms.into_iter().zip(holm(&p)) {
            let evidence = Evidence {
                interval: pooled.interval.ratios(),
                confidence: pooled.interval.confidence,
                p,
                n,
            };
            let better = objective.metric.higher_is_better();
            all.push(PooledArm {
                matrix: matrix.to_owned(),
                arm: study.arms[arm].name.clone(),
                ratio: ratio_of(pooled.value),
                interval: pooled.interval.ratios(),
                verdict: verdict(&evidence, objective.band, objective.confidence, better).into(),
            });
        }
    }
    all
}

impl CellSample {
    fn stratum(&self) -> Stratum<'_, TrialKey> {
        Stratum {
            estimate: self.estimate.0,
            error: self.estimate.1,
            sample: &self.differences,
            instances: &self.trials,
        }
    }
}

/// Corrects p over the loads of each matrix, for each metric, and withdraws claims that no longer stand. Looks are left
/// alone, because their levels already allow for all loads of a matrix.
pub(crate) fn control(study: &Study, loads: &mut [LoadFindings]) {
    if study.until == Until::Decided {
        return;
    }
    let matrices: BTreeSet<&str> =
        loads.iter().filter_map(|load| matrix_of(study, &load.load)).collect();
    let changes = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
    let changes: BTreeSet<&str> = changes.map(|arm| &*arm.name).collect();
    for matrix in matrices {
        let mut cells: Vec<&mut LoadFindings> =
            loads.iter_mut().filter(|load| matrix_of(study, &load.load) == Some(matrix)).collect();
        let pairs = cells.iter_mut().flat_map(|cell| &mut cell.pairs);
        correct(study, pairs.collect());
        let (of_changes, of_same): (Vec<_>, Vec<_>) = cells
            .iter_mut()
            .flat_map(|cell| &mut cell.comparisons)
            .partition(|comparison| changes.contains(&*comparison.arm));
        // Where all pairs are compared the changes are among them.
        if study.compare == Compare::Against {
            correct(study, of_changes);
        }
        correct(study, of_same);
        for cell in cells {
            copy_from_pairs(cell);
            cell.rankings = ranking::rankings(study, &cell.metrics, &cell.pairs);
        }
    }
}

/// Copies verdicts of pairs to the comparisons of the same arms, so that a verdict is the same in both places.
fn copy_from_pairs(cell: &mut LoadFindings) {
    for comparison in &mut cell.comparisons {
        let pair = cell.pairs.iter().find(|pair| {
            pair.metric == comparison.metric
                && pair.arm == comparison.arm
                && pair.against == comparison.against
        });
        // A pair is not held against the A/A arm, and what was taken back stays so.
        if let Some(pair) = pair {
            (comparison.p_holm, comparison.family) = (pair.p_holm, pair.family);
            if pair.verdict == Verdict::Inconclusive {
                comparison.verdict = pair.verdict;
                comparison.because.clone_from(&pair.because);
            }
        }
    }
}

/// Corrects the comparisons on each metric as one family.
fn correct(study: &Study, comparisons: Vec<&mut Comparison>) {
    let valid = comparisons.into_iter();
    let mut valid: Vec<_> = valid.filter(|found| found.verdict != Verdict::Invalid).collect();
    valid.sort_by_key(|found| found.metric);
    for family in valid.chunk_by_mut(|a, b| a.metric == b.metric) {
        let p: Vec<f64> = family.iter().map(|found| found.p).collect();
        for (found, corrected) in family.iter_mut().zip(benjamini_hochberg(&p)) {
            found.take_corrected(corrected, p.len(), &study.objective);
        }
    }
}
