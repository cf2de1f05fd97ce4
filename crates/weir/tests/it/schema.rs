//! Documents against their schema: as much of JSON Schema (draft 2020-12) as the schemas in docs/ are written in.

use serde_json::Value;

/// Everything in `document` that a schema of docs/ does not allow, each with its place; a word of the schema that is
/// not understood here is an error too.
pub(crate) fn faults(schema: &str, document: &Value) -> Vec<String> {
    let path = format!("{}/../../docs/{schema}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a schema");
    let root: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let mut faults = Vec::new();
    check(&root, &root, document, "", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let words = schema.as_object().expect("a schema is an object");
    for (word, says) in words {
        let holds = match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "properties" => true,
            "$ref" => {
                let path = says.as_str().and_then(|text| text.strip_prefix('#'));
                let named = path
                    .and_then(|path| root.pointer(path))
                    .expect("a reference");
                check(root, named, value, at, faults);
                true
            }
            "const" => says == value,
            "enum" => says.as_array().expect("a list").contains(value),
            "type" => match says {
                Value::Array(any) => any.iter().any(|one| is_of(one, value)),
                one => is_of(one, value),
            },
            "required" => {
                let names = says.as_array().expect("a list").iter();
                let mut names = names.filter_map(Value::as_str);
                names.all(|name| !value.is_object() || value.get(name).is_some())
            }
            "additionalProperties" => {
                assert_eq!(says, &Value::Bool(false), "{word}");
                let known = |name: &String| words["properties"].get(name).is_some();
                value.as_object().is_none_or(|all| all.keys().all(known))
            }
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, says, item, &format!("{at}/{place}"), faults);
                }
                true
            }
            "oneOf" => {
                let fits = |one: &&Value| {
                    let mut own = Vec::new();
                    check(root, one, value, at, &mut own);
                    own.is_empty()
                };
                says.as_array().expect("a list").iter().filter(fits).count() == 1
            }
            other => panic!("{at}: `{other}` is not understood"),
        };
        if !holds {
            faults.push(format!("{at}: {word} {says}: {}", short(value)));
        }
    }
    let properties = words.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(value) = value.get(name) {
            check(root, schema, value, &format!("{at}/{name}"), faults);
        }
    }
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
