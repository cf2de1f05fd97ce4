//! Findings about the growth of a metric with a numeric factor of the study.

use serde::{Deserialize, Serialize};
use weir_limits::{ConditionEvidence, Role};
use weir_model::study::{Metric, Settings};
use weir_stats::growth::Within;
use weir_stats::scaling::{self, Factor, Form, Level, Parameter, Prediction, Refusal, Scaling};

/// Growth of a metric with a factor, under one load and with all other settings the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingFindings {
    /// The factor.
    pub factor: ScalingFactor,
    /// Kind of the factor, which decides what forms are possible.
    pub kind: Factor,
    /// Name of the load; of the matrix if its loads are the levels.
    pub load: String,
    /// Settings that all of the arms have in common and that others of the study do not; empty if the study varies
    /// nothing else.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub stratum: Settings,
    /// Arms with levels of the factor that are no part of the growth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<LevelApart>,
    /// Quantity that grows.
    pub response: ScalingResponse,
    /// Confidence of all intervals.
    pub confidence: f64,
    /// Measured levels and the forms fitted to them.
    pub measured: ScalingCurve,
    /// The same for the figures that the study's source published; `None` if there are none for at least three levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<ScalingCurve>,
    /// Response at twice the highest level; `None` if nothing is known about the growth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twice: Option<ScalingPrediction>,
    /// Limit of the response at the highest levels; `None` if it grows in proportion, or nothing is known about
    /// its growth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
}

/// An arm that is no part of a growth with the number of CPUs, because one CPU more is not the same for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelApart {
    /// Name of the arm.
    pub arm: String,
    /// Reason.
    pub by: ApartBy,
}

/// Reason why an arm is no part of a growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApartBy {
    /// Several of its CPUs are threads of one core.
    Threads,
    /// Its CPUs are of several NUMA nodes.
    Nodes,
}

/// A factor with numeric levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScalingFactor {
    /// A parameter of the catalog, whose levels are arms.
    Parameter {
        /// Its ID.
        id: String,
    },
    /// Connections of the loads of a matrix, under one arm.
    Connections {
        /// Name of the arm.
        arm: String,
    },
}

/// Quantity that grows with the factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScalingResponse {
    /// A metric of the load.
    Metric(Metric),
    /// Capacity within the study's objective, requests per second.
    Capacity,
}

/// Levels, and the forms fitted to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingCurve {
    /// Levels, ascending.
    pub levels: Vec<ScalingLevel>,
    /// All forms that are possible for the factor, the best first; empty if the levels are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<ScalingForm>,
    /// The answer.
    pub answer: ScalingAnswer,
}

/// A level of the factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingLevel {
    /// The level.
    pub x: f64,
    /// Name of the arm, or of the load if loads are the levels.
    pub name: String,
    /// Independent responses: means over the blocks of one instance, without what all arms shared in that time; of a
    /// capacity the middle of its interval.
    pub responses: Vec<f64>,
    /// Relative standard error of a single response, if it is known from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Geometric mean of the responses.
    pub value: f64,
    /// Interval of the value; `None` if the levels are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Response by the best form; `None` if the levels are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<f64>,
}

impl ScalingLevel {
    /// Returns the relative distance of the value from the curve.
    pub fn residual(&self) -> Option<f64> {
        self.fitted.map(|fitted| self.value / fitted - 1.0)
    }
}

/// A form fitted to the levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingForm {
    /// The form.
    pub form: Form,
    /// AICc minus that of the best form; `None` with too few levels for as many parameters.
    pub delta_aicc: Option<f64>,
    /// Root of the mean squared relative distance of the levels from the curve.
    pub rmse: f64,
    /// p of the test for lack of fit; `None` without replicates.
    pub lack_of_fit: Option<f64>,
    /// Parameters and what follows from them.
    pub parameters: Vec<ScalingParameter>,
}

impl ScalingForm {
    /// Returns a parameter of the form.
    pub fn parameter(&self, wanted: Parameter) -> Option<&ScalingParameter> {
        self.parameters.iter().find(|parameter| parameter.parameter == wanted)
    }
}

/// A parameter with its profile interval. `None` where the levels set no bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingParameter {
    /// The parameter.
    pub parameter: Parameter,
    /// The estimate.
    pub value: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// Form of the growth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScalingAnswer {
    /// One form.
    Named(Form),
    /// Forms that cannot be told apart.
    Undecided {
        /// The forms, the best first.
        forms: Vec<Form>,
        /// Additional level that would tell them apart.
        level: f64,
        /// Response there by each form.
        responses: Vec<(Form, f64)>,
    },
    /// Nothing can be said.
    Refused(Refusal),
}

/// Response at a level that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingPrediction {
    /// The level.
    pub x: f64,
    /// Response by the best form.
    pub value: f64,
    /// Interval of the response, with the doubt about the form.
    pub interval: (f64, f64),
    /// True if the levels show no ceiling, so that one may lie between the highest level and this one.
    pub may_meet_ceiling: bool,
}

/// Limit of the response at the highest levels, by the limiters of the arms there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// Names of the arms, or loads, beyond the knee; of the highest level if there is no knee.
    pub names: Vec<String>,
    /// Cause of the limit.
    pub cause: CeilingCause,
}

/// Cause of a ceiling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CeilingCause {
    /// Something outside of the proxy, which all levels share: more of the factor cannot help.
    Shared(CeilingEvidence),
    /// Something of the proxy itself.
    Proxy(CeilingEvidence),
    /// Something else at each of them: (name, limiter).
    Different(Vec<(String, String)>),
    /// The samples name no limiter, or there are none.
    Unknown,
}

/// A limiter with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeilingEvidence {
    /// Name of the limiter, as in `limits/rules.yaml`.
    pub limiter: String,
    /// Role whose resource it is.
    pub role: Role,
    /// Evidence for it at the highest level.
    pub evidence: Vec<ConditionEvidence>,
}

impl ScalingFindings {
    /// Makes findings of levels by name.
    pub(crate) fn new(
        factor: ScalingFactor,
        kind: Factor,
        (load, response): (&str, ScalingResponse),
        named: Vec<(String, Level)>,
        confidence: f64,
    ) -> ScalingFindings {
        let mut findings = ScalingFindings {
            factor,
            kind,
            load: load.to_owned(),
            stratum: Settings::new(),
            apart: Vec::new(),
            response,
            confidence,
            measured: ScalingCurve::new(named, kind, confidence),
            published: None,
            twice: None,
            ceiling: None,
        };
        findings.twice = findings.scaling().ok().and_then(|scaling| {
            let predicted = scaling.predict(scaling.farthest()).ok()?;
            Some(ScalingPrediction {
                x: predicted.x,
                value: predicted.response.value,
                interval: (predicted.response.low, predicted.response.high),
                may_meet_ceiling: scaling.has_unseen_ceiling(),
            })
        });
        findings
    }

    /// Fits the forms to what was measured.
    pub fn scaling(&self) -> Result<Scaling, Refusal> {
        self.measured.scaling(self.kind, self.confidence)
    }

    /// Predicts the response at another level, at most at twice the highest one.
    pub fn predict(&self, x: f64) -> Result<Prediction, Refusal> {
        self.scaling()?.predict(x)
    }
}

impl ScalingCurve {
    /// Makes a curve of levels, by name, with their responses.
    pub(crate) fn new(named: Vec<(String, Level)>, kind: Factor, confidence: f64) -> ScalingCurve {
        let levels = named.into_iter().map(|(name, level)| {
            let logs: f64 = level.responses.iter().map(|response| response.ln()).sum();
            ScalingLevel {
                x: level.x,
                name,
                value: (logs / level.responses.len() as f64).exp(),
                responses: level.responses,
                error: level.error,
                interval: None,
                fitted: None,
            }
        });
        let mut levels: Vec<ScalingLevel> = levels.collect();
        levels.sort_by(|a, b| a.x.total_cmp(&b.x));
        let mut curve =
            ScalingCurve { levels, forms: Vec::new(), answer: ScalingAnswer::Named(Form::Linear) };
        match curve.scaling(kind, confidence) {
            Ok(scaling) => curve.take(&scaling),
            Err(refusal) => curve.answer = ScalingAnswer::Refused(refusal),
        }
        curve
    }

    fn scaling(&self, kind: Factor, confidence: f64) -> Result<Scaling, Refusal> {
        let levels: Vec<Level> = self
            .levels
            .iter()
            .map(|level| Level {
                x: level.x,
                responses: level.responses.clone(),
                error: level.error,
            })
            .collect();
        scaling::scale(&levels, kind, confidence)
    }

    /// Takes over what was found out.
    fn take(&mut self, scaling: &Scaling) {
        for level in &mut self.levels {
            let index = scaling.points.iter().position(|point| point.x == level.x);
            level.interval = index.map(|index| {
                let response = scaling.points[index].response;
                (response.low, response.high)
            });
            level.fitted = index.map(|index| scaling.best().fitted[index]);
        }
        self.forms = scaling
            .fits
            .iter()
            .map(|fit| ScalingForm {
                form: fit.form,
                delta_aicc: known(fit.delta),
                rmse: fit.rmse,
                lack_of_fit: fit.lack_of_fit,
                parameters: fit.parameters.iter().map(ScalingParameter::of).collect(),
            })
            .collect();
        self.answer = match &scaling.answer {
            scaling::Answer::Named(form) => ScalingAnswer::Named(*form),
            scaling::Answer::Undecided { forms, telling } => ScalingAnswer::Undecided {
                forms: forms.clone(),
                level: telling.x,
                responses: telling.responses.clone(),
            },
        };
    }

    /// Returns the form of the answer, or the best of those that cannot be told apart.
    pub fn best(&self) -> Option<&ScalingForm> {
        let form = match &self.answer {
            ScalingAnswer::Named(form) => form,
            ScalingAnswer::Undecided { forms, .. } => forms.first()?,
            ScalingAnswer::Refused(_) => return None,
        };
        self.forms.iter().find(|found| found.form == *form)
    }
}

impl ScalingParameter {
    fn of((parameter, within): &(Parameter, Within)) -> ScalingParameter {
        let [value, low, high] = [within.value, within.low, within.high].map(known);
        ScalingParameter { parameter: *parameter, value, low, high }
    }
}

fn known(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
