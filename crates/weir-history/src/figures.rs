//! Figures of a run that can be held against those of another one.

use serde::{Deserialize, Serialize};
use weir_analysis::deciding_metrics;
use weir_analysis::findings::{ArmFindings, Capacity, Findings, NEVER_NS};
use weir_model::record::{CapacityAnswer, Validity};
use weir_model::study::Metric;
use weir_record::Run;

/// Quantity of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Completed requests per second of a closed loop.
    Rate,
    /// Median response time of an open loop, nanoseconds.
    ResponseP50,
    /// Quantile 0.99 of the response time of an open loop, nanoseconds.
    ResponseP99,
    /// Capacity, requests per second.
    Capacity,
}

impl Quantity {
    /// Returns the quantity of a metric that decides ([`deciding_metrics`]).
    fn of(metric: Metric) -> Quantity {
        match metric {
            Metric::ResponseP50 => Quantity::ResponseP50,
            Metric::ResponseP99 => Quantity::ResponseP99,
            _ => Quantity::Rate,
        }
    }

    /// Returns true if a larger value is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Quantity::Rate | Quantity::Capacity)
    }
}

/// Name of a figure: the same in all runs of a study.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureKey {
    /// Name of the load.
    pub load: String,
    /// Name of the arm.
    pub arm: String,
    /// The quantity.
    pub metric: Quantity,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name.
    pub key: FigureKey,
    /// Its value: requests per second, or nanoseconds. Infinite for a quantile among unanswered requests; `None` if the
    /// load is INVALID.
    pub value: Option<f64>,
    /// Requests per second that an open loop asked for, and that were completed.
    pub rate: Option<(f64, f64)>,
}

/// A run's figures, and what they depend on.
#[derive(Debug, Clone)]
pub struct RunFigures {
    /// The run's name.
    pub name: String,
    /// The run's figures, in the order of the study.
    pub figures: Vec<Figure>,
    /// Requested confidence of the study.
    pub confidence: f64,
    /// Half-width of the study's band of differences that do not matter.
    pub band: f64,
}

impl RunFigures {
    /// Collects the figures of all arms, those of the A/A arm included.
    pub fn of(run: &Run, findings: &Findings) -> RunFigures {
        let study = &run.header.study;
        let capacities = findings.capacity.iter().flat_map(|found| {
            found.arms.iter().map(|capacity| Figure {
                key: FigureKey {
                    load: capacity.answer.load.clone(),
                    arm: capacity.answer.arm.clone(),
                    metric: Quantity::Capacity,
                },
                value: (found.validity != Validity::Invalid).then(|| middle(capacity)).flatten(),
                rate: None,
            })
        });
        let figures = findings.loads.iter().flat_map(|load| {
            let is_usable = load.is_usable();
            let spec = study.loads.iter().find(|spec| spec.name == load.load);
            let metrics = spec.map_or(&[][..], deciding_metrics);
            load.arms.iter().flat_map(move |arm| {
                metrics.iter().map(move |&metric| Figure {
                    key: FigureKey {
                        load: load.load.clone(),
                        arm: arm.arm.clone(),
                        metric: Quantity::of(metric),
                    },
                    value: is_usable.then(|| value(arm, metric)).flatten(),
                    rate: load.rate_intended.map(|asked| (asked, arm.rate_completed)),
                })
            })
        });
        RunFigures {
            name: run.header.run.clone(),
            figures: figures.chain(capacities).collect(),
            confidence: study.objective.confidence,
            band: study.objective.band,
        }
    }

    /// Returns the names of the figures that another run does not have.
    pub(crate) fn keys_without(&self, other: &RunFigures) -> Vec<FigureKey> {
        let keys = self.figures.iter().map(|figure| &figure.key);
        keys.filter(|key| other.figure(key).is_none()).cloned().collect()
    }

    /// Returns the figure of this name.
    pub fn figure(&self, key: &FigureKey) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == *key)
    }
}

/// Returns an arm's value of a metric; `None` if nothing was measured.
fn value(arm: &ArmFindings, metric: Metric) -> Option<f64> {
    match metric {
        _ if arm.samples == 0 => None,
        Metric::ResponseP50 => Some(nanoseconds(arm.response_ns[0])),
        Metric::ResponseP99 => Some(nanoseconds(arm.response_ns[2])),
        _ => Some(arm.rate_completed),
    }
}

/// Returns the geometric mean of a capacity's interval; `None` if no capacity is claimed.
fn middle(capacity: &Capacity) -> Option<f64> {
    let CapacityAnswer { low, high, .. } = capacity.answer;
    (capacity.claimed && low > 0.0 && high.is_finite()).then(|| (low * high).sqrt())
}

fn nanoseconds(quantile: u64) -> f64 {
    if quantile == NEVER_NS { f64::INFINITY } else { quantile as f64 }
}
