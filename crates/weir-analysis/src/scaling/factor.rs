//! Numeric factors of a study: settings with at least three levels, and connections of a matrix.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::quantity::parse_bytes;
use weir_model::study::{ArmRole, LoadSpec, Settings, Study, StudyArrivals};
use weir_parameters::Catalog;
use weir_stats::scaling::{Factor, LEAST_LEVELS, Level};

use super::Responses;
use crate::findings::{ScalingFactor, ScalingFindings, ScalingResponse};

/// Parameter that goes with every proxy: the number of its CPUs.
const CPUS: &str = "cpus";

/// Arms that differ in one numeric setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The setting.
    pub id: String,
    /// Kind of the factor.
    pub kind: Factor,
    /// Settings that these arms have in common and others of the study do not.
    pub stratum: Settings,
    /// Index of each arm in the study, with its level.
    pub levels: Vec<(usize, f64)>,
}

/// Reason why a study has no series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFactor {
    /// No setting is varied.
    NothingVaried,
    /// The settings that are varied, each with the number of its numeric levels.
    TooFewLevels(Vec<(String, usize)>),
}

/// Returns the series of a study, by factor and stratum.
pub fn series(study: &Study) -> Result<Vec<Series>, NoFactor> {
    let ids = varied(study);
    if ids.is_empty() {
        return Err(NoFactor::NothingVaried);
    }
    let mut found = Vec::new();
    let mut most = Vec::new();
    for id in &ids {
        let groups = groups(study, id);
        most.push((id.clone(), groups.values().map(|levels| levels.len()).max().unwrap_or(0)));
        let long: Vec<_> =
            groups.iter().filter(|(_, levels)| levels.len() >= LEAST_LEVELS).collect();
        let is_only = long.len() == 1;
        found.extend(long.into_iter().map(|((_, settings), levels)| Series {
            id: id.clone(),
            kind: kind_of(study, id),
            stratum: if is_only { Settings::new() } else { only_varied(settings, &ids) },
            levels: levels.clone(),
        }));
    }
    if found.is_empty() { Err(NoFactor::TooFewLevels(most)) } else { Ok(found) }
}

/// Checks that a study has a series, or a matrix of closed loads with enough different connections.
///
/// # Errors
/// The reason why it has none.
pub fn has_factor(study: &Study) -> Result<(), NoFactor> {
    let mut matrices: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for load in study.loads.iter().filter(|load| load.arrivals == StudyArrivals::Closed) {
        if let Some(cell) = &load.cell {
            matrices.entry(&cell.matrix).or_default().insert(load.connections);
        }
    }
    let is_matrix = matrices.values().any(|connections| connections.len() >= LEAST_LEVELS);
    if is_matrix { Ok(()) } else { series(study).map(drop) }
}

/// Returns the settings in which arms differ from the ones they are compared with.
fn varied(study: &Study) -> Vec<String> {
    let mut ids: Vec<String> =
        study.arms.iter().flat_map(|arm| arm.changes.keys().cloned()).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Everything that arms of a series have in common: the proxy, by the first arm that has it, and all other settings.
type Others = (usize, Settings);

/// Returns the arms that have a numeric level of a setting, by everything else that they are.
fn groups(study: &Study, id: &str) -> BTreeMap<Others, Vec<(usize, f64)>> {
    let mut groups: BTreeMap<Others, Vec<(usize, f64)>> = BTreeMap::new();
    for (index, arm) in study.arms.iter().enumerate() {
        if arm.role == ArmRole::SameAsBaseline {
            continue;
        }
        let Some(x) = level_of(study, index, id) else {
            continue;
        };
        let proxy = study
            .arms
            .iter()
            .position(|other| study.proxy_of(other) == study.proxy_of(arm))
            .unwrap_or(index);
        let mut others = arm.settings.clone();
        others.remove(id);
        let levels = groups.entry((proxy, others)).or_default();
        if levels.iter().all(|(_, known)| *known != x) {
            levels.push((index, x));
        }
    }
    groups
}

/// Returns the numeric level of an arm's setting, by default if the study does not set it.
fn level_of(study: &Study, arm: usize, id: &str) -> Option<f64> {
    let arm = &study.arms[arm];
    let kind = study.proxy_of(arm).kind;
    let complete = Catalog::builtin().complete(kind, &arm.settings);
    let text = arm.settings.get(id).or_else(|| complete.get(id))?;
    let number = text.parse().ok().or_else(|| parse_bytes(text).ok().map(|bytes| bytes as f64))?;
    Some(number).filter(|number: &f64| number.is_finite())
}

fn kind_of(study: &Study, id: &str) -> Factor {
    let catalog = Catalog::builtin();
    let is_workers = study.proxy_kinds().iter().any(|kind| catalog.workers_id(*kind) == Some(id));
    if is_workers || id == CPUS { Factor::Servers } else { Factor::Work }
}

fn only_varied(settings: &Settings, ids: &[String]) -> Settings {
    let varied = settings.iter().filter(|(id, _)| ids.contains(id));
    varied.map(|(id, level)| (id.clone(), level.clone())).collect()
}

/// Finds the growth over the connections of each matrix whose loads are closed, for each arm.
pub(super) fn connections(study: &Study, measured: &[Responses]) -> Vec<ScalingFindings> {
    let mut matrices: BTreeMap<&str, Vec<(&LoadSpec, &Responses)>> = BTreeMap::new();
    for load in &study.loads {
        let responses = measured.iter().find(|responses| responses.load == load.name);
        if let (Some(cell), StudyArrivals::Closed, Some(responses)) =
            (&load.cell, &load.arrivals, responses)
        {
            matrices.entry(&cell.matrix).or_default().push((load, responses));
        }
    }
    let mut found = Vec::new();
    for (matrix, loads) in matrices.into_iter().filter(|(_, loads)| loads.len() >= LEAST_LEVELS) {
        let arms = study.arms.iter().enumerate();
        let arms = arms.filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline);
        found.extend(arms.filter_map(|(arm, spec)| of_arm(study, arm, matrix, &loads, &spec.name)));
    }
    found
}

fn of_arm(
    study: &Study,
    arm: usize,
    matrix: &str,
    loads: &[(&LoadSpec, &Responses)],
    name: &str,
) -> Option<ScalingFindings> {
    let metric = loads.first()?.1.metric?;
    // Loads of one set of connections share trials, others do not; so nothing is known to be common to them.
    let named = loads.iter().map(|(load, responses)| {
        let level =
            Level { x: f64::from(load.connections), responses: responses.usable(arm), error: None };
        (load.name.clone(), level)
    });
    Some(ScalingFindings::new(
        ScalingFactor::Connections { arm: name.to_owned() },
        Factor::Servers,
        (matrix, ScalingResponse::Metric(metric)),
        named.collect(),
        study.objective.confidence,
    ))
}
