//! Validity of the answer: loads are judged by their trials, matrices by their loads, and the answer by the worst of
//! those behind it. The headline also lists what the answer leaves out.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::record::{Outcome, Record, Validity};
use weir_model::study::{Metric, Study};

use crate::blocks::LoadData;
use crate::findings::{
    CountedReason, Findings, Headline, HeadlineReason, Incomplete, LeftOut, LoadFindings,
    MatrixFindings, Verdict,
};
use crate::validity::Reason;

/// Share of SUSPECT trials of any arm, or of INVALID blocks, above which a load is SUSPECT as a whole. One stolen tick
/// among a thousand slices says nothing about their median; every reason is listed with its count anyway.
const SUSPECT_SHARE: f64 = 0.05;

/// Share of SUSPECT and INVALID loads above which a matrix is SUSPECT.
const DOUBTFUL_SHARE: f64 = 0.05;
/// Share of INVALID loads above which a matrix is INVALID, and of INVALID blocks from which on a load is SUSPECT.
const INVALID_SHARE: f64 = 0.5;

/// Returns the load's validity and each reason once, INVALID before SUSPECT, frequent before rare.
pub(crate) fn load(data: &LoadData<'_>) -> (Validity, Vec<CountedReason>) {
    let used = data.blocks_used();
    let lost = data.blocks.len() as f64 - f64::from(used);
    let validity = match () {
        () if !comparable(data) => Validity::Invalid,
        () if lost >= INVALID_SHARE * data.blocks.len() as f64 => Validity::Suspect,
        () if (0..data.study.arms.len()).any(|arm| mostly_suspect(data, arm)) => Validity::Suspect,
        () => Validity::Valid,
    };
    (validity, reasons(data))
}

/// Returns true if at least one arm has a usable block in common with the arm that it is compared with, or if there is
/// only one arm.
fn comparable(data: &LoadData<'_>) -> bool {
    if data.study.arms.len() == 1 {
        return data.usable_of(0).next().is_some();
    }
    let mut pairs = data
        .study
        .arms
        .iter()
        .enumerate()
        .skip(1)
        .map(|(index, arm)| data.usable_pairs(index, arm.against));
    pairs.any(|blocks| !blocks.is_empty())
}

/// Returns true if too many of an arm's usable trials are SUSPECT.
pub(crate) fn mostly_suspect(data: &LoadData<'_>, arm: usize) -> bool {
    let all: Vec<_> = data
        .blocks
        .iter()
        .filter_map(|block| block[arm].as_ref())
        .filter(|judged| judged.usable())
        .collect();
    // A search has left out what the machine did, unless it did so most of the time.
    let (left_out, undisturbed): (Vec<_>, Vec<_>) =
        all.iter().copied().partition(|judged| judged.trial.stood_still(&data.study.capacity));
    let usable = if left_out.len() > undisturbed.len() { all } else { undisturbed };
    usable.iter().filter(|j| j.validity() == Validity::Suspect).count() as f64
        > SUSPECT_SHARE * usable.len() as f64
}

fn reasons(data: &LoadData<'_>) -> Vec<CountedReason> {
    let mut counted_reasons: BTreeMap<(Validity, &str), (f64, CountedReason)> = BTreeMap::new();
    let of_all = data.blocks.iter().flatten().flatten().count() as u32;
    for judged in data.blocks.iter().flatten().flatten() {
        let mut rules = BTreeSet::new();
        for Reason { reason, size } in &judged.reasons {
            let key = (reason.validity, reason.rule());
            let (worst, counted) = counted_reasons.entry(key).or_insert_with(|| {
                let (reason, arms) = (reason.clone(), Vec::new());
                (*size, CountedReason { reason, arms, trials: 0, of: of_all })
            });
            if size > worst {
                *worst = *size;
                counted.reason = reason.clone();
            }
            // Two hops, or two flows, of one trial are one trial.
            counted.trials += u32::from(rules.insert(key));
            if !counted.arms.contains(&judged.trial.arm) {
                counted.arms.push(judged.trial.arm.clone());
            }
        }
    }
    let mut reasons: Vec<_> = counted_reasons.into_values().map(|(_, counted)| counted).collect();
    reasons.sort_by_key(|r| std::cmp::Reverse((r.reason.validity, r.trials)));
    reasons
}

/// Returns the trials that are left out of all figures.
pub(crate) fn left_out(data: &LoadData<'_>) -> Vec<LeftOut> {
    let judged = data.blocks.iter().flatten().flatten();
    let unusable = judged.filter(|judged| !judged.usable());
    unusable
        .map(|judged| {
            let rules = judged
                .reasons
                .iter()
                .map(|found| &found.reason)
                .filter(|reason| reason.validity == Validity::Invalid);
            LeftOut {
                block: judged.trial.block,
                arm: judged.trial.arm.clone(),
                rules: rules.map(|reason| reason.rule().to_owned()).collect(),
            }
        })
        .collect()
}

/// Returns the reason why loads have this validity: the most frequent reason of the first of them, and how many of its
/// blocks were lost. `None` if they are VALID.
fn find_reason<'a>(
    validity: Validity,
    mut loads: impl Iterator<Item = &'a LoadFindings>,
) -> Option<HeadlineReason> {
    if validity == Validity::Valid {
        return None;
    }
    let findings = loads.find(|load| load.validity == validity)?;
    let load = findings.load.clone();
    if findings.blocks == 0 {
        return Some(HeadlineReason::NothingMeasured { load });
    }
    // What makes it INVALID, before what would make it SUSPECT.
    let gravest = findings.reasons.iter().filter(|counted| counted.reason.validity == validity);
    let reason = most_frequent(gravest).or_else(|| most_frequent(&findings.reasons));
    let lost_blocks = findings.blocks.saturating_sub(findings.blocks_used);
    Some(HeadlineReason::Trials { load, reason, lost_blocks, blocks: findings.blocks })
}

/// Returns the most frequent reason. Frequencies are shares of the trials that were examined for the reason.
fn most_frequent<'a>(
    reasons: impl IntoIterator<Item = &'a CountedReason>,
) -> Option<CountedReason> {
    let most = reasons.into_iter().max_by(|a, b| {
        let [a, b] = [a, b].map(|counted| f64::from(counted.trials) / f64::from(counted.of.max(1)));
        a.total_cmp(&b)
    });
    most.cloned()
}

/// Judges the validity of a search. That no capacity can be claimed does not make its figures invalid.
pub(crate) fn search(data: &LoadData<'_>) -> (Validity, Vec<CountedReason>) {
    let mut arms = 0..data.study.arms.len();
    let validity = match () {
        () if arms.clone().all(|arm| data.usable_of(arm).next().is_none()) => Validity::Invalid,
        () if arms.any(|arm| mostly_suspect(data, arm)) => Validity::Suspect,
        () => Validity::Valid,
    };
    (validity, reasons(data))
}

/// Returns the headline of a run after its loads and matrices, or its searches, were judged.
pub(crate) fn headline(study: &Study, records: &[Record], findings: &Findings) -> Headline {
    if let Some(capacity) = &findings.capacity {
        let reason = match capacity.validity {
            Validity::Valid => None,
            _ => most_frequent(&capacity.reasons),
        };
        return Headline {
            validity: capacity.validity,
            reason: reason.map(HeadlineReason::Search),
            incomplete: incomplete(records, findings.complete),
            left_out: Vec::new(),
        };
    }
    let loads = findings.loads.iter();
    let alone = loads.clone().filter(|load| matrix_of(study, load).is_none());
    let metric = study.objective.metric;
    let answering = alone.clone().filter(|load| load.metrics.contains(&metric));
    let answering_again =
        answering.clone().chain(loads.clone().filter(|load| matrix_of(study, load).is_some()));
    let validity = answering
        .map(|load| load.validity)
        .chain(findings.matrices.iter().map(|matrix| matrix.validity))
        .max()
        .unwrap_or(Validity::Invalid);
    let unusable = alone.clone().filter(|load| load.validity == Validity::Invalid);
    let mut headline = Headline {
        validity,
        reason: find_reason(validity, answering_again),
        incomplete: incomplete(records, findings.complete),
        left_out: match validity {
            Validity::Invalid => Vec::new(),
            _ => unusable.map(|load| load.load.clone()).collect(),
        },
    };
    let without = alone.filter_map(|load| without_figures(load, metric));
    if let Some((validity, reason)) = without.max_by_key(|(validity, _)| *validity)
        && validity > headline.validity
    {
        (headline.validity, headline.reason) = (validity, Some(reason));
    }
    headline
}

/// Returns a comparison if the usable trials of a load lack figures of the study's metric, or enough requests for its
/// quantile.
fn without_figures(load: &LoadFindings, metric: Metric) -> Option<(Validity, HeadlineReason)> {
    let mut comparisons = load.comparisons.iter().filter(|c| c.metric == metric);
    let first = comparisons.clone().next().filter(|_| load.blocks_used > 0)?;
    let all_invalid = comparisons.clone().all(|c| c.verdict == Verdict::Invalid);
    let (validity, comparison) = if all_invalid {
        (Validity::Invalid, first)
    } else {
        (Validity::Suspect, comparisons.find(|c| c.lacks_requests())?)
    };
    let (load, arm) = (load.load.clone(), comparison.arm.clone());
    Some((validity, HeadlineReason::Comparison { load, arm, metric }))
}

fn incomplete(records: &[Record], complete: bool) -> Option<Incomplete> {
    let end = records.iter().rev().find_map(|record| match record {
        Record::End(end) => Some(end),
        _ => None,
    });
    let outcome = end.map(|end| end.outcome);
    let is_planned = matches!(outcome, None | Some(Outcome::Complete)) && complete;
    (!is_planned).then(|| Incomplete {
        outcome,
        error: end.map_or_else(String::new, |end| end.error.trim().to_owned()),
    })
}

/// Returns the findings about all matrices of a study, in its order.
pub(crate) fn matrices(study: &Study, loads: &[LoadFindings]) -> Vec<MatrixFindings> {
    let mut matrices: Vec<(&str, Vec<&LoadFindings>)> = Vec::new();
    for load in loads {
        let Some(name) = matrix_of(study, load) else {
            continue;
        };
        match matrices.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cells)) => cells.push(load),
            None => matrices.push((name, vec![load])),
        }
    }
    matrices
        .into_iter()
        .map(|(name, cells)| MatrixFindings {
            name: name.to_owned(),
            validity: validity(&cells),
            loads: cells.len() as u32,
            used: cells.iter().filter(|cell| cell.is_usable()).count() as u32,
        })
        .collect()
}

/// Returns the name of the matrix that a load is a cell of.
fn matrix_of<'a>(study: &'a Study, load: &LoadFindings) -> Option<&'a str> {
    let spec = study.loads.iter().find(|spec| spec.name == load.load)?;
    spec.cell.as_ref().map(|cell| &*cell.matrix)
}

fn validity(cells: &[&LoadFindings]) -> Validity {
    let [invalid, doubtful] = [Validity::Invalid, Validity::Suspect].map(|least| {
        cells.iter().filter(|cell| cell.validity >= least).count() as f64
            / cells.len().max(1) as f64
    });
    if invalid > INVALID_SHARE {
        Validity::Invalid
    } else if doubtful > DOUBTFUL_SHARE {
        Validity::Suspect
    } else {
        Validity::Valid
    }
}
