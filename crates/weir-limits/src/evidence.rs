//! Knowledge about a trial: quantities by name, and the reasons why others are unknown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::derive::{QuantityValues, read_of, value};
use crate::quantities::{Derivation, Quantities};
use crate::window::{Figure, Window};
use weir_model::sample::Counters;

/// The value of a quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// Value in the window to judge.
    pub value: f64,
    /// Value at a low load; `None` if unknown.
    pub at_low_load: Option<f64>,
    /// Unit: `/s`, `s`, `bytes`, `share` (0..1), or empty for a count.
    pub unit: String,
    /// Sources of the value: `table.column`, `trial`.
    pub from: Vec<String>,
    /// Number of the proxy's pods that the value covers, and number of all; `None` if it covers all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_of: Option<(u32, u32)>,
}

/// Reason why a quantity is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Absent {
    /// The sampler reported that the column cannot be read.
    Missing {
        /// Name as `table.column`.
        column: String,
        /// The sampler's reason.
        why: String,
    },
    /// No sample of the window has a value of this column (`table.column`, or `table.column+column` of a sum).
    NotSampled(String),
    /// Only one sample of the window has this column, and two are needed for a difference.
    SampledOnce(String),
    /// The counter in this column went back within the window: it was reset, or it wrapped.
    WentBack(String),
    /// A process, a thread or a device appeared in this table or vanished from it within the window, so a counter
    /// restarted.
    CameOrWent(String),
    /// The clock of the samples of this table did not advance.
    Clock(String),
    /// The trial does not provide this.
    NotGiven(Input),
    /// The value would be a share of zero.
    OfNothing(Divisor),
}

/// A datum of a trial from which a quantity is derived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A figure of the generator or the lab.
    Figure(Figure),
    /// Another quantity, by its name.
    Quantity(String),
    /// An effective setting of the proxy, by any of these ids.
    Setting(Vec<String>),
    /// Numbers of failed requests.
    Errors,
    /// Histogram of the response times.
    ResponseTimes,
}

/// Divisor of a share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Divisor {
    /// Number of requests.
    Requests,
    /// Another quantity, by its name.
    Quantity(String),
    /// Sum of columns: `table.column+column`.
    Columns(String),
}

/// Knowledge about a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Quantities by name. A missing one is unknown, never 0.
    pub quantities: BTreeMap<String, Fact>,
    /// Reasons why other quantities are unknown.
    #[serde(default)]
    pub absent: BTreeMap<String, Absent>,
}

impl Evidence {
    /// Derives the quantities of a window (at the edge, or of a whole trial), and those of a window at a low load for
    /// comparison.
    pub fn of(
        quantities: &Quantities,
        counters: &Counters,
        window: &Window<'_>,
        low: Option<&Window<'_>>,
    ) -> Evidence {
        let (mut evidence, mut values, mut lows) =
            (Evidence::default(), QuantityValues::new(), QuantityValues::new());
        for quantity in quantities.all() {
            let name = quantity.name.value.clone();
            let at_low_load = low.and_then(|low| value(&quantity.from, low, counters, &lows).ok());
            lows.extend(at_low_load.map(|low| (name.clone(), low)));
            match value(&quantity.from, window, counters, &values) {
                Ok(value) => {
                    values.insert(name.clone(), value);
                    let fact = Fact {
                        value,
                        at_low_load,
                        unit: quantity.unit.clone(),
                        from: quantity.from.sources(),
                        read_of: evidence
                            .read_of_both(&quantity.from)
                            .or_else(|| read_of(&quantity.from, window, counters)),
                    };
                    evidence.quantities.insert(name, fact);
                }
                Err(absent) => {
                    evidence.absent.insert(name, absent);
                }
            }
        }
        evidence
    }

    /// Returns the pods covered by a quantity that is derived from two others.
    fn read_of_both(&self, from: &Derivation) -> Option<(u32, u32)> {
        let (Derivation::Ratio { of, by } | Derivation::Less { of, by }) = from else {
            return None;
        };
        [of, by].map(|name| self.quantities.get(name)?.read_of).into_iter().flatten().min()
    }

    /// Returns the lowest number of the proxy's pods that any quantity covers, and the number of all; `None` if every
    /// quantity covers all.
    pub fn read_of(&self) -> Option<(u32, u32)> {
        self.quantities.values().filter_map(|fact| fact.read_of).min()
    }

    /// Returns the value of a quantity; `None` if unknown.
    pub fn value(&self, quantity: &str) -> Option<f64> {
        self.quantities.get(quantity).map(|fact| fact.value)
    }
}
