//! Figures of a run that can be held against those of another one.

use serde::{Deserialize, Serialize};
use weir_analysis::deciding_metrics;
use weir_analysis::findings::{ArmFindings, Findings, NEVER_NS};
use weir_model::study::Metric;
use weir_record::Run;

/// Name of a figure: the same in all runs of a study.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureKey {
    /// Name of the load.
    pub load: String,
    /// Name of the arm.
    pub arm: String,
    /// The metric: the rate of a closed loop, p50 or p99 of an open one.
    pub metric: Metric,
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
        let figures = findings.loads.iter().flat_map(|load| {
            let is_usable = load.is_usable();
            let spec = study.loads.iter().find(|spec| spec.name == load.load);
            let metrics = spec.map_or(&[][..], deciding_metrics);
            load.arms.iter().flat_map(move |arm| {
                metrics.iter().map(move |&metric| Figure {
                    key: FigureKey { load: load.load.clone(), arm: arm.arm.clone(), metric },
                    value: is_usable.then(|| value(arm, metric)).flatten(),
                    rate: load.rate_intended.map(|asked| (asked, arm.rate_completed)),
                })
            })
        });
        RunFigures {
            name: run.header.run.clone(),
            figures: figures.collect(),
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

fn nanoseconds(quantile: u64) -> f64 {
    if quantile == NEVER_NS { f64::INFINITY } else { quantile as f64 }
}
