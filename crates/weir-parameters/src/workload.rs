//! Places of a proxy's pod parameters in their Deployment or DaemonSet, and the values there.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::row::Parameter;

/// A place in a workload, and the way to read the effective level from its pods.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InWorkload {
    /// JSON pointer in a Deployment or a DaemonSet, as in `Site::at`; `{container}` is the proxy's container. A place
    /// below `/spec/template` is read in each pod. Any other place holds the number of pods.
    pub at: String,
    /// Kind of workload, such as `Deployment`, if others have no such place.
    #[serde(default)]
    pub kind: Option<String>,
    /// Limit of the container's control group for the same value. If set, it is what counts.
    #[serde(default)]
    pub group: Option<GroupLimit>,
    /// Level of a pod in which the place is empty.
    pub absent: String,
    /// Values for levels that are not written as themselves; see `Placed::value`.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Field of these values that identifies the level in a pod, as a JSON pointer (RFC 6901) within the value.
    #[serde(default)]
    pub told_by: String,
    /// Structure that surrounds each level, if the level is not the whole value. The text `{level}` marks the level's
    /// position.
    #[serde(default)]
    pub around: Option<Value>,
}

/// Placeholder for the level in `around`.
const LEVEL: &str = "{level}";

/// Returns `around` with the level in place of the placeholder.
fn filled(around: &Value, level: &Value) -> Value {
    match around {
        Value::String(text) if text == LEVEL => level.clone(),
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| (key.clone(), filled(value, level)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// Returns the part of `value` in place of the placeholder. `None` if the rest of `value` is not the same as `around`.
fn within<'v>(around: &Value, value: &'v Value) -> Option<&'v Value> {
    match around {
        Value::String(text) if text == LEVEL => Some(value),
        Value::Object(map) => {
            let level = map.iter().find_map(|(key, around)| within(around, value.get(key)?))?;
            (filled(around, level) == *value).then_some(level)
        }
        _ => None,
    }
}

impl InWorkload {
    /// Returns the pointer for a proxy in this container.
    pub fn at_of(&self, container: &str) -> String {
        self.at.replace("{container}", container)
    }

    /// Checks the place. The error describes in words what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let level = Value::Bool(true);
        match &self.around {
            _ if !self.at.starts_with("/spec/") => {
                Err("a place in a workload begins with `/spec/`".to_owned())
            }
            Some(around) if within(around, &filled(around, &level)) != Some(&level) => {
                Err(format!("`around` has no `{LEVEL}` in it"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the value that is written for a level (canonical) of the row.
    pub(crate) fn value(&self, row: &Parameter, level: &str) -> Value {
        match (self.values.get(level), &self.around) {
            (Some(value), _) => value.clone(),
            (None, Some(around)) => filled(around, &row.level.json(level)),
            (None, None) => row.level.json(level),
        }
    }

    /// Returns the level that a pod's value stands for. A value of no level is returned as it is.
    pub fn level_of(&self, row: &Parameter, told: &Value) -> String {
        let mut values = self.values.iter();
        if let Some((level, _)) =
            values.find(|(_, value)| value.pointer(&self.told_by) == Some(told))
        {
            return level.clone();
        }
        let level = match &self.around {
            Some(around) => match within(around, told) {
                Some(alone) => row.level.told(alone),
                None => told.to_string(),
            },
            None => row.level.told(told),
        };
        if level.is_empty() { self.absent.clone() } else { level }
    }
}

/// A limit of a control group (cgroups(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupLimit {
    /// CPU time per period: `cpu.max`.
    Cpu,
    /// Memory in bytes: `memory.max`.
    Memory,
}
