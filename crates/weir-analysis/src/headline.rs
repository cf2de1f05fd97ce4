//! Whether the answer may be believed: the worst of what it rests on, and what it leaves out.

use weir_model::record::{Outcome, Record, Validity};
use weir_model::study::Study;

use crate::findings::{Findings, Headline, Incomplete, LoadFindings, MatrixFindings};

/// More than this share of SUSPECT and INVALID loads make a matrix SUSPECT.
const DOUBTFUL_SHARE: f64 = 0.05;
/// More than this share of INVALID ones make it INVALID.
const INVALID_SHARE: f64 = 0.5;

/// The headline of a run whose loads and matrices were judged.
pub(crate) fn headline(study: &Study, records: &[Record], findings: &Findings) -> Headline {
    let loads = findings.loads.iter();
    let alone = || {
        loads
            .clone()
            .filter(|load| matrix_of(study, load).is_none())
    };
    let metric = study.objective.metric;
    let answering = alone().filter(|load| load.metrics.contains(&metric));
    let validity = answering
        .map(|load| load.validity)
        .chain(findings.matrices.iter().map(|matrix| matrix.validity))
        .max()
        .unwrap_or(Validity::Invalid);
    let unusable = alone().filter(|load| load.validity == Validity::Invalid);
    Headline {
        validity,
        incomplete: incomplete(records, findings.complete),
        left_out: match validity {
            Validity::Invalid => Vec::new(),
            _ => unusable.map(|load| load.load.clone()).collect(),
        },
    }
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

/// All matrices of a study, in its order.
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
    let each = matrices.into_iter();
    each.map(|(name, cells)| MatrixFindings {
        name: name.to_owned(),
        validity: validity(&cells),
        loads: cells.len() as u32,
        used: cells.iter().filter(|cell| cell.is_usable()).count() as u32,
    })
    .collect()
}

/// The matrix that a load is a cell of.
fn matrix_of<'a>(study: &'a Study, load: &LoadFindings) -> Option<&'a str> {
    let spec = study.loads.iter().find(|spec| spec.name == load.load)?;
    spec.cell.as_ref().map(|cell| &*cell.matrix)
}

fn validity(cells: &[&LoadFindings]) -> Validity {
    let share = |least: Validity| {
        let such = cells.iter().filter(|cell| cell.validity >= least);
        such.count() as f64 / cells.len().max(1) as f64
    };
    match () {
        () if share(Validity::Invalid) > INVALID_SHARE => Validity::Invalid,
        () if share(Validity::Suspect) > DOUBTFUL_SHARE => Validity::Suspect,
        () => Validity::Valid,
    }
}
