//! Values within a text of an object, such as a configuration file in a ConfigMap.
//!
//! The text is one value to the cluster: it is written as a whole, and restored as a whole, to the byte. Lines without
//! such values stay as they were before weir.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_configuration::document::{self, Edit, Format, Pointer};
use weir_configuration::{ConfigurationError, Source, SourceFile};
use weir_kube::{KubeError, ObjectRef};
use weir_objects::Changes;

/// Separator between the place of a text and a place within it.
const WITHIN: char = '#';

/// Wanted values in an object, by place; `None`: the value from before weir.
type ValuesByPlace = BTreeMap<String, Option<Value>>;

/// Replaces values within texts by the whole texts. A text without a wanted value is as it was before weir.
pub(super) fn whole(
    changes: &mut Changes,
    object: &ObjectRef,
    wanted: ValuesByPlace,
) -> Result<ValuesByPlace, KubeError> {
    let mut texts: BTreeMap<String, ValuesByPlace> = BTreeMap::new();
    let mut whole_texts = ValuesByPlace::new();
    for (at, value) in wanted {
        match at.split_once(WITHIN) {
            Some((text, within)) => {
                texts.entry(text.to_owned()).or_default().insert(within.to_owned(), value);
            }
            None => {
                whole_texts.insert(at, value);
            }
        }
    }
    if texts.is_empty() {
        return Ok(whole_texts);
    }
    let former = changes.former(object)?;
    for (at, values) in texts {
        let before = former.pointer(&at).and_then(Value::as_str);
        let text = edited(before, &at, values).map_err(|why| KubeError::Request {
            doing: format!("cannot change {at} of {object}"),
            why,
        })?;
        whole_texts.insert(at, text.map(Value::String));
    }
    Ok(whole_texts)
}

/// Returns the text `before`, which is YAML and stands at `at` in an object, with these values by their place within
/// it. `None` if no value is wanted.
///
/// # Errors
/// There is no text, it is not YAML, or it has no place for a value; the error is a sentence.
pub fn edited(
    before: Option<&str>,
    at: &str,
    values: BTreeMap<String, Option<Value>>,
) -> Result<Option<String>, String> {
    let edits = values.into_iter().filter_map(|(within, value)| {
        let (at, value) = (Pointer::parse(&within), Some(value?.to_string()));
        Some(Edit { at, value })
    });
    let edits: Vec<Edit> = edits.collect();
    if edits.is_empty() {
        return Ok(None);
    }
    let text = before.ok_or("there is no such text in it")?.to_owned();
    let file = SourceFile { path: at.into(), text };
    let source = Source::new(vec![file]);
    let mut after = document::set(&source, Format::Yaml, &edits)
        .map_err(|error: ConfigurationError| error.to_string())?;
    Ok(Some(after.files.swap_remove(0).text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Configuration of Contour's own example.
    const BEFORE: &str = "\
# Where xDS is served.
server:
  xds-server-type: contour
tls:
# minimum-protocol-version: \"1.2\"
  fallback-certificate:
  # name: fallback
timeouts:
  request-timeout: infinity # for uploads
  #   stream-idle-timeout: 5m
accesslog-format: envoy
";

    fn after(values: &[(&str, Value)]) -> Result<Option<String>, String> {
        let values_by_place =
            values.iter().map(|(at, value)| ((*at).to_owned(), Some(value.clone())));
        edited(Some(BEFORE), "/data/contour.yaml", values_by_place.collect())
    }

    #[test]
    fn values_are_set_in_their_lines_and_all_others_stay() {
        let values = [
            ("/timeouts/request-timeout", json!("8s")),
            ("/listener/max-requests-per-connection", json!(10)),
            ("/accesslog-level", json!("disabled")),
            ("/tls/minimum-protocol-version", json!("1.3")),
        ];
        let text = after(&values).unwrap().expect("it is another");
        let read: Value = serde_json::to_value(
            document::value(
                &Source::new(vec![SourceFile { path: "f".into(), text: text.clone() }]),
                Format::Yaml,
            )
            .unwrap(),
        )
        .unwrap();
        for (at, value) in &values {
            assert_eq!(read.pointer(at), Some(value), "{text}");
        }
        for line in BEFORE.lines().filter(|line| !line.contains("request-timeout")) {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert!(text.contains("8s\" # for uploads") || text.contains("8s # for uploads"));
        assert_eq!(after(&[]), Ok(None));
    }

    #[test]
    fn a_text_that_has_no_place_for_a_value_is_told() {
        let error = after(&[("/accesslog-format/level", json!("x"))]).unwrap_err();
        assert!(error.contains("contour.yaml"), "{error}");
        let wanted = BTreeMap::from([("/a".to_owned(), Some(json!(1)))]);
        assert!(edited(None, "/data/contour.yaml", wanted).is_err());
    }
}
