//! Growth of a metric with the numeric factors of a study.
//!
//! Levels are arms that differ in one setting and in nothing else (`factor`), or the closed loads of a matrix that
//! differ in their connections. A response is that of an arm over all blocks of one instance of the proxies. All arms
//! share these blocks, and with them most of what the machine did in that time; so each response is divided by what all
//! levels had in common then, as a comparison of arms takes ratios within a block. Capacities have one response each,
//! with the error of their search.

mod ceiling;
mod factor;

use std::ops::Range;

use weir_model::record::{HostFacts, LinkEnd, RunHeader};
use weir_model::study::{LoadSpec, Metric, Study};
use weir_stats::scaling::{LEAST_LEVELS, Level};
use weir_stats::student_quantile;

use crate::compare::Comparer;
use crate::findings::{
    Capacity, LimiterFindings, ScalingCurve, ScalingFactor, ScalingFindings, ScalingResponse,
};

pub use factor::{NoFactor, has_factor};
use factor::{Series, published_level, series};

/// Assumed degrees of freedom of a search's interval, as for ratios of capacities.
const FREEDOM_OF_SEARCH: u32 = 6;

/// Responses of each arm under a load, by instance of the proxies.
pub(crate) struct Responses {
    load: String,
    /// Metric that may grow; `None` if the load gives none.
    metric: Option<Metric>,
    /// Responses by arm, in the order of the study, then by instance. 0 or not a number if an arm has none.
    by_arm: Vec<Vec<f64>>,
}

/// Returns the responses of each arm under a load.
pub(crate) fn responses(load: &LoadSpec, comparer: &Comparer<'_>) -> Responses {
    let data = comparer.data;
    let metric = data
        .metrics()
        .into_iter()
        .find(|metric| matches!(metric, Metric::Rate | Metric::ReceivedBytes));
    let by_arm = (0..data.study.arms.len()).map(|arm| match metric {
        Some(metric) => instances(&data.instances)
            .map(|blocks| comparer.values.value(metric, arm, &blocks.collect::<Vec<_>>()))
            .collect(),
        None => Vec::new(),
    });
    Responses { load: load.name.clone(), metric, by_arm: by_arm.collect() }
}

/// Returns the ranges of blocks that belong to one instance.
fn instances(of_blocks: &[usize]) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    of_blocks.chunk_by(|a, b| a == b).map(move |blocks| {
        let begin = from;
        from += blocks.len();
        begin..from
    })
}

/// Finds the growth of the metric of each load, and of matrices over their connections.
pub(crate) fn find(
    header: &RunHeader,
    measured: &[Responses],
    limiters: &[LimiterFindings],
) -> Vec<ScalingFindings> {
    let study = &header.study;
    let all_series = series(study, proxy_host(header));
    let mut findings: Vec<ScalingFindings> = measured
        .iter()
        .flat_map(|responses| all_series.iter().filter_map(|one| of_load(study, one, responses)))
        .chain(factor::connections(study, measured))
        .collect();
    for growth in &mut findings {
        growth.ceiling = ceiling::find(growth, limiters);
    }
    findings
}

fn of_load(study: &Study, series: &Series, responses: &Responses) -> Option<ScalingFindings> {
    let metric = responses.metric?;
    let levels: Vec<(usize, f64)> = series
        .levels
        .iter()
        .copied()
        .filter(|(arm, _)| !responses.usable(*arm).is_empty())
        .collect();
    let by_level: Vec<&[f64]> = levels.iter().map(|(arm, _)| &*responses.by_arm[*arm]).collect();
    let named = levels.iter().zip(without_common(&by_level)).map(|((arm, x), responses)| {
        (study.arms[*arm].name.clone(), Level { x: *x, responses, error: None })
    });
    let response = ScalingResponse::Metric(metric);
    Some(series.findings(study, &responses.load, response, named.collect()))
}

impl Responses {
    /// Returns the responses of an arm that can be used.
    fn usable(&self, arm: usize) -> Vec<f64> {
        let responses = self.by_arm[arm].iter().copied();
        responses.filter(|response| response.is_finite() && *response > 0.0).collect()
    }
}

/// Divides responses by what all levels had in common in the time of an instance. Instances in which a level has no
/// response are left out. What is common to levels has a share of the spread of each, which is put back.
fn without_common(by_level: &[&[f64]]) -> Vec<Vec<f64>> {
    let levels = by_level.len() as f64;
    let count = by_level.iter().map(|responses| responses.len()).min().unwrap_or(0);
    let in_common: Vec<(usize, f64)> = (0..count)
        .map(|instance| {
            let logs = by_level.iter().map(|responses| responses[instance].ln());
            (instance, logs.sum::<f64>() / levels)
        })
        .filter(|(_, mean)| mean.is_finite())
        .collect();
    let overall = mean(in_common.iter().map(|(_, common)| *common));
    let stretch = (levels / (levels - 1.0).max(1.0)).sqrt();
    let adjusted = by_level.iter().map(|responses| {
        let level = mean(in_common.iter().map(|(instance, _)| responses[*instance].ln()));
        let responses = in_common.iter().map(|(instance, common)| {
            let distance = responses[*instance].ln() - level - (common - overall);
            (level + stretch * distance).exp()
        });
        responses.collect()
    });
    adjusted.collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// Returns the facts about the proxies' host, if the run has looked at it.
fn proxy_host(header: &RunHeader) -> Option<&HostFacts> {
    let mut hosts = header.surroundings.as_ref()?.hosts.iter();
    hosts.find(|host| host.roles.contains(&LinkEnd::Proxy)).map(|host| &host.facts)
}

/// Finds the growth of the arms' capacities.
pub(crate) fn of_capacities(
    header: &RunHeader,
    capacities: &[Capacity],
    limiters: &[LimiterFindings],
) -> Vec<ScalingFindings> {
    let study = &header.study;
    let Some(load) = study.loads.first() else {
        return Vec::new();
    };
    let all = series(study, proxy_host(header)).into_iter().map(|series| {
        let named: Vec<(String, Level)> = series
            .levels
            .iter()
            .filter_map(|(arm, x)| {
                let level = level_of(*x, capacities.get(*arm)?)?;
                Some((study.arms[*arm].name.clone(), level))
            })
            .collect();
        let mut growth = series.findings(study, &load.name, ScalingResponse::Capacity, named);
        growth.ceiling = ceiling::find(&growth, limiters);
        growth
    });
    all.collect()
}

/// Returns a level with the middle of a capacity's interval; `None` if none can be claimed.
fn level_of(x: f64, capacity: &Capacity) -> Option<Level> {
    let answer = &capacity.answer;
    if !capacity.claimed || answer.low <= 0.0 || answer.ceiling.is_some() {
        return None;
    }
    let half_width = 0.5 * (answer.high / answer.low).ln();
    let t = student_quantile(1.0 - answer.confidence, FREEDOM_OF_SEARCH);
    Some(Level {
        x,
        responses: vec![(answer.low * answer.high).sqrt()],
        error: Some((half_width / t).max(1e-6)),
    })
}

impl Series {
    /// Makes findings of levels by name, with the published ones beside them.
    fn findings(
        &self,
        study: &Study,
        load: &str,
        response: ScalingResponse,
        named: Vec<(String, Level)>,
    ) -> ScalingFindings {
        let confidence = study.objective.confidence;
        let published = self.published(study, load);
        let is_series = published.len() >= LEAST_LEVELS;
        let factor = ScalingFactor::Parameter { id: self.id.clone() };
        ScalingFindings {
            stratum: self.stratum.clone(),
            apart: self.apart.clone(),
            published: is_series.then(|| ScalingCurve::new(published, self.kind, confidence)),
            ..ScalingFindings::new(factor, self.kind, (load, response), named, confidence)
        }
    }

    /// Returns the published figures of the factor's levels. Arms of a larger machine are among them, by their names.
    fn published(&self, study: &Study, load: &str) -> Vec<(String, Level)> {
        let Some(published) = &study.published else {
            return Vec::new();
        };
        let figures = published.of_load(load).iter().filter_map(|(name, figure)| {
            let x = published_level(name, &self.id)?;
            Some((name.clone(), Level { x, responses: vec![*figure], error: None }))
        });
        figures.collect()
    }
}

#[cfg(test)]
mod tests;
