//! Quantities: what several parameters control together and something else decides.
//!
//! The length of an accept queue is the smaller of what the proxy asks for and what the kernel
//! allows: raising one of the two may change nothing. Rows name the quantity that they control, the
//! quantity says how it comes about, and a change is judged by what was measured of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::record::Inert;
use weir_model::study::Settings;

use crate::grammar::first_number;
use crate::row::Parameter;

/// What several parameters control together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// In words: `listen backlog`.
    pub is: String,
    /// How it is measured, for people.
    pub measured: String,
    /// What the agent reads to know it; `None`: it follows from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Reading>,
    /// Who decides, fit to stand before "the smaller of": `the kernel takes`.
    pub by: String,
    /// Parameters and other quantities, of which it is the smallest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub smallest_of: Vec<String>,
    /// Parameters of which the first that is set decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_of: Vec<String>,
}

/// What is read of an arm that runs in order to know a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reading {
    /// How long a queue the kernel keeps for the proxy's listener (sock_diag(7)).
    AcceptQueue,
    /// The soft limit of descriptors that a worker has (/proc/PID/limits).
    WorkerDescriptors,
    /// A kernel setting, as the arm's network namespace shows it.
    Sysctl {
        /// Its name, with dots.
        name: String,
    },
}

/// All quantities by name.
pub(crate) type Quantities = BTreeMap<String, Quantity>;

/// Quantities within quantities are looked into as deep as this; the files are checked for it.
pub(crate) const DEEPEST: usize = 3;

impl Quantity {
    /// What it is made from.
    pub fn members(&self) -> impl Iterator<Item = &String> {
        self.smallest_of.iter().chain(&self.first_of)
    }
}

/// The value of a quantity: as it was measured, or the smallest of its members where all of them
/// are known. `None`: not known.
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
    let number = |member: &String| {
        let value = value_within(member, effective, all, deeper.checked_sub(1)?)?;
        first_number(&value)
    };
    let numbers: Option<Vec<u64>> = members.iter().map(number).collect();
    numbers?.into_iter().min().map(|least| least.to_string())
}

/// What is inert about `row` at `requested`, when what it controls is the same in both arms.
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

/// "the kernel takes the smaller of `backlog` (511) and `net.core.somaxconn` (32768)"
fn smallest(quantity: &Quantity, effective: &Settings, all: &Quantities) -> String {
    let described = |member: &String| {
        let name = match all.get(member) {
            Some(quantity) => quantity.is.clone(),
            None => format!("`{member}`"),
        };
        match value(member, effective, all) {
            Some(value) => format!("{name} ({value})"),
            None => name,
        }
    };
    let members: Vec<String> = quantity.smallest_of.iter().map(described).collect();
    let degree = if members.len() == 2 {
        "smaller"
    } else {
        "smallest"
    };
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
    match requested == here {
        true => "the arm that it is compared with has this value too".to_owned(),
        false => format!("{here} stayed in force in both arms"),
    }
}
