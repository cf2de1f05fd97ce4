//! Findings about arms whose settings were not in force, or had no effect.

use serde::{Deserialize, Serialize};
use weir_model::record::Inert;
use weir_model::study::Metric;
use weir_parameters::Counter;

use crate::names::metric_words;

/// An arm whose changes were all read back as in force in the arm that it is compared with too, although the two
/// clearly differ. Reading and measurement contradict each other, and the reading is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MisreadArm {
    /// The arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Levels as they were read back.
    pub levels: Vec<Inert>,
    /// Load under which the arms differ most.
    pub load: String,
    /// Metric on which they differ most.
    pub metric: Metric,
    /// The ratio arm / against.
    pub ratio: f64,
}

impl MisreadArm {
    /// Returns the contradiction as a sentence.
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

/// A change without the movement of the counter in which its purpose shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ineffective {
    /// The arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Id of the parameter.
    pub id: String,
    /// Level that the arm requests.
    pub level: String,
    /// Counter that should have moved.
    pub counter: Counter,
    /// Value of the counter in the arm.
    pub value: f64,
    /// Value of the counter in the arm that it is compared with, in which the parameter is off.
    pub other: f64,
    /// Clause about another setting of the arm that keeps the change from taking effect; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl Ineffective {
    /// Returns both values of the counter, as a clause.
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
        let because =
            self.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
        format!("{value} {what}, and {other} in {}{because}", self.against)
    }

    /// Returns a sentence that says that the change did not take effect.
    pub fn sentence(&self) -> String {
        format!("{} = {} did not take effect in {}: {}.", self.id, self.level, self.arm, self.why())
    }
}
