//! Checks of documents by their schemas, for the part of JSON Schema (draft 2020-12) that the schemas in docs/schemas/
//! use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub fn path(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
    PathBuf::from(folder).join(format!("{name}.json"))
}

/// Checks an output by its schema, if it is a document that names its format.
#[track_caller]
pub fn assert_valid(output: &str) {
    let document = output.starts_with('{').then(|| serde_json::from_str::<Value>(output));
    let Some(Ok(document)) = document else {
        return;
    };
    if let Some(format) = document["format"].as_str() {
        let faults = find_faults(format, &document);
        assert!(faults.is_empty(), "{format}: {faults:#?}");
    }
}

/// Checks the records of a run by their schemas.
#[track_caller]
pub fn assert_records_valid(folder: &Path) {
    let [header, records] = ["run.json", "records.jsonl"]
        .map(|name| std::fs::read_to_string(folder.join(name)).expect(name));
    let header: Value = serde_json::from_str(&header).expect("JSON");
    let format = header["format"].as_str().expect("a format");
    let mut all = find_faults(format, &header);
    for line in records.lines() {
        let record = serde_json::from_str(line).expect("JSON");
        all.extend(find_faults(&format!("{format}-record"), &record));
    }
    assert!(all.is_empty(), "{format}: {all:#?}");
}

/// Returns everything in a document of a format, such as `weir-load/2`, that its schema does not allow, each with its
/// path. Panics at an unsupported keyword of the schema.
pub fn find_faults(format: &str, document: &Value) -> Vec<String> {
    let text = std::fs::read_to_string(path(&format.replace('/', "-"))).expect("a schema");
    let root: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let mut check = Check { root: &root, faults: Vec::new() };
    check.value(&root, document, "", &BTreeSet::new());
    check.faults
}

struct Check<'a> {
    root: &'a Value,
    faults: Vec<String>,
}

impl<'a> Check<'a> {
    /// Checks a value. `others` are names that another part of the schema defines for the same object.
    fn value(
        &mut self,
        schema: &'a Value,
        value: &Value,
        at: &str,
        outer_names: &BTreeSet<&'a str>,
    ) {
        let Some(words) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                self.faults.push(format!("{at}: nothing is allowed here"));
            }
            return;
        };
        let mut names = outer_names.clone();
        self.names(schema, &mut names);
        for (word, says) in words {
            // Names that a pattern allows are not additional; what they are is looked at.
            if word == "additionalProperties" && words.contains_key("patternProperties") {
                continue;
            }
            if !self.word(word, says, (value, at), &names) {
                self.faults.push(format!("{at}: {word} {says}: {}", short(value)));
            }
        }
        // Readers ignore what they do not know; this one wants to be told.
        let is_open = self.says_of_others(schema) || names.is_empty();
        for name in value.as_object().into_iter().flat_map(|all| all.keys()) {
            if !is_open && !names.contains(&**name) {
                self.faults.push(format!("{at}/{name}: it is not in the schema"));
            }
        }
    }

    /// Returns true if a schema, or the one that it refers to, says which other properties an object may have.
    fn says_of_others(&self, schema: &'a Value) -> bool {
        let referred = schema.get("$ref").map(|says| self.named(says));
        schema.get("additionalProperties").is_some()
            || referred.is_some_and(|schema| self.says_of_others(schema))
    }

    /// Returns true if a keyword of a schema holds for the value itself, without the values in it.
    fn word(
        &mut self,
        word: &str,
        says: &'a Value,
        (value, at): (&Value, &str),
        names: &BTreeSet<&'a str>,
    ) -> bool {
        match word {
            "$schema" | "$defs" | "title" | "description" | "default" => true,
            "$ref" => {
                let named = self.named(says);
                self.value(named, value, at, names);
                true
            }
            "const" => says == value,
            "enum" => list(says).contains(value),
            "type" => match says {
                Value::Array(any) => any.iter().any(|kind| is_of(kind, value)),
                one => is_of(one, value),
            },
            "required" => {
                let mut names = list(says).iter().filter_map(Value::as_str);
                names.all(|name| !value.is_object() || value.get(name).is_some())
            }
            "minimum" => value.as_f64().is_none_or(|value| Some(value) >= says.as_f64()),
            "maximum" => value.as_f64().is_none_or(|value| Some(value) <= says.as_f64()),
            "minItems" => value.as_array().is_none_or(|all| all.len() as u64 >= number(says)),
            "maxItems" => value.as_array().is_none_or(|all| all.len() as u64 <= number(says)),
            "oneOf" => self.fitting(says, value, names) == 1,
            "anyOf" => self.fitting(says, value, names) > 0,
            _ => {
                self.inside(word, says, (value, at), names);
                true
            }
        }
    }

    /// Checks the values in a value.
    fn inside(
        &mut self,
        word: &str,
        says: &'a Value,
        (value, at): (&Value, &str),
        names: &BTreeSet<&'a str>,
    ) {
        match word {
            "properties" => {
                for (name, schema) in says.as_object().expect("an object") {
                    if let Some(value) = value.get(name) {
                        self.value(schema, value, &format!("{at}/{name}"), &BTreeSet::new());
                    }
                }
            }
            "patternProperties" => {
                let all = says.as_object().expect("an object");
                let [any] = all.values().collect::<Vec<_>>()[..] else {
                    panic!("{at}: several patterns are not understood");
                };
                self.inside("additionalProperties", any, (value, at), names);
            }
            "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if !names.contains(&**name) {
                        self.value(says, value, &format!("{at}/{name}"), &BTreeSet::new());
                    }
                }
            }
            "items" | "prefixItems" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                for (index, item) in items {
                    let schema = match word {
                        "items" => Some(says),
                        _ => says.get(index),
                    };
                    if let Some(schema) = schema {
                        self.value(schema, item, &format!("{at}/{index}"), &BTreeSet::new());
                    }
                }
            }
            other => panic!("{at}: `{other}` is not understood"),
        }
    }

    /// Returns the number of schemas in a list that a value fits.
    fn fitting(&self, schemas: &'a Value, value: &Value, names: &BTreeSet<&'a str>) -> usize {
        list(schemas)
            .iter()
            .filter(|schema| {
                let mut check = Check { root: self.root, faults: Vec::new() };
                check.value(schema, value, "", names);
                check.faults.is_empty()
            })
            .count()
    }

    /// Adds the names that a schema itself defines for an object.
    fn names(&self, schema: &'a Value, names: &mut BTreeSet<&'a str>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        names.extend(properties.into_iter().flat_map(|all| all.keys()).map(|name| &**name));
        if let Some(named) = schema.get("$ref") {
            self.names(self.named(named), names);
        }
        for word in ["oneOf", "anyOf"] {
            let parts = schema.get(word).and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.names(part, names);
            }
        }
    }

    fn named(&self, reference: &Value) -> &'a Value {
        let path = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let named = path.and_then(|path| self.root.pointer(path));
        named.expect("a reference")
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str().expect("a type's name") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("`{other}` is no type"),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}
