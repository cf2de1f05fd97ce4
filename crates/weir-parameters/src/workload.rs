//! Where a parameter of a proxy's pods stands in their Deployment or DaemonSet, and as what.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::row::Parameter;

/// A place in a workload, and how its pods tell what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InWorkload {
    /// Where in a Deployment or a DaemonSet: a pointer as in `Site::at`, in which `{container}` is the proxy's
    /// container. What is below `/spec/template` is read at the same place of each pod; anything else is their number.
    pub at: String,
    /// The kind of workload, where others have no such place: `Deployment`.
    #[serde(default)]
    pub kind: Option<String>,
    /// What of the container's control group says it besides; that counts.
    #[serde(default)]
    pub group: Option<GroupLimit>,
    /// The level of a pod that says nothing.
    pub absent: String,
    /// What stands there for each level, where that is not the level itself; see `Placed::value`.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// The field of those that tells the level, as a JSON pointer (RFC 6901) within them.
    #[serde(default)]
    pub told_by: String,
    /// What stands around each level, where it does not stand alone: the level is in the place of the text `{level}`.
    #[serde(default)]
    pub around: Option<Value>,
}

/// What stands for the level in what stands around it.
const LEVEL: &str = "{level}";

/// A value in which the level is in its place.
fn filled(around: &Value, level: &Value) -> Value {
    match around {
        Value::String(text) if text == LEVEL => level.clone(),
        Value::Object(map) => {
            let each = map.iter();
            let each = each.map(|(key, value)| (key.clone(), filled(value, level)));
            Value::Object(each.collect())
        }
        other => other.clone(),
    }
}

/// What is in the level's place of a value that has nothing else around it than that.
fn within<'v>(around: &Value, value: &'v Value) -> Option<&'v Value> {
    match around {
        Value::String(text) if text == LEVEL => Some(value),
        Value::Object(map) => {
            let found = map
                .iter()
                .find_map(|(key, around)| within(around, value.get(key)?))?;
            (filled(around, found) == *value).then_some(found)
        }
        _ => None,
    }
}

impl InWorkload {
    /// The pointer, of a proxy in this container.
    pub fn at_of(&self, container: &str) -> String {
        self.at.replace("{container}", container)
    }

    /// What is wrong with it, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let level = Value::Bool(true);
        let has_level = |around| within(around, &filled(around, &level)) == Some(&level);
        match &self.around {
            _ if !self.at.starts_with("/spec/") => {
                Err("a place in a workload begins with `/spec/`".to_owned())
            }
            Some(around) if !has_level(around) => Err(format!("`around` has no `{LEVEL}` in it")),
            _ => Ok(()),
        }
    }

    /// What stands there for a level (canonical) of the row.
    pub(crate) fn value(&self, row: &Parameter, level: &str) -> Value {
        let alone = || row.level.json(level);
        match (self.values.get(level), &self.around) {
            (Some(value), _) => value.clone(),
            (None, Some(around)) => filled(around, &alone()),
            (None, None) => alone(),
        }
    }

    /// The level that is told by this value of the field that tells it; what no level leads to is given as it stands.
    pub fn level_of(&self, row: &Parameter, told: &Value) -> String {
        let is_it = |value: &Value| value.pointer(&self.told_by) == Some(told);
        let mut values = self.values.iter();
        if let Some((level, _)) = values.find(|(_, value)| is_it(value)) {
            return level.clone();
        }
        let level = match &self.around {
            Some(around) => match within(around, told) {
                Some(alone) => row.level.told(alone),
                None => told.to_string(),
            },
            None => row.level.told(told),
        };
        match level.is_empty() {
            true => self.absent.clone(),
            false => level,
        }
    }
}

/// A limit of a control group (cgroups(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupLimit {
    /// CPU time in a period: `cpu.max`.
    Cpu,
    /// Bytes: `memory.max`.
    Memory,
}
