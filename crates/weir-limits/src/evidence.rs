//! What is known of a trial: quantities by name, and why others are not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::derive::{Known, read_of, value};
use crate::quantities::{Derivation, Quantities};
use crate::window::Window;
use weir_model::sample::Counters;

/// The value of a quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// Its value in the window that is judged.
    pub value: f64,
    /// Its value at a low load, where it is known.
    pub at_low_load: Option<f64>,
    /// Its unit: `/s`, `s`, `bytes`, `share` (0..1), or nothing for a number of things.
    pub unit: String,
    /// What it is derived from: `table.column`, `trial`.
    pub from: Vec<String>,
    /// Where some of the proxy's pods could not be read: of how many it speaks, and how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_of: Option<(u32, u32)>,
}

/// Why a quantity is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Absent {
    /// The sampler said that it cannot be read.
    #[error("{column} cannot be read: {why}")]
    Missing {
        /// `table.column`.
        column: String,
        /// The sampler's reason.
        why: String,
    },
    /// No sample of the window has it.
    #[error("no sample has {0}")]
    NotSampled(String),
    /// A counter went back: it was reset, or it wrapped.
    #[error("{0} went back within the window")]
    WentBack(String),
    /// A process, a thread or a device came or went within the window, so a counter began anew.
    #[error("rows of {0} came or went within the window")]
    CameOrWent(String),
    /// The clock of the samples did not advance.
    #[error("the times of samples of {0} do not ascend")]
    Clock(String),
    /// The trial does not know this figure.
    #[error("the trial does not know {0}")]
    NotGiven(String),
    /// A share of nothing.
    #[error("{0} is zero, so there is no share of it")]
    OfNothing(String),
}

/// What is known of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Quantities by name. One that is not there is unknown, never 0.
    pub quantities: BTreeMap<String, Fact>,
    /// Why the others are unknown.
    #[serde(default)]
    pub absent: BTreeMap<String, Absent>,
}

impl Evidence {
    /// The quantities of a window (at the edge, or of a whole trial), with those of a window at a low load beside them.
    pub fn of(
        quantities: &Quantities,
        counters: &Counters,
        window: &Window<'_>,
        low: Option<&Window<'_>>,
    ) -> Evidence {
        let (mut evidence, mut values, mut lows) =
            (Evidence::default(), Known::new(), Known::new());
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

    /// Of how many pods speaks what is derived from two other quantities.
    fn read_of_both(&self, from: &Derivation) -> Option<(u32, u32)> {
        let (Derivation::Ratio { of, by } | Derivation::Less { of, by }) = from else {
            return None;
        };
        let each = [of, by].map(|name| self.quantities.get(name)?.read_of);
        each.into_iter().flatten().min()
    }

    /// Of how many of the proxy's pods it speaks at least, and how many there are; `None`: of all.
    pub fn read_of(&self) -> Option<(u32, u32)> {
        self.quantities
            .values()
            .filter_map(|fact| fact.read_of)
            .min()
    }

    /// The value of a quantity, where it is known.
    pub fn value(&self, quantity: &str) -> Option<f64> {
        self.quantities.get(quantity).map(|fact| fact.value)
    }
}
