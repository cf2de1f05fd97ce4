//! Arms that were not what their levels say.

use serde::{Deserialize, Serialize};
use weir_model::record::Inert;
use weir_model::study::Metric;
use weir_parameters::Counter;

use crate::names::metric_words;

/// An arm of which all that it changes was read as being in force in the arm that it is compared with too, and
/// that differs from it clearly all the same: one of the two is wrong, and it is not the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MisreadArm {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// The levels as they were read.
    pub levels: Vec<Inert>,
    /// The load under which they differ most.
    pub load: String,
    /// On what.
    pub metric: Metric,
    /// The ratio arm / against.
    pub ratio: f64,
}

impl MisreadArm {
    /// What does not fit, as a sentence.
    pub fn sentence(&self) -> String {
        let ids: Vec<&str> = self.levels.iter().map(|level| &*level.id).collect();
        let (values, were) = match ids.len() {
            1 => ("value", "was"),
            _ => ("values", "were"),
        };
        format!(
            "The {values} of {} {were} read as equal in {} and {}, but the arms differ by {:.2} times in the {} (load \
             {}): the reading is wrong or something else differs.",
            ids.join(", "),
            self.arm,
            self.against,
            self.ratio,
            metric_words(self.metric),
            self.load
        )
    }
}

/// A change whose purpose shows in a counter, and the counter did not move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ineffective {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// The parameter.
    pub id: String,
    /// The level that was asked for.
    pub level: String,
    /// What was counted.
    pub counter: Counter,
    /// The counter of the arm.
    pub value: f64,
    /// The same of what it is compared with, which has the parameter switched off.
    pub other: f64,
    /// What keeps it from taking effect, as a clause, where another setting of the arm does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl Ineffective {
    /// What was counted, as a clause.
    pub fn why(&self) -> String {
        let (value, other, what) = match self.counter {
            Counter::OriginConnections => (
                format!("{:.3}", self.value),
                format!("{:.3}", self.other),
                "connections to the origin server per request",
            ),
            Counter::ResumedHandshakes => (
                format!("{:.1} %", self.value * 100.0),
                format!("{:.1} %", self.other * 100.0),
                "of the handshakes resumed",
            ),
            Counter::ReceivedBytes => (
                format!("{:.0}", self.value),
                format!("{:.0}", self.other),
                "bytes received per response",
            ),
        };
        let because = self.because.as_ref();
        let because = because.map_or_else(String::new, |because| format!(": {because}"));
        format!("{value} {what}, and {other} in {}{because}", self.against)
    }

    /// That it did not take effect, as a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "{} = {} did not take effect in {}: {}.",
            self.id,
            self.level,
            self.arm,
            self.why()
        )
    }
}
