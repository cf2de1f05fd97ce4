//! How controllers of a cluster spell rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::template;

/// How a Kubernetes controller spells a parameter in an object that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spelling {
    /// Which object, by the name that the controller's file has for it; `None`: the only one that it has for rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Key of the ConfigMap, or the field with dots; `[type=Gzip]` is the element of a list with that field.
    pub key: String,
    /// The same in the controller's configuration file, which is taken instead if a study names the ConfigMap that has it (its
    /// `file`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the value is JSON, such as a number, `true` or a list; else it is text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// Its value, a template as in [`Write::text`]; `None`: the level itself, or only what `values` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it writes where that is no template: level to value, `on: "true"`. Where `text` is not said
    /// beside it, there is no word for any other level. With `json`, `null` has nothing stand there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Levels that it has no word for: most are what leaving the key out comes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// What the controller sets when the key is not there, where that is another than the proxy's
    /// own default; as it stands in the ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Address of the controller's documentation.
    pub source: String,
    /// How it spells it in an object of one route alone, where that is taken instead if a study names such an object: an
    /// annotation of an Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Box<Spelling>>,
}

impl Spelling {
    /// This one, and that of a route where there is one.
    pub fn all(&self) -> impl Iterator<Item = &Spelling> {
        std::iter::once(self).chain(self.route.as_deref())
    }

    /// The value for a level (canonical); `None`: the controller has no word for it.
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

    /// The same as it stands in the object.
    pub fn json_value(&self, level: &str) -> Option<Value> {
        let text = self.value(level)?;
        match self.json {
            true => serde_json::from_str(&text).ok(),
            false => Some(Value::String(text)),
        }
    }
}
