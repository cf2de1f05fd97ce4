//! Quantities used by rules: `limits/quantities.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;
use weir_model::sample::{ColumnKind, Counters};

use crate::error::{DataError, read};
use crate::window::{Figure, Role};

/// Reduction of a column's values over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Growth of a counter per second.
    Rate,
    /// Growth of a counter per completed request.
    PerRequest,
    /// Growth of a counter.
    Difference,
    /// Last value of a gauge.
    Last,
    /// Largest value of a gauge.
    Most,
    /// Smallest value of a gauge.
    Least,
    /// Mean of a gauge's samples.
    Mean,
    /// Number of keys that appeared after the first moment.
    Begun,
}

impl Take {
    /// Returns true if the value is computed from differences between samples.
    pub(crate) fn is_of_counters(self) -> bool {
        matches!(self, Take::Rate | Take::PerRequest | Take::Difference)
    }
}

/// Combination of the values of several keys (CPUs, processes, ports).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// Sum; for shares, the sum of the parts divided by the sum of the wholes.
    #[default]
    Sum,
    /// Largest value.
    Busiest,
    /// Smallest value.
    Least,
    /// Mean of the values.
    Mean,
}

/// Derivation from columns of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Name of the table.
    pub table: String,
    /// Columns to add up.
    pub columns: Vec<String>,
    /// Role whose rows, or whose host's rows, are used; all rows if absent. Rows of a namespace shared by several roles
    /// count as the proxy's.
    #[serde(default)]
    pub role: Option<Role>,
    /// Required values of key columns, by name; other rows are ignored.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, String>,
    /// Reduction of the values over time.
    pub take: Take,
    /// Combination of the values of several keys.
    #[serde(default)]
    pub keys: Keys,
    /// Columns to divide by, for a share.
    #[serde(default)]
    pub share_of: Vec<String>,
    /// Factor that converts the result to the quantity's unit.
    #[serde(default = "one")]
    pub scale: f64,
}

fn one() -> f64 {
    1.0
}

/// Derivation of a quantity.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Derivation {
    /// Computed from samples.
    Samples(Columns),
    /// One quantity divided by another; both precede it in the file.
    Ratio {
        /// The dividend.
        of: String,
        /// The divisor.
        by: String,
    },
    /// One quantity minus another, at least 0; an unknown one is not subtracted. Both precede it in the file.
    Less {
        /// Quantity to subtract from.
        of: String,
        /// Quantity to subtract.
        by: String,
    },
    /// A figure of the trial.
    Trial(Figure),
    /// The share of requests that failed with one of these kinds of error.
    Errors(Vec<String>),
    /// An effective setting of the proxy, by the first of these ids that it has: a number, 0 for `off`, 1 for any other
    /// word.
    Setting(Vec<String>),
    /// The share of response times that stand out just after these times, in seconds.
    Modes(Vec<f64>),
}

impl Derivation {
    /// Returns the sources of the quantity, as in [`crate::Fact::from`].
    pub(crate) fn sources(&self) -> Vec<String> {
        match self {
            Derivation::Samples(of) => {
                let unique: BTreeSet<String> = of
                    .columns
                    .iter()
                    .chain(&of.share_of)
                    .map(|column| format!("{}.{column}", of.table))
                    .collect();
                unique.into_iter().collect()
            }
            Derivation::Ratio { of, by } | Derivation::Less { of, by } => {
                vec![of.clone(), by.clone()]
            }
            Derivation::Setting(ids) => vec![format!("setting {}", ids.join(" or "))],
            Derivation::Trial(_) | Derivation::Errors(_) | Derivation::Modes(_) => {
                vec!["trial".to_owned()]
            }
        }
    }
}

/// A resource whose growth is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// CPU time.
    Cpu,
    /// Resident memory.
    Memory,
    /// Bytes on the network.
    Network,
    /// Established connections.
    Connections,
}

/// A quantity of the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Name of the quantity.
    pub name: Spanned<String>,
    /// Unit: `/s`, `s`, `bytes`, `bytes/s`, `share` (0..1), or empty for a count.
    #[serde(default)]
    pub unit: String,
    /// Description in one line.
    pub means: String,
    /// Value at which the resource is exhausted.
    #[serde(default)]
    pub full: Option<f64>,
    /// Resource whose use it measures, for the macro-benchmark.
    #[serde(default)]
    pub resource: Option<Resource>,
    /// True if reports show it over time.
    #[serde(default)]
    pub series: bool,
    /// Derivation of its value.
    pub from: Derivation,
}

/// All quantities, in the order of the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantities {
    quantities: Vec<Quantity>,
}

impl Quantities {
    /// Returns the quantities that are built into weir.
    pub fn builtin() -> &'static Quantities {
        static BUILTIN: OnceLock<Quantities> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let text = include_str!("../../../limits/quantities.yaml");
            Quantities::parse("limits/quantities.yaml", text, Counters::builtin())
                .expect("embedded data, which the tests of this crate read")
        })
    }

    /// Parses a file and checks it against the tables.
    ///
    /// # Errors
    /// Fails if the text is not a file of quantities, or if a quantity refers to a table, a column or a quantity that
    /// does not exist.
    pub fn parse(file: &str, text: &str, counters: &Counters) -> Result<Quantities, DataError> {
        let all: Quantities = read(file, text)?;
        let mut above = BTreeSet::new();
        for quantity in &all.quantities {
            check(&quantity.from, counters, &above)
                .map_err(|what| DataError::at(file, &quantity.name, what))?;
            if quantity.series && !is_fit(&quantity.from) {
                let message = "only what is sampled can be shown over time".to_owned();
                return Err(DataError::at(file, &quantity.name, message));
            }
            if !above.insert(quantity.name.value.as_str()) {
                let message = format!("quantity `{}` is there twice", quantity.name.value);
                return Err(DataError::at(file, &quantity.name, message));
            }
        }
        Ok(all)
    }

    /// Returns all quantities.
    pub fn all(&self) -> &[Quantity] {
        &self.quantities
    }

    /// Returns the quantity of this name.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        let mut all = self.quantities.iter();
        all.find(|quantity| quantity.name.value == name)
    }
}

fn check(from: &Derivation, counters: &Counters, above: &BTreeSet<&str>) -> Result<(), String> {
    match from {
        Derivation::Samples(of) => check_columns(of, counters),
        Derivation::Ratio { of, by } | Derivation::Less { of, by } => {
            match [of, by].into_iter().find(|name| !above.contains(name.as_str())) {
                Some(name) => Err(format!("no quantity above this one is called `{name}`")),
                None => Ok(()),
            }
        }
        Derivation::Modes(at) if at.iter().any(|at| *at <= MODE_WIDTH_S) => {
            Err(format!("a mode is later than {MODE_WIDTH_S} s"))
        }
        _ => Ok(()),
    }
}

/// Width of the interval after a time within which response times belong to its mode, in seconds.
pub(crate) const MODE_WIDTH_S: f64 = 0.2;

fn check_columns(of: &Columns, counters: &Counters) -> Result<(), String> {
    let Some(table) = counters.table(&of.table) else {
        return Err(format!("there is no table `{}`", of.table));
    };
    // Of the table of what a proxy counts itself, the counter says whether it only grows.
    let counter = match of.only.get("counter") {
        Some(name) => {
            let counter = counters.proxy_counters.iter().find(|counter| counter.name == *name);
            Some(counter.ok_or_else(|| format!("no proxy has a counter `{name}`"))?)
        }
        None => None,
    };
    for name in of.columns.iter().chain(&of.share_of) {
        let mut columns = table.columns.iter();
        let column = columns
            .find(|column| column.name == *name)
            .ok_or_else(|| format!("table `{}` has no column `{name}`", of.table))?;
        let kind = counter.map_or(column.kind, |counter| counter.kind);
        let is_fit = if of.take.is_of_counters() {
            kind == ColumnKind::Counter
        } else {
            kind == ColumnKind::Gauge
        };
        if !is_fit {
            let (table, take) = (&of.table, of.take);
            return Err(format!("`{table}.{name}` is a {kind:?}: {take:?} cannot be taken of it"));
        }
    }
    match of.only.keys().find(|key| !table.keys().any(|name| name == key.as_str())) {
        Some(key) => Err(format!("table `{}` has no key `{key}`", of.table)),
        None => Ok(()),
    }
}

/// Returns true if a quantity can be shown over time: for a piece of a window only its samples are known.
pub(crate) fn is_fit(from: &Derivation) -> bool {
    matches!(from, Derivation::Samples(of) if of.take != Take::PerRequest)
}
