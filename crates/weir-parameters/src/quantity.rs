//! Quantities: values that several parameters determine together.
//!
//! The length of an accept queue is the smaller of the proxy's request and the kernel's limit: raising one of the two
//! may change nothing. Rows name the quantity that they control, the quantity says how its value results, and a change
//! is judged by the measured value.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::record::Inert;
use weir_model::study::Settings;

use crate::grammar::first_number;
use crate::row::Parameter;

/// A value that several parameters determine together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Name in words: `listen backlog`.
    pub is: String,
    /// Description of the measurement, for people.
    pub measured: String,
    /// Source from which the agent reads the value. `None`: it follows from the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Reading>,
    /// Subject and verb that fit before "the smaller of": `the kernel takes`.
    pub by: String,
    /// Parameters and other quantities. The smallest of them is the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub smallest_of: Vec<String>,
    /// Parameters in order of precedence. The first that is set is the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_of: Vec<String>,
}

/// Source from which a quantity of a running arm is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reading {
    /// Length of the queue that the kernel keeps for the proxy's listener (sock_diag(7)).
    AcceptQueue,
    /// Soft limit of descriptors of a worker (/proc/PID/limits).
    WorkerDescriptors,
    /// A kernel setting, as the arm's network namespace shows it.
    Sysctl {
        /// Name of the setting, with dots.
        name: String,
    },
}

/// All quantities by name.
pub(crate) type Quantities = BTreeMap<String, Quantity>;

/// Maximum depth of quantities within quantities. The check of the files enforces it.
pub(crate) const DEEPEST: usize = 3;

impl Quantity {
    /// Returns the names of the parameters and quantities that the value results from.
    pub fn members(&self) -> impl Iterator<Item = &String> {
        self.smallest_of.iter().chain(&self.first_of)
    }
}

/// Returns the value of a quantity: the measured one, else the smallest of its members if all of them are known.
/// `None`: not known.
pub(crate) fn value(name: &str, effective: &Settings, all: &Quantities) -> Option<String> {
    value_within(name, effective, all, DEEPEST)
}

fn value_within(
    name: &str,
    effective: &Settings,
    all: &Quantities,
    deeper: usize,
) -> Option<String> {
    if let Some(measured) = effective.get(name) {
        return Some(measured.clone());
    }
    let members = &all.get(name)?.smallest_of;
    let numbers: Option<Vec<u64>> = members
        .iter()
        .map(|member| {
            let value = value_within(member, effective, all, deeper.checked_sub(1)?)?;
            first_number(&value)
        })
        .collect();
    numbers?.into_iter().min().map(|least| least.to_string())
}

/// Returns why `row` at `requested` is inert, if the value that it controls is the same in both arms.
pub(crate) fn inert(
    row: &Parameter,
    requested: &str,
    effective: &Settings,
    against: &Settings,
    all: &Quantities,
) -> Option<Inert> {
    let key = row.quantity.as_ref().unwrap_or(&row.id);
    let here = value(key, effective, all)?;
    if here != value(key, against, all)? {
        return None;
    }
    let quantity = row.quantity.as_ref().and_then(|name| all.get(name));
    let name = quantity.map_or(&*row.id, |quantity| &*quantity.is);
    let why = match quantity {
        Some(quantity) if !quantity.smallest_of.is_empty() => smallest(quantity, effective, all),
        Some(quantity) if !quantity.first_of.is_empty() => first(quantity, &row.id, &here),
        _ => own(row, requested, &here),
    };
    Some(Inert {
        id: row.id.clone(),
        requested: requested.to_owned(),
        effective: format!("{name} {here}"),
        why,
    })
}

/// Formats "the kernel takes the smaller of `backlog` (511) and `net.core.somaxconn` (32768)".
fn smallest(quantity: &Quantity, effective: &Settings, all: &Quantities) -> String {
    let members: Vec<String> = quantity
        .smallest_of
        .iter()
        .map(|member| {
            let name = match all.get(member) {
                Some(quantity) => quantity.is.clone(),
                None => format!("`{member}`"),
            };
            match value(member, effective, all) {
                Some(value) => format!("{name} ({value})"),
                None => name,
            }
        })
        .collect();
    let degree = if members.len() == 2 { "smaller" } else { "smallest" };
    format!("{} the {degree} of {}", quantity.by, members.join(" and "))
}

fn first(quantity: &Quantity, id: &str, here: &str) -> String {
    match quantity.first_of.first() {
        Some(decides) if decides != id => {
            format!("`{decides}` decides where it is set, and {here} was in force in both arms")
        }
        _ => format!("{} {here}, whatever was asked for", quantity.by),
    }
}

fn own(row: &Parameter, requested: &str, here: &str) -> String {
    if row.only_raises && !row.is_raised_by(requested, here) {
        return format!("the host has {here} already, and weir never lowers it");
    }
    if requested == here {
        "the arm that it is compared with has this value too".to_owned()
    } else {
        format!("{here} stayed in force in both arms")
    }
}
