//! Spelling of rows by Kubernetes controllers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::template;

/// Spelling of a parameter in an object that a Kubernetes controller reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spelling {
    /// Name of the object in the controller's file. `None`: the only object that the controller has for rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Key of the ConfigMap, or path of the field with dots; `[type=Gzip]` is the element of a list with that field.
    pub key: String,
    /// Key in the controller's configuration file. It is used instead of `key` if a study names the ConfigMap that
    /// holds the file (its `file`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// True if the value is JSON, such as a number, `true` or a list. Otherwise it is text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// Template of the value, as in [`Write::text`]. `None`: the level itself, or only the levels in `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Values that no template produces, by level: `on: "true"`. Without `text`, no other level can be spelled. With
    /// `json`, `null` removes the field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Levels that cannot be spelled. Most of them are the result of leaving the key out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Value that the controller sets when the key is absent, as it would be in the ConfigMap, if it differs from the
    /// proxy's own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Address of the controller's documentation.
    pub source: String,
    /// Spelling in an object of one route, such as an annotation of an Ingress. It is used instead if a study names
    /// such an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Box<Spelling>>,
}

impl Spelling {
    /// Returns this spelling and that of a route, if there is one.
    pub fn all(&self) -> impl Iterator<Item = &Spelling> {
        std::iter::once(self).chain(self.route.as_deref())
    }

    /// Returns the value for a level (canonical). `None` if the controller cannot spell it.
    pub fn value(&self, level: &str) -> Option<String> {
        if let Some(value) = self.values.get(level) {
            return Some(value.clone());
        }
        match &self.text {
            _ if self.except.iter().any(|other| other == level) => None,
            None if !self.values.is_empty() => None,
            None => Some(level.to_owned()),
            Some(text) => Some(template::fill(text, level)),
        }
    }

    /// Returns the value for a level as JSON, in the form that it has in the object.
    pub fn json_value(&self, level: &str) -> Option<Value> {
        let text = self.value(level)?;
        if self.json { serde_json::from_str(&text).ok() } else { Some(Value::String(text)) }
    }
}
