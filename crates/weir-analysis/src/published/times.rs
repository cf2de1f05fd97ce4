//! Published response times.
//!
//! Times of another machine mean little here, but the effect of a change on them does. An arm's published time divided
//! by that of the arm it is compared with is a ratio, or a range of ratios if a range of times was published.

use weir_model::record::Validity;
use weir_model::study::{LoadSpec, Metric, PublishedQuantile, PublishedTimes};

use crate::figures::QUANTILES;
use crate::findings::{ArmFindings, LoadFindings, TimeFindings, Verdict};

use super::{Judge, Kind, Ratios, as_measured, compared};

impl<'a> Judge<'a> {
    /// Judges all published response times.
    pub(super) fn times(&self) -> Vec<TimeFindings> {
        self.published.times.iter().flat_map(|entry| self.times_of(entry)).collect()
    }

    fn times_of(&self, entry: &PublishedTimes) -> Vec<TimeFindings> {
        if entry.unchanged {
            return vec![self.time(entry, 0.5, None), self.time(entry, 0.99, None)];
        }
        entry
            .quantiles
            .iter()
            .map(|published| self.time(entry, published.quantile, Some(*published)))
            .collect()
    }

    fn time(
        &self,
        entry: &PublishedTimes,
        quantile: f64,
        published: Option<PublishedQuantile>,
    ) -> TimeFindings {
        let metric = metric_of(quantile);
        let load = self.load_for(entry, metric);
        let arm = load.and_then(|load| load.arms.iter().find(|arm| arm.arm == entry.arm));
        let ours = load.and_then(|load| compared(load, &entry.arm, metric));
        let theirs = self.ratio(entry, quantile, published);
        let (verdict, because) =
            theirs.map(|theirs| self.verdict(Kind::Time, &entry.arm, theirs, ours)).unzip();
        TimeFindings {
            arm: entry.arm.clone(),
            published_load: entry.load.clone(),
            connections: entry.connections,
            rate: entry.rate,
            load: load.map(|load| load.load.clone()),
            quantile,
            published_ns: published
                .map(|times| (times.low.as_nanos() as u64, times.high.as_nanos() as u64)),
            measured_ns: arm.and_then(|arm| measured(arm, quantile)),
            ratio: theirs,
            measured: ours.map(as_measured),
            verdict,
            because: because.flatten(),
        }
    }

    /// Returns the load to compare an entry with: among the usable loads that it applies to, one in which the arm could
    /// be compared, and the hardest of these.
    fn load_for(&self, entry: &PublishedTimes, metric: Option<Metric>) -> Option<&'a LoadFindings> {
        let fitting = self.loads.iter().filter_map(|load| {
            let mut specs = self.study.loads.iter();
            let spec = specs.find(|spec| spec.name == load.load)?;
            (is_for(entry, spec) && load.blocks > 0).then_some((spec, load))
        });
        let best = fitting.max_by_key(|(spec, load)| {
            let ours = compared(load, &entry.arm, metric);
            let (connections, rate) = connections_and_rate(spec);
            (
                load.validity != Validity::Invalid,
                ours.is_some_and(|ours| ours.verdict != Verdict::Invalid),
                connections,
                rate.unwrap_or(0.0) as u64,
            )
        });
        best.map(|(_, load)| load)
    }

    /// Returns the published ratio to the arm that this one is compared with; `None` for the baseline, and if nothing
    /// was published for the other.
    fn ratio(
        &self,
        entry: &PublishedTimes,
        quantile: f64,
        published: Option<PublishedQuantile>,
    ) -> Option<Ratios> {
        let arm = self.study.arms.iter().find(|arm| arm.name == entry.arm)?;
        let against = &self.study.arms.get(arm.against)?.name;
        if *against == entry.arm {
            return None;
        }
        let Some(times) = published else {
            return Some((1.0, 1.0));
        };
        let base = self.published.times.iter().find_map(|other| {
            let same = other.arm == *against
                && other.load == entry.load
                && other.connections == entry.connections
                && other.rate == entry.rate;
            let mut quantiles = other.quantiles.iter().filter(|_| same);
            quantiles.find(|base| base.quantile == quantile)
        })?;
        let [low, high] = [(times.low, base.high), (times.high, base.low)]
            .map(|(time, base)| time.as_secs_f64() / base.as_secs_f64().max(1e-12));
        Some((low, high))
    }
}

/// Returns connections and rate of a load; for a cell of a matrix, the values that the study was written with.
fn connections_and_rate(spec: &LoadSpec) -> (u32, Option<f64>) {
    match &spec.cell {
        Some(cell) => (cell.connections, cell.rate),
        None => (spec.connections, spec.rate()),
    }
}

fn is_for(entry: &PublishedTimes, spec: &LoadSpec) -> bool {
    let (connections, rate) = connections_and_rate(spec);
    let named = entry.load.as_ref().is_none_or(|load| *load == spec.name);
    let connected = entry.connections.is_none_or(|(low, high)| (low..=high).contains(&connections));
    let timed =
        entry.rate.is_none_or(|(low, high)| rate.is_some_and(|rate| (low..=high).contains(&rate)));
    named && connected && timed
}

/// Returns the metric that a quantile is, if it is compared.
fn metric_of(quantile: f64) -> Option<Metric> {
    let mut metrics = [Metric::ResponseP50, Metric::ResponseP99].into_iter();
    metrics.find(|metric| metric.response_quantile() == Some(quantile))
}

/// Returns an arm's quantile in nanoseconds. Quantiles without a figure of their own are read off the percentile curve.
fn measured(arm: &ArmFindings, quantile: f64) -> Option<f64> {
    if arm.samples == 0 {
        return None;
    }
    if let Some(index) = QUANTILES.iter().position(|known| *known == quantile) {
        return Some(arm.response_ns[index] as f64);
    }
    let x = 1.0 / (1.0 - quantile) - 1e-9;
    let mut curve = arm.percentile_curve.iter();
    curve.find(|(at, _)| *at >= x).map(|(_, ns)| *ns as f64)
}
