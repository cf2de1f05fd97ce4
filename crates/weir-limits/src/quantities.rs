//! What rules speak of: `limits/quantities.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;
use weir_model::sample::{ColumnKind, Counters};

use crate::error::{DataError, read};
use crate::window::{Figure, Role};

/// What is made of a column's values over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// How much a counter grew in each second.
    Rate,
    /// How much it grew for each request that was completed.
    PerRequest,
    /// How much it grew.
    Difference,
    /// A gauge's last value.
    Last,
    /// Its largest.
    Most,
    /// Its smallest.
    Least,
    /// The mean of its samples.
    Mean,
    /// How many keys have it that did not at the first moment.
    Begun,
}

impl Take {
    /// Whether it is of differences between samples.
    pub(crate) fn is_of_counters(self) -> bool {
        matches!(self, Take::Rate | Take::PerRequest | Take::Difference)
    }
}

/// What is made of the values of several keys (CPUs, processes, ports).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// All together; of shares, the sum of the parts in the sum of the wholes.
    #[default]
    Sum,
    /// The one with most of it.
    Busiest,
    /// The one with least of it.
    Least,
    /// Their mean.
    Mean,
}

/// A derivation from columns of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// The table.
    pub table: String,
    /// Columns that are added.
    pub columns: Vec<String>,
    /// Whose rows, or the rows of whose host. Of a namespace that several roles share, the proxy's.
    #[serde(default)]
    pub role: Option<Role>,
    /// Rows with these keys alone.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, String>,
    /// What is made of them over time.
    pub take: Take,
    /// What is made of the keys.
    #[serde(default)]
    pub keys: Keys,
    /// Columns that it is a share of.
    #[serde(default)]
    pub share_of: Vec<String>,
    /// What the result is multiplied by, to come to its unit.
    #[serde(default = "one")]
    pub scale: f64,
}

fn one() -> f64 {
    1.0
}

/// How a quantity comes about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Derivation {
    /// From samples.
    Samples(Columns),
    /// One quantity divided by another; both stand above it in the file.
    Ratio {
        /// The dividend.
        of: String,
        /// The divisor.
        by: String,
    },
    /// One quantity less another, and 0 at least; one that is unknown takes nothing off. Both stand above it.
    Less {
        /// What is taken from.
        of: String,
        /// What is taken off.
        by: String,
    },
    /// A figure of the trial.
    Trial(Figure),
    /// The share of requests that failed in one of these ways.
    Errors(Vec<String>),
    /// An effective setting of the proxy, by the first of these ids that it has: a number, 0 where it is `off`, 1
    /// where it is any other word.
    Setting(Vec<String>),
    /// The share of response times that stand out right behind these times, in seconds.
    Modes(Vec<f64>),
}

impl Derivation {
    /// What it is derived from, as [`crate::Fact::from`] has it.
    pub(crate) fn sources(&self) -> Vec<String> {
        match self {
            Derivation::Samples(of) => {
                let columns = of.columns.iter().chain(&of.share_of);
                let unique: BTreeSet<String> = columns
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

/// A resource whose growth is asked about.
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

/// One quantity.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Its name.
    pub name: Spanned<String>,
    /// Its unit: `/s`, `s`, `bytes`, `bytes/s`, `share` (0..1), or nothing for a number of things.
    #[serde(default)]
    pub unit: String,
    /// What it is, in a line.
    pub means: String,
    /// The value at which a resource is used up.
    #[serde(default)]
    pub full: Option<f64>,
    /// The resource whose use it is, for the macro-benchmark.
    #[serde(default)]
    pub resource: Option<Resource>,
    /// Whether reports show it over time.
    #[serde(default)]
    pub series: bool,
    /// How it comes about.
    pub from: Derivation,
}

/// All quantities, in the order of the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantities {
    quantities: Vec<Quantity>,
}

impl Quantities {
    /// Those that come with weir.
    pub fn builtin() -> &'static Quantities {
        static BUILTIN: OnceLock<Quantities> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let text = include_str!("../../../limits/quantities.yaml");
            Quantities::parse("limits/quantities.yaml", text, Counters::builtin())
                .expect("embedded data, which the tests of this crate read")
        })
    }

    /// Reads a file and holds it against the tables.
    ///
    /// # Errors
    /// The text is no file of quantities, or one names a table, a column or a quantity that is not there.
    pub fn parse(file: &str, text: &str, counters: &Counters) -> Result<Quantities, DataError> {
        let all: Quantities = read(file, text)?;
        let mut above = BTreeSet::new();
        for quantity in &all.quantities {
            check(&quantity.from, counters, &above)
                .map_err(|what| DataError::at(file, &quantity.name, what))?;
            if quantity.series && !is_fit(&quantity.from) {
                let what = "only what is sampled can be shown over time".to_owned();
                return Err(DataError::at(file, &quantity.name, what));
            }
            if !above.insert(quantity.name.value.as_str()) {
                let what = format!("quantity `{}` is there twice", quantity.name.value);
                return Err(DataError::at(file, &quantity.name, what));
            }
        }
        Ok(all)
    }

    /// All of them.
    pub fn all(&self) -> &[Quantity] {
        &self.quantities
    }

    /// One by its name.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        let mut all = self.quantities.iter();
        all.find(|quantity| quantity.name.value == name)
    }
}

fn check(from: &Derivation, counters: &Counters, above: &BTreeSet<&str>) -> Result<(), String> {
    match from {
        Derivation::Samples(of) => check_columns(of, counters),
        Derivation::Ratio { of, by } | Derivation::Less { of, by } => {
            match [of, by]
                .into_iter()
                .find(|name| !above.contains(name.as_str()))
            {
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

/// Width of the stretch behind a time in which response times count as being of its mode, in seconds.
pub(crate) const MODE_WIDTH_S: f64 = 0.2;

fn check_columns(of: &Columns, counters: &Counters) -> Result<(), String> {
    let Some(table) = counters.table(&of.table) else {
        return Err(format!("there is no table `{}`", of.table));
    };
    // Of the table of what a proxy counts itself, the counter says whether it only grows.
    let own = match of.only.get("counter") {
        Some(name) => {
            let mut known = counters.proxy_counters.iter();
            let one = known.find(|counter| counter.name == *name);
            Some(one.ok_or_else(|| format!("no proxy has a counter `{name}`"))?)
        }
        None => None,
    };
    for name in of.columns.iter().chain(&of.share_of) {
        let mut columns = table.columns.iter();
        let column = columns.find(|column| column.name == *name);
        let column =
            column.ok_or_else(|| format!("table `{}` has no column `{name}`", of.table))?;
        let kind = own.map_or(column.kind, |own| own.kind);
        let is_fit = match of.take.is_of_counters() {
            true => kind == ColumnKind::Counter,
            false => kind == ColumnKind::Gauge,
        };
        if !is_fit {
            let (table, take) = (&of.table, of.take);
            return Err(format!(
                "`{table}.{name}` is a {kind:?}: {take:?} cannot be taken of it"
            ));
        }
    }
    let has_key = |key: &&String| table.keys().any(|name| name == key.as_str());
    match of.only.keys().find(|key| !has_key(key)) {
        Some(key) => Err(format!("table `{}` has no key `{key}`", of.table)),
        None => Ok(()),
    }
}

/// Whether a quantity can be shown over time: of a piece no more is known than its samples.
pub(crate) fn is_fit(from: &Derivation) -> bool {
    matches!(from, Derivation::Samples(of) if of.take != Take::PerRequest)
}
