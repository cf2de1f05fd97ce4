//! Numeric factors of a study: settings with at least three levels, and connections of a matrix.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::quantity::parse_bytes;
use weir_model::record::HostFacts;
use weir_model::study::{ArmRole, CPU_COUNT, LoadSpec, Settings, Study, StudyArrivals};
use weir_parameters::Catalog;
use weir_stats::scaling::{Factor, LEAST_LEVELS, Level};

use super::Responses;
use crate::findings::{ApartBy, LevelApart, ScalingFactor, ScalingFindings, ScalingResponse};

/// Arms that differ in one numeric setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    /// The setting.
    pub(super) id: String,
    /// Kind of the factor.
    pub(super) kind: Factor,
    /// Settings that these arms have in common and others of the study do not.
    pub(super) stratum: Settings,
    /// Index of each arm in the study, with its level.
    pub(super) levels: Vec<(usize, f64)>,
    /// Arms that are no part of it, although they have levels of the setting.
    pub(super) apart: Vec<LevelApart>,
}

/// Reason why a study has no factor whose growth could be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFactor {
    /// No setting is varied.
    NothingVaried,
    /// The settings that are varied, each with the number of its numeric levels.
    TooFewLevels(Vec<(String, usize)>),
}

/// Returns the series of a study, by factor and stratum. One whose figures were published for enough levels may itself
/// have two. Arms on second threads of cores or on several NUMA nodes, which do not carry on where the others end, are
/// left out of a series of CPUs and returned beside it.
pub(super) fn series(study: &Study, proxy_host: Option<&HostFacts>) -> Vec<Series> {
    let ids = varied(study);
    let apart = proxy_host.map(|facts| apart(study, facts)).unwrap_or_default();
    let mut all_series = Vec::new();
    for id in &ids {
        let least = if is_published(study, id) { 2 } else { LEAST_LEVELS };
        let apart = if id == CPU_COUNT { apart.as_slice() } else { &[] };
        let mut arms_by_rest = groups(study, id);
        for levels in arms_by_rest.values_mut() {
            levels.retain(|(arm, _)| apart.iter().all(|other| study.arms[*arm].name != other.arm));
        }
        let long: Vec<_> =
            arms_by_rest.iter().filter(|(_, levels)| levels.len() >= least).collect();
        let is_only = long.len() == 1;
        all_series.extend(long.into_iter().map(|((_, settings), levels)| Series {
            id: id.clone(),
            kind: kind_of(study, id),
            stratum: if is_only { Settings::new() } else { only_varied(settings, &ids) },
            levels: levels.clone(),
            apart: apart.to_vec(),
        }));
    }
    all_series
}

/// Returns the arms whose proxy has second threads of its cores, or CPUs of several NUMA nodes.
fn apart(study: &Study, facts: &HostFacts) -> Vec<LevelApart> {
    let arms = study.arms.iter();
    arms.filter_map(|arm| {
        let by = reason_apart(arm.cpus.as_ref()?.cpus(), facts)?;
        Some(LevelApart { arm: arm.name.clone(), by })
    })
    .collect()
}

fn reason_apart(cpus: &[u32], facts: &HostFacts) -> Option<ApartBy> {
    let nodes: BTreeSet<Option<u32>> = cpus.iter().map(|cpu| facts.node_of(*cpu)).collect();
    if facts
        .siblings
        .iter()
        .any(|core| core.cpus().iter().filter(|cpu| cpus.contains(cpu)).count() > 1)
    {
        Some(ApartBy::Threads)
    } else {
        (nodes.len() > 1).then_some(ApartBy::Nodes)
    }
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
    let ids = varied(study);
    let levels: Vec<(String, usize)> =
        ids.iter().map(|id| (id.clone(), longest(&groups(study, id)))).collect();
    if is_matrix || levels.iter().any(|(_, levels)| *levels >= LEAST_LEVELS) {
        Ok(())
    } else if ids.is_empty() {
        Err(NoFactor::NothingVaried)
    } else {
        Err(NoFactor::TooFewLevels(levels))
    }
}

/// Returns true if figures were published for enough levels of a setting.
fn is_published(study: &Study, id: &str) -> bool {
    let Some(published) = &study.published else {
        return false;
    };
    let mut figures = std::iter::once(&published.figures).chain(published.by_load.values());
    figures.any(|figures| {
        figures.keys().filter_map(|name| published_level(name, id)).count() >= LEAST_LEVELS
    })
}

/// Returns the level in the name of an arm: 16 of `worker_processes=16`.
pub(super) fn published_level(name: &str, id: &str) -> Option<f64> {
    name.strip_prefix(id)?.strip_prefix('=')?.parse().ok()
}

/// Returns the largest number of levels of a group.
fn longest(groups: &BTreeMap<CommonSettings, Vec<(usize, f64)>>) -> usize {
    groups.values().map(Vec::len).max().unwrap_or(0)
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
type CommonSettings = (usize, Settings);

/// Returns the arms that have a numeric level of a setting, by everything else that they are.
fn groups(study: &Study, id: &str) -> BTreeMap<CommonSettings, Vec<(usize, f64)>> {
    let mut groups: BTreeMap<CommonSettings, Vec<(usize, f64)>> = BTreeMap::new();
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
        let mut settings = arm.settings.clone();
        settings.remove(id);
        if id == CPU_COUNT
            && let Some(workers) = Catalog::builtin().workers_id(study.proxy_of(arm).kind)
            && arm.settings.get(workers) == arm.settings.get(id)
        {
            // As many workers as CPUs are no difference of their own.
            settings.remove(workers);
        }
        let levels = groups.entry((proxy, settings)).or_default();
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
    if is_workers || id == CPU_COUNT { Factor::Servers } else { Factor::Work }
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
    let mut findings = Vec::new();
    for (matrix, loads) in matrices.into_iter().filter(|(_, loads)| loads.len() >= LEAST_LEVELS) {
        let arms = study
            .arms
            .iter()
            .enumerate()
            .filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline)
            .filter_map(|(arm, spec)| of_arm(study, arm, matrix, &loads, &spec.name));
        findings.extend(arms);
    }
    findings
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
